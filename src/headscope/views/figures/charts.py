"""The charts: matrices, rows of marks or bars with intervals, lines; and the colour bar."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, UInt8

from headscope.views.figures._panels import Ends, Panel, draw_panels
from headscope.views.figures._sheet import LEADING, Box, Sheet, apart
from headscope.views.figures._style import POINT, Scale, number_written, parse_hex, text_on

Cell = tuple[int, int]
Value = tuple[float, ...]
"""A number, and the ends of its interval where they are known."""
Look = tuple[str, str]
"""Colour and shape of a mark, or ``"bar"``."""
SHAPES = {"dot": "o", "ring": "o", "tick": "|", "diamond": "D", "triangle": "^", "square": "s"}
"""Matplotlib's name of each shape; all but the dot and the tick are hollow."""
MARK, DOT = 1.7, 0.9
"""Diameter of a mark, and of a point of a line, in millimetres."""
TILE_GAP, GROUP_GAP = 0.06, 0.16
"""Gap between two pictures, and between columns that do not stand together, in cells."""
SMALLEST = 3.5
"""Smallest size of a word in a cell, in points."""
NARROW = 2.5
"""Numbers below an axis for which there is room, from which on they are round."""


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
    # As many as have room for their words, or else both ends.
    room = box[3] / (2 * style.em) if level else box[2] / (1.3 * sheet.widest(map(written, ends)))
    steps = MaxNLocator(max(1, min(5, int(room))), steps=[1, 2.5, 5, 10]).tick_values(*ends)
    ticks = [tick for tick in steps if ends[0] - 1e-9 <= tick <= ends[1] + 1e-9]
    if room < NARROW:
        ticks = [end for end in ends if abs(end) > 0.15 * (ends[1] - ends[0])]
    along = axes.yaxis if level else axes.xaxis
    along.set_ticks(ticks, [written(tick) for tick in ticks])
    along.grid(visible=True, color=style.edge, linewidth=0.4)
    (axes.set_ylim if level else axes.set_xlim)(*ends)
    if has_zero and ends[0] <= 0 <= ends[1]:
        (axes.axhline if level else axes.axvline)(0.0, color=style.muted, linewidth=0.7, zorder=1)
    return axes


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells(Panel):
    """A matrix: a coloured cell, or a picture of cells, for each head or others.

    Args:
        rgb: colours of the cells, such as of layers and heads; empty where each is a picture.
        below: names of the columns; by default their numbers.
        hidden: True where there is no head, or no number of it.
        pictures: colours of each cell, and what is hidden of them, where it is a picture.
        shared: so many columns each stand together; by default all.
        dots: True where a cell has a dot.
        frames: row and column of cells that are framed; column -1 for the whole row.
        words: of each cell, written where they have room.
        framed: whether a thin line is around all.
    """

    rgb: UInt8[np.ndarray, "row column 3"] = field(
        default_factory=partial(np.zeros, (0, 0, 3), np.uint8)
    )
    below: Sequence[object] = ()
    hidden: Bool[np.ndarray, "row column"] | None = None
    pictures: Mapping[Cell, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    shared: int = 1000
    dots: Bool[np.ndarray, "row column"] | None = None
    frames: Collection[Cell] = ()
    words: Mapping[Cell, str] = field(default_factory=dict)
    framed: bool = True

    @property
    def columns(self) -> int:
        """Cells side by side."""
        return len(self.below) or self.rgb.shape[1]

    def draw(self, sheet: Sheet, box: Box) -> None:
        """Draw cells from the upper left corner on, and the names of columns below."""
        style, (x, y, wide, high), count = sheet.style, box, self.columns
        cell = min(self.cell, wide / (count + (count - 1) // self.shared * GROUP_GAP))
        tall, rgb = high / len(self.names), self.rgb

        def left(column: int) -> float:
            return x + (column + column // self.shared * GROUP_GAP) * cell

        if rgb.size:
            look = {"hidden": self.hidden, "framed": self.framed}
            sheet.cells(rgb, at=(x, y), size=(count * cell, high), **look)
        for (row, column), (picture, hidden) in self.pictures.items():
            size, at = (
                (cell - TILE_GAP * cell, tall - TILE_GAP * cell),
                (left(column), y + row * tall),
            )
            sheet.cells(picture, at=at, size=size, hidden=hidden)
        for row, column in [] if self.dots is None else np.argwhere(self.dots).tolist():
            place = (left(column) + 0.5 * cell, y + (row + 0.5) * tall)
            sheet.dot(*place, 0.28 * cell, fill=text_on(rgb[row, column]), layer=4)
        for row, column in self.frames:
            start = left(max(column, 0))
            at = (start, y + row * tall, left(column % count) + cell - start, tall)
            sheet.rect(*at, edge=style.ink, line=1.0, layer=4)
        size = 0.86 * cell / (sheet.widest(self.words.values()) or np.inf) * style.small
        for (row, column), says in self.words.items() if size >= SMALLEST else ():
            ink = text_on(
                self.pictures[row, column][0][0, 0] if self.pictures else rgb[row, column]
            )
            look = {"size": min(size, style.small), "colour": ink, "anchor": "center"}
            sheet.text(left(column) + 0.5 * cell, y + (row + 0.5) * tall, says, **look)
        names = [*map(str, self.below or range(count))]
        room = max(sheet.widest(names[-1:]), style.small * POINT)
        for column in range(0, count, max(1, int(np.ceil(1.3 * room / cell)))):
            place = (left(column) + 0.5 * cell, y + high + 0.7 * style.em)
            sheet.note(*place, names[column], anchor="center")


class Row(NamedTuple):
    """One row: a value for each series, and words behind it."""

    values: dict[Any, Value]
    words: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowMarks(Panel):
    """Marks or bars with their intervals, in rows.

    Args:
        rows: from above; the first value of each is drawn over the others.
        looks: of each series: its colour, and a shape or ``"bar"``. Words stand behind bars, and
            else on the right of all rows.
        base: a number, and the ends of its interval, with which all are compared.
        spread: distance of the marks of a row, as a part of it; lines then stand between rows.
    """

    rows: Sequence[Row]
    looks: Mapping[Any, Look]
    base: Value = ()
    spread: float = 0.0

    @property
    def beside(self) -> tuple[Sequence[str], Sequence[str]]:
        """On the right the words of rows."""
        return (), [row.words for row in self.rows if row.values]

    def draw(self, sheet: Sheet, box: Box) -> None:
        """Draw marks over a grid; intervals and bars end with it."""
        style, axes = sheet.style, draw_grid(sheet, box, self.ends, self.written)
        # The words behind bars say what lines would, and would be crossed by them.
        axes.xaxis.grid(visible="bar" not in [shape for _, shape in self.looks.values()])
        if len(self.base) > 1 and np.isfinite(self.base[1:]).all():
            axes.axvspan(*self.base[1:], color=style.masked, zorder=0)
        for value in self.base[:1]:
            axes.axvline(value, color=style.muted, linewidth=1.0, zorder=1)
        for number in range(1, len(self.rows) if self.spread else 0):
            axes.axhline(number, color=style.edge, linewidth=0.3, zorder=1)
        self.draw_marks(sheet, axes, box)

    def draw_marks(self, sheet: Sheet, axes: Any, box: Box) -> None:
        """Draw marks and bars in axes over this box, with words where rows are high enough."""
        style, (x, y, wide, tall), (low, high) = sheet.style, box, axes.get_xlim()
        pitch = tall / len(self.rows)
        size = min(style.small, sheet.naming(pitch)[0])
        axes.set_ylim(len(self.rows), 0)
        for number, row in enumerate(self.rows):
            # Without a bar words stand behind all marks, and in an empty row at 0.
            last = high if row.values else 0.0
            for at, (name, value) in reversed([*enumerate(row.values.items())]):
                level = number + 0.5 + (at - (len(row.values) - 1) / 2) * self.spread
                (colour, shape), ends = self.looks[name], np.clip(value[1:], low, high)
                if shape == "bar":
                    last = np.clip(np.nanmax([0.0, *value]), low, high)
                    axes.barh(level, np.clip(np.nan_to_num(value[0]), low, high), 0.6, color=colour)
                    colour = style.ink
                else:
                    draw_mark(sheet, (colour, shape), value[0], level, axes=axes)
                if len(ends) and np.isfinite(ends).all():
                    axes.plot(ends, [level, level], color=colour, linewidth=1.0)
            place = x + wide * (last - low) / (high - low) + 0.6 * style.em
            words = row.words * (pitch > 0.9 * size * POINT)
            sheet.text(place, y + (number + 0.5) * pitch, words, size=size, colour=style.muted)


def ends_of(rows: Sequence[Row]) -> Ends:
    """The ends of an axis that shows all of these values, their intervals and 0."""
    spots = [0.0]
    for row in rows:
        spots += [end for value in row.values.values() for end in value if np.isfinite(end)]
    # Where all are 0 this only avoids dividing by zero.
    return min(spots), max(min(spots) + 1e-12, *spots)


def draw_dots(sheet: Sheet, y: float, rows: Mapping[str, Row], **look: Any) -> float:
    """Draw named rows of dots, the legend of their series above; return the next y."""
    style = sheet.style
    series = list(dict.fromkeys(name for row in rows.values() for name in row.values))
    # The first is a filled dot, its first baseline an upright line, and the others are hollow.
    colours = [style.accent, style.ink, *style.series(len(series) + 2)[1:]]
    shapes = ("dot", "tick", "diamond", "triangle", "square")
    looks = {name: (colours[number], shapes[number % 5]) for number, name in enumerate(series)}
    legend = [(look, sheet.shown(name)) for name, look in looks.items()]
    y = sheet.legend(legend, y, draw_mark)
    names = [sheet.shown(name) for name in rows]
    return draw_panels(
        sheet, y, [RowMarks(names=names, rows=[*rows.values()], looks=looks, **look)]
    )


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
class Lines(Panel):
    """Lines over layers or other numbers, the first over the others, named on the right.

    Args:
        lines: see `Line`.
        over: numbers of the layers, or others.
        below: what is written below which of the numbers; the axis then begins at 0. By default
            the numbers of layers, or some of them.
    """

    lines: Sequence[Line]
    over: Sequence[float]
    below: Mapping[float, str] | None = None

    @property
    def beside(self) -> tuple[Sequence[str], Sequence[str]]:
        """The numbers of the axis, and the names of lines."""
        return [*map(self.written, self.ends)], [line.name for line in self.lines]

    def draw(self, sheet: Sheet, box: Box) -> None:
        """Draw lines with their bands over a grid."""
        style, (x, y, width, height), layers = sheet.style, box, self.over
        levels, colours = {}, {}
        axes, (low, high) = draw_grid(sheet, box, self.ends, self.written, level=True), self.ends
        below = self.below or {layer: str(layer) for layer in layers[:: max(1, len(layers) // 8)]}
        axes.set_xticks([*below], [*below.values()])
        # A single layer still needs an axis of some length.
        axes.set_xlim(0.0 if self.below else layers[0], max(layers[-1], layers[0] + 1e-3))
        for line in reversed(self.lines):
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


COLOUR_BAR, SHORTEST_BAR = 2.0, 12.0
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
    text, start = LEADING * style.small * POINT, left + sheet.width_of(words, style.small)
    sheet.note(left, y + COLOUR_BAR / 2, words)
    legend = (sheet.width_of("masked", style.small) + 2.2 * style.em + COLOUR_BAR) * masked
    room = right - 1.6 * style.em - legend
    if room - start < SHORTEST_BAR:  # below the words
        start, y = left, y + text + 0.4 * style.em
    start, below = start + style.em, y + COLOUR_BAR + 0.6
    width = max(SHORTEST_BAR, min(45.0, room + style.em - start))
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
