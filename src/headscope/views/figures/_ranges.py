"""The chart of dots: rows of marks with intervals, for numbers and the baselines that they are
compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headscope.views.figures._axis import Axis, draw_upright_grid, number_written
from headscope.views.figures._legend import LegendEntry, Mark, draw_legend
from headscope.views.figures._palette import head_colours, head_greys
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import Style

ROW = 1.75
"""Height of a row, in units of the font size."""
MARK = 1.7
"""Diameter of a mark in millimetres."""
MOST_SIDE = 0.4
"""Largest share of the width for the names of rows."""
COLOURS = (0, 1, 2, 5, 8, 10)
"""Indices of the colours, in a palette of twelve, that are easiest to distinguish."""


@dataclass(frozen=True)
class Value:
    """A number, and the ends of its interval; NaN where they are unknown."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


@dataclass(frozen=True)
class Row:
    """One line: its name on the left, a value for each series, a note on the right."""

    name: str
    values: Mapping[str, Value] = field(default_factory=dict)
    note: str = ""


def series_colours(style: Style, count: int) -> list[str]:
    """A colour for each of several series, or a grey where there are no colours."""
    if not style.colour:
        return head_greys(count, dark=style.dark)
    palette = head_colours(12, dark=style.dark)
    return [palette[COLOURS[number % len(COLOURS)]] for number in range(count)]


def marks_of(style: Style, names: Sequence[str]) -> dict[str, tuple[str, Mark]]:
    """Colour and mark of each series: the first is a filled dot, its first baseline an upright
    line, and the others are hollow.
    """
    colours = [style.accent, style.ink, *series_colours(style, len(names) + 2)[1:]]
    shapes = (dot, _tick, _diamond, _triangle, hollow_square)
    return {
        name: (colours[number], shapes[number % len(shapes)](colours[number]))
        for number, name in enumerate(names)
    }


def names_of(rows: Sequence[Row]) -> list[str]:
    """The series of all rows, in the order in which they come."""
    return list(dict.fromkeys(name for row in rows for name in row.values))


def draw_ranges(
    sheet: Sheet,
    rows: Sequence[Row],
    y: float,
    *,
    ends: tuple[float, float],
    written: Callable[[float], str] = number_written,
) -> float:
    """Draw a line for each row, the legend above; return the next y.

    Args:
        sheet: what is drawn on.
        rows: from above.
        y: where it begins.
        ends: the numbers at the left and the right end of every line.
        written: how numbers are written below.
    """
    style, marks = sheet.style, marks_of(sheet.style, names_of(rows))
    entries = [LegendEntry(name, mark) for name, (_, mark) in marks.items()]
    y = draw_legend(sheet, entries, y) + 0.4 * style.em
    names = [sheet.fitted(sheet.shown(row.name), MOST_SIDE * sheet.width) for row in rows]
    side = max(map(sheet.width_of, names)) + 1.2 * style.em
    notes = max(sheet.width_of(row.note, style.small) for row in rows)
    # Half of the last number is to the right of the axis.
    right = max(notes + 0.8 * style.em, 1.2 * style.em) if notes else 1.2 * style.em
    axis = Axis(side, sheet.width - right, *ends)
    pitch = ROW * style.em
    bottom = y + len(rows) * pitch
    draw_upright_grid(sheet, axis, (y, bottom), written)
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        middle = y + (number + 0.5) * pitch
        sheet.text(side - 0.8 * style.em, middle, name, anchor="right")
        if row.note:
            sheet.note(sheet.width - notes, middle, row.note)
        # Drawn last to first, so that the series in question lies over its baselines.
        for series in reversed(list(marks)):
            if series in row.values:
                draw_value(sheet, row.values[series], marks[series], at=(axis, middle))
    return bottom + 2.0 * style.em


def draw_value(
    sheet: Sheet, shown: Value, look: tuple[str, Mark], *, at: tuple[Axis, float]
) -> None:
    """Draw a mark with its interval.

    Args:
        sheet: what is drawn on.
        shown: the number; without a mark where it is unknown.
        look: colour of the interval, and the mark.
        at: the axis, and the middle of the row in millimetres.
    """
    (colour, mark), (axis, middle) = look, at
    if np.isfinite(shown.low) and np.isfinite(shown.high):
        ends = [axis.at(end) for end in np.clip((shown.low, shown.high), axis.low, axis.high)]
        sheet.line(ends, [middle, middle], colour=colour, line=1.1)
    if np.isfinite(shown.value):
        mark(sheet, axis.at(shown.value), middle)


def dot(colour: str, *, size: float = MARK, is_hollow: bool = False) -> Mark:
    """A filled dot of a colour, or its edge alone."""

    def draw(sheet: Sheet, x: float, y: float) -> None:
        fill = sheet.style.paper if is_hollow else colour
        sheet.dot(x, y, size, fill=fill, edge=colour, line=0.9, layer=4)

    return draw


def _tick(colour: str) -> Mark:
    def draw(sheet: Sheet, x: float, y: float) -> None:
        sheet.line([x, x], [y - 0.75 * MARK, y + 0.75 * MARK], colour=colour, line=1.6)

    return draw


def _diamond(colour: str) -> Mark:
    return _hollow(colour, ((0.0, -0.6), (0.6, 0.0), (0.0, 0.6), (-0.6, 0.0)))


def _triangle(colour: str) -> Mark:
    return _hollow(colour, ((0.0, -0.6), (0.55, 0.45), (-0.55, 0.45)))


def hollow_square(colour: str, *, size: float = MARK) -> Mark:
    """The edge of a square."""
    corners = ((-0.45, -0.45), (0.45, -0.45), (0.45, 0.45), (-0.45, 0.45))
    return _hollow(colour, corners, size)


def _hollow(colour: str, corners: Sequence[tuple[float, float]], size: float = MARK) -> Mark:
    def draw(sheet: Sheet, x: float, y: float) -> None:
        points = [(x + size * across, y + size * down) for across, down in corners]
        sheet.polygon(points, fill=sheet.style.paper, edge=colour, line=0.9, layer=3)

    return draw
