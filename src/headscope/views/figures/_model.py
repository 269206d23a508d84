"""View model: every head of every layer as a thumbnail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headscope.record import Layer
from headscope.views.figures._frame import closing, colour_bar, heading, heads_in_words
from headscope.views.figures._numbers import (
    even_of,
    largest_of,
    lifts_of,
    numbers_of,
    pooled,
    pooling_words,
)
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._scale import Scale
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._words import counted

CELLS = 48
"""Rows and columns of a thumbnail at most."""
TALLEST = 215.0
"""Millimetres."""
LARGEST_THUMBNAIL = 22.0
GAP = 0.06
"""Gap between two thumbnails, in units of their width."""
GROUP_GAP = 0.16
"""Additional gap between heads that do not share their keys and values."""


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

    lefts: tuple[float, ...]
    tops: tuple[float, ...]
    width: float
    height: float
    wrapped: bool = False

    def at(self, row: int, head: int) -> tuple[float, float]:
        """Left and top of the tile of the row-th layer and of a head."""
        if self.wrapped:
            row, head = divmod(row, len(self.lefts))
        return self.lefts[head], self.tops[row]

    @property
    def bottom(self) -> float:
        """Where the grid ends."""
        return self.tops[-1] + self.height


def draw_model(plan: FigurePlan) -> Sheet:
    """A grid of layers and heads; each thumbnail is a head's matrix, max-pooled, and all share one
    scale.
    """
    sheet = Sheet(plan.width, plan.style)
    heads = max(layer.heads for layer in plan.layers)
    columns = f"× {counted(heads, 'head')}"
    if plan.shown.whole:
        columns = f"· {heads_in_words(plan) if plan.shown.combined.heads else plan.shown.label}"
    y = heading(sheet, plan, f"{_stack(plan)}{counted(len(plan.layers), 'layer')} {columns}")
    thumbnails = [thumbnails_of(layer, plan) for layer in plan.layers]
    largest = max(largest_of(thumbnail) for row in thumbnails for thumbnail in row)
    scale = plan.shown.scale(plan.style, largest, len(plan.stack.key))
    aspect = float(np.clip(plan.from_.sum() / plan.to.sum(), 0.4, 2.5))
    tiles = grid_of_heads(sheet, plan, y, aspect=aspect)
    for number, row in enumerate(thumbnails):
        columns = [0] if plan.shown.whole else plan.layers[number].head_numbers
        for head, thumbnail in zip(columns, row, strict=True):
            left, top = tiles.at(number, head)
            size, hidden = (tiles.width, tiles.height), np.isnan(thumbnail)
            sheet.cells(scale.rgb(thumbnail), at=(left, top), size=size, hidden=hidden)
            sheet.rect(
                left, top, tiles.width, tiles.height, edge=plan.style.edge, line=0.4, layer=3
            )
    frame_chosen(sheet, plan, tiles)
    y = tiles.bottom + 0.9 * plan.style.em
    hidden = any(np.isnan(thumbnail).any() for row in thumbnails for thumbnail in row)
    y = colour_bar(sheet, scale, plan.shown.scale_label, y=y, masked=hidden)
    closing(sheet, plan, y, _notes(plan, scale))
    return sheet


def grid_of_heads(
    sheet: Sheet, plan: FigurePlan, y: float, *, aspect: float, tallest: float = LARGEST_THUMBNAIL
) -> Tiles:
    """Place the tiles of layers and heads and write their numbers; heads that share keys and values
    are closer together.
    """
    if plan.shown.whole:
        return _grid_of_layers(sheet, plan, y, aspect=aspect, tallest=tallest)
    style = plan.style
    layers, heads = plan.layers, max(layer.heads for layer in plan.layers)
    kv = max(layer.kv_heads for layer in layers)
    shared = heads // kv if kv < heads else 0
    groups = kv - 1 if shared else 0
    side = sheet.width_of("layer", style.small) + 0.5 * style.em
    head_line = 1.35 * style.em
    width = (sheet.width - side) / (heads + (heads - 1) * GAP + groups * GROUP_GAP)
    room = TALLEST / (len(layers) * (1 + GAP)) / aspect
    width = min(width, LARGEST_THUMBNAIL, room, tallest / aspect)
    gap = width * GAP
    lefts = []
    for head in range(heads):
        before = head // shared if shared else 0  # groups of heads on its left
        lefts.append(side + head * (width + gap) + before * GROUP_GAP * width)
    height = width * aspect
    tops = tuple(y + head_line + row * (height + gap) for row in range(len(layers)))
    sheet.note(0, y + head_line / 2, "layer")
    _number_heads(sheet, lefts, width, y + head_line / 2)
    for layer, top in zip(layers, tops, strict=True):
        x = side - 0.5 * style.em
        sheet.note(x, top + height / 2, str(layer.layer), anchor="right")
    return Tiles(tuple(lefts), tops, width, height)


def _number_heads(sheet: Sheet, lefts: Sequence[float], width: float, y: float) -> None:
    """The numbers of heads over their columns, every fourth where there is no room for all."""
    small = sheet.style.small
    every = 1 if width > 1.1 * sheet.width_of("00", small) else 4
    for head in range(0, len(lefts), every):
        named = head == 0 and sheet.width_of("head 0", small) < width
        words = "head 0" if named else str(head)
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
    lefts = tuple(column * (width + gap) for column in range(columns))
    tops = tuple(y + line + row * (height + line + gap) for row in range(rows))
    tiles = Tiles(lefts, tops, width, height, wrapped=True)
    for number, layer in enumerate(plan.layers):
        left, top = tiles.at(number, 0)
        words = (
            f"layer {layer.layer}"
            if width > sheet.width_of("layer 00", style.small)
            else str(layer.layer)
        )
        sheet.note(left + width / 2, top - line / 2, words, anchor="center")
    return tiles


def frame_chosen(sheet: Sheet, plan: FigurePlan, tiles: Tiles) -> None:
    """Draw a frame around the chosen layer, or around its chosen heads."""
    if not plan.chosen or plan.layer not in plan.layers:
        return
    row = plan.layers.index(plan.layer)
    left, top = tiles.at(row, 0)
    # Orange stands out from the blue of weights; signed numbers use it themselves, so their frame
    # is ink.
    colour = plan.style.negative if not plan.shown.signed and plan.style.colour else plan.style.ink
    if plan.shown.whole:
        sheet.rect(left, top, tiles.width, tiles.height, edge=colour, line=1.1, layer=4)
        return
    if len(plan.heads) == plan.layer.heads:
        width = tiles.lefts[plan.layer.heads - 1] + tiles.width - tiles.lefts[0]
        sheet.rect(tiles.lefts[0], top, width, tiles.height, edge=colour, line=1.1, layer=4)
        return
    for head in plan.heads:
        sheet.rect(
            tiles.lefts[head], top, tiles.width, tiles.height, edge=colour, line=1.1, layer=4
        )


def missing_layers(plan: FigurePlan) -> str:
    """A note about layers between the drawn ones that are not in the record."""
    have = {layer.layer for layer in plan.stack.layers}
    gone = [number for number in range(max(have)) if number not in have]
    return f"without layers {', '.join(map(str, gone))}: not in the record" if gone else ""


def missing_heads(plan: FigurePlan) -> str:
    """A note about empty tiles, whose heads were not kept."""
    return (
        ""
        if all(layer.held_heads is None for layer in plan.layers)
        else "heads without a tile were not captured"
    )


def shared_note(plan: FigurePlan) -> str:
    """A note about wider gaps between heads."""
    grouped = not plan.shown.whole and any(layer.kv_heads < layer.heads for layer in plan.layers)
    return "heads that share keys and values stand together" if grouped else ""


def _stack(plan: FigurePlan) -> str:
    return "" if plan.stack.name == "self" else f"{plan.stack.name.capitalize()} · "


def thumbnails_of(layer: Layer, plan: FigurePlan) -> list[np.ndarray]:
    """Each head of a layer as a small matrix: of weights, multiples of the even share."""
    values = numbers_of(layer, layer.head_numbers, plan.shown)[:, plan.from_][:, :, plan.to]
    if plan.shown.weights:
        values = lifts_of(values, even_of(layer, plan.shown)[plan.from_][:, plan.to])
    return [pooled(head, CELLS, mean=plan.shown.weights) for head in values]


def _notes(plan: FigurePlan, scale: Scale) -> Iterator[str]:
    queries, keys = int(plan.from_.sum()), int(plan.to.sum())
    yield "rows are queries, columns are keys"
    yield f"{queries} × {keys} {'numbers' if plan.shown.explanation else f'{plan.shown.label}s'}"
    if max(queries, keys) > CELLS:
        yield pooling_words(mean=scale.lifts, signed=scale.signed)
    yield scale.words
    yield shared_note(plan)
    yield missing_layers(plan)
    yield missing_heads(plan)
