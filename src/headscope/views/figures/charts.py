"""The charts: matrices, lines over layers, dots with intervals, bars; and the colour bar."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt8

from headscope.views.figures._sheet import Box, Sheet
from headscope.views.figures._style import POINT, number_written, percent_written, text_on

Cell = tuple[int, int]
NO_WORDS: Mapping[Cell, str] = {}
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
LARGEST_CELL = 7.0
"""Millimetres of a cell of a matrix."""
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
        unit = 10.0 ** np.ceil(np.log10(span / 2))
        step = next(unit * step for step in STEPS if span / (unit * step) >= least)
        # Ticks are multiples of the step and not sums of it, which would add up rounding errors.
        first = int(np.ceil(self.low / step - ZERO))
        return [number * step for number in range(first, int(self.high / step + ZERO) + 1)]


def draw_grid(
    sheet: Sheet,
    axis: Axis,
    ends: tuple[float, float],
    written: Callable[[float], str] = number_written,
    *,
    level: bool = False,
    plain: bool = False,
) -> None:
    """Lines at the ticks of an axis: upright ones with their numbers below, or level ones with
    their numbers on the left; that of 0 is darker unless they are plain. They begin and end at the
    ends, in millimetres.
    """
    style, words = sheet.style, {}
    for tick in axis.ticks():
        place, is_zero = axis.at(tick), abs(tick) < ZERO and not plain
        words[place] = written(tick)
        colour, line = style.muted if is_zero else style.edge, 0.4
        if level:
            sheet.line(ends, [place, place], colour=colour, line=line)
            sheet.note(ends[0] - 0.5 * style.em, place, words[place], anchor="right")
        else:
            sheet.line([place, place], ends, colour=colour, line=0.7 if is_zero else line)
    if not level:
        write_below(sheet, words, ends[1] + 0.8 * style.em)


def write_below(sheet: Sheet, words: Mapping[float, str], y: float) -> None:
    """Write numbers below an axis, by their middle in millimetres; without those that have no
    room beside those before them.
    """
    style, taken = sheet.style, []
    for x, written in words.items():
        half = sheet.width_of(written, style.small) / 2
        if all(abs(x - other) > half + room for other, room in taken):
            sheet.note(x, y, written, anchor="center")
            taken.append((x, half + 0.3 * style.em))


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


def draw_matrix(  # noqa: PLR0913 - what a matrix may show
    sheet: Sheet,
    rgb: UInt8[np.ndarray, "row column 3"],
    *,
    at: tuple[float, float],
    cell: float,
    tall: float | None = None,
    rows: Sequence[int] = (),
    columns: Sequence[object] | None = None,
    hidden: Bool[np.ndarray, "row column"] | None = None,
    dots: Bool[np.ndarray, "row column"] | None = None,
    frames: Collection[Cell] = (),
    words: Mapping[Cell, str] = NO_WORDS,
) -> None:
    """A coloured cell for each head.

    Args:
        sheet: what is drawn on.
        rgb: colours of the cells, such as of layers and heads.
        at: x and y of the upper left corner of the cells.
        cell: millimetres of a cell.
        tall: its height, where it is another.
        rows: names of the rows on the left, such as numbers of layers; may be none.
        columns: names of the columns below; by default their numbers.
        hidden: True where there is no head, or no number of it.
        dots: True where a cell has a dot.
        frames: row and column of cells that are framed.
        words: of each cell.
    """
    style, (x, y), (count, heads), tall = sheet.style, at, rgb.shape[:2], tall or cell

    def middle(row: int, column: int) -> tuple[float, float]:
        return x + (column + 0.5) * cell, y + (row + 0.5) * tall

    sheet.cells(rgb, at=at, size=(heads * cell, count * tall), hidden=hidden)
    for row, column in [] if dots is None else np.argwhere(dots).tolist():
        sheet.dot(*middle(row, column), 0.28 * cell, fill=text_on(rgb[row, column]), layer=4)
    for row, column in frames:
        sheet.rect(x + column * cell, y + row * tall, cell, tall, edge=style.ink, line=1.0, layer=4)
    for place, says in words.items():
        ink = text_on(rgb[place])
        sheet.text(*middle(*place), says, size=style.small, colour=ink, anchor="center")
    for row in range(0, len(rows), max(1, int(np.ceil(1.3 * style.small * POINT / tall)))):
        sheet.note(x - 0.4 * style.em, middle(row, 0)[1], str(rows[row]), anchor="right")
    named = [str(each) for each in columns or range(heads)]
    room = max(sheet.width_of(named[-1], style.small), style.small * POINT)
    below = y + count * tall + 0.7 * style.em
    for column in range(0, heads, max(1, int(np.ceil(1.3 * room / cell)))):
        sheet.note(middle(0, column)[0], below, named[column], anchor="center")


Map = tuple[str, str, Mapping[str, Any]]
"""The title of a matrix, a note below it, and what `draw_matrix` takes."""


def draw_maps(
    sheet: Sheet,
    y: float,
    maps: Sequence[Map],
    *,
    wide: float = 1000.0,
    cell: float = LARGEST_CELL,
    tall: float | None = None,
) -> float:
    """Draw matrices side by side, each below its title and note; return the next y.

    Args:
        sheet: what is drawn on.
        y: where they begin.
        maps: see `Map`.
        wide: smallest width of a map in millimetres; by default they stand below each other.
        cell: width of its cells at most.
        tall: their height, where it is another.
    """
    em, shapes = sheet.style.em, [of["rgb"].shape for _, _, of in maps]
    side = sheet.widest(str(row) for _, _, of in maps for row in of["rows"]) + 0.6 * em
    rows, columns = max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)
    head = (1.4 * any(title for title, *_ in maps) + 1.3 * any(note for _, note, _ in maps)) * em

    def pitch(width: float) -> float:
        return min(cell, (width - side) / columns)

    places, width, bottom = sheet.panels(
        y,
        len(maps),
        (min(wide, sheet.width), sheet.width),
        gap=1.6 * em,
        tall=lambda width: head + 2.0 * em + rows * (tall or pitch(width)),
    )
    for (title, note, of), (left, top) in zip(maps, places, strict=True):
        sheet.text(left + side, top + 0.6 * em, title)
        sheet.note(left + side, top + 1.8 * em, note)
        draw_matrix(sheet, at=(left + side, top + head), cell=pitch(width), tall=tall, **of)
    return bottom


Value = tuple[float, ...]
"""A number, and the ends of its interval where they are known."""


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
    edge: float | None = None,
) -> None:
    """Draw bars from 0 on with their intervals, which end with the axis.

    Words of bars end at the x of the edge; by default they stand behind their bars.
    """
    style, high = sheet.style, 0.6 * pitch
    for number, bar in enumerate(bars):
        middle, shown = y + (number + 0.5) * pitch, bar.value
        sheet.note(axis.start - 0.5 * style.em, middle, bar.name, anchor="right")
        if np.isnan(shown[0]):
            continue
        first, last = sorted((axis.at(0.0), axis.at(max(shown[0], axis.low))))
        sheet.rect(first, middle - high / 2, last - first, high, fill=bar.colour)
        draw_interval(sheet, shown, axis, middle, colour=style.ink, line=0.8)
        end = max(last, *axis.within(np.nan_to_num((0.0, *shown[1:])))) + 0.5 * style.em
        sheet.note(edge or end, middle, bar.words, anchor="right" if edge else "left")


def draw_interval(
    sheet: Sheet, shown: Value, axis: Axis, y: float, *, colour: str, line: float
) -> None:
    """A line over the interval of a number, where it is known."""
    if len(shown) > 1 and np.isfinite(shown[1:]).all():
        sheet.line(axis.within(shown[1:]), [y, y], colour=colour, line=line)


@dataclass(frozen=True)
class Row:
    """One line: its name on the left, a value for each series, a note on the right."""

    name: str
    values: Mapping[str, Value]
    note: str = ""


def draw_dots(
    sheet: Sheet,
    y: float,
    rows: Sequence[Row],
    *,
    ends: tuple[float, float],
    written: Callable[[float], str] = number_written,
) -> float:
    """Draw a line for each row, the legend above; return the next y.

    Args:
        sheet: what is drawn on.
        y: where it begins.
        rows: from above.
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
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        middle = y + (number + 0.5) * ROW * style.em
        sheet.text(side - 0.8 * style.em, middle, name, anchor="right")
        sheet.note(sheet.width - notes, middle, row.note)
    axis = Axis(side, sheet.width - right, *ends)
    values = [row.values for row in rows]
    return draw_values(sheet, values, axis, y, looks=looks, written=written) + 2.0 * style.em


def draw_values(  # noqa: PLR0913 - what rows of marks have
    sheet: Sheet,
    rows: Sequence[Mapping[Any, Value]],
    axis: Axis,
    y: float,
    *,
    looks: Mapping[Any, Look],
    pitch: float | None = None,
    spread: float = 0.0,
    size: float = MARK,
    written: Callable[[float], str] = number_written,
) -> float:
    """Marks with their intervals in rows over upright lines; return the y below the rows.

    Args:
        sheet: what is drawn on.
        rows: the values of each row by their series, the first drawn over the others.
        axis: of the values; intervals end with it.
        y: where the first row begins.
        looks: of each series; intervals have its colour.
        pitch: millimetres of a row.
        spread: distance of the marks of a row, as a part of it; lines then stand between rows.
        size: of a mark in millimetres.
        written: how numbers are written.
    """
    pitch = pitch or ROW * sheet.style.em
    draw_grid(sheet, axis, (y, y + len(rows) * pitch), written)
    for number, row in enumerate(rows):
        level = [y + number * pitch] * 2
        if number and spread:
            sheet.line([axis.start, axis.stop], level, colour=sheet.style.edge, line=0.3)
        shift = y + (number + 0.5 - (len(row) - 1) / 2 * spread) * pitch
        for at, (name, shown) in reversed(list(enumerate(row.items()))):
            middle = shift + at * spread * pitch
            draw_interval(sheet, shown, axis, middle, colour=looks[name][0], line=1.1)
            if np.isfinite(shown[0]):
                draw_mark(sheet, looks[name], axis.at(shown[0]), middle, size=size)
    return y + len(rows) * pitch


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
    """One line: its name and its colour, which may be empty, and a number and interval for each
    layer.
    """

    name: str
    colour: str
    values: Float[np.ndarray, " layer"]
    ends: Float[np.ndarray, "layer 2"] | None = None


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
    y: float,
    panels: Sequence[LinePanel | None],
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
            y = draw_line_panels(sheet, y, [each], tall=tall, written=written) + em
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
    """Draw lines in a box, the first over the others, named on the right; return the next y."""
    style, (x, y, width, height) = sheet.style, box
    bottom, right, layers, below = y + height, x + width, panel.over, panel.below
    heights = Axis(bottom, y, *panel.ends)
    # A single layer still needs an axis of some length.
    across = Axis(x + 0.8, right, layers[0], max(layers[-1], layers[0] + 1))
    if below is not None:
        across = Axis(x, right, 0.0, layers[-1])
    else:
        every = max(1, len(layers) // 8)
        below = {layer: str(layer) for layer in list(layers)[::every]}
    draw_grid(sheet, heights, (x, right), written, level=True)
    words = {across.at(layer): text for layer, text in below.items()}
    write_below(sheet, words, bottom + 0.9 * style.em)
    for line in reversed(panel.lines):
        _draw_line(sheet, line, np.array([across.at(layer) for layer in layers]), heights)
    named = {line.name: line for line in panel.lines if not np.isnan(line.values[-1])}
    levels = {name: heights.at(line.values[-1]) for name, line in named.items()}
    for name, level in apart(levels, 1.25 * style.small * POINT, heights.start).items():
        colour, place = named[name].colour, right + 0.8 * style.em
        sheet.text(place, level, name, size=style.small, colour=colour)
    return bottom + 1.9 * style.em


def _draw_line(sheet: Sheet, line: Line, xs: Float[np.ndarray, " layer"], heights: Axis) -> None:
    colour = line.colour or sheet.style.accent
    if line.ends is not None and (known := ~np.isnan(line.ends).any(axis=1)).sum() > 1:
        low, high = (heights.within(line.ends[known, side]) for side in (0, 1))
        points = [*zip(xs[known], high, strict=True), *zip(xs[known][::-1], low[::-1], strict=True)]
        sheet.polygon(points, fill=colour, opacity=BAND, layer=1)
    drawn = ~np.isnan(line.values)
    levels = [heights.at(value) for value in line.values[drawn]]
    sheet.line(xs[drawn].tolist(), levels, colour=colour, line=1.2)
    for x, level in zip(xs[drawn], levels, strict=True):
        sheet.dot(float(x), level, DOT, fill=colour)
