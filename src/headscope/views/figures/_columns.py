"""Two columns of tokens, the frame of view head."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from headscope.record import Tokens
from headscope.views.figures._frame import spaced, token_size
from headscope.views.figures._generation import first_written
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._sheet import Sheet

PITCH = 1.42
GAP = 0.45
"""Between a name and its lines, in units of the font size."""
WIDEST_NAME = 0.27
"""Share of the width that names may take on each side."""
TALLEST = 205.0
"""Largest height of the columns in millimetres: a page of A4 with a caption."""


@dataclass(frozen=True)
class Columns:
    """Position of the two columns, in millimetres.

    Args:
        left: x at which lines begin.
        right: x at which lines end.
        names: width of the names on the left and on the right.
        top: top of the longer column.
        height: height of the longer column.
        pitch: height of one token.
        size: size of the names, in points.
    """

    left: float
    right: float
    names: tuple[float, float]
    top: float
    height: float
    pitch: float
    size: float

    def middle(self, count: int) -> Float[np.ndarray, " token"]:
        """The middle of each token of a column of so many tokens."""
        start = self.top + (self.height - count * self.pitch) / 2
        return start + (np.arange(count) + 0.5) * self.pitch


def place_columns(sheet: Sheet, plan: FigurePlan, y: float) -> Columns:
    """Place the columns below y, with room for bars where a token is chosen; write their titles."""
    style, stack = plan.style, plan.stack
    most = max(len(stack.query), len(stack.key))
    pitch = min(PITCH * style.em, TALLEST / most)
    size = token_size(pitch, style.size)
    narrow = plan.panel is not None and plan.panel.narrow
    words = ("from", "to") if narrow else ("from (query)", "to (key)")
    names = tuple(
        max(_name_width(sheet, tokens, size), sheet.width_of(title, style.small))
        for tokens, title in zip((stack.query, stack.key), words, strict=True)
    )
    pair = {0, 1} in ({*stack.query.segments}, {*stack.key.segments})
    margin = 0.0
    if pair:
        margin = (0.7 if narrow else 1.3) * style.em
    bars = bar_width(sheet) + sheet.width_of("<.001", style.small) + GAP * style.em
    left = margin + names[0] + GAP * style.em + (bars if plan.key is not None else 0.0)
    right = (
        sheet.width - margin - names[1] - GAP * style.em - (bars if plan.query is not None else 0.0)
    )
    title = 1.5 * style.em
    sheet.note(left - GAP * style.em, y + title / 2, words[0], anchor="right")
    sheet.note(right + GAP * style.em, y + title / 2, words[1])
    return Columns(left, right, (names[0], names[1]), y + title, most * pitch, pitch, size)


def write_names(sheet: Sheet, plan: FigurePlan, columns: Columns) -> int:
    """Write the tokens on both sides; return 1 where all have their name, n for every nth."""
    every = spaced(max(len(plan.stack.query), len(plan.stack.key)), columns.pitch, columns.size)
    for side, tokens in (("query", plan.stack.query), ("key", plan.stack.key)):
        middles = columns.middle(len(tokens))
        left = side == "query"
        x = columns.left - GAP * plan.style.em if left else columns.right + GAP * plan.style.em
        for position in range(len(tokens)):
            focused = getattr(plan, side) == position
            # The chosen token always has its name, however close tokens are.
            if position % every and not focused:
                continue
            sheet.text(
                x,
                middles[position],
                sheet.fitted(_name(sheet, tokens, position), columns.names[not left], columns.size),
                size=columns.size,
                colour=_name_colour(plan, side, position),
                anchor="right" if left else "left",
                bold=focused,
            )
        _brackets(sheet, plan, columns, side)
        _rule(sheet, plan, columns, side)
    return every


def _rule(sheet: Sheet, plan: FigurePlan, columns: Columns, side: str) -> None:
    """A line between the prompt and what the model wrote after it."""
    tokens: Tokens = getattr(plan.stack, side)
    first = first_written(plan, tokens)
    if first is None:
        return
    y = columns.middle(len(tokens))[first] - columns.pitch / 2
    gap = GAP * plan.style.em
    left = side == "query"
    start = columns.left - gap - columns.names[0] if left else columns.right + gap
    sheet.line((start, start + columns.names[not left]), (y, y), colour=plan.style.accent, line=0.9)


def _name_width(sheet: Sheet, tokens: Tokens, size: float) -> float:
    widest = max(
        sheet.width_of(_name(sheet, tokens, position), size) for position in range(len(tokens))
    )
    return min(WIDEST_NAME * sheet.width, 1.06 * widest)


def _name(sheet: Sheet, tokens: Tokens, position: int) -> str:
    return ("–" if tokens.continues[position] else "") + sheet.shown(tokens.labels[position])


def bar_width(sheet: Sheet) -> float:
    """Millimetres of the longest bar next to a name."""
    return min(14.0, 0.1 * sheet.width)


def _name_colour(plan: FigurePlan, side: str, position: int) -> str:
    style = plan.style
    shown = (plan.from_ if side == "query" else plan.to)[position]
    if not shown or getattr(plan, side) not in (None, position):
        return style.faint
    return style.muted if getattr(plan.stack, side).special[position] else style.ink


def _brackets(sheet: Sheet, plan: FigurePlan, columns: Columns, side: str) -> None:
    """A thin line next to each text of a pair, and its letter."""
    tokens: Tokens = getattr(plan.stack, side)
    if {*tokens.segments} != {0, 1}:
        return
    middles, style = columns.middle(len(tokens)), plan.style
    narrow = plan.panel is not None and plan.panel.narrow
    inset = (0.3 if narrow else 0.95) * style.em
    x = inset if side == "query" else sheet.width - inset
    changes = np.flatnonzero(np.diff(tokens.segments)) + 1
    edges = [0, *changes.tolist(), len(tokens)]
    for start, end in pairwise(edges):
        ends = (middles[start] - 0.4 * columns.pitch, middles[end - 1] + 0.4 * columns.pitch)
        sheet.line((x, x), ends, colour=style.edge, line=0.6)
        if narrow:
            continue
        letter = "AB"[tokens.segments[start]]
        outer = 0.0 if side == "query" else sheet.width
        anchor = "left" if side == "query" else "right"
        sheet.note(outer, sum(ends) / 2, letter, anchor=anchor)
