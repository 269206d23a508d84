"""Layers as they were seen in one pass, the stacks that they form, and their arrays, which may
leave memory as soon as they are complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from headscope.capturing.building.padding import SideTokens
from headscope.capturing.calls.call import Call
from headscope.capturing.keep import ChosenHeads
from headscope.errors import CaptureError
from headscope.record import (
    ARRAYS,
    STATISTICS,
    Contributions,
    HeldHeads,
    Layer,
    Statistics,
    held,
    part_of,
)

Put = Callable[[np.ndarray], Any]
"""Function that takes an array and gives what is kept in its place."""


Arrays = TypeVar("Arrays", Statistics, Contributions)


def put_away(holder: Arrays, names: Iterable[str], put: Put | None) -> Arrays:
    """The same with its arrays handed over; None to keep them in memory."""
    if put is None:
        return holder
    arrays = {name: held(holder, name) for name in names}
    return replace(holder, **{name: put(own) for name, own in arrays.items() if own is not None})


KEPT_OF_CALL = {
    "queries": ("query", "qk"),
    "keys": ("key", "qk"),
    "values": ("value", "values"),
    "queries_before": ("query_before", "before"),
    "keys_before": ("key_before", "before"),
}
"""Arrays of a `Layer`: which tensor of a call each is, and under what name it is kept."""


class SeenLayer:
    """What is known of a layer of the model: what numbers it, and arguments of a `Layer` for each
    text.

    Args:
        call: its call, of a generation the first one.
        group: the stack that it belongs to.
        size: of the call as it was made, before it was laid out anew.
        sides: its tokens.

    Attributes:
        number: of the call.
        name: of its module.
        cross: whether it is cross-attention.
        size: batch, heads, queries and keys of the call.
        projection: name of the output projection; empty where none was seen.
        own_number: the layer number in its module.
        block: path of the list that holds its block, and the number of the block.
        layers: arguments of a `Layer` for each text.
        chosen: the heads whose arrays are kept, where not all are.
    """

    def __init__(
        self,
        call: Call,
        group: StackKey,
        *,
        size: tuple[int, int, int, int],
        sides: tuple[SideTokens, ...],
    ) -> None:
        self.group: StackKey = group
        self.number: int = call.number
        self.sides: tuple[SideTokens, ...] = sides
        self.name: str = call.name
        self.cross: bool = call.cross
        self.size: tuple[int, int, int, int] = size
        self.projection: str = call.projection_name
        self.own_number: int | None = getattr(call.module, "layer_idx", None)
        self.block: tuple[str, int] | None = call.block
        self.layers: list[dict[str, Any]] = []
        self.kv_heads: int = call.value.shape[1]
        self.chosen: tuple[int, ...] = ()

    @property
    def heads(self) -> int:
        """Number of heads in the model."""
        return self.size[1]

    def choose(self, wanted: ChosenHeads, earlier: Iterable[SeenLayer]) -> bool:
        """Choose every head that may be wanted, whatever number the layer turns out to have once
        all are known; whether there is any.
        """
        before = sum(other.group == self.group for other in earlier)
        numbers = {self.own_number, None if self.block is None else self.block[1], before}
        heads = {head for _, layer, head in wanted.heads if layer in numbers and head < self.heads}
        self.chosen = tuple(sorted(heads))
        return bool(heads)

    def drop_weights(self) -> None:
        """Hold no weights where they follow from queries and keys."""
        for layer in self.layers:
            if "queries" in layer:
                layer["weights"] = None

    def arguments(self, example: int, heads: tuple[int, ...] | None) -> dict[str, Any]:
        """The arguments of the `Layer` of a text that it is: with all heads, or with these."""
        layer = self.layers[example]
        if heads is None:
            return layer
        if layer.get("value_norms") is not None:  # which are of all heads
            layer["value_norms"] = part_of(layer["value_norms"])[list(heads)]
        if heads == self.chosen:
            return layer
        return layer | _of_heads(layer, HeldHeads(self.chosen, self.heads, self.kv_heads), heads)


@dataclass(frozen=True)
class SeenStack:
    """The layers of a stack.

    Args:
        name: of the stack.
        group: what they share.
        layers: by number.
    """

    name: str
    group: StackKey
    layers: dict[int, SeenLayer]

    @property
    def first(self) -> SeenLayer:
        """The layer that was seen first."""
        return next(iter(self.layers.values()))

    def layers_of(self, example: int, wanted: ChosenHeads | None) -> tuple[Layer, ...]:
        """The layers of a text; where only some heads are wanted, those that have any."""
        layers = []
        for number, seen in self.layers.items():
            heads = None
            if wanted is not None:
                heads = wanted.of_layer(number, self.name, most=seen.heads)
            if heads != ():
                layers.append(Layer(layer=number, **seen.arguments(example, heads)))
        return tuple(layers)


def stacks_of(seen: Iterable[SeenLayer], wanted: ChosenHeads | None = None) -> list[SeenStack]:
    """The stacks of layers, in the order in which they were seen.

    Args:
        seen: the layers.
        wanted: the heads that alone are kept; None for all.

    Raises:
        CaptureError: where one of these heads does not exist.
    """
    in_order = sorted(seen, key=lambda layer: layer.number)
    stacks = []
    for group, name in name_groups([layer.group for layer in in_order]).items():
        members = [layer for layer in in_order if layer.group == group]
        stacks.append(SeenStack(name, group, dict(zip(_numbers_of(members), members, strict=True))))
    if wanted is not None:
        wanted.check(
            {
                stack.name: {number: layer.heads for number, layer in stack.layers.items()}
                for stack in stacks
            }
        )
    return stacks


def check_joined(seen: Iterable[SeenLayer]) -> None:
    """Raise where calls of one pass may be parts of one layer, and nothing shows how they belong
    together.

    Args:
        seen: of one pass.

    Raises:
        CaptureError: with the name of the block or module.
    """
    alone = [layer for layer in seen if not layer.projection]
    sizes: dict[tuple[str, bool], set[tuple[int, ...]]] = {}
    for layer in alone:
        sizes.setdefault((layer.name, layer.cross), set()).add(layer.size)
    for (name, _), several in sizes.items():
        if len(several) > 1:
            raise CaptureError(
                f"{name} computes attention in pieces of {len(several)} sizes that cannot be put "
                "together"
            )
    single = [layer for layer in alone if layer.heads == 1]
    heads = Counter((layer.block or layer.name, layer.cross) for layer in single)
    for (block, _), count in heads.items():
        if count > 1:
            name = block if isinstance(block, str) else ".".join(filter(None, map(str, block)))
            raise CaptureError(
                f"{name or 'the model'} computes {count} attentions of one head each, and no "
                "matrix was seen that takes them side by side: whether they are the heads of one "
                "layer or layers of one head cannot be distinguished, and they are refused"
            )


def _numbers_of(members: Sequence[SeenLayer]) -> list[int]:
    blocks = [None if layer.block is None else layer.block[1] for layer in members]
    return number_layers([layer.own_number for layer in members], blocks)


def facts_of_call(call: Call) -> dict[str, Any]:
    """The arguments of a `Layer` that follow from its call alone."""
    return {
        "scale": call.scale,
        "soft_cap": call.soft_cap,
        "module": call.name,
        "projection": call.projection_name,
        "route": call.route,
        "norm": call.norm,
        "latent": getattr(call.module, "kv_lora_rank", None),
        "changes": call.changes,
    }


def _of_heads(layer: dict[str, Any], kept: HeldHeads, numbers: tuple[int, ...]) -> dict[str, Any]:
    """What changes of a layer with fewer heads than were kept of it."""
    chosen = replace(kept, numbers=numbers)
    at = kept.indices(numbers, layer["module"])
    shared = kept.indices(chosen.kv_numbers, layer["module"], shared=True)
    fewer: dict[str, Any] = {"held_heads": chosen}
    for name, axes in ARRAYS.items():
        array = None if name == "value_norms" else layer.get(name)
        if array is not None and (name != "bias" or len(part_of(array)) > 1):
            fewer[name] = part_of(array)[shared if axes.startswith("kv_head") else at]
    if "statistics" in layer:
        fewer["statistics"] = put_away(
            layer["statistics"], STATISTICS, lambda array: part_of(array)[at]
        )
    return fewer


TIME, SPACE = "time", "space"
"""Kinds of attention between the patches of a video: within one place, and within one frame."""


class StackKey(NamedTuple):
    """The calls of one stack.

    Args:
        path: of the list of blocks that the modules stand in; else the name of the module.
        cross: whether the calls are cross-attention.
        kind: kind of the queries, see `headscope.capturing.building.layers.SideTokens`.
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
        names = _by_kind(names)
    # Each step tells apart those groups that the one before gave the same name.
    names = _replaced_twins(names, lambda group: _joined(group.path, "cross" * group.cross))
    return _replaced_twins(names, lambda group: _joined(names[group], group.kind))


def _by_kind(names: dict[StackKey, str]) -> dict[StackKey, str]:
    """Name groups by their kinds; those without one by role or path."""
    # A model of pictures that reads frame by frame has attention in space alone.
    is_divided = any(group.kind == TIME for group in names)
    others = {} if is_divided else {SPACE: "vision"}
    if "cross" not in names.values():
        names = {group: group.path or name for group, name in names.items()}
    return {group: others.get(group.kind, group.kind) or name for group, name in names.items()}


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
    order = ("encoder", "decoder", "cross")
    return order.index(name) if name in order else -1
