"""Groups of calls that form a stack, and their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from headscope.capturing.calls.call import Call

TIME, SPACE = "time", "space"
"""Kinds of attention between the patches of a video: within one place, and within one frame."""


class StackKey(NamedTuple):
    """The calls of one stack.

    Args:
        path: of the list of blocks that the modules stand in; else the name of the module.
        cross: whether the calls are cross-attention.
        kind: kind of the queries, see `headscope.capturing.building._side_tokens.SideTokens`.
        part: number that separates groups that differ only in their tokens, as the stages of Swin.
    """

    path: str
    cross: bool
    kind: str = ""
    part: int = 0


def group_of(call: Call) -> StackKey:
    """The group of a call, as far as it follows from its module."""
    return StackKey(call.name if call.block is None else call.block[0], call.cross)


def name_groups(groups: Sequence[StackKey]) -> dict[StackKey, str]:
    """A short name for each group.

    ``self`` for a single group; ``encoder``, ``decoder`` and ``cross`` in encoder-decoders; the
    kind of the queries (``text``, ``vision``, ``audio``) in others; or else the module path, with
    the kind of the queries where that alone tells two groups apart. Parts become ``stage1``,
    ``stage2`` ... Attention of a video that is divided is ``time`` and ``space``.
    """
    groups = list(dict.fromkeys(groups))
    wholes = list(dict.fromkeys(group._replace(part=0) for group in groups))
    names = _name_wholes(wholes)
    part_names = {}
    for whole in wholes:
        parts = [group for group in groups if group._replace(part=0) == whole]
        name = names[whole]
        stage = "stage" if name == "self" else f"{name}.stage"
        part_names |= {
            part: name if len(parts) == 1 else f"{stage}{number}"
            for number, part in enumerate(parts, start=1)
        }
    return part_names


def _name_wholes(groups: list[StackKey]) -> dict[StackKey, str]:
    if len(groups) == 1 and not groups[0].cross:
        return {groups[0]: "self"}
    names = {group: role_of(group.path, group.cross) for group in groups}
    if "decoder" not in names.values():
        # A model of pictures that reads frame by frame has attention in space alone.
        is_divided = any(group.kind == TIME for group in groups)
        others = {} if is_divided else {SPACE: "vision"}
        names = {group: others.get(group.kind, group.kind) or name for group, name in names.items()}
    # Each step tells apart those groups that the one before gave the same name.
    names = _replaced_twins(names, lambda group: _joined(group.path, "cross" * group.cross))
    return _replaced_twins(names, lambda group: _joined(names[group], group.kind))


def _replaced_twins(
    names: dict[StackKey, str], longer: Callable[[StackKey], str]
) -> dict[StackKey, str]:
    """Names, with a longer one for each group that shares its name with another."""
    taken = Counter(names.values())
    return {group: longer(group) if taken[name] > 1 else name for group, name in names.items()}


def _joined(*parts: str) -> str:
    return ".".join(filter(None, parts)) or "self"


def number_layers(own: Sequence[int | None], blocks: Sequence[int | None] = ()) -> list[int]:
    """Layer numbers of the calls of one group.

    Args:
        own: the layer numbers in the model's modules.
        blocks: the numbers of the blocks in their list.

    Returns:
        The first of both that is known for all calls and ascends; else the calls are counted.
    """
    for numbers in (own, blocks):
        given = [number for number in numbers if isinstance(number, int)]
        if given and len(given) == len(own) and sorted(set(given)) == given:
            return given
    return list(range(len(own)))


def role_of(path: str, cross: bool) -> str:
    """The name of a group where it is the only one of its role."""
    if cross:
        return "cross"
    for part in path.split("."):
        if part in ("encoder", "decoder"):
            return part
    return path or "self"


def order_of(name: str) -> int:
    """Key for sorting stacks: encoder, decoder, cross; all others keep their order before them."""
    return (
        ("encoder", "decoder", "cross").index(name)
        if name in ("encoder", "decoder", "cross")
        else -1
    )
