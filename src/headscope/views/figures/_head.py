"""View head: lines from query to key between two columns of tokens."""

from __future__ import annotations

import numpy as np

from headscope.views.figures._columns import GAP, Columns, bar_width, place_columns, write_names
from headscope.views.figures._frame import closing, heading, of_heads, quoted, where
from headscope.views.figures._generation import draw_generation, generation_notes
from headscope.views.figures._lines import Lines, draw_lines, draw_samples, lines_of
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._palette import parse_hex, text_on
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT
from headscope.views.figures._words import counted, ordinal, percent


def draw_head(plan: FigurePlan) -> Sheet:
    """Lines between two columns of tokens, colour = head, opacity = weight."""
    sheet = Sheet(plan.width, plan.style, plan.panel)
    y = heading(sheet, plan, where(plan))
    if len(plan.maps) > 1:
        y = _chips(sheet, plan, y)
    columns = place_columns(sheet, plan, y)
    lines = lines_of(plan, columns)
    draw_lines(sheet, plan, lines, columns)
    every = write_names(sheet, plan, columns)
    _readouts(sheet, plan, lines, columns)
    y = draw_samples(sheet, plan, lines, columns.top + columns.height + 0.7 * plan.style.em)
    y = draw_generation(sheet, plan, y)
    closing(sheet, plan, y, _notes(sheet, plan, lines, every))
    return sheet


def _chips(sheet: Sheet, plan: FigurePlan, y: float) -> float:
    """One numbered square for each head; return the next y."""
    style = plan.style
    side = max(1.55 * style.small * POINT, sheet.width_of("00", style.small) + 0.5 * style.em)
    step = side + 0.18 * style.em
    most = max(1, int((sheet.width + 0.18 * style.em) // step))
    for index, head in enumerate(plan.heads):
        row, column = divmod(index, most)
        x, top = column * step, y + row * step
        colour = plan.colours[head]
        sheet.rect(x, top, side, side, fill=colour, round=0.24 * side)
        ink = text_on(parse_hex(colour))
        sheet.text(
            x + side / 2, top + side / 2, str(head), size=style.small, colour=ink, anchor="center"
        )
    return y + -(-len(plan.heads) // most) * step + 0.5 * style.em


def _readouts(sheet: Sheet, plan: FigurePlan, lines: Lines, columns: Columns) -> None:
    """Draw a bar and a number, the mean of the heads, at each token linked to the chosen one."""
    style = plan.style
    for side, other, axis in (("query", "key", 1), ("key", "query", 2)):
        position = getattr(plan, side)
        if position is None:
            continue
        parts = np.take(lines.sizes, position, axis=axis)
        means = np.take(np.nan_to_num(lines.values), position, axis=axis).mean(axis=0)
        # Weights below 0.1 do not fill the bar: they would look as strong as large ones.
        largest = max(parts.mean(axis=0).max(initial=0.0), 0.1 if plan.shown.weights else 1e-12)
        middles = columns.middle(len(getattr(plan.stack, other)))
        sign = 1 if other == "key" else -1
        edge = columns.right if other == "key" else columns.left
        start = edge + sign * (2 * GAP * style.em + columns.names[other == "key"])
        for token in np.nonzero(parts.mean(axis=0) >= min(0.005, largest / 10))[0]:
            x = start
            for index, head in enumerate(plan.maps):
                length = bar_width(sheet) * parts[index, token] / len(plan.maps) / largest
                left = min(x, x + sign * length)
                sheet.rect(
                    left,
                    middles[token] - 0.25 * columns.pitch,
                    length,
                    0.5 * columns.pitch,
                    fill=plan.colours[head],
                )
                x += sign * length
            words = plan.shown.words(means[token])
            at = start + sign * (bar_width(sheet) + GAP * style.em)
            anchor = "left" if other == "key" else "right"
            sheet.text(
                at,
                middles[token],
                words,
                size=min(style.small, columns.size),
                colour=style.muted,
                anchor=anchor,
            )


def _notes(sheet: Sheet, plan: FigurePlan, lines: Lines, every: int) -> list[str]:
    mass = f"{percent(lines.part)} of {plan.shown.mass} of {of_heads(plan)}"
    notes = [f"{counted(int(lines.drawn.sum()), 'line')}, {mass}"]
    if plan.query is not None:
        notes.insert(0, f"only from {quoted(sheet, plan, 'query')}")
    if plan.key is not None:
        notes.insert(0, f"only to {quoted(sheet, plan, 'key')}")
    if lines.share < 100:
        notes.append(f"strongest {lines.share} % of each row")
    if len(plan.maps) > 1 and (len(plan.maps) > 16 or not plan.style.colour):
        notes.append("at each token heads leave in order, the lowest number on top")
    if plan.shown.signed and (lines.values < 0).any():
        notes.append("dashed lines are below 0")
    if every > 1:
        notes.append(f"every {ordinal(every)} token is named")
    return [*notes, *generation_notes(plan)]
