"""The charts: matrices, rows of marks or bars, lines; what stands around them; and colour bars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from headscope.views.figures._sheet import LEADING, Box, Sheet, apart
from headscope.views.figures._style import POINT, Scale, number_written, parse_hex, text_on

Ends = tuple[float, float]
Cell = tuple[int, int]
Value = tuple[float, ...]
"""A number, and the ends of its interval where they are known."""
Look = tuple[str, str]
"""Colour and shape of a mark, or ``"bar"``; or ``"part"`` of a bar with its percentage."""
SHAPES = {"dot": "o", "ring": "o", "tick": "|", "diamond": "D", "triangle": "^", "square": "s"}
"""Matplotlib's name of each shape; all but the dot and the tick are hollow."""
ROW = 1.75
"""Height of a row, in units of the font size."""
MOST_SIDE, BESIDE_ROWS = 0.4, 0.6
"""Shares of the width: of names of rows and of titles beside rows at most, and of matrices beside
rows.
"""
LARGEST_CELL = 7.0
"""Millimetres of a cell of a matrix."""
MARK, DOT = 1.7, 0.9
"""Diameter of a mark, and of a point of a line, in millimetres."""
TILE_GAP, GROUP_GAP = 0.06, 0.16
"""Gap between two pictures, and between columns that do not stand together, in cells."""
SMALLEST = 3.5
"""Smallest size of a word in a cell, in points."""
NARROW = 2.5
"""So many numbers must have room below an axis, or they are its ends."""
COLOUR_BAR, SHORTEST_BAR = 2.0, 12.0
"""Height of the bar of a scale, and its smallest length, in millimetres."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """A chart with what stands around it.

    Args:
        title: over it, in as many lines as it needs.
        note: small, below the title.
        under: name of its numbers, below it.
        names: of its rows, on the left.
        high: height of a row in millimetres, or of lines; by default what is needed.
        cell: of a matrix the width of a cell at most, in millimetres.
        aspect: of a cell: its height in units of its width.
        ends: the numbers at both ends of its axis.
        written: how these are written.
    """

    title: str = ""
    note: str = ""
    under: str = ""
    names: Sequence[object] = ("",)
    high: float | None = None
    cell: float = LARGEST_CELL
    aspect: float = 1.0
    ends: Ends = (0.0, 1.0)
    written: Callable[[float], str] = number_written

    @property
    def columns(self) -> int:
        """Cells side by side; 0 of what is no matrix."""
        return 0

    @property
    def beside(self) -> tuple[Sequence[str], Sequence[str]]:
        """Words of its own on its left and its right."""
        return (), ()

    def draw(self, sheet: Sheet, box: Box) -> None:
        """Draw it in a box."""
        raise NotImplementedError

    def tall(self, wide: float, em: float) -> float:
        """Height of it where it is so wide."""
        row = self.aspect * min(self.cell, wide / self.columns) if self.columns else ROW * em
        return len(self.names) * (self.high or row)

    def draw_names(self, sheet: Sheet, box: Box, side: float) -> None:
        """Write the names of rows on the left, numbers in small; some where they stand close."""
        style, (x, y, _, tall) = sheet.style, box
        pitch = tall / len(self.names)
        size, every = sheet.naming(pitch, len(self.names))
        look: dict[str, Any] = {"size": size, "anchor": "right"}
        if not isinstance(self.names[0], str):
            look |= {"size": min(size, style.small), "colour": style.muted}
        for row in range(0, len(self.names), every) if side else ():
            name = sheet.fitted(str(self.names[row]), side - 0.5 * style.em, look["size"])
            sheet.text(x - 0.5 * style.em, y + (row + 0.5) * pitch, name, **look)


def draw_panels(
    sheet: Sheet,
    panels: Sequence[Panel],
    *,
    least: float = 1000.0,
    gap: float = 1.6,
    cells: float = BESIDE_ROWS,
) -> None:
    """Draw panels side by side, in as many lines as they need.

    Panels that all have the same rows have the names of these once in each line.

    Args:
        sheet: what is drawn on.
        panels: in their order.
        least: smallest width of a chart in millimetres; by default they stand below each other.
        gap: between two panels, in units of the font size.
        cells: share of the width that matrices take beside rows.
    """
    em, gap = sheet.style.em, gap * sheet.style.em
    is_numbered = not isinstance(panels[0].names[0], str)
    side = max(sheet.widest(map(str, each.names), of_notes=is_numbered) for each in panels)
    side = min(side, MOST_SIDE * sheet.width / min(2, len(panels))) + 0.8 * em * (side > 0)
    is_shared = len({(*each.names,) for each in panels}) == 1
    sides = []
    for each in panels:
        left, right = map(sheet.widest, each.beside)
        left += 0.6 * em * (left > 0) + side * (not is_shared)
        if not each.columns:
            # At least half of the last number of the axis stands beside it.
            right = max(right + 0.8 * em, 0.5 * sheet.widest([each.written(each.ends[1])]))
        sides.append((left, right))
    start, around = side * is_shared, [left + right + gap for left, right in sides]
    room = sheet.width - start + gap
    columns = min(len(panels), max(1, int(room / (least + max(around)))))
    columns = -(-len(panels) // -(-len(panels) // columns))
    for first in range(0, len(panels), columns):
        part = slice(first, first + columns)
        line, x = [], start
        rest = room * len(panels[part]) / columns - sum(around[part])
        wide = _widths(sheet, panels[part], rest, cells)
        for each, (left, right), (of, taken) in zip(panels[part], sides[part], wide, strict=True):
            line.append((each, x + left, of))
            x += left + taken + right + gap
        _draw_line(sheet, line, side, is_shared=is_shared)


def _draw_line(
    sheet: Sheet, line: Sequence[tuple[Panel, float, float]], side: float, *, is_shared: bool
) -> None:
    """Draw panels, each at its left edge and so wide, with what stands around them."""
    em, titled = sheet.style.em, [(x, each.title) for each, x, _ in line if each.title]
    stops, begin, tops = [*(x - 0.6 * em for x, _ in titled[1:]), sheet.width], sheet.y, [sheet.y]
    for (x, title), end in zip(titled, stops, strict=False):
        sheet.y = begin
        sheet.title(title, x, end - x)
        tops.append(sheet.y)
    y = max(tops) + (0.4 + 1.3 * any(each.note for each, *_ in line)) * em
    tall = [each.tall(of, em) for each, _, of in line]
    matrices = [of for of, (each, *_) in zip(tall, line, strict=True) if each.columns]
    if len(matrices) < len(line) and matrices:
        # Rows are as high as those of the matrices beside them.
        tall = [max(matrices)] * len(line)
    for number, ((each, x, of), high) in enumerate(zip(line, tall, strict=True)):
        sheet.note(x, y - 1.0 * em, each.note)
        if not (is_shared and number):
            each.draw_names(sheet, (x, y, of, high), side)
        each.draw(sheet, (x, y, of, high))
        sheet.note(x + of / 2, y + high + 2.0 * em, each.under, anchor="center")
    sheet.y = y + max(tall) + (2.2 + any(each.under for each, *_ in line)) * em


def _widths(sheet: Sheet, line: Sequence[Panel], room: float, cells: float) -> list[Ends]:
    """The width of each chart of a line and the room that it takes: equal ones, but beside rows
    cells are square, and have room for their title.
    """
    counts = [each.columns for each in line]
    if not any(counts) or all(counts):
        return [(room / len(line), room / len(line))] * len(line)
    cell, taken = min(LARGEST_CELL, cells * room / sum(counts)), []
    for count, each in zip(counts, line, strict=True):
        title = min(sheet.width_of(each.title), MOST_SIDE * sheet.width)
        taken.append(max(count * cell, title) if count else 0.0)
    rest = (room - sum(taken)) / counts.count(0)
    return [(count * cell or rest, of or rest) for count, of in zip(counts, taken, strict=True)]


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
    round numbers, a darker one at 0; upright, with the numbers below, or level ones.
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
        values: numbers of the cells, such as of layers and heads; NaN where there is none; empty
            where each is a picture.
        scale: their colours.
        below: names of the columns; by default their numbers.
        pictures: colours of each cell, and what is hidden of them, where it is a picture.
        shared: so many columns each stand together; by default all.
        dots: True where a cell has a dot.
        frames: row and column of cells that are framed; column -1 for the whole row.
        words: of each cell, written where they have room.
        framed: whether a thin line is around all.
    """

    values: Float[np.ndarray, "row column"] = field(default_factory=partial(np.zeros, (0, 0)))
    scale: Scale | None = None
    below: Sequence[object] = ()
    pictures: Mapping[Cell, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    shared: int = 1000
    dots: Bool[np.ndarray, "row column"] | None = None
    frames: Collection[Cell] = ()
    words: Mapping[Cell, str] = field(default_factory=dict)
    framed: bool = True

    @property
    def columns(self) -> int:
        """Cells side by side."""
        return len(self.below) or self.values.shape[1]

    def draw(self, sheet: Sheet, box: Box) -> None:
        """Draw cells from the upper left corner on, and the names of columns below."""
        style, (x, y, wide, high), count = sheet.style, box, self.columns
        cell = min(self.cell, wide / (count + (count - 1) // self.shared * GROUP_GAP))
        tall, side = high / len(self.names), 1 - TILE_GAP
        lefts = [x + (at + at // self.shared * GROUP_GAP) * cell for at in range(count)]

        def middle(row: int, column: int) -> tuple[float, float]:
            return lefts[column] + 0.5 * cell, y + (row + 0.5) * tall

        rgb = np.zeros((0, 0, 3), np.uint8) if self.scale is None else self.scale.rgb(self.values)
        if rgb.size:
            look = {"hidden": np.isnan(self.values), "framed": self.framed}
            sheet.cells(rgb, at=(x, y), size=(count * cell, high), **look)
        for (row, column), (picture, hidden) in self.pictures.items():
            at, size = (lefts[column], y + row * tall), (side * cell, tall - TILE_GAP * cell)
            sheet.cells(picture, at=at, size=size, hidden=hidden)
        for row, column in [] if self.dots is None else np.argwhere(self.dots).tolist():
            fill = text_on(rgb[row, column])
            sheet.dot(*middle(row, column), 0.28 * cell, facecolor=fill, zorder=4)
        for row, column in self.frames:
            left, right = lefts[max(column, 0)], lefts[column] + cell
            look = {"edgecolor": style.ink, "linewidth": 1.0, "zorder": 4}
            sheet.rect(left, y + row * tall, right - left, tall, **look)
        size = 0.86 * cell / (sheet.widest(self.words.values()) or np.inf) * style.small
        for at, says in self.words.items() if size >= SMALLEST else ():
            ink = text_on(self.pictures[at][0][0, 0] if self.pictures else rgb[at])
            look = {"size": min(size, style.small), "colour": ink, "anchor": "center"}
            sheet.text(*middle(*at), says, **look)
        names = [*map(str, self.below or range(count))]
        room = max(sheet.widest(names[-1:]), style.small * POINT)
        for column in range(0, count, max(1, int(np.ceil(1.3 * room / cell)))):
            x = lefts[column] + 0.5 * cell
            sheet.note(x, y + high + 0.7 * style.em, names[column], anchor="center")


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
        base: a number and its interval, with which all are compared.
        spread: distance of marks of a row, as a part of it; lines then stand between rows.
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
        style, shapes = sheet.style, {shape for _, shape in self.looks.values()}
        axes = draw_grid(sheet, box, self.ends, self.written, has_zero="part" not in shapes)
        # The words behind bars say what lines would, and would be crossed by them.
        axes.xaxis.grid(visible=not {"bar", "part"} & shapes)
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
                if shape == "part":
                    # It begins where the parts before it end.
                    begin = sum(of[0] for of in [*row.values.values()][:at])
                    look = {"color": colour, "edgecolor": style.paper, "linewidth": 0.6}
                    axes.barh(level, value[0], 0.75, left=begin, **look)
                    # A part that is too narrow for its number stays without one.
                    says = f"{100 * value[0]:.0f}" * (value[0] * wide > 0.9 * ROW * style.em)
                    look = {"size": size, "colour": text_on(parse_hex(colour)), "anchor": "center"}
                    middle = x + wide * (begin + value[0] / 2 - low) / (high - low)
                    sheet.text(middle, y + level * pitch, says, **look)
                elif shape == "bar":
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


def draw_dots(sheet: Sheet, rows: Mapping[str, Row], **look: Any) -> None:
    """Draw named rows of dots, the legend of their series above."""
    style = sheet.style
    series = list(dict.fromkeys(name for row in rows.values() for name in row.values))
    # The first is a filled dot, its first baseline an upright line, and the others are hollow.
    colours = [style.accent, style.ink, *style.series(len(series) + 2)[1:]]
    shapes = ("dot", "tick", "diamond", "triangle", "square")
    looks = {name: (colours[number], shapes[number % 5]) for number, name in enumerate(series)}
    sheet.legend([(look, sheet.shown(name)) for name, look in looks.items()], draw_mark)
    names = [sheet.shown(name) for name in rows]
    draw_panels(sheet, [RowMarks(names=names, rows=[*rows.values()], looks=looks, **look)])


def draw_mark(sheet: Sheet, look: Look, x: float, y: float, *, axes: Any = None) -> None:
    """Draw a mark around a point of axes, by default of the sheet itself."""
    (colour, shape), is_tick = look, look[1] == "tick"
    (axes or sheet.page).plot(
        x,
        y,
        SHAPES[shape],
        color=colour,
        markerfacecolor=colour if shape == "dot" else sheet.style.paper,
        markersize=(1.5 if is_tick else 0.9) * MARK / POINT,
        markeredgewidth=1.6 if is_tick else 0.9,
        clip_on=False,
        zorder=4,
    )


class Line(NamedTuple):
    """One line: its name and colour, which may be empty, and numbers with their intervals."""

    name: str
    colour: str
    values: Float[np.ndarray, " layer"]
    ends: Float[np.ndarray, "layer 2"] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines(Panel):
    """Lines over layers or others, the first over the others, named on the right.

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


def colour_bar(
    sheet: Sheet,
    scale: Scale,
    words: str,
    *,
    masked: bool = False,
    ticks: Sequence[tuple[float, str]] = (),
    values: Float[np.ndarray, " column"] | None = None,
) -> None:
    """The bar of a scale, words on its left and numbers below.

    Args:
        sheet: what is drawn on.
        scale: what is explained.
        words: on the left.
        masked: whether it explains masked cells too.
        ticks: parts of its width, and what is written there; by default the scale's.
        values: the numbers from its left to its right end; by default the whole scale.
    """
    style, y, text = sheet.style, sheet.y, LEADING * sheet.style.small * POINT
    start = sheet.width_of(words, style.small)
    sheet.note(0.0, y + COLOUR_BAR / 2, words)
    legend = (sheet.width_of("masked", style.small) + 2.2 * style.em + COLOUR_BAR) * masked
    room = sheet.width - 1.6 * style.em - legend
    if room - start < SHORTEST_BAR:  # below the words
        start, y = 0.0, y + text + 0.4 * style.em
    start, below = start + style.em, y + COLOUR_BAR + 0.6
    width = max(SHORTEST_BAR, min(45.0, room + style.em - start))
    rgb = scale.bar() if values is None else scale.rgb(values[None])
    sheet.cells(rgb, at=(start, y), size=(width, COLOUR_BAR))
    *others, last = ticks or scale.ticks()
    taken = []
    # The largest number first, which then has its room.
    for part, number in [last, *others]:
        x, half = start + part * width, sheet.width_of(number, style.small) / 2
        sheet.line((x, x), (y + COLOUR_BAR, below), style.muted, 0.4)
        if all(abs(x - other) > half + room + 0.3 * style.em for other, room in taken):
            sheet.note(x, below + text / 2, number, anchor="center")
            taken.append((x, half))
    if masked:
        x, hidden = start + width + 1.6 * style.em, np.ones((1, 1), bool)
        swatch, size = parse_hex(style.masked)[None, None], (COLOUR_BAR, COLOUR_BAR)
        sheet.cells(swatch, at=(x, y), size=size, hidden=hidden)
        sheet.note(x + COLOUR_BAR + 0.4 * style.em, y + COLOUR_BAR / 2, "masked")
    sheet.y = below + text + 0.35 * style.em
