"""Figure of a comparison: for each stack, a map of how far heads of two records are apart."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from headscope.comparison import Comparison, Effect, StackComparison
from headscope.results import draws
from headscope.views.figures._figure import Figure
from headscope.views.figures._head_map import LARGEST_CELL, draw_head_map
from headscope.views.figures._palette import text_on
from headscope.views.figures._result import FigureWords, ResultOptions, draw_result
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._words import two_digits

BAR, BAR_WIDTH = 2.2, 40.0
"""Height and width of the colour bar in millimetres."""


@draws("comparison")
@draws("effect")
def difference_figure(difference: Comparison | Effect, **options: Unpack[ResultOptions]) -> Figure:
    """The Jensen-Shannon distance of every head of the first record from its partner in the second;
    dots mark heads that moved by more than the baseline, frames those that were changed.

    Args:
        difference: the result of `headscope.compare` or `headscope.effect`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: an unknown option, or matplotlib is missing.
    """
    comparison = difference.comparison if isinstance(difference, Effect) else difference
    cells = [cell for stack in comparison.stacks.values() for cell in stack.cells]
    done = "; ".join(difference.done) if isinstance(difference, Effect) else ""
    model = difference.model or "A model"
    drawn = FigureWords(
        kind=difference.KIND,
        title=f"{model}: where heads look elsewhere",
        note=f"changed: {done}"
        if done
        else f"{comparison.a.summary}, compared with {comparison.b.summary}",
        model=difference.model,
        layers=[layer for layer, _ in cells],
        heads=[head for _, head in cells],
        texts=[*comparison.a.texts, *comparison.b.texts],
    )
    return draw_result(drawn, options, lambda sheet, y: _draw(sheet, comparison, y))


def _draw(sheet: Sheet, comparison: Comparison, y: float) -> tuple[float, list[str]]:
    """A map for each stack and one bar for all; return the next y and the notes."""
    style, stacks = sheet.style, comparison.stacks
    largest = max(float(stack.moved.max()) for stack in stacks.values())
    scale = style.weight_scale(largest or 1.0, power=1.0, words=two_digits)
    for name, stack in stacks.items():
        if len(stacks) > 1:
            sheet.text(0, y + 0.6 * style.em, sheet.shown(name))
            y += 1.6 * style.em
        y = _stack(sheet, stack, largest or 1.0, y)
    sheet.cells(scale.bar(20), at=(0, y), size=(BAR_WIDTH, BAR))
    sheet.rect(0, y, BAR_WIDTH, BAR, edge=style.edge, line=0.35, layer=3)
    words = y + BAR + 0.85 * style.em
    sheet.note(0, words, "0")
    sheet.note(BAR_WIDTH, words, f"{two_digits(largest)} nats", anchor="right")
    notes = ["rows are layers, columns are heads, both from 0, as the first record counts them"]
    notes.append("Jensen-Shannon distance of rows, mean over rows and texts, 0 to 0.69 nats")
    if any(stack.has_baseline for stack in stacks.values()):
        notes.append("a dot: moved by more than the largest distance of the baseline")
    if any(stack.changed for stack in stacks.values()):
        notes.append("framed: changed on purpose")
    return words + 1.4 * style.em, notes


def _stack(sheet: Sheet, stack: StackComparison, largest: float, y: float) -> float:
    style, grid = sheet.style, stack.map()
    layers = list(dict.fromkeys(layer for layer, _ in stack.cells))
    side = sheet.width_of(str(layers[-1]), style.small) + 0.6 * style.em
    cell = min(LARGEST_CELL, (sheet.width - side) / grid.shape[1])
    scale = style.weight_scale(largest, power=1.0)
    rgb = scale.rgb(grid)
    draw_head_map(sheet, rgb, layers, at=(side, y), cell=cell, hidden=np.isnan(grid))
    beyond = stack.as_map(stack.beyond.astype(float)) if stack.has_baseline else None
    for row, column in np.ndindex(grid.shape):
        x, top = side + column * cell, y + row * cell
        if (layers[row], column) in stack.changed:
            sheet.rect(x, top, cell, cell, edge=style.ink, line=0.9, layer=4)
        elif beyond is not None and beyond[row, column] == 1:
            ink = text_on(rgb[row, column])
            sheet.dot(x + cell / 2, top + cell / 2, 0.26 * cell, fill=ink, layer=4)
    return y + len(layers) * cell + 2.0 * style.em
