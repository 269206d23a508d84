"""What studies of annotated texts share: their heads, what was left out, and numbers as printed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

NAMED_WITH_REASON = 20


def left_out_lines(left_out: Mapping[str, str], what: str) -> list[str]:
    """Lines that count and name what was left out."""
    if not left_out:
        return []
    listed = list(left_out.items())
    lines = [f"  {name}: {reason}" for name, reason in listed[:NAMED_WITH_REASON]]
    more = [name for name, _ in listed[NAMED_WITH_REASON:]]
    return [
        f"{len(left_out)} {what} left out:",
        *lines,
        *([f"  and {', '.join(more)}"] if more else []),
    ]


def percent(value: float, ends: Sequence[float] | None = None) -> str:
    """A share as printed, with its interval."""
    if math.isnan(value):
        return "-"
    shown = f"{100 * value:.1f}"
    if ends is None or math.isnan(ends[0]):
        return shown
    return f"{shown} [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"


def above_of(each: Any) -> tuple[str, str]:
    """How far what was chosen is above its baseline, with its interval, and its spread over splits;
    as printed.
    """
    if math.isnan(each.held_out_above):
        return "-", "-"
    ends = ", ".join(
        f"{100 * end:+.1f}" for end in (each.held_out_above_low, each.held_out_above_high)
    )
    interval = "" if math.isnan(each.held_out_above_low) else f" [{ends}]"
    return f"{100 * each.held_out_above:+.1f}{interval}", f"{100 * each.held_out_above_spread:.1f}"
