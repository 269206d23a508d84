"""An axis of numbers along a side of a picture, and names next to it that do not overlap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from headscope.views.figures._sheet import Sheet

STEPS = (0.5, 0.25, 0.1, 0.05, 0.01)
ZERO = 1e-9
"""Numbers nearer to 0 than this count as 0: they differ from it by rounding errors only."""


@dataclass(frozen=True)
class Axis:
    """An axis: the positions of its ends in millimetres, and the numbers there."""

    start: float
    stop: float
    low: float
    high: float

    def at(self, value: float) -> float:
        """Position of a number in millimetres."""
        return float(
            self.start + (self.stop - self.start) * (value - self.low) / (self.high - self.low)
        )

    def ticks(self, least: int = 3) -> list[float]:
        """A few round numbers between the ends."""
        span = self.high - self.low
        # For numbers far above 1 the steps are 50, 25, 10 ...
        unit = 10.0 ** max(0.0, np.ceil(np.log10(span / 2))) if span > 2 else 1.0
        steps = [unit * step for step in STEPS]
        step = next((size for size in steps if span / size >= least), steps[-1])
        # Ticks are whole multiples of the step and not sums of it, which would add up rounding
        # errors.
        first = int(np.ceil(self.low / step - ZERO))
        return [number * step for number in range(first, int(self.high / step + ZERO) + 1)]


def number_written(value: float) -> str:
    """``"−0.5"``: at most two digits behind the point, and a true minus."""
    text = f"{abs(value):.2f}".rstrip("0").rstrip(".") or "0"
    return f"−{text}" if value < -ZERO else text


def percent_written(value: float) -> str:
    """``"25 %"``."""
    return f"{number_written(100 * value)} %"


def draw_upright_grid(
    sheet: Sheet,
    axis: Axis,
    ends: tuple[float, float],
    written: Callable[[float], str] = number_written,
) -> None:
    """Upright lines at the ticks of an axis from left to right, their numbers below.

    Args:
        sheet: what is drawn on.
        axis: of millimetres from the left.
        ends: where the lines begin and end, in millimetres from above.
        written: how a number is written.
    """
    style, (top, bottom) = sheet.style, ends
    for tick in axis.ticks():
        x, is_zero = axis.at(tick), abs(tick) < ZERO
        colour, line = (style.muted, 0.7) if is_zero else (style.edge, 0.4)
        sheet.line([x, x], [top, bottom], colour=colour, line=line)
    words = {axis.at(tick): written(tick) for tick in axis.ticks()}
    write_below(sheet, words, bottom + 0.8 * style.em)


def write_below(sheet: Sheet, words: Mapping[float, str], y: float) -> None:
    """Write numbers below an axis, from left to right, without those that have no room.

    Args:
        sheet: what is drawn on.
        words: what is written, by its middle in millimetres.
        y: their height.
    """
    style, end = sheet.style, -np.inf
    for x, written in words.items():
        half = sheet.width_of(written, style.small) / 2
        if x - half > end:
            sheet.note(x, y, written, anchor="center")
            end = x + half + 0.3 * style.em


def draw_level_grid(
    sheet: Sheet,
    axis: Axis,
    ends: tuple[float, float],
    written: Callable[[float], str] = number_written,
) -> None:
    """Level lines at the ticks of an axis from above, their numbers on the left.

    Args:
        sheet: what is drawn on.
        axis: of millimetres from above.
        ends: where the lines begin and end, in millimetres from the left.
        written: how a number is written.
    """
    style = sheet.style
    for tick in axis.ticks():
        y, is_zero = axis.at(tick), abs(tick) < ZERO
        colour = style.muted if is_zero else style.edge
        sheet.line(list(ends), [y, y], colour=colour, line=0.4)
        sheet.note(ends[0] - 0.5 * style.em, y, written(tick), anchor="right")


def apart(heights: Mapping[str, float], least: float, lowest: float) -> dict[str, float]:
    """Heights of names, moved apart so that none overlap and none is below the lowest."""
    # Neighbours that touch become a group around the mean of their heights, and groups that touch
    # are joined in turn: so names stay as near to their lines as they can.
    groups: list[tuple[list[str], float]] = []
    for name in sorted(heights, key=heights.__getitem__):
        groups.append(([name], min(heights[name], lowest)))
        while len(groups) > 1:
            (first, above), (second, below) = groups[-2:]
            if below - above >= least * (len(first) + len(second)) / 2:
                break
            both = (above * len(first) + below * len(second)) / (len(first) + len(second))
            names = first + second
            groups[-2:] = [(names, min(both, lowest - (len(names) - 1) / 2 * least))]
    return {
        name: middle + (index - (len(names) - 1) / 2) * least
        for names, middle in groups
        for index, name in enumerate(names)
    }
