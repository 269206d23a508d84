"""Legends: a mark and a name for each series, on as many lines as they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headscope.views.figures._sheet import Sheet

Mark = Callable[[Sheet, float, float], None]
"""A function that draws a mark around a point."""
ROOM = 1.5
"""Room to either side of a mark's centre in millimetres."""


@dataclass(frozen=True)
class LegendEntry:
    """One mark and what it means."""

    name: str
    mark: Mark


def square(colour: str, size: float = 1.8) -> Mark:
    """A square of a colour, with a thin edge."""

    def draw(sheet: Sheet, x: float, y: float) -> None:
        sheet.rect(
            x - size / 2, y - size / 2, size, size, fill=colour, edge=sheet.style.edge, line=0.3
        )

    return draw


def draw_legend(
    sheet: Sheet, entries: Sequence[LegendEntry], y: float, *, left: float = 0.0
) -> float:
    """Draw the entries side by side, in as many lines as they need; return the next y.

    Args:
        sheet: what is drawn on.
        entries: in their order.
        y: where the first line begins.
        left: where each line begins.
    """
    style = sheet.style
    x, pitch = left, 1.5 * style.em
    for entry in entries:
        words = sheet.shown(entry.name)
        wide = 2 * ROOM + 0.3 * style.em + sheet.width_of(words, style.small)
        if x > left and x + wide > sheet.width:
            x, y = left, y + pitch
        entry.mark(sheet, x + ROOM, y + pitch / 2)
        sheet.note(x + 2 * ROOM + 0.3 * style.em, y + pitch / 2, words)
        x += wide + 1.4 * style.em
    return y + pitch
