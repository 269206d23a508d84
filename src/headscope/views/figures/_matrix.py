"""View matrix: one head, or the mean of several, query by key."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headscope.record import Tokens
from headscope.views.figures._frame import (
    closing,
    colour_bar,
    heading,
    heads_in_words,
    not_kept_of,
    spaced,
    token_size,
    where,
)
from headscope.views.figures._generation import draw_generation, first_written, generation_notes
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
from headscope.views.figures._palette import parse_hex
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT
from headscope.views.figures._words import ordinal, short_weight

TALLEST = 200.0
"""Millimetres."""
LARGEST_CELL = 2.6
"""In units of the font size."""
WIDEST_NAME = 0.22
GAP = 0.4
DOTS = 300
"""Number of cells in an inch at most: more would be lost in print, so each block of cells becomes
its largest one.
"""
STRIP = 5.0
"""Room for the bars of weight that was not kept, in units of the font size."""
LEAST = 0.0005
MOST_LEFT_OUT = 2
"""Positions are written instead of names where fewer than every second token has room for its
name.
"""


@dataclass(frozen=True, eq=False)
class MatrixCells:
    """Position of the cells, in millimetres; rows are queries, columns are keys.

    Args:
        left: left edge of the first column.
        top: top edge of the first row.
        cell: width and height of a cell.
        rows: positions of the queries that are shown.
        columns: positions of the keys that are shown.
        numbered: whether positions are written instead of names.
    """

    left: float
    top: float
    cell: float
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    numbered: bool

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        return len(self.columns) * self.cell, len(self.rows) * self.cell


def draw_matrix(plan: FigurePlan) -> Sheet:
    """Rows are queries, columns are keys; colour is the number."""
    sheet = Sheet(plan.width, plan.style, plan.panel)
    values = mean_of(numbers_of(plan.layer, plan.heads, plan.shown, plan.without))[plan.from_][
        :, plan.to
    ]
    if plan.shown.weights:
        values = lifts_of(
            values, even_of(plan.layer, plan.shown, plan.without)[plan.from_][:, plan.to]
        )
    colour = plan.colours[plan.head] if plan.head is not None else None
    scale = plan.shown.scale(plan.style, largest_of(values), plan.layer.size[1], colour)
    y = heading(sheet, plan, where(plan))
    grid = _grid(sheet, plan, y)
    shown = pooled(values, int(max(grid.size) / 25.4 * DOTS), mean=scale.lifts)
    sheet.cells(scale.rgb(shown), at=(grid.left, grid.top), size=grid.size, hidden=np.isnan(shown))
    sheet.rect(grid.left, grid.top, *grid.size, edge=plan.style.edge, line=0.5, layer=3)
    _draw_not_kept(sheet, plan, grid)
    notes = [_names(sheet, plan, grid)]
    _borders(sheet, plan, grid)
    y = grid.top + grid.size[1] + 0.8 * plan.style.em
    y = colour_bar(sheet, scale, plan.shown.scale_label, y=y, masked=bool(np.isnan(values).any()))
    y = draw_generation(sheet, plan, y)
    if shown is not values:
        notes.append(pooling_words(mean=scale.lifts, signed=scale.signed))
    if plan.head is None:
        notes.append(heads_in_words(plan, mean=True))
    notes.append(scale.words)
    notes += generation_notes(plan)
    closing(sheet, plan, y, notes)
    return sheet


def _grid(sheet: Sheet, plan: FigurePlan, y: float) -> MatrixCells:
    style, stack = plan.style, plan.stack
    rows, columns = (tuple(np.nonzero(shown)[0].tolist()) for shown in (plan.from_, plan.to))
    most = WIDEST_NAME * sheet.width
    left = min(most, max(sheet.width_of(_name(sheet, stack.query, row)) for row in rows))
    left = max(left, sheet.width_of("from (query)", style.small)) + GAP * style.em
    strip = STRIP * style.em if _shows_not_kept(plan) else 0.0
    cell = min(
        (sheet.width - left - strip) / len(columns), TALLEST / len(rows), LARGEST_CELL * style.em
    )
    size = token_size(cell, style.size)
    numbered = spaced(max(len(rows), len(columns)), cell, size) > MOST_LEFT_OUT
    names = (
        [1.2 * style.em / size]
        if numbered
        else [sheet.width_of(_name(sheet, stack.key, at), 1.0) for at in columns]
    )
    title = 1.4 * style.em
    top = y + title + min(most, max(names) * size) + GAP * style.em
    sheet.note(left, y + title / 2, "to (key)")
    beside = y + title / 2 if numbered else top - 0.75 * style.em
    sheet.note(left - GAP * style.em, beside, "from (query)", anchor="right")
    return MatrixCells(left, top, cell, rows, columns, numbered)


def _shows_not_kept(plan: FigurePlan) -> bool:
    return plan.layer.partial and plan.shown.weights and not plan.without


def _draw_not_kept(sheet: Sheet, plan: FigurePlan, grid: MatrixCells) -> None:
    """Draw next to each row, hatched, the share of its weight that was cut before headscope saw it,
    with its number where it fits.
    """
    if not _shows_not_kept(plan):
        return
    style, shares = plan.style, not_kept_of(plan)[list(grid.rows)]
    left = grid.left + grid.size[0] + GAP * style.em
    longest = STRIP * style.em - GAP * style.em - sheet.width_of(".00", style.small)
    sheet.note(left, grid.top - 0.75 * style.em, "not kept")
    for index, share in enumerate(shares.tolist()):
        if share < LEAST:
            continue
        top, height = grid.top + (index + 0.15) * grid.cell, 0.7 * grid.cell
        # At least a tenth of a millimetre: a thinner bar would vanish in print.
        size = (max(share * longest, 0.1), height)
        sheet.cells(
            parse_hex(style.masked)[None, None],
            at=(left, top),
            size=size,
            hidden=np.ones((1, 1), bool),
        )
        sheet.rect(left, top, *size, edge=style.edge, line=0.4, layer=3)
        if grid.cell > 0.9 * sheet.style.small * POINT:
            sheet.note(left + size[0] + 0.2 * style.em, top + height / 2, short_weight(share))


def _name(sheet: Sheet, tokens: Tokens, position: int) -> str:
    return ("–" if tokens.continues[position] else "") + sheet.shown(tokens.labels[position])


def _names(sheet: Sheet, plan: FigurePlan, grid: MatrixCells) -> str:
    """Write the tokens, or their positions where they are too close; return a note about it."""
    if grid.numbered:
        _numbers(sheet, plan, grid)
        return "tokens stand too close for their names: positions from 0"
    style = plan.style
    size = token_size(grid.cell, style.size)
    every = spaced(max(len(grid.rows), len(grid.columns)), grid.cell, size)
    for side, positions in (("query", grid.rows), ("key", grid.columns)):
        tokens = getattr(plan.stack, side)
        for index in range(0, len(positions), every):
            position = positions[index]
            name = sheet.fitted(_name(sheet, tokens, position), WIDEST_NAME * sheet.width, size)
            colour = style.muted if tokens.special[position] else style.ink
            middle = (index + 0.5) * grid.cell
            if side == "query":
                sheet.text(
                    grid.left - GAP * style.em,
                    grid.top + middle,
                    name,
                    anchor="right",
                    size=size,
                    colour=colour,
                )
            else:
                sheet.text(
                    grid.left + middle,
                    grid.top - GAP * style.em,
                    name,
                    upright=True,
                    size=size,
                    colour=colour,
                )
    return f"every {ordinal(every)} token is named" if every > 1 else ""


def _numbers(sheet: Sheet, plan: FigurePlan, grid: MatrixCells) -> None:
    """Round positions along both sides."""
    style = plan.style
    most = max(*grid.rows, *grid.columns)
    step = _round_step(1.6 * sheet.width_of(str(most), style.small) / grid.cell)
    for index, position in enumerate(grid.columns):
        x = grid.left + (index + 0.5) * grid.cell
        if (
            position % step == 0
            and x + sheet.width_of(str(position), style.small) / 2 < sheet.width + 0.5
        ):
            sheet.line((x, x), (grid.top - 0.2 * style.em, grid.top), colour=style.muted, line=0.4)
            sheet.note(x, grid.top - 0.75 * style.em, str(position), anchor="center")
    for index, position in enumerate(grid.rows):
        y = grid.top + (index + 0.5) * grid.cell
        if position % step == 0:
            sheet.line(
                (grid.left - 0.2 * style.em, grid.left), (y, y), colour=style.muted, line=0.4
            )
            sheet.note(grid.left - GAP * style.em, y, str(position), anchor="right")


def _round_step(least: float) -> int:
    return next(
        step for step in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 10**9) if step >= least
    )


def _borders(sheet: Sheet, plan: FigurePlan, grid: MatrixCells) -> None:
    """Thin lines between the texts of a pair."""
    for side, positions in (("query", grid.rows), ("key", grid.columns)):
        tokens = getattr(plan.stack, side)
        first = first_written(plan, tokens)
        if first is not None:
            before = sum(position < first for position in positions)
            if 0 < before < len(positions):
                _border(sheet, grid, side, before, colour=plan.style.accent, line=0.9)
        segments = [tokens.segments[position] for position in positions]
        for number, (one, other) in enumerate(pairwise(segments), start=1):
            if one != other:
                _border(sheet, grid, side, number, colour=plan.style.faint, line=0.4)


def _border(
    sheet: Sheet, grid: MatrixCells, side: str, before: int, *, colour: str, line: float
) -> None:
    """Draw a line through the whole grid after so many rows of queries, or columns of keys."""
    width, height = grid.size
    edge = before * grid.cell
    if side == "query":
        xs, ys = (grid.left, grid.left + width), (grid.top + edge,) * 2
    else:
        xs, ys = (grid.left + edge,) * 2, (grid.top, grid.top + height)
    sheet.line(xs, ys, colour=colour, line=line)
