"""The charts of results: matrices of heads, lines over layers, dots with intervals, and bars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, UInt8

from headscope.views.figures._sheet import Box, Sheet
from headscope.views.figures._style import POINT, number_written, percent_written, text_on

Cell = tuple[int, int]
Look = tuple[str, str]
"""Colour and shape of a mark; the shapes are ``"dot"``, ``"ring"``, ``"tick"`` and `HOLLOW`."""
HOLLOW: Mapping[str, tuple[tuple[float, float], ...]] = {
    "diamond": ((0.0, -0.6), (0.6, 0.0), (0.0, 0.6), (-0.6, 0.0)),
    "triangle": ((0.0, -0.6), (0.55, 0.45), (-0.55, 0.45)),
    "square": ((-0.45, -0.45), (0.45, -0.45), (0.45, 0.45), (-0.45, 0.45)),
}
"""Corners of a shape whose edge is drawn, in units of its size."""
ROW = 1.75
"""Height of a row of dots, in units of the font size."""
MARK = 1.7
"""Diameter of a mark in millimetres."""
MOST_SIDE = 0.4
"""Largest share of the width for the names of rows."""
DOT = 0.9
BAND = 0.2
"""Opacity of a band."""
MOST_NUMBERS = 13
"""Number of layers up to which each has its number; of more layers, only some."""
LARGEST_CELL = 7.0
"""Millimetres of a cell of a matrix."""
COLOUR_BAR = 2.2
"""Height of a colour bar in millimetres."""
NARROWEST = 15.0
"""Millimetres of lines, below which panels are not side by side."""
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
        part = (value - self.low) / (self.high - self.low)
        return float(self.start + (self.stop - self.start) * part)

    def within(self, values: Sequence[float] | np.ndarray) -> list[float]:
        """Positions of numbers, those outside at the ends."""
        return [self.at(each) for each in np.clip(values, self.low, self.high)]

    def ticks(self, least: int = 3) -> list[float]:
        """A few round numbers between the ends."""
        span = self.high - self.low
        # For numbers far above 1 the steps are 50, 25, 10 ...
        unit = 10.0 ** max(0.0, np.ceil(np.log10(span / 2))) if span > 2 else 1.0
        steps = [unit * step for step in STEPS]
        step = next((size for size in steps if span / size >= least), steps[-1])
        # Ticks are multiples of the step and not sums of it, which would add up rounding errors.
        first = int(np.ceil(self.low / step - ZERO))
        return [number * step for number in range(first, int(self.high / step + ZERO) + 1)]


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
    style = sheet.style
    for tick in axis.ticks():
        colour, line = (style.muted, 0.7) if abs(tick) < ZERO else (style.edge, 0.4)
        sheet.line([axis.at(tick)] * 2, ends, colour=colour, line=line)
    words = {axis.at(tick): written(tick) for tick in axis.ticks()}
    write_below(sheet, words, ends[1] + 0.8 * style.em)


def write_below(sheet: Sheet, words: Mapping[float, str], y: float) -> None:
    """Write numbers below an axis, by their middle in millimetres; without those that have no
    room.
    """
    style, end = sheet.style, -np.inf
    for x, written in words.items():
        half = sheet.width_of(written, style.small) / 2
        if x - half > end:
            sheet.note(x, y, written, anchor="center")
            end = x + half + 0.3 * style.em


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


def draw_matrix(
    sheet: Sheet, matrix: Matrix, *, at: tuple[float, float], cell: float, tall: float | None = None
) -> None:
    """Draw the cells, their frame and marks, and the names of rows and columns.

    Args:
        sheet: what is drawn on.
        matrix: what is shown.
        at: x and y of the upper left corner of the cells.
        cell: millimetres of a cell.
        tall: its height, where it is another.
    """
    style, (x, y), (rows, heads) = sheet.style, at, matrix.rgb.shape[:2]
    tall = tall or cell
    high, wide = rows * tall, heads * cell

    def middle(row: int, column: int) -> tuple[float, float]:
        return x + (column + 0.5) * cell, y + (row + 0.5) * tall

    sheet.framed_cells(matrix.rgb, at=at, size=(wide, high), hidden=matrix.hidden)
    for row, column in [] if matrix.dots is None else np.argwhere(matrix.dots):
        ink = text_on(matrix.rgb[row, column])
        sheet.dot(*middle(row, column), 0.28 * cell, fill=ink, layer=4)
    for row, column in matrix.frames:
        corner = (x + column * cell, y + row * tall)
        sheet.rect(*corner, cell, tall, edge=style.ink, line=1.0, layer=4)
    for place, words in matrix.words.items():
        ink = text_on(matrix.rgb[place])
        sheet.text(*middle(*place), words, size=style.small, colour=ink, anchor="center")
    draw_row_names(sheet, matrix.rows, at=at, cell=tall)
    columns = [str(each) for each in matrix.columns or range(heads)]
    room = max(sheet.width_of(columns[-1], style.small), style.small * POINT)
    for column in range(0, heads, max(1, int(np.ceil(1.3 * room / cell)))):
        place = (middle(0, column)[0], y + high + 0.7 * style.em)
        sheet.note(*place, columns[column], anchor="center")


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
    """Draw the bar with words below it, at parts of its width; return the next y.

    The words of the second mark keep clear of those at the ends, and ``line`` draws a line there.
    """
    style, (x, y) = sheet.style, at
    sheet.framed_cells(rgb, at=at, size=(width, COLOUR_BAR))
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
class Value:
    """A number, and the ends of its interval; NaN where they are unknown."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


@dataclass(frozen=True)
class Bar:
    """A bar: its name on the left, its value, and the words on its right."""

    name: str
    value: Value
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
        middle, shown = y + (number + 0.5) * pitch, bar.value
        sheet.note(axis.start - 0.5 * style.em, middle, bar.name, anchor="right")
        if np.isnan(shown.value):
            continue
        value = max(shown.value, axis.low)
        first, last = sorted((axis.at(0.0), axis.at(value)))
        top = middle - share * pitch / 2
        sheet.rect(first, top, last - first, share * pitch, fill=bar.colour)
        end = axis.at(value)
        if np.isfinite(shown.low):
            places = axis.within((shown.low, shown.high))
            sheet.line(places, [middle, middle], colour=style.ink, line=0.8)
            end = max(end, places[1])
        if edge is None:
            sheet.note(end + 0.5 * style.em, middle, bar.words)
        else:
            sheet.note(edge, middle, bar.words, anchor="right")


@dataclass(frozen=True)
class Row:
    """One line: its name on the left, a value for each series, a note on the right."""

    name: str
    values: Mapping[str, Value] = field(default_factory=dict)
    note: str = ""


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
        ends: the numbers at the left and the right end.
        written: how they are written.
    """
    style, series = sheet.style, list(dict.fromkeys(name for row in rows for name in row.values))
    # The first is a filled dot, its first baseline an upright line, and the others are hollow.
    colours = [style.accent, style.ink, *style.series(len(series) + 2)[1:]]
    shapes = ("dot", "tick", "diamond", "triangle", "square")
    looks = {name: (colours[number], shapes[number % 5]) for number, name in enumerate(series)}
    legend = [(look, sheet.shown(name)) for name, look in looks.items()]
    y = sheet.legend(legend, y, draw_mark) + 0.4 * style.em
    names = [sheet.fitted(sheet.shown(row.name), MOST_SIDE * sheet.width) for row in rows]
    side = max(map(sheet.width_of, names)) + 1.2 * style.em
    notes = sheet.widest(row.note for row in rows)
    # Half of the last number is to the right of the axis.
    right = max(notes + 0.8 * style.em, 1.2 * style.em) if notes else 1.2 * style.em
    axis, pitch = Axis(side, sheet.width - right, *ends), ROW * style.em
    bottom = y + len(rows) * pitch
    draw_upright_grid(sheet, axis, (y, bottom), written)
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        middle = y + (number + 0.5) * pitch
        sheet.text(side - 0.8 * style.em, middle, name, anchor="right")
        sheet.note(sheet.width - notes, middle, row.note)
        # Drawn last to first, so that the series in question lies over its baselines.
        for of in reversed(series):
            draw_value(sheet, row.values.get(of, Value(np.nan)), looks[of], at=(axis, middle))
    return bottom + 2.0 * style.em


def draw_value(
    sheet: Sheet, shown: Value, look: Look, *, at: tuple[Axis, float], size: float = MARK
) -> None:
    """Draw a mark with its interval; no mark where the number is unknown.

    Args:
        sheet: what is drawn on.
        shown: the number.
        look: of the mark; the interval has its colour.
        at: the axis, and the middle of the row in millimetres.
        size: of the mark.
    """
    axis, middle = at
    if np.isfinite(shown.low) and np.isfinite(shown.high):
        ends = axis.within((shown.low, shown.high))
        sheet.line(ends, [middle, middle], colour=look[0], line=1.1)
    if np.isfinite(shown.value):
        draw_mark(sheet, look, axis.at(shown.value), middle, size=size)


def draw_mark(sheet: Sheet, look: Look, x: float, y: float, *, size: float = MARK) -> None:
    """Draw a mark around a point."""
    (colour, shape), paper = look, sheet.style.paper
    if shape == "tick":
        sheet.line([x, x], [y - 0.75 * size, y + 0.75 * size], colour=colour, line=1.6)
    elif shape in HOLLOW:
        points = [(x + size * across, y + size * down) for across, down in HOLLOW[shape]]
        sheet.polygon(points, fill=paper, edge=colour, line=0.9, layer=3)
    else:
        fill = paper if shape == "ring" else colour
        sheet.dot(x, y, size, fill=fill, edge=colour, line=0.9, layer=4)


@dataclass(frozen=True, eq=False)
class Line:
    """One line: its name (may be empty), its colour, and a number and interval for each layer."""

    name: str
    colour: str
    values: Float[np.ndarray, " layer"]
    ends: Float[np.ndarray, "layer 2"]


@dataclass(frozen=True, kw_only=True, eq=False)
class LinePanel:
    """A panel of lines: its title and a note below it, what the lines are over, and its name.

    Args:
        title: over the panel, in as many lines as it needs.
        note: small, below the title.
        lines: see `Line`.
        over: numbers of the layers, or others.
        under: name of what the lines are over.
        below: what is written below which of the numbers; the axis then begins at 0. By default
            the numbers of layers, or some of them.
        ends: the numbers at the lower and the upper edge.
    """

    title: str = ""
    note: str = ""
    lines: Sequence[Line]
    over: Sequence[float]
    under: str
    below: Mapping[float, str] | None = None
    ends: tuple[float, float] = (0.0, 1.0)


def draw_line_panels(
    sheet: Sheet,
    panels: Sequence[LinePanel | None],
    y: float,
    *,
    tall: float,
    gap: float = 1.0,
    written: Callable[[float], str] = percent_written,
) -> float:
    """Draw panels side by side, or below each other where there is little room; return the next y.

    A panel that is None leaves its place empty; the gap is in units of the font size.
    """
    em, pitch = sheet.style.em, (sheet.width + gap * sheet.style.em) / len(panels)
    placed = [(number * pitch, each) for number, each in enumerate(panels) if each is not None]
    side = sheet.widest(written(end) for _, each in placed for end in each.ends) + 0.8 * em
    names = sheet.widest(line.name for _, each in placed for line in each.lines)
    names += (1.4 if names else 1.2) * em
    wide = pitch - gap * em - side - names
    if wide < NARROWEST and len(panels) > 1:
        for _, each in placed:
            y = draw_line_panels(sheet, [each], y, tall=tall, written=written) + em
        return y
    titles = [(left + side, each.title) for left, each in placed if each.title]
    y = bottom = sheet.titles(y, titles, wide + names) if titles else y
    for left, each in placed:
        x, top = left + side, y + 0.6 * em + 1.2 * em * bool(each.note)
        sheet.note(x, y + 0.6 * em, each.note)
        end = _draw_lines(sheet, each, (x, top, wide, tall), written)
        sheet.note(x + wide / 2, end, each.under, anchor="center")
        bottom = max(bottom, end)
    return bottom + 1.2 * em


def _draw_lines(sheet: Sheet, panel: LinePanel, box: Box, written: Callable[[float], str]) -> float:
    """Draw the lines of a panel, the first last, over the others; return the y below the numbers.

    The box is that of axes and lines, without numbers and names.
    """
    style, (x, y, width, height) = sheet.style, box
    bottom, right = y + height, x + width
    lines, layers, below = panel.lines, panel.over, panel.below
    heights = Axis(bottom, y, *panel.ends)
    # A single layer still needs an axis of some length.
    across = Axis(x + 0.8, right, layers[0], max(layers[-1], layers[0] + 1))
    if below is not None:
        across = Axis(x, right, 0.0, layers[-1])
    _draw_level_grid(sheet, heights, (x, right), written)
    if below is None:
        every = 1 if len(layers) <= MOST_NUMBERS else len(layers) // 8
        below = {layer: str(layer) for layer in list(layers)[::every]}
    words = {across.at(layer): text for layer, text in below.items()}
    write_below(sheet, words, bottom + 0.9 * style.em)
    for line in reversed(lines):
        _draw_line(sheet, line, [across.at(layer) for layer in layers], heights)
    _name_lines(sheet, lines, heights, right)
    return bottom + 1.9 * style.em


def _name_lines(sheet: Sheet, lines: Sequence[Line], heights: Axis, right: float) -> None:
    """Names at the right ends of lines, as near to their heights as they can be."""
    style, x = sheet.style, right + 0.8 * sheet.style.em
    named = {line.name: line for line in lines if line.name and not np.isnan(line.values[-1])}
    levels = {name: heights.at(line.values[-1]) for name, line in named.items()}
    for name, level in apart(levels, 1.25 * style.small * POINT, heights.start).items():
        sheet.text(x, level, name, size=style.small, colour=named[name].colour)


def _draw_level_grid(
    sheet: Sheet, axis: Axis, ends: tuple[float, float], written: Callable[[float], str]
) -> None:
    """Level lines at the ticks of an axis from above, their numbers on the left."""
    style = sheet.style
    for tick in axis.ticks():
        level, colour = axis.at(tick), style.muted if abs(tick) < ZERO else style.edge
        sheet.line(ends, [level, level], colour=colour, line=0.4)
        sheet.note(ends[0] - 0.5 * style.em, level, written(tick), anchor="right")


def _draw_line(sheet: Sheet, line: Line, xs: Sequence[float], heights: Axis) -> None:
    known = np.flatnonzero(~np.isnan(line.ends).any(axis=1))
    upper = zip((xs[at] for at in known), heights.within(line.ends[known, 1]), strict=True)
    lower = zip((xs[at] for at in known), heights.within(line.ends[known, 0]), strict=True)
    if len(known) > 1:
        points = [*upper, *reversed(list(lower))]
        sheet.polygon(points, fill=line.colour, opacity=BAND, layer=1)
    drawn = [(xs[at], heights.at(line.values[at])) for at in np.flatnonzero(~np.isnan(line.values))]
    if drawn:
        sheet.line(*zip(*drawn, strict=True), colour=line.colour, line=1.2)
    for x, y in drawn:
        sheet.dot(x, y, DOT, fill=line.colour)
