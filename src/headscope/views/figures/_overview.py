"""Views of all heads, a tile for each head of each layer: overview and model show their weights,
pair shows one query and one key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headscope.patterns import KINDS, head_kinds
from headscope.record import Layer
from headscope.views.figures._frame import (
    CLAUSES,
    closing,
    colour_bar,
    heading,
    heads_in_words,
    quoted,
)
from headscope.views.figures._numbers import (
    DrawnQuantity,
    even_of,
    largest_of,
    lifts_of,
    numbers_of,
    pooled,
    pooling_words,
)
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import Scale, counted, text_on

CELLS = 48
"""Rows and columns of a thumbnail at most."""
TALLEST, LARGEST_THUMBNAIL = 215.0, 22.0
"""Millimetres of the grid, and of a thumbnail."""
GAP, GROUP_GAP = 0.06, 0.16
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


def draw_overview(plan: FigurePlan) -> Sheet:
    """A grid of layers and heads; each thumbnail is a head's matrix in the colour of its kind, and
    all share one scale.
    """
    sheet, shown = Sheet(plan.width, plan.style), plan.shown
    columns = f"× {counted(max(layer.heads for layer in plan.layers), 'head')}"
    if shown.whole:
        columns = f"· {heads_in_words(plan) if shown.combined.heads else shown.label}"
    y = heading(sheet, plan, f"{_stack(plan)}{counted(len(plan.layers), 'layer')} {columns}")
    thumbnails = [_thumbnails(layer, plan) for layer in plan.layers]
    largest = max(largest_of(each) for row in thumbnails for each in row)
    scales, y = _scales(sheet, plan, largest, y)
    tiles = _grid(sheet, plan, y, aspect=float(np.clip(plan.from_.sum() / plan.to.sum(), 0.4, 2.5)))
    for number, row in enumerate(thumbnails):
        for head, values in zip(_columns(plan, number), row, strict=True):
            x, top, *size = tiles.box(number, head)
            rgb = scales(plan.layers[number].layer, head).rgb(values)
            sheet.framed_cells(rgb, at=(x, top), size=(size[0], size[1]), hidden=np.isnan(values))
    hidden = any(np.isnan(each).any() for row in thumbnails for each in row)
    queries, keys = int(plan.from_.sum()), int(plan.to.sum())
    notes = [
        "rows are queries, columns are keys",
        f"{queries} × {keys} {'numbers' if shown.explanation else f'{shown.label}s'}",
    ]
    if max(queries, keys) > CELLS:
        notes.append(pooling_words(mean=shown.weights, signed=shown.signed))
    _finish(sheet, plan, tiles, scales, hidden=hidden, notes=notes)
    return sheet


def draw_pair(plan: FigurePlan) -> Sheet:
    """A tile for each head of each layer, with its number."""
    sheet, style, shown = Sheet(plan.width, plan.style), plan.style, plan.shown
    rows = [_of_pair(layer, plan) for layer in plan.layers]
    drawn = [_of_pair(layer, plan, lifts=shown.weights) for layer in plan.layers]
    query, key = (quoted(sheet, plan, side) for side in ("query", "key"))
    y = heading(sheet, plan, f"{_stack(plan)}{query} → {key}")
    scales, y = _scales(sheet, plan, max(map(largest_of, rows)), y)
    wide = LARGEST_THUMBNAIL
    if not shown.whole:
        wide = (sheet.width - 3 * style.em) / plan.stack.heads
    # Numbers are wider than tall: a tile need not be higher than a line of text.
    tall = TALLEST_TILE * style.em
    tiles = _grid(sheet, plan, y, aspect=min(1.0, tall / wide), tallest=tall)
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
            sheet.framed_cells(rgb, at=(x, top), size=(width, height), hidden=hidden)
            words, ink = _words(number, shown) * is_numbered, text_on(rgb[0, 0])
            place = (x + width / 2, top + height / 2)
            sheet.text(*place, words, size=size or 1.0, colour=ink, anchor="center")
    notes = [f"token {plan.query} looks at token {plan.key}"]
    if is_numbered and shown.weights and (numbers < FAINT).any():
        notes.append("no number: below .0005")
    hidden = bool(np.isnan(numbers).any())
    _finish(sheet, plan, tiles, scales, hidden=hidden, notes=notes)
    return sheet


def _of_pair(layer: Layer, plan: FigurePlan, *, lifts: bool = False) -> np.ndarray:
    """The number of each head, or its multiple of the even share."""
    at = plan.query, plan.key
    row = numbers_of(layer, layer.head_numbers, plan.shown)[:, *at]
    return lifts_of(row, even_of(layer, plan.shown)[at]) if lifts else row


def _stack(plan: FigurePlan) -> str:
    return "" if plan.stack.name == "self" else f"{plan.stack.name.capitalize()} · "


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


def _grid(
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
    width = (sheet.width - side) / (heads + (heads - 1) * GAP + groups * GROUP_GAP)
    room = TALLEST / (len(layers) * (1 + GAP)) / aspect
    width = min(width, LARGEST_THUMBNAIL, room, tallest / aspect)
    height, gap = width * aspect, width * GAP
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
    width = min(width, LARGEST_THUMBNAIL, tallest / aspect, (TALLEST / rows - line - gap) / aspect)
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
