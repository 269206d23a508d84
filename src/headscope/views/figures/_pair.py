"""View pair: one query and one key, seen by every head of every layer."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.record import Layer
from headscope.views.figures._frame import closing, colour_bar, heading, quoted
from headscope.views.figures._model import frame_chosen, grid_of_heads, missing_layers, shared_note
from headscope.views.figures._numbers import largest_of, numbers_of
from headscope.views.figures._options import Plan
from headscope.views.figures._palette import text_on
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._words import short_score, short_weight

TALLEST = 1.9
"""Height of a tile at most, in units of the font size."""


def draw_pair(plan: Plan) -> Sheet:
    """A tile for each head of each layer, with its number."""
    sheet = Sheet(plan.width, plan.style)
    style, weights = plan.style, plan.quantity == "weight"
    rows = [_numbers(layer, plan) for layer in plan.layers]
    largest = max(largest_of(row) for row in rows)
    scale = style.weight_scale(largest) if weights else style.score_scale(largest)
    stack = "" if plan.stack.name == "self" else f"{plan.stack.name.capitalize()} · "
    title = f"{stack}{quoted(sheet, plan, 'query')} → {quoted(sheet, plan, 'key')}"
    y = heading(sheet, plan, title)
    wide = (sheet.width - 3 * style.em) / max(map(len, rows))
    aspect = min(1.0, TALLEST * style.em / wide)
    tiles = grid_of_heads(sheet, plan, y, aspect=aspect, tallest=TALLEST * style.em)
    words = short_weight if weights else short_score
    size = min(style.small, 0.62 * tiles.height / style.em * style.size)
    written = all(sheet.width_of(words(number), size) < 0.94 * tiles.width for row in rows for number in row)
    for top, row in zip(tiles.tops, rows, strict=True):
        for left, number, rgb in zip(tiles.lefts, row, scale.rgb(row), strict=False):
            fill = "#" + bytes(rgb).hex()
            sheet.rect(left, top, tiles.width, tiles.height, fill=fill, edge=style.edge, line=0.3)
            if written and not np.isnan(number):
                x, middle = left + tiles.width / 2, top + tiles.height / 2
                sheet.text(x, middle, words(number), size=size, colour=text_on(rgb), anchor="center")
    frame_chosen(sheet, plan, tiles)
    hidden = any(np.isnan(row).any() for row in rows)
    y = colour_bar(sheet, scale, tiles.bottom + 0.9 * style.em, plan.quantity, masked=hidden)
    positions = f"token {plan.query} looks at token {plan.key}"
    notes = [positions, "colour on a square-root scale" if weights else "", shared_note(plan), missing_layers(plan)]
    closing(sheet, plan, y, notes)
    return sheet


def _numbers(layer: Layer, plan: Plan) -> Float[np.ndarray, " head"]:
    return numbers_of(layer, tuple(range(layer.heads)), plan.quantity)[:, plan.query, plan.key]
