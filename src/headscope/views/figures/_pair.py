"""View pair: one query and one key, seen by every head of every layer."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.record import Layer
from headscope.views.figures._frame import closing, colour_bar, heading, quoted
from headscope.views.figures._model import (
    LARGEST_THUMBNAIL,
    frame_chosen,
    grid_of_heads,
    missing_heads,
    missing_layers,
    shared_note,
)
from headscope.views.figures._numbers import even_of, largest_of, lifts_of, numbers_of
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._palette import text_on
from headscope.views.figures._quantity import DrawnQuantity
from headscope.views.figures._sheet import Sheet

TALLEST = 1.9
"""Height of a tile at most, in units of the font size."""
SMALLEST = 3.5
"""Smallest size of a number in points; where numbers would be smaller, only colours are drawn."""
FAINT = 0.0005


def draw_pair(plan: FigurePlan) -> Sheet:
    """A tile for each head of each layer, with its number."""
    sheet = Sheet(plan.width, plan.style)
    style = plan.style
    rows = [_numbers(layer, plan) for layer in plan.layers]
    largest = max(largest_of(row) for row in rows)
    scale = plan.shown.scale(style, largest, len(plan.stack.key))
    drawn = rows
    if plan.shown.weights:
        evens = [even_of(layer, plan.shown)[plan.query, plan.key] for layer in plan.layers]
        drawn = [lifts_of(row, even) for row, even in zip(rows, evens, strict=True)]
    y = heading(sheet, plan, _title(sheet, plan))
    wide = LARGEST_THUMBNAIL
    if not plan.shown.whole:
        wide = (sheet.width - 3 * style.em) / plan.stack.heads
    # Numbers are wider than tall: a tile need not be higher than a line of text.
    aspect = min(1.0, TALLEST * style.em / wide)
    tiles = grid_of_heads(sheet, plan, y, aspect=aspect, tallest=TALLEST * style.em)
    numbers = np.concatenate(rows)
    size = _size(sheet, [_words(number, plan.shown) for number in numbers], tiles.width)
    for line, row in enumerate(rows):
        columns = [0] if plan.shown.whole else plan.layers[line].head_numbers
        for head, number, rgb in zip(columns, row, scale.rgb(drawn[line]), strict=True):
            box = (*tiles.at(line, head), tiles.width, tiles.height)
            # Hidden where the query may not look at the key: there is no number.
            sheet.cells(rgb[None, None], hidden=np.isnan([[number]]), at=box[:2], size=box[2:])
            sheet.rect(*box, edge=style.edge, line=0.3)
            if size:
                _write(sheet, box, _words(number, plan.shown), colour=text_on(rgb), size=size)
    frame_chosen(sheet, plan, tiles)
    hidden = bool(np.isnan(numbers).any())
    y = colour_bar(
        sheet, scale, plan.shown.scale_label, y=tiles.bottom + 0.9 * style.em, masked=hidden
    )
    positions = f"token {plan.query} looks at token {plan.key}"
    notes = [positions, scale.words, shared_note(plan), missing_layers(plan), missing_heads(plan)]
    if size and plan.shown.weights and (numbers < FAINT).any():
        notes.insert(1, "no number: below .0005")
    closing(sheet, plan, y, notes)
    return sheet


def _title(sheet: Sheet, plan: FigurePlan) -> str:
    stack = "" if plan.stack.name == "self" else f"{plan.stack.name.capitalize()} · "
    return f"{stack}{quoted(sheet, plan, 'query')} → {quoted(sheet, plan, 'key')}"


def _write(
    sheet: Sheet,
    box: tuple[float, float, float, float],
    words: str,
    *,
    colour: str,
    size: float,
) -> None:
    """Write the number of a head in the middle of its tile; nothing where it is nearly 0."""
    left, top, width, height = box
    if words:
        at = (left + width / 2, top + height / 2)
        sheet.text(*at, words, size=size, colour=colour, anchor="center")


def _words(number: float, shown: DrawnQuantity) -> str:
    return "" if np.isnan(number) or (shown.weights and number < FAINT) else shown.words(number)


def _size(sheet: Sheet, words: list[str], width: float) -> float:
    """Size in points at which every number fits its tile; 0 where that is too small to read."""
    widest = max(sheet.width_of(word, 1.0) for word in words)
    size = min(sheet.style.small, 0.86 * width / widest) if widest else 0.0
    return size if size >= SMALLEST else 0.0


def _numbers(layer: Layer, plan: FigurePlan) -> Float[np.ndarray, " head"]:
    return numbers_of(layer, layer.head_numbers, plan.shown)[:, plan.query, plan.key]
