"""View matrix: one head, or the mean of several, query by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headscope.views.figures._frame import (
    closing,
    colour_bar,
    draw_generation,
    first_written,
    generation_notes,
    heading,
    heads_in_words,
    named_every,
    not_kept_of,
    spaced,
    token_name,
    token_size,
    where,
)
from headscope.views.figures._numbers import (
    even_of,
    largest_of,
    lifts_of,
    mean_of,
    numbers_of,
    pooled,
    pooling_words,
)
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT, parse_hex, short_weight

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


def draw_matrix(plan: FigurePlan) -> Sheet:
    """Rows are queries, columns are keys; colour is the number."""
    sheet = Sheet(plan.width, plan.style, plan.panel)
    chosen = np.ix_(plan.from_, plan.to)
    values = mean_of(numbers_of(plan.layer, plan.heads, plan.shown, plan.without))[chosen]
    if plan.shown.weights:
        values = lifts_of(values, even_of(plan.layer, plan.shown, plan.without)[chosen])
    scale = plan.shown.scale(plan.style, largest_of(values), plan.layer.size[1], plan.colour)
    y = heading(sheet, plan, where(plan))
    grid = _grid(sheet, plan, y)
    shown = pooled(values, int(max(grid.box) / 25.4 * DOTS), mean=scale.lifts)
    at = (grid.left, grid.top)
    sheet.framed_cells(scale.rgb(shown), at=at, size=grid.box, hidden=np.isnan(shown))
    if _shows_not_kept(plan):
        _draw_not_kept(sheet, plan, grid)
    is_numbered = grid.every > MOST_LEFT_OUT
    (_numbers if is_numbered else _names)(sheet, plan, grid)
    _borders(sheet, plan, grid)
    y = grid.top + grid.box[1] + 0.8 * plan.style.em
    y = colour_bar(sheet, scale, plan.shown.scale_label, y=y, masked=bool(np.isnan(values).any()))
    y = draw_generation(sheet, plan, y)
    is_pooled, is_mean = shown is not values, len(plan.heads) > 1 or plan.shown.whole
    notes = [
        "tokens stand too close for their names: positions from 0"
        if is_numbered
        else named_every(grid.every),
        pooling_words(mean=scale.lifts, signed=scale.signed) if is_pooled else "",
        heads_in_words(plan, mean=True) if is_mean else "",
        scale.words,
        *generation_notes(plan),
    ]
    closing(sheet, plan, y, notes)
    return sheet


def _grid(sheet: Sheet, plan: FigurePlan, y: float) -> MatrixCells:
    style, stack = plan.style, plan.stack
    rows, columns = (np.flatnonzero(shown).tolist() for shown in (plan.from_, plan.to))
    most, gap = WIDEST_NAME * sheet.width, GAP * style.em
    left = max(sheet.width_of(token_name(sheet, stack.query, row)) for row in rows)
    left = max(min(most, left), sheet.width_of("from (query)", style.small)) + gap
    strip = STRIP * style.em * _shows_not_kept(plan)
    room = (sheet.width - left - strip) / len(columns)
    cell = min(room, TALLEST / len(rows), LARGEST_CELL * style.em)
    size = token_size(cell, style.size)
    every = spaced(max(len(rows), len(columns)), cell, size)
    names = [sheet.width_of(token_name(sheet, stack.key, at), size) for at in columns]
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
    style, shares = plan.style, not_kept_of(plan)[list(grid.rows)]
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
        sheet.framed_cells(grey, at=(left, top), size=(wide, height), hidden=hidden)
        if grid.cell > 0.9 * style.small * POINT:
            sheet.note(left + wide + 0.2 * style.em, top + height / 2, short_weight(share))


def _names(sheet: Sheet, plan: FigurePlan, grid: MatrixCells) -> None:
    style, gap = plan.style, GAP * plan.style.em
    for tokens, positions in ((plan.stack.query, grid.rows), (plan.stack.key, grid.columns)):
        is_column = positions is grid.columns
        for index in range(0, len(positions), grid.every):
            position, middle = positions[index], (index + 0.5) * grid.cell
            name = token_name(sheet, tokens, position)
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
        first = first_written(plan, tokens)
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
