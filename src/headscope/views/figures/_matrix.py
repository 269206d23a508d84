"""Views made of cells: of one head, or the mean of several, query by key; of all heads, a tile for
each (overview and model with their weights, pair with one query and one key).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headscope.patterns import KINDS, head_kinds
from headscope.record import Layer
from headscope.views.figures._charts import colour_bar
from headscope.views.figures._frame import (
    CLAUSES,
    closing,
    heading,
    named_every,
)
from headscope.views.figures._numbers import (
    DrawnQuantity,
    even_of,
    largest_of,
    lifts_of,
    mean_of,
    numbers_of,
    pooled,
    pooling_words,
)
from headscope.views.figures._plan import FigurePlan
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT, Scale, counted, parse_hex, short_weight, text_on

TALLEST = 200.0
"""Millimetres."""
LARGEST_CELL = 2.6
"""In units of the font size."""
WIDEST_NAME, GAP = 0.22, 0.4
DOTS = 300
"""Number of cells in an inch at most: more would be lost in print, so each block of cells becomes
one.
"""
STRIP = 5.0
"""Room for the bars of weight that was not kept, in units of the font size."""
LEAST = 0.0005
MOST_LEFT_OUT = 2
"""Positions are written instead of names where fewer than every second token has room for its
name.
"""
STEPS = (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 10**9)


@dataclass(frozen=True, eq=False)
class MatrixCells:
    """Position of the cells, in millimetres; rows are queries, columns are keys.

    Args:
        left: left edge of the first column.
        top: top edge of the first row.
        cell: width and height of a cell.
        rows: positions of the queries that are shown.
        columns: positions of the keys that are shown.
        every: 1 where all tokens have their name, n where every nth has.
        size: size of the names, in points.
    """

    left: float
    top: float
    cell: float
    rows: Sequence[int]
    columns: Sequence[int]
    every: int
    size: float

    @property
    def box(self) -> tuple[float, float]:
        """Width and height."""
        return len(self.columns) * self.cell, len(self.rows) * self.cell


def draw_matrix(sheet: Sheet, plan: FigurePlan) -> None:
    """Rows are queries, columns are keys; colour is the number."""
    chosen = np.ix_(plan.from_, plan.to)
    values = mean_of(numbers_of(plan.layer, plan.heads, plan.shown, plan.without))[chosen]
    if plan.shown.weights:
        values = lifts_of(values, even_of(plan.layer, plan.shown, plan.without)[chosen])
    scale = plan.shown.scale(plan.style, largest_of(values), plan.layer.size[1], plan.colour)
    y = heading(sheet, plan, plan.where)
    grid = _grid(sheet, plan, y)
    shown = pooled(values, int(max(grid.box) / 25.4 * DOTS), mean=scale.lifts)
    at = (grid.left, grid.top)
    sheet.cells(scale.rgb(shown), at=at, size=grid.box, hidden=np.isnan(shown))
    if _shows_not_kept(plan):
        _draw_not_kept(sheet, plan, grid)
    is_numbered = grid.every > MOST_LEFT_OUT
    (_numbers if is_numbered else _names)(sheet, plan, grid)
    _borders(sheet, plan, grid)
    y = grid.top + grid.box[1] + 0.8 * plan.style.em
    y = colour_bar(sheet, scale, plan.shown.scale_label, y=y, masked=bool(np.isnan(values).any()))
    is_pooled, is_mean = shown is not values, len(plan.heads) > 1 or plan.shown.whole
    notes = [
        "tokens stand too close for their names: positions from 0"
        if is_numbered
        else named_every(grid.every),
        pooling_words(mean=scale.lifts, signed=scale.signed) if is_pooled else "",
        plan.heads_in_words(mean=True) if is_mean else "",
        scale.words,
    ]
    closing(sheet, plan, y, notes)


def _grid(sheet: Sheet, plan: FigurePlan, y: float) -> MatrixCells:
    style, stack = plan.style, plan.stack
    rows, columns = (np.flatnonzero(shown).tolist() for shown in (plan.from_, plan.to))
    most, gap = WIDEST_NAME * sheet.width, GAP * style.em
    left = max(sheet.width_of(sheet.token_name(stack.query, row)) for row in rows)
    left = max(min(most, left), sheet.width_of("from (query)", style.small)) + gap
    strip = STRIP * style.em * _shows_not_kept(plan)
    room = (sheet.width - left - strip) / len(columns)
    cell = min(room, TALLEST / len(rows), LARGEST_CELL * style.em)
    size, every = sheet.naming(cell, max(len(rows), len(columns)))
    names = [sheet.width_of(sheet.token_name(stack.key, at), size) for at in columns]
    tall, line = min(most, max(names)), 1.4 * style.em
    if every > MOST_LEFT_OUT:
        tall = 1.2 * style.em
    top = y + line + tall + gap
    sheet.note(left, y + line / 2, "to (key)")
    beside = y + line / 2 if every > MOST_LEFT_OUT else top - 0.75 * style.em
    sheet.note(left - gap, beside, "from (query)", anchor="right")
    return MatrixCells(left, top, cell, rows, columns, every, size)


def _shows_not_kept(plan: FigurePlan) -> bool:
    return plan.layer.partial and plan.shown.weights and not plan.without


def _draw_not_kept(sheet: Sheet, plan: FigurePlan, grid: MatrixCells) -> None:
    """Draw next to each row, hatched, the share of its weight that was cut before headscope saw it,
    with its number where it fits.
    """
    style, shares = plan.style, plan.not_kept[list(grid.rows)]
    left = grid.left + grid.box[0] + GAP * style.em
    longest = (STRIP - GAP) * style.em - sheet.width_of(".00", style.small)
    sheet.note(left, grid.top - 0.75 * style.em, "not kept")
    grey = parse_hex(style.masked)[None, None]
    for index, share in enumerate(shares.tolist()):
        if share < LEAST:
            continue
        top, height = grid.top + (index + 0.15) * grid.cell, 0.7 * grid.cell
        # At least a tenth of a millimetre: a thinner bar would vanish in print.
        wide = max(share * longest, 0.1)
        hidden = np.ones((1, 1), bool)
        sheet.cells(grey, at=(left, top), size=(wide, height), hidden=hidden)
        if grid.cell > 0.9 * style.small * POINT:
            sheet.note(left + wide + 0.2 * style.em, top + height / 2, short_weight(share))


def _names(sheet: Sheet, plan: FigurePlan, grid: MatrixCells) -> None:
    style, gap = plan.style, GAP * plan.style.em
    for tokens, positions in ((plan.stack.query, grid.rows), (plan.stack.key, grid.columns)):
        is_column = positions is grid.columns
        for index in range(0, len(positions), grid.every):
            position, middle = positions[index], (index + 0.5) * grid.cell
            name = sheet.token_name(tokens, position)
            name = sheet.fitted(name, WIDEST_NAME * sheet.width, grid.size)
            colour = style.muted if tokens.special[position] else style.ink
            if is_column:
                at = (grid.left + middle, grid.top - gap)
                sheet.text(*at, name, upright=True, size=grid.size, colour=colour)
            else:
                at = (grid.left - gap, grid.top + middle)
                sheet.text(*at, name, anchor="right", size=grid.size, colour=colour)


def _numbers(sheet: Sheet, plan: FigurePlan, grid: MatrixCells) -> None:
    """Round positions along both sides, where tokens are too close for their names."""
    style, tick = plan.style, 0.2 * plan.style.em
    most = str(max(*grid.rows, *grid.columns))
    least = 1.6 * sheet.width_of(most, style.small) / grid.cell
    step = next(step for step in STEPS if step >= least)
    for index, position in enumerate(grid.columns):
        x, half = grid.left + (index + 0.5) * grid.cell, sheet.width_of(str(position)) / 2
        if position % step == 0 and x + half < sheet.width + 0.5:
            sheet.line((x, x), (grid.top - tick, grid.top), colour=style.muted, line=0.4)
            sheet.note(x, grid.top - 0.75 * style.em, str(position), anchor="center")
    for index, position in enumerate(grid.rows):
        y = grid.top + (index + 0.5) * grid.cell
        if position % step == 0:
            sheet.line((grid.left - tick, grid.left), (y, y), colour=style.muted, line=0.4)
            sheet.note(grid.left - GAP * style.em, y, str(position), anchor="right")


def _borders(sheet: Sheet, plan: FigurePlan, grid: MatrixCells) -> None:
    """Lines through the whole grid: thin ones between the texts of a pair, and one before what the
    model wrote.
    """
    style, (width, height) = plan.style, grid.box
    for tokens, positions in ((plan.stack.query, grid.rows), (plan.stack.key, grid.columns)):
        edges = []
        first = plan.first_written(tokens)
        if first is not None:
            before = sum(position < first for position in positions)
            if 0 < before < len(positions):
                edges.append((before, style.accent, 0.9))
        segments = [tokens.segments[position] for position in positions]
        for number, (one, other) in enumerate(pairwise(segments), start=1):
            if one != other:
                edges.append((number, style.faint, 0.4))
        for before, colour, line in edges:
            edge = before * grid.cell
            if positions is grid.columns:
                xs, ys = (grid.left + edge,) * 2, (grid.top, grid.top + height)
            else:
                xs, ys = (grid.left, grid.left + width), (grid.top + edge,) * 2
            sheet.line(xs, ys, colour=colour, line=line)


CELLS = 48
"""Rows and columns of a thumbnail at most."""
TALLEST_GRID, LARGEST_THUMBNAIL = 215.0, 22.0
"""Millimetres of the grid, and of a thumbnail."""
TILE_GAP, GROUP_GAP = 0.06, 0.16
"""Gap between two thumbnails, and between heads that do not share their keys and values in
addition, in units of their width.
"""
TALLEST_TILE = 1.9
"""Height of a tile with a number at most, in units of the font size."""
SMALLEST = 3.5
"""Smallest size of a number in points; where numbers would be smaller, only colours are drawn."""
FAINT = 0.0005
Scales = Callable[[int, int], Scale]
"""The scale of a layer and head."""


@dataclass(frozen=True, eq=False)
class Tiles:
    """Positions of the tiles in a grid of layers and heads, in millimetres.

    Args:
        lefts: left edge of each head's column.
        tops: top edge of each layer's row.
        width: width of a tile.
        height: height of a tile.
        wrapped: whether the grid has one tile for each layer instead, row after row.
    """

    lefts: Sequence[float]
    tops: Sequence[float]
    width: float
    height: float
    wrapped: bool = False

    def box(self, row: int, head: int) -> tuple[float, float, float, float]:
        """Left, top, width and height of the tile of the row-th layer and of a head."""
        if self.wrapped:
            row, head = divmod(row, len(self.lefts))
        return self.lefts[head], self.tops[row], self.width, self.height


def draw_overview(sheet: Sheet, plan: FigurePlan) -> None:
    """A grid of layers and heads; each thumbnail is a head's matrix in the colour of its kind, and
    all share one scale.
    """
    shown = plan.shown
    columns = f"× {counted(max(layer.heads for layer in plan.layers), 'head')}"
    if shown.whole:
        columns = f"· {plan.heads_in_words() if shown.combined.heads else shown.label}"
    y = heading(sheet, plan, f"{plan.stack_words}{counted(len(plan.layers), 'layer')} {columns}")
    thumbnails = [_thumbnails(layer, plan) for layer in plan.layers]
    largest = max(largest_of(each) for row in thumbnails for each in row)
    scales, y = _scales(sheet, plan, largest, y)
    tiles = _tiles(
        sheet, plan, y, aspect=float(np.clip(plan.from_.sum() / plan.to.sum(), 0.4, 2.5))
    )
    for number, row in enumerate(thumbnails):
        for head, values in zip(_columns(plan, number), row, strict=True):
            x, top, *size = tiles.box(number, head)
            rgb = scales(plan.layers[number].layer, head).rgb(values)
            sheet.cells(rgb, at=(x, top), size=(size[0], size[1]), hidden=np.isnan(values))
    hidden = any(np.isnan(each).any() for row in thumbnails for each in row)
    queries, keys = int(plan.from_.sum()), int(plan.to.sum())
    notes = [
        "rows are queries, columns are keys",
        f"{queries} × {keys} {'numbers' if shown.explanation else f'{shown.label}s'}",
    ]
    if max(queries, keys) > CELLS:
        notes.append(pooling_words(mean=shown.weights, signed=shown.signed))
    _finish(sheet, plan, tiles, scales, hidden=hidden, notes=notes)


def draw_pair(sheet: Sheet, plan: FigurePlan) -> None:
    """A tile for each head of each layer, with its number."""
    style, shown = plan.style, plan.shown
    rows = [_of_pair(layer, plan) for layer in plan.layers]
    drawn = [_of_pair(layer, plan, lifts=shown.weights) for layer in plan.layers]
    query, key = (sheet.quoted(plan.label(side)) for side in ("query", "key"))
    y = heading(sheet, plan, f"{plan.stack_words}{query} → {key}")
    scales, y = _scales(sheet, plan, max(map(largest_of, rows)), y)
    wide = LARGEST_THUMBNAIL
    if not shown.whole:
        wide = (sheet.width - 3 * style.em) / plan.stack.heads
    # Numbers are wider than tall: a tile need not be higher than a line of text.
    tall = TALLEST_TILE * style.em
    tiles = _tiles(sheet, plan, y, aspect=min(1.0, tall / wide), tallest=tall)
    numbers = np.concatenate(rows)
    widest = sheet.widest(_words(number, shown) for number in numbers)
    size = min(style.small, 0.86 * tiles.width * style.small / (widest or np.inf))
    is_numbered = size >= SMALLEST
    for line, row in enumerate(rows):
        for head, number, value in zip(_columns(plan, line), row, drawn[line], strict=True):
            x, top, width, height = tiles.box(line, head)
            rgb = scales(plan.layers[line].layer, head).rgb(np.array([[value]]))
            # Hidden where the query may not look at the key: there is no number.
            hidden = np.isnan([[number]])
            sheet.cells(rgb, at=(x, top), size=(width, height), hidden=hidden)
            words, ink = _words(number, shown) * is_numbered, text_on(rgb[0, 0])
            place = (x + width / 2, top + height / 2)
            sheet.text(*place, words, size=size or 1.0, colour=ink, anchor="center")
    notes = [f"token {plan.query} looks at token {plan.key}"]
    if is_numbered and shown.weights and (numbers < FAINT).any():
        notes.append("no number: below .0005")
    hidden = bool(np.isnan(numbers).any())
    _finish(sheet, plan, tiles, scales, hidden=hidden, notes=notes)


def _of_pair(layer: Layer, plan: FigurePlan, *, lifts: bool = False) -> np.ndarray:
    """The number of each head, or its multiple of the even share."""
    at = plan.query, plan.key
    row = numbers_of(layer, layer.head_numbers, plan.shown)[:, *at]
    return lifts_of(row, even_of(layer, plan.shown)[at]) if lifts else row


def _words(number: float, shown: DrawnQuantity) -> str:
    return "" if np.isnan(number) or (shown.weights and number < FAINT) else shown.words(number)


def _columns(plan: FigurePlan, row: int) -> Sequence[int]:
    return [0] if plan.shown.whole else plan.layers[row].head_numbers


def _thumbnails(layer: Layer, plan: FigurePlan) -> list[np.ndarray]:
    """Each head of a layer as a small matrix: of weights, multiples of the even share."""
    values = numbers_of(layer, layer.head_numbers, plan.shown)[:, plan.from_][:, :, plan.to]
    if plan.shown.weights:
        values = lifts_of(values, even_of(layer, plan.shown)[plan.from_][:, plan.to])
    return [pooled(head, CELLS, mean=plan.shown.weights) for head in values]


def _scales(sheet: Sheet, plan: FigurePlan, largest: float, y: float) -> tuple[Scales, float]:
    """The scale of each head: of weights in the colour of its kind on this text, which a legend
    counts; return the next y too.
    """
    style, keys = plan.style, len(plan.stack.key)
    plain = plan.shown.scale(style, largest, keys)
    if not _shows_kinds(plan):
        return lambda _layer, _head: plain, y
    # What heads do is told of tokens, also where words are drawn.
    kinds = head_kinds(plan.record[plan.stack.name])
    of = {kind: plan.shown.scale(style, largest, keys, style.kind(kind)) for kind in KINDS}
    entries = []
    numbers = kinds.number("kind")[[kinds.layers.index(layer.layer) for layer in plan.layers]]
    for number, kind in enumerate(KINDS):
        if (numbers == number).any():
            words = f"{int((numbers == number).sum())} {CLAUSES[kind]}"
            entries.append((style.kind(kind), words))
    y = sheet.legend(entries, y) + 0.4 * style.em
    return lambda layer, head: of[kinds.kind(layer, head)], y


def _shows_kinds(plan: FigurePlan) -> bool:
    """Whether colour can be what heads do: of their weights, where there are colours; the overview
    counts them without colours too.
    """
    of_heads = plan.shown.weights and not plan.shown.whole
    return of_heads and (plan.style.colour or plan.view == "overview")


def _tiles(
    sheet: Sheet, plan: FigurePlan, y: float, *, aspect: float, tallest: float = LARGEST_THUMBNAIL
) -> Tiles:
    """Place the tiles of layers and heads and write their numbers; heads that share keys and values
    are closer together.
    """
    if plan.shown.whole:
        return _grid_of_layers(sheet, plan, y, aspect=aspect, tallest=tallest)
    style, layers = plan.style, plan.layers
    heads, kv = max(each.heads for each in layers), max(each.kv_heads for each in layers)
    shared = heads // kv if kv < heads else heads
    side, line = sheet.width_of("layer", style.small) + 0.5 * style.em, 1.35 * style.em
    groups = (heads - 1) // shared
    width = (sheet.width - side) / (heads + (heads - 1) * TILE_GAP + groups * GROUP_GAP)
    room = TALLEST_GRID / (len(layers) * (1 + TILE_GAP)) / aspect
    width = min(width, LARGEST_THUMBNAIL, room, tallest / aspect)
    height, gap = width * aspect, width * TILE_GAP
    lefts = [side + at * (width + gap) + at // shared * GROUP_GAP * width for at in range(heads)]
    tops = [y + line + row * (height + gap) for row in range(len(layers))]
    sheet.note(0, y + line / 2, "layer")
    _number_heads(sheet, lefts, width, y + line / 2)
    for layer, top in zip(layers, tops, strict=True):
        x = side - 0.5 * style.em
        sheet.note(x, top + height / 2, str(layer.layer), anchor="right")
    return Tiles(lefts, tops, width, height)


def _number_heads(sheet: Sheet, lefts: Sequence[float], width: float, y: float) -> None:
    """The numbers of heads over their columns, every fourth where there is no room for all."""
    small = sheet.style.small
    for head in range(0, len(lefts), 1 if width > 1.1 * sheet.width_of("00", small) else 4):
        is_named = head == 0 and sheet.width_of("head 0", small) < width
        words = "head 0" if is_named else str(head)
        sheet.note(lefts[head] + width / 2, y, words, anchor="center")


def _grid_of_layers(
    sheet: Sheet, plan: FigurePlan, y: float, *, aspect: float, tallest: float
) -> Tiles:
    """One tile for each layer, in lines, its number above it."""
    style, count = plan.style, len(plan.layers)
    line, gap = 1.35 * style.em, 0.5 * style.em
    columns = min(count, max(1, int((sheet.width + gap) // (LARGEST_THUMBNAIL * 0.72 + gap))))
    rows = -(-count // columns)
    # Again, so that the last row is about as full as the others.
    columns = -(-count // rows)
    width = (sheet.width - (columns - 1) * gap) / columns
    width = min(
        width, LARGEST_THUMBNAIL, tallest / aspect, (TALLEST_GRID / rows - line - gap) / aspect
    )
    height = width * aspect
    lefts = [column * (width + gap) for column in range(columns)]
    tops = [y + line + row * (height + line + gap) for row in range(rows)]
    tiles = Tiles(lefts, tops, width, height, wrapped=True)
    is_wide = width > sheet.width_of("layer 00", style.small)
    for number, layer in enumerate(plan.layers):
        left, top, *_ = tiles.box(number, 0)
        words = f"layer {layer.layer}" if is_wide else str(layer.layer)
        sheet.note(left + width / 2, top - line / 2, words, anchor="center")
    return tiles


def _frame(sheet: Sheet, plan: FigurePlan, tiles: Tiles) -> None:
    """A frame around the chosen layer, or around its chosen heads."""
    heads = [0] if plan.shown.whole else plan.heads
    boxes = [tiles.box(plan.layers.index(plan.layer), head) for head in heads]
    if len(heads) == plan.layer.heads:
        (x, top, *_), (last, *_) = boxes[0], boxes[-1]
        boxes = [(x, top, last + tiles.width - x, tiles.height)]
    for box in boxes:
        sheet.rect(*box, edge=plan.style.ink, line=1.1, layer=4)


def _finish(
    sheet: Sheet,
    plan: FigurePlan,
    tiles: Tiles,
    scales: Scales,
    *,
    hidden: bool,
    notes: list[str],
) -> None:
    """The frame of what is chosen, the colour bar and the notes."""
    shown, layers = plan.shown, plan.layers
    if plan.chosen and plan.layer in layers:
        _frame(sheet, plan, tiles)
    y = tiles.tops[-1] + tiles.height + 0.9 * plan.style.em
    # The bar has the colour of weights at rest, which is grey where heads have colours of kinds.
    scale = shown.scale(plan.style, 0.0, len(plan.stack.key), plan.style.kind("resting"))
    if not _shows_kinds(plan):
        scale = scales(0, 0)
    y = colour_bar(sheet, scale, shown.scale_label, y=y, masked=hidden)
    closing(sheet, plan, y, [*notes, scale.words, *_layer_notes(plan)])


def _layer_notes(plan: FigurePlan) -> Iterator[str]:
    if _shows_kinds(plan):
        yield "kinds describe this one text"
    if not plan.shown.whole and any(each.kv_heads < each.heads for each in plan.layers):
        yield "heads that share keys and values stand together"
    numbers = [layer.layer for layer in plan.stack.layers]
    gone = sorted({*range(max(numbers))} - {*numbers})
    if gone:
        yield f"without layers {', '.join(map(str, gone))}: not in the record"
    if any(layer.held_heads is not None for layer in plan.layers):
        yield "heads without a tile were not captured"
