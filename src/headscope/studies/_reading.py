"""What studies of annotated texts share: which record belongs to which text, and what was left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headscope.errors import HeadscopeError
from headscope.record import Record, Stack
from headscope.studies._source import Source

NAMED_WITH_REASON = 20


def numbered(source: Source, lost: dict[int, str], model: Any = None) -> Iterator[tuple[int, Record]]:
    """The record of each text with its number; why a text has none goes to ``lost``.

    Args:
        source: a model and texts.
        lost: is filled with the number of each text that could not be captured, and the reason.
        model: another one to read the same texts.
    """

    def lose(number: int, error: HeadscopeError) -> None:
        lost[number] = str(error)

    records = source.records(model, keep=("weights",), on_error=lose)
    place = 0
    for record in records:
        # those that are left out are told before any later record comes
        while place in lost:
            place += 1
        yield place, record
        place += 1


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
