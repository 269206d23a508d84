"""Which calls belong together, and what to call them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headscope.capturing._call import Call

Group = tuple[str, bool]


def group_of(call: Call) -> Group:
    """The module path before its first number, and whether the call is cross-attention."""
    return re.split(r"(?:^|\.)\d+(?:\.|$)", call.name)[0], call.cross


def name_groups(groups: Sequence[Group]) -> dict[Group, str]:
    """A short name for each group: ``self``, or ``encoder``, ``decoder`` and ``cross``, or else the module path."""
    groups = list(dict.fromkeys(groups))
    if len(groups) == 1 and not groups[0][1]:
        return {groups[0]: "self"}
    names = {group: role_of(*group) for group in groups}
    taken = list(names.values())
    return {
        group: name if taken.count(name) == 1 else ".".join(filter(None, [group[0], "cross" * group[1]]))
        for group, name in names.items()
    }


def number_layers(own: Sequence[int | None], blocks: Sequence[int | None] = ()) -> list[int]:
    """Layer numbers of the calls of one group.

    Args:
        own: what the model's modules call themselves.
        blocks: the numbers of the blocks in their list.

    Returns:
        The first of both that is known of all and rises from call to call, else the calls counted.
    """
    for numbers in (own, blocks):
        given = [number for number in numbers if isinstance(number, int)]
        if given and len(given) == len(own) and sorted(set(given)) == given:
            return given
    return list(range(len(own)))


def role_of(path: str, cross: bool) -> str:
    """What a group is called where it is the only one of its role."""
    if cross:
        return "cross"
    for part in path.split("."):
        if part in ("encoder", "decoder"):
            return part
    return path or "self"
