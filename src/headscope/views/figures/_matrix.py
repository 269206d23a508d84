"""View matrix: one head, or the mean of several, query by key."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headscope.record import Tokens
from headscope.views.figures._frame import closing, colour_bar, heading, heads_in_words, spaced, token_size, where
from headscope.views.figures._numbers import largest_of, mean_of, numbers_of
from headscope.views.figures._options import Plan
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._words import ordinal

TALLEST = 200.0
"""Millimetres."""
LARGEST_CELL = 2.6
"""In units of the font size."""
WIDEST_NAME = 0.22
GAP = 0.4


@dataclass(frozen=True, eq=False)
class Grid:
    """Where the cells stand, in millimetres; rows are queries, columns are keys."""

    left: float
    top: float
    cell: float
    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        return len(self.columns) * self.cell, len(self.rows) * self.cell


def draw_matrix(plan: Plan) -> Sheet:
    """Rows are queries, columns are keys; colour is the number."""
    sheet = Sheet(plan.width, plan.style)
    values = mean_of(numbers_of(plan.layer, plan.heads, plan.quantity))[plan.from_][:, plan.to]
    largest = largest_of(values)
    weights = plan.quantity == "weight"
    colour = plan.colours[plan.head] if plan.head is not None else None
    scale = plan.style.weight_scale(largest, colour) if weights else plan.style.score_scale(largest)
    y = heading(sheet, plan, where(plan))
    grid = _grid(sheet, plan, y)
    sheet.cells(scale.rgb(values), at=(grid.left, grid.top), size=grid.size)
    sheet.rect(grid.left, grid.top, *grid.size, edge=plan.style.edge, line=0.5, layer=3)
    notes = [_names(sheet, plan, grid)]
    _borders(sheet, plan, grid)
    y = grid.top + grid.size[1] + 0.8 * plan.style.em
    y = colour_bar(sheet, scale, y, plan.quantity, masked=bool(np.isnan(values).any()))
    if plan.head is None:
        notes.append(heads_in_words(plan, mean=True))
    if weights:
        notes.append("colour on a square-root scale")
    closing(sheet, plan, y, notes)
    return sheet


def _grid(sheet: Sheet, plan: Plan, y: float) -> Grid:
    style, stack = plan.style, plan.stack
    rows, columns = (tuple(np.nonzero(shown)[0].tolist()) for shown in (plan.from_, plan.to))
    most = WIDEST_NAME * sheet.width
    left = min(most, max(sheet.width_of(_name(sheet, stack.query, row)) for row in rows))
    above = min(most, max(sheet.width_of(_name(sheet, stack.key, column)) for column in columns))
    left = max(left, sheet.width_of("from (query)", style.small)) + GAP * style.em
    cell = min((sheet.width - left) / len(columns), TALLEST / len(rows), LARGEST_CELL * style.em)
    title = 1.4 * style.em
    sheet.text(left, y + title / 2, "to (key)", size=style.small, colour=style.muted)
    top = y + title + above + GAP * style.em
    sheet.text(
        left - GAP * style.em, top - 0.75 * style.em, "from (query)", size=style.small, colour=style.muted, anchor="right"
    )
    return Grid(left, top, cell, rows, columns)


def _name(sheet: Sheet, tokens: Tokens, position: int) -> str:
    return ("–" if tokens.continues[position] else "") + sheet.shown(tokens.labels[position])


def _names(sheet: Sheet, plan: Plan, grid: Grid) -> str:
    """The tokens, or their positions where tokens stand too close; give what to say about it."""
    style = plan.style
    size = token_size(grid.cell, style.size)
    every = spaced(max(len(grid.rows), len(grid.columns)), grid.cell, size)
    numbered = every > 2
    size = style.small if numbered else size
    step = _round_step(spaced(1, grid.cell / 3, size)) if numbered else every
    for side, positions in (("query", grid.rows), ("key", grid.columns)):
        tokens = getattr(plan.stack, side)
        for index in range(0, len(positions), step):
            position = positions[index]
            name = str(position) if numbered else _name(sheet, tokens, position)
            name = sheet.fitted(name, WIDEST_NAME * sheet.width, size)
            colour = style.muted if numbered or tokens.special[position] else style.ink
            middle = (index + 0.5) * grid.cell
            if side == "query":
                x, y = grid.left - GAP * style.em, grid.top + middle
                sheet.text(x, y, name, size=size, colour=colour, anchor="right")
            else:
                x, y = grid.left + middle, grid.top - GAP * style.em
                sheet.text(x, y, name, size=size, colour=colour, upright=not numbered, anchor="center" if numbered else "left")
    if numbered:
        return "tokens stand too close for their names: positions from 0"
    return f"every {ordinal(every)} token is named" if every > 1 else ""


def _round_step(least: int) -> int:
    return next(step for step in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 10**9) if step >= least)


def _borders(sheet: Sheet, plan: Plan, grid: Grid) -> None:
    """Thin lines between the texts of a pair."""
    width, height = grid.size
    for side, positions in (("query", grid.rows), ("key", grid.columns)):
        segments = [getattr(plan.stack, side).segments[position] for position in positions]
        for index, (before, after) in enumerate(pairwise(segments), start=1):
            if before == after:
                continue
            at = index * grid.cell
            if side == "query":
                sheet.line((grid.left, grid.left + width), (grid.top + at,) * 2, colour=plan.style.faint, line=0.4)
            else:
                sheet.line((grid.left + at,) * 2, (grid.top, grid.top + height), colour=plan.style.faint, line=0.4)
