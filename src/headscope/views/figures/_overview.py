"""View overview: every head as a small matrix, coloured by its kind on this text."""

from __future__ import annotations

import numpy as np

from headscope.patterns import KINDS, HeadKinds, head_kinds
from headscope.views.figures._frame import CLAUSES, closing, colour_bar, heading
from headscope.views.figures._model import (
    CELLS,
    frame_chosen,
    grid_of_heads,
    missing_heads,
    missing_layers,
    thumbnails_of,
)
from headscope.views.figures._numbers import pooling_words
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._scale import Scale
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._words import counted


def draw_overview(plan: FigurePlan) -> Sheet:
    """Draw all heads on one scale of weights, in the hue of their kind; the legend counts the heads
    of each kind on this text.
    """
    sheet = Sheet(plan.width, plan.style)
    # What heads do is told of tokens, also where words are drawn.
    kinds = head_kinds(plan.record[plan.stack.name])
    heads = max(layer.heads for layer in plan.layers)
    y = heading(
        sheet, plan, f"{counted(len(plan.layers), 'layer')} × {counted(heads, 'head')} on this text"
    )
    y = _legend(sheet, plan, kinds, y)
    aspect = float(np.clip(plan.from_.sum() / plan.to.sum(), 0.4, 2.5))
    tiles = grid_of_heads(sheet, plan, y, aspect=aspect)
    for row, layer in enumerate(plan.layers):
        for head, thumbnail in zip(layer.head_numbers, thumbnails_of(layer, plan), strict=True):
            colours = _scale(plan, kinds.kind(layer.layer, head)).rgb(thumbnail)
            left, top = tiles.at(row, head)
            sheet.cells(
                colours,
                at=(left, top),
                size=(tiles.width, tiles.height),
                hidden=np.isnan(thumbnail),
            )
            sheet.rect(
                left, top, tiles.width, tiles.height, edge=plan.style.edge, line=0.4, layer=3
            )
    frame_chosen(sheet, plan, tiles)
    y = tiles.bottom + 0.9 * plan.style.em
    y = colour_bar(sheet, _scale(plan, "resting"), plan.shown.scale_label, y=y)
    queries, keys = int(plan.from_.sum()), int(plan.to.sum())
    notes = [
        "rows are queries, columns are keys",
        pooling_words(mean=True, signed=False) if max(queries, keys) > CELLS else "",
        "kinds describe this one text",
        missing_layers(plan),
        missing_heads(plan),
    ]
    closing(sheet, plan, y, notes)
    return sheet


def _scale(plan: FigurePlan, kind: str) -> Scale:
    return plan.shown.scale(plan.style, 1.0, len(plan.stack.key), plan.style.kind(kind))


def _legend(sheet: Sheet, plan: FigurePlan, kinds: HeadKinds, y: float) -> float:
    """A square and a count for each kind there is, in lines; gives the y below them."""
    style = plan.style
    square, line = 0.75 * style.em, 1.4 * style.em
    rows = [kinds.layers.index(layer.layer) for layer in plan.layers]
    counts = np.bincount(_known(kinds.number("kind")[rows]), minlength=len(KINDS))
    x = 0.0
    for kind, count in zip(KINDS, counts.tolist(), strict=True):
        if count == 0:
            continue
        words = f"{count} {CLAUSES[kind]}"
        width = square + 0.4 * style.em + sheet.width_of(words, style.small) + 1.2 * style.em
        if x > 0 and x + width > sheet.width:
            x, y = 0.0, y + line
        fill = style.kind(kind)
        sheet.rect(x, y + (line - square) / 2, square, square, fill=fill, line=0.0, layer=3)
        sheet.note(x + square + 0.4 * style.em, y + line / 2, words)
        x += width
    return y + line + 0.4 * style.em


def _known(kinds: np.ndarray) -> np.ndarray:
    """The kinds of the heads that there are."""
    return kinds[~np.isnan(kinds)].astype(int)
