"""The charts of results, on one sheet: matrices of heads, lines over layers, dots with intervals,
and bars. A figure of a result says what they show.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, UInt8

from headscope.views.figures._axis import (
    Axis,
    apart,
    draw_level_grid,
    draw_upright_grid,
    number_written,
    write_below,
)
from headscope.views.figures._palette import head_colours, head_greys, text_on
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT, Style

Cell = tuple[int, int]
Mark = Callable[[Sheet, float, float], None]
"""A function that draws a mark around a point."""
ROOM = 1.5
"""Room to either side of a mark's centre in a legend, in millimetres."""
ROW = 1.75
"""Height of a row of dots, in units of the font size."""
MARK = 1.7
"""Diameter of a mark in millimetres."""
MOST_SIDE = 0.4
"""Largest share of the width for the names of rows."""
COLOURS = (0, 1, 2, 5, 8, 10)
"""Indices of the colours, in a palette of twelve, that are easiest to distinguish."""
DOT = 0.9
BAND = 0.2
"""Opacity of a band."""
MOST_NUMBERS = 13
"""Number of layers up to which each has its number; of more layers, only some."""
LARGEST_CELL = 7.0
"""Millimetres of a cell of a matrix."""
COLOUR_BAR = 2.2
"""Height of a colour bar in millimetres."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix:
    """A coloured cell for each head.

    Args:
        rgb: colours of layers and heads.
        rows: names of the rows on the left, such as numbers of layers; may be none.
        columns: names of the columns below; by default their numbers.
        hidden: True where there is no head, or no number of it.
        dots: True where a cell has a dot.
        frames: row and column of cells that are framed.
        words: of each cell.
    """

    rgb: UInt8[np.ndarray, "layer head 3"]
    rows: Sequence[int] = ()
    columns: Sequence[object] | None = None
    hidden: Bool[np.ndarray, "layer head"] | None = None
    dots: Bool[np.ndarray, "layer head"] | None = None
    frames: Collection[Cell] = ()
    words: Mapping[Cell, str] = field(default_factory=dict)


def draw_matrix(sheet: Sheet, matrix: Matrix, *, at: tuple[float, float], cell: float) -> None:
    """Draw the cells, their frame and marks, and the names of rows and columns.

    Args:
        sheet: what is drawn on.
        matrix: what is shown.
        at: x and y of the upper left corner of the cells.
        cell: millimetres of a cell.
    """
    style, (x, y), (rows, heads) = sheet.style, at, matrix.rgb.shape[:2]
    high, wide = rows * cell, heads * cell
    sheet.cells(matrix.rgb, at=at, size=(wide, high), hidden=matrix.hidden)
    sheet.rect(x, y, wide, high, edge=style.edge, line=0.35, layer=3)
    dots = np.zeros((rows, heads), bool) if matrix.dots is None else matrix.dots
    for row, column in np.argwhere(dots):
        middle = (x + (column + 0.5) * cell, y + (row + 0.5) * cell)
        sheet.dot(*middle, 0.28 * cell, fill=text_on(matrix.rgb[row, column]), layer=4)
    for row, column in matrix.frames:
        corner = (x + column * cell, y + row * cell)
        sheet.rect(*corner, cell, cell, edge=style.ink, line=1.0, layer=4)
    for (row, column), words in matrix.words.items():
        middle = (x + (column + 0.5) * cell, y + (row + 0.5) * cell)
        ink = text_on(matrix.rgb[row, column])
        sheet.text(*middle, words, size=style.small, colour=ink, anchor="center")
    draw_row_names(sheet, matrix.rows, at=at, cell=cell)
    columns = [str(each) for each in matrix.columns or range(heads)]
    room = max(sheet.width_of(columns[-1], style.small), style.small * POINT)
    for column in range(0, heads, max(1, int(np.ceil(1.3 * room / cell)))):
        middle = x + (column + 0.5) * cell
        sheet.note(middle, y + high + 0.7 * style.em, columns[column], anchor="center")


def draw_row_names(
    sheet: Sheet, rows: Sequence[int], *, at: tuple[float, float], cell: float
) -> None:
    """The names of as many rows as there is room for, on the left of what begins at this corner."""
    (x, y), style = at, sheet.style
    for row in range(0, len(rows), max(1, int(np.ceil(1.3 * style.small * POINT / cell)))):
        sheet.note(x - 0.4 * style.em, y + (row + 0.5) * cell, str(rows[row]), anchor="right")


def draw_colour_bar(
    sheet: Sheet,
    rgb: UInt8[np.ndarray, "1 column 3"],
    marks: Sequence[tuple[float, str]],
    *,
    at: tuple[float, float],
    width: float,
    line: bool = False,
) -> float:
    """Draw the bar with words below it; return the next y.

    Args:
        sheet: what is drawn on.
        rgb: its colours.
        marks: a part of the width, and what stands there; the words of the second keep clear of
            those at the ends.
        at: its upper left corner.
        width: in millimetres.
        line: whether a line marks the place of the second.
    """
    style, (x, y) = sheet.style, at
    sheet.cells(rgb, at=at, size=(width, COLOUR_BAR))
    sheet.rect(x, y, width, COLOUR_BAR, edge=style.edge, line=0.35, layer=3)
    below = y + COLOUR_BAR + 0.85 * style.em
    gap = 0.5 * style.em
    ends = [sheet.width_of(words, style.small) + gap for part, words in marks if part in (0, 1)]
    for part, words in marks:
        place, half = x + part * width, sheet.width_of(words, style.small) / 2
        if part in (0, 1):
            sheet.note(place, below, words, anchor="right" if part else "left")
            continue
        if line:
            ticks = [y - 0.6, y + COLOUR_BAR + 0.6]
            sheet.line([place, place], ticks, colour=style.ink, line=1.0)
        low, high = (x + ends[0] + half, x + width - ends[-1] - half) if ends else (place, place)
        sheet.note(min(max(place, low), high), below, words, anchor="center")
    return below + 1.4 * style.em


@dataclass(frozen=True)
class Bar:
    """A bar: its name on the left, its value and interval, and the words on its right."""

    name: str
    value: float
    low: float
    high: float
    words: str
    colour: str


def draw_bars(
    sheet: Sheet,
    bars: Sequence[Bar],
    axis: Axis,
    y: float,
    *,
    pitch: float,
    share: float,
    edge: float | None = None,
) -> None:
    """Draw bars from 0 on with their intervals.

    Args:
        sheet: what is drawn on.
        bars: from above.
        axis: of the values; intervals end with it.
        y: where the first row begins.
        pitch: millimetres of a row.
        share: part of a row that is its bar.
        edge: x where all words end; by default they stand behind their bars.
    """
    style = sheet.style
    for number, bar in enumerate(bars):
        middle = y + (number + 0.5) * pitch
        sheet.note(axis.start - 0.5 * style.em, middle, bar.name, anchor="right")
        if np.isnan(bar.value):
            continue
        value = max(bar.value, axis.low)
        first, last = sorted((axis.at(0.0), axis.at(value)))
        top = middle - share * pitch / 2
        sheet.rect(first, top, last - first, share * pitch, fill=bar.colour)
        end = value
        if np.isfinite(bar.low):
            ends = np.clip((bar.low, bar.high), axis.low, axis.high)
            places = [axis.at(each) for each in ends]
            sheet.line(places, [middle, middle], colour=style.ink, line=0.8)
            end = max(end, float(ends[1]))
        if edge is None:
            sheet.note(axis.at(end) + 0.5 * style.em, middle, bar.words)
        else:
            sheet.note(edge, middle, bar.words, anchor="right")


def draw_legend(sheet: Sheet, marks: Mapping[str, Mark], y: float) -> float:
    """Draw each mark and its name side by side, in as many lines as they need; return the next
    y.
    """
    style = sheet.style
    x, pitch = 0.0, 1.5 * style.em
    for name, mark in marks.items():
        words = sheet.shown(name)
        wide = 2 * ROOM + 0.3 * style.em + sheet.width_of(words, style.small)
        if x > 0 and x + wide > sheet.width:
            x, y = 0.0, y + pitch
        mark(sheet, x + ROOM, y + pitch / 2)
        sheet.note(x + 2 * ROOM + 0.3 * style.em, y + pitch / 2, words)
        x += wide + 1.4 * style.em
    return y + pitch


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


def draw_dots(
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
    y = draw_legend(sheet, {name: mark for name, (_, mark) in marks.items()}, y) + 0.4 * style.em
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


@dataclass(frozen=True, eq=False)
class Line:
    """One line: its name (may be empty), its colour, and a number and interval for each layer."""

    name: str
    colour: str
    values: Float[np.ndarray, " layer"]
    ends: Float[np.ndarray, "layer 2"]


@dataclass(frozen=True)
class Box:
    """A rectangle on the sheet: its left and upper edge, width and height in millimetres."""

    x: float
    y: float
    width: float
    height: float


def draw_lines(
    sheet: Sheet,
    lines: Sequence[Line],
    layers: Sequence[float],
    box: Box,
    *,
    ends: tuple[float, float],
    written: Callable[[float], str],
    below: Mapping[float, str] | None = None,
) -> float:
    """Draw the lines; the numbers of the layers stand below. Give the next y.

    Args:
        sheet: what is drawn on.
        lines: the lines; the first is drawn last, over the others.
        layers: numbers of the layers, or others that the lines are over.
        box: rectangle of axes and lines, without numbers and names.
        ends: the numbers at its lower and its upper edge.
        written: how numbers are written on the left.
        below: what is written below which of the numbers; the axis then begins at 0. By default
            the numbers of layers, or some of them.
    """
    style, bottom = sheet.style, box.y + box.height
    heights = Axis(bottom, box.y, *ends)
    # A single layer still needs an axis of some length.
    across = Axis(box.x + 0.8, box.x + box.width, layers[0], max(layers[-1], layers[0] + 1))
    if below is not None:
        across = Axis(box.x, box.x + box.width, 0.0, layers[-1])
    draw_level_grid(sheet, heights, (box.x, box.x + box.width), written)
    every = 1 if len(layers) <= MOST_NUMBERS else len(layers) // 8
    known = {layer: str(layer) for layer in list(layers)[::every]} if below is None else below
    words = {across.at(layer): written for layer, written in known.items()}
    write_below(sheet, words, bottom + 0.9 * style.em)
    heights_of: dict[str, float] = {}
    for line in reversed(lines):
        xs = [across.at(layer) for layer in layers]
        _draw_line(sheet, line, xs, heights)
        if line.name and not np.isnan(line.values[-1]):
            heights_of[line.name] = heights.at(line.values[-1])
    colours = {line.name: line.colour for line in lines}
    _draw_names(sheet, heights_of, colours, box)
    return bottom + 1.9 * style.em


def _draw_line(sheet: Sheet, line: Line, xs: Sequence[float], heights: Axis) -> None:
    ends = np.clip(line.ends, heights.low, heights.high)
    known = np.flatnonzero(~np.isnan(ends).any(axis=1))
    upper = [(xs[column], heights.at(ends[column, 1])) for column in known]
    lower = [(xs[column], heights.at(ends[column, 0])) for column in known[::-1]]
    if len(known) > 1:
        sheet.polygon([*upper, *lower], fill=line.colour, opacity=BAND, layer=1)
    drawn = np.flatnonzero(~np.isnan(line.values))
    ys = [heights.at(line.values[column]) for column in drawn]
    sheet.line([xs[column] for column in drawn], ys, colour=line.colour, line=1.2)
    for column, y in zip(drawn, ys, strict=True):
        sheet.dot(xs[column], y, DOT, fill=line.colour)


def _draw_names(
    sheet: Sheet, heights_of: Mapping[str, float], colours: Mapping[str, str], box: Box
) -> None:
    style = sheet.style
    least = 1.25 * style.small * POINT
    x = box.x + box.width + 0.8 * style.em
    for name, y in apart(heights_of, least, box.y + box.height).items():
        sheet.text(x, y, name, size=style.small, colour=colours[name])
