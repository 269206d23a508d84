"""The charts: matrices, lines over layers, dots with intervals, bars; and the colour bar."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, UInt8

from headscope.views.figures._sheet import LEADING, Box, Sheet
from headscope.views.figures._style import (
    POINT,
    Scale,
    number_written,
    parse_hex,
    percent_written,
    text_on,
)

Cell = tuple[int, int]
NO_WORDS: Mapping[Cell, str] = {}
Ends = tuple[float, float]
Look = tuple[str, str]
"""Colour and shape of a mark."""
SHAPES = {"dot": "o", "ring": "o", "tick": "|", "diamond": "D", "triangle": "^", "square": "s"}
"""Matplotlib's name of each shape; all but the dot and the tick are hollow."""
ROW = 1.75
"""Height of a row of dots, in units of the font size."""
MARK, DOT = 1.7, 0.9
"""Diameter of a mark, and of a point of a line, in millimetres."""
MOST_SIDE = 0.4
"""Largest share of the width for the names of rows."""
LARGEST_CELL = 7.0
"""Millimetres of a cell of a matrix."""
NARROWEST = 15.0
"""Millimetres of lines, below which panels are not side by side."""


def draw_grid(
    sheet: Sheet,
    box: Box,
    ends: Ends,
    written: Callable[[float], str] = number_written,
    *,
    level: bool = False,
    has_zero: bool = True,
) -> Any:
    """Axes of matplotlib over a box of the sheet, from one number to another, with lines at a few
    round numbers, of which 0 may be darker; these stand below upright lines, or on the left of
    level ones.
    """
    from matplotlib.ticker import MaxNLocator

    axes, style = sheet.axes(box), sheet.style
    # As many as have room for their words.
    room = box[3] / (2 * style.em) if level else box[2] / (1.3 * sheet.widest(map(written, ends)))
    steps = MaxNLocator(max(1, min(5, int(room))), steps=[1, 2.5, 5, 10])
    ticks = [tick for tick in steps.tick_values(*ends) if ends[0] - 1e-9 <= tick <= ends[1] + 1e-9]
    along = axes.yaxis if level else axes.xaxis
    along.set_ticks(ticks, [written(tick) for tick in ticks])
    along.grid(visible=True, color=style.edge, linewidth=0.4)
    (axes.set_ylim if level else axes.set_xlim)(*ends)
    if has_zero and ends[0] <= 0 <= ends[1]:
        (axes.axhline if level else axes.axvline)(0.0, color=style.muted, linewidth=0.7, zorder=1)
    return axes


def apart(heights: Mapping[str, float], least: float, lowest: float) -> dict[str, float]:
    """Heights of names, moved down or up so that none overlap and none is below the lowest."""
    names, placed, above = sorted(heights, key=heights.__getitem__), {}, -np.inf
    for name in names:
        placed[name] = above = max(heights[name], above + least)
    for name in reversed(names):
        placed[name] = min(placed[name], lowest)
        lowest = placed[name] - least
    return placed


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
    room = max(sheet.widest(named[-1:]), style.small * POINT)
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


class Bar(NamedTuple):
    """A bar: its name on the left, its value, and the words on its right."""

    name: str
    value: Value
    words: str
    colour: str


def draw_bars(
    sheet: Sheet,
    bars: Sequence[Bar],
    axes: Any,
    box: Box,
    *,
    edge: float | None = None,
    size: float | None = None,
) -> None:
    """Draw bars from 0 on with their intervals in axes over this box of the sheet.

    Words of bars, of this size in points, end at the x of the edge; by default they stand behind
    their bars.
    """
    style, (x, y, wide, tall), (low, high) = sheet.style, box, axes.get_xlim()
    axes.set_ylim(len(bars), 0)
    for number, (name, value, words, colour) in enumerate(bars):
        middle = y + (number + 0.5) * tall / len(bars)
        sheet.note(x - 0.5 * style.em, middle, name, anchor="right")
        if np.isnan(value[0]):
            continue
        axes.barh(number + 0.5, np.clip(value[0], low, high), 0.6, color=colour)
        draw_interval(axes, value, number + 0.5, color=style.ink, linewidth=0.8)
        last = np.clip(np.nanmax([0.0, *value]), low, high)
        end = edge or x + wide * (last - low) / (high - low) + 0.5 * style.em
        look = {"size": size or style.small, "colour": style.muted}
        sheet.text(end, middle, words, anchor="right" if edge else "left", **look)


def ends_of(bars: Sequence[Bar]) -> Ends:
    """The ends of an axis that shows all of these bars, their intervals and 0."""
    spots = [end for bar in bars for end in bar.value if np.isfinite(end)]
    low = min(0.0, *spots, 0.0)
    # Where all bars are empty this only avoids dividing by zero.
    return low, max(low + 1e-12, *spots, 0.0)


def draw_interval(axes: Any, shown: Value, level: float, **look: Any) -> None:
    """A line over the interval of a number, where it is known; it ends with the axes."""
    if len(shown) > 1 and np.isfinite(shown[1:]).all():
        axes.plot(np.clip(shown[1:], *axes.get_xlim()), [level, level], **look)


class Row(NamedTuple):
    """One line: its name on the left, a value for each series, a note on the right."""

    name: str
    values: Mapping[str, Value]
    note: str = ""


def draw_dots(
    sheet: Sheet,
    y: float,
    rows: Sequence[Row],
    *,
    ends: Ends,
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
    right = max(notes + 0.8 * style.em * bool(notes), 1.2 * style.em)
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        middle = y + (number + 0.5) * ROW * style.em
        sheet.text(side - 0.8 * style.em, middle, name, anchor="right")
        sheet.note(sheet.width - notes, middle, row.note)
    box = (side, y, sheet.width - right - side, len(rows) * ROW * style.em)
    axes = draw_grid(sheet, box, ends, written)
    draw_values(sheet, axes, [row.values for row in rows], looks)
    return y + box[3] + 2.0 * style.em


def draw_values(
    sheet: Sheet,
    axes: Any,
    rows: Sequence[Mapping[Any, Value]],
    looks: Mapping[Any, Look],
    *,
    spread: float = 0.0,
    size: float = MARK,
) -> None:
    """Marks with their intervals in rows, which fill the axes.

    Args:
        sheet: what is drawn on.
        axes: of the values; intervals end with it.
        rows: the values of each row by their series, the first drawn over the others.
        looks: of each series; intervals have its colour.
        spread: distance of the marks of a row, as a part of it; lines then stand between rows.
        size: of a mark in millimetres.
    """
    axes.set_ylim(len(rows), 0)
    for number, row in enumerate(rows):
        if number and spread:
            axes.axhline(number, color=sheet.style.edge, linewidth=0.3, zorder=1)
        for at, (name, shown) in reversed(list(enumerate(row.items()))):
            level = number + 0.5 + (at - (len(row) - 1) / 2) * spread
            draw_interval(axes, shown, level, color=looks[name][0], linewidth=1.1)
            draw_mark(sheet, looks[name], shown[0], level, axes=axes, size=size)


def draw_mark(
    sheet: Sheet, look: Look, x: float, y: float, *, axes: Any = None, size: float = MARK
) -> None:
    """Draw a mark around a point of axes, by default of the sheet itself."""
    (colour, shape), is_tick = look, look[1] == "tick"
    (axes or sheet.page).plot(
        x,
        y,
        SHAPES[shape],
        color=colour,
        markerfacecolor=colour if shape == "dot" else sheet.style.paper,
        markersize=(1.5 if is_tick else 0.9) * size / POINT,
        markeredgewidth=1.6 if is_tick else 0.9,
        clip_on=False,
        zorder=4,
    )


class Line(NamedTuple):
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
    ends: Ends = (0.0, 1.0)


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
    top = sheet.titles(y, [(left + side, each.title) for left, each in placed], wide + names)
    top += (0.6 + 1.2 * any(each.note for _, each in placed)) * em
    for left, each in placed:
        sheet.note(left + side, top - 1.2 * em, each.note)
        _draw_lines(sheet, each, (left + side, top, wide, tall), written)
    return top + tall + 3.1 * em


def _draw_lines(sheet: Sheet, panel: LinePanel, box: Box, written: Callable[[float], str]) -> None:
    """Draw lines in a box, the first over the others, named on the right."""
    style, (x, y, width, height), layers = sheet.style, box, panel.over
    levels, colours = {}, {}
    axes, (low, high) = draw_grid(sheet, box, panel.ends, written, level=True), panel.ends
    below = panel.below or {layer: str(layer) for layer in layers[:: max(1, len(layers) // 8)]}
    axes.set_xticks([*below], [*below.values()])
    # A single layer still needs an axis of some length.
    axes.set_xlim(0.0 if panel.below else layers[0], max(layers[-1], layers[0] + 1e-3))
    for line in reversed(panel.lines):
        colour = line.colour or style.accent
        if line.ends is not None:
            bands = np.clip(line.ends, low, high).T
            axes.fill_between(layers, *bands, color=colour, alpha=0.2, linewidth=0, zorder=1)
        look = {"linewidth": 1.2, "markersize": DOT / POINT, "markeredgewidth": 0.0}
        axes.plot(layers, line.values, "o-", color=colour, clip_on=False, **look)
        if line.name and np.isfinite(line.values[-1]):
            colours[line.name] = colour
            levels[line.name] = y + height * (high - line.values[-1]) / (high - low)
    for name, level in apart(levels, 1.25 * style.small * POINT, y + height).items():
        place = (x + width + 0.8 * style.em, level)
        sheet.text(*place, name, size=style.small, colour=colours[name])
    sheet.note(x + width / 2, y + height + 1.9 * style.em, panel.under, anchor="center")


COLOUR_BAR = 2.0
"""Height of the bar that explains colours, in millimetres."""


def colour_bar(  # noqa: PLR0913 - what a bar may show
    sheet: Sheet,
    scale: Scale,
    words: str,
    *,
    y: float,
    span: Ends | None = None,
    masked: bool = False,
    ticks: Sequence[tuple[float, str]] | None = None,
    values: Float[np.ndarray, " column"] | None = None,
) -> float:
    """The bar of a scale, words on its left and numbers below; return the next y.

    Args:
        sheet: what is drawn on.
        scale: what is explained.
        words: on the left.
        y: the upper edge.
        span: the ends of its room, in millimetres; by default those of the sheet.
        masked: whether it explains masked cells too.
        ticks: parts of its width, and what is written there; by default the scale's.
        values: the numbers from its left to its right end; by default the whole scale.
    """
    (left, right), style = span or (0.0, sheet.width), sheet.style
    text, below = LEADING * style.small * POINT, y + COLOUR_BAR + 0.6
    sheet.note(left, y + COLOUR_BAR / 2, words)
    start = left + sheet.width_of(words, style.small) + style.em
    legend = (sheet.width_of("masked", style.small) + 2.2 * style.em + COLOUR_BAR) * masked
    width = max(12.0, min(45.0, right - start - 0.6 * style.em - legend))
    rgb = scale.bar(round(2 * width / COLOUR_BAR)) if values is None else scale.rgb(values[None])
    sheet.cells(rgb, at=(start, y), size=(width, COLOUR_BAR))
    ticks, taken = ticks or scale.ticks(), []
    # The largest number first, which then has its room.
    for part, number in [ticks[-1], *ticks[:-1]]:
        x, half = start + part * width, sheet.width_of(number, style.small) / 2
        sheet.line((x, x), (y + COLOUR_BAR, below), colour=style.muted, line=0.4)
        if all(abs(x - other) > half + room + 0.3 * style.em for other, room in taken):
            sheet.note(x, below + text / 2, number, anchor="center")
            taken.append((x, half))
    if masked:
        x = start + width + 1.6 * style.em
        swatch, hidden = parse_hex(style.masked)[None, None], np.ones((1, 1), bool)
        sheet.cells(swatch, at=(x, y), size=(COLOUR_BAR, COLOUR_BAR), hidden=hidden)
        sheet.note(x + COLOUR_BAR + 0.4 * style.em, y + COLOUR_BAR / 2, "masked")
    return below + text + 0.35 * style.em
