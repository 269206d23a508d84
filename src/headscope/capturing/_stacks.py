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
    names = {group: _role(*group) for group in groups}
    taken = list(names.values())
    return {
        group: name if taken.count(name) == 1 else ".".join(filter(None, [group[0], "cross" * group[1]]))
        for group, name in names.items()
    }


def number_layers(calls: Sequence[Call]) -> list[int]:
    """Layer numbers of the calls of one group: the model's own where every call has one, else counted."""
    found = (getattr(call.module, "layer_idx", None) for call in calls)
    own = [number for number in found if isinstance(number, int)]
    return own if len(own) == len(calls) and sorted(set(own)) == own else list(range(len(calls)))


def _role(path: str, cross: bool) -> str:
    if cross:
        return "cross"
    for part in path.split("."):
        if part in ("encoder", "decoder"):
            return part
    return path or "self"
