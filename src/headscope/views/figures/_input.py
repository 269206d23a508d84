"""View input: what the model reads: each token, its text in a pair, and its position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headscope.errors import FigureError
from headscope.views.figures._frame import closing, heading
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import counted

PITCH = 1.7
"""Distance of two lanes, in units of the font size."""
CELL = 1.36
"""Height of a cell, in the same units."""
PADDING = 0.3
GAP = 0.15
BETWEEN = 0.9
"""Gap between two lines of tokens."""
PALE = "33"
"""Opacity of a cell's colour, as two hexadecimal digits after ``#rrggbb``."""


@dataclass(frozen=True)
class InputRow:
    """One row of cells: its name, and a word and a colour for each token."""

    name: str
    cells: Sequence[str]
    colours: Sequence[str]


def draw_input(plan: FigurePlan) -> Sheet:
    """Draw the lanes of a text below each other, in as many lines as it needs, and the layers.

    Raises:
        FigureError: where the tokens are parts of a picture.
    """
    tokens = plan.stack.query
    if tokens.places is not None:
        raise FigureError("View 'input' shows texts, and this record is of a picture")
    sheet = Sheet(plan.width, plan.style, plan.panel)
    style = sheet.style
    y = heading(sheet, plan, "What the model reads")
    lanes = _lanes(sheet, plan)
    left = max(sheet.width_of(lane.name, style.small) for lane in lanes) + 0.8 * style.em
    widths = [
        max(sheet.width_of(lane.cells[token]) for lane in lanes) + 2 * PADDING * style.em
        for token in range(len(tokens))
    ]
    for line in _lines(widths, sheet.width - left, GAP * style.em):
        for lane in lanes:
            x, middle = left, y + 0.5 * PITCH * style.em
            sheet.note(0, middle, lane.name)
            for token in line:
                colour, size = lane.colours[token], (widths[token], CELL * style.em)
                fill = colour + PALE if lane.name == "+ text" else style.paper
                place, round_ = (x, middle - size[1] / 2), 0.2 * style.em
                sheet.rect(*place, *size, fill=fill, edge=colour, line=0.5, round=round_)
                sheet.text(x + size[0] / 2, middle, lane.cells[token], anchor="center")
                x += size[0] + GAP * style.em
            y += PITCH * style.em
        y += BETWEEN * style.em
    y = _draw_layers(sheet, plan, left, y)
    note = "each column is added up, where the model has its parts"
    if lanes[-1].name == "position":
        note = "positions are not added: they turn the queries and keys of every layer"
    closing(sheet, plan, y, [f"{len(tokens)} tokens", note])
    return sheet


def _lanes(sheet: Sheet, plan: FigurePlan) -> list[InputRow]:
    """The rows: tokens; for a pair of texts the text of each token; and positions."""
    style, tokens = sheet.style, plan.stack.query
    blue, orange = (style.positive, style.negative) if style.colour else (style.muted, style.faint)
    names = [sheet.fitted(sheet.shown(label), 30 * style.em) for label in tokens.labels]
    edges = [style.faint if special else style.edge for special in tokens.special]
    lanes = [InputRow("token", names, edges)]
    if {*tokens.segments} == {0, 1}:
        texts = ["AB"[segment] for segment in tokens.segments]
        lanes.append(InputRow("+ text", texts, [(blue, orange)[of] for of in tokens.segments]))
    # Rotary positions are not added to the embeddings, so that their row has no plus before it.
    rotary = plan.stack.layers[0].rotary is not None
    numbers = [str(index) for index in range(len(tokens))]
    lanes.append(InputRow("position" if rotary else "+ position", numbers, edges))
    return lanes


def _lines(widths: Sequence[float], room: float, gap: float) -> list[range]:
    """The tokens of each line."""
    lines, start, taken = [], 0, 0.0
    for token, width in enumerate(widths):
        if token > start and taken + width > room:
            lines.append(range(start, token))
            start, taken = token, 0.0
        taken += width + gap
    return [*lines, range(start, len(widths))]


def _draw_layers(sheet: Sheet, plan: FigurePlan, left: float, y: float) -> float:
    """Draw an arrow to a box for all layers; return the next y."""
    style, em = sheet.style, sheet.style.em
    middle, tip, half, height = (left + sheet.width) / 2, y + 0.2 * em, 0.35 * em, 1.9 * em
    sheet.line((middle, middle), (y - 0.8 * em, tip), colour=style.muted, line=0.8)
    xs, ys = (middle - half, middle, middle + half), (tip - half, tip, tip - half)
    sheet.line(xs, ys, colour=style.muted, line=0.8)
    top, room = tip + 0.2 * em, sheet.width - left
    sheet.rect(left, top, room, height, edge=style.accent, line=0.8, round=1.0)
    words = f"{counted(len(plan.stack.layers), 'layer')} of {counted(plan.stack.heads, 'head')}"
    further = f"{words}: in each head the query of a token meets the keys of all"
    text = further if sheet.width_of(further) <= room - em else words
    sheet.text(middle, top + height / 2, text, anchor="center")
    return top + height + 0.6 * em
