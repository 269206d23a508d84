"""What studies of annotated texts share: their heads, what was left out, and numbers as printed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from headscope.record import Stack

NAMED_WITH_REASON = 20


def cells_of(stack: Stack) -> tuple[tuple[int, int], ...]:
    """Layer and head of every map of a stack."""
    return tuple((layer.layer, head) for layer in stack for head in range(layer.heads))


def said_of(left_out: Mapping[str, str], what: str) -> list[str]:
    """Lines that count and name what was left out."""
    if not left_out:
        return []
    listed = list(left_out.items())
    lines = [f"  {name}: {reason}" for name, reason in listed[:NAMED_WITH_REASON]]
    more = [name for name, _ in listed[NAMED_WITH_REASON:]]
    return [f"{len(left_out)} {what} left out:", *lines, *([f"  and {', '.join(more)}"] if more else [])]


def percent(value: float, ends: Sequence[float] | None = None) -> str:
    """A share as printed, with its interval."""
    if math.isnan(value):
        return "-"
    shown = f"{100 * value:.1f}"
    return shown if ends is None or math.isnan(ends[0]) else f"{shown} [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"


def p_shown(p: float) -> str:
    """A probability as printed."""
    if math.isnan(p):
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
