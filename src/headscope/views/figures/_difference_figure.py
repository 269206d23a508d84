"""Figure of a comparison: for each stack, a map of how far heads of two records are apart."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from headscope.comparison import Comparison, Effect, StackComparison
from headscope.results import draws
from headscope.views.figures._charts import LARGEST_CELL, Matrix, draw_colour_bar, draw_matrix
from headscope.views.figures._figure import Figure
from headscope.views.figures._result import ResultOptions, draw_result
from headscope.views.figures._scale import Scale
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._words import two_digits

BAR_WIDTH = 40.0
"""Width of the colour bar in millimetres."""


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
    note = f"{comparison.a.summary}, compared with {comparison.b.summary}"
    return draw_result(
        difference,
        options,
        lambda sheet, y: _draw(sheet, comparison, y),
        title=f"{model}: where heads look elsewhere",
        note=f"changed: {done}" if done else note,
        layers=[layer for layer, _ in cells],
        heads=[head for _, head in cells],
        texts=[*comparison.a.texts, *comparison.b.texts],
    )


def _draw(sheet: Sheet, comparison: Comparison, y: float) -> tuple[float, list[str]]:
    """A map for each stack and one bar for all; return the next y and the notes."""
    style, stacks = sheet.style, comparison.stacks
    largest = max(float(stack.moved.max()) for stack in stacks.values())
    scale = style.weight_scale(largest or 1.0, power=1.0, words=two_digits)
    for name, stack in stacks.items():
        if len(stacks) > 1:
            sheet.text(0, y + 0.6 * style.em, sheet.shown(name))
            y += 1.6 * style.em
        y = _stack(sheet, stack, scale, y)
    marks = [(0.0, "0"), (1.0, f"{two_digits(largest)} nats")]
    y = draw_colour_bar(sheet, scale.bar(20), marks, at=(0, y), width=BAR_WIDTH)
    notes = ["rows are layers, columns are heads, both from 0, as the first record counts them"]
    notes.append("Jensen-Shannon distance of rows, mean over rows and texts, 0 to 0.69 nats")
    if any(stack.has_baseline for stack in stacks.values()):
        notes.append("a dot: moved by more than the largest distance of the baseline")
    if any(stack.changed for stack in stacks.values()):
        notes.append("framed: changed on purpose")
    return y, notes


def _stack(sheet: Sheet, stack: StackComparison, scale: Scale, y: float) -> float:
    grid = stack.map()
    layers = list(dict.fromkeys(layer for layer, _ in stack.cells))
    changed = [(layers.index(layer), head) for layer, head in stack.changed]
    dots = None
    if stack.has_baseline:
        dots = stack.as_map(stack.beyond.astype(float)) == 1
        for cell in changed:
            dots[cell] = False
    side = sheet.width_of(str(layers[-1]), sheet.style.small) + 0.6 * sheet.style.em
    cell = min(LARGEST_CELL, (sheet.width - side) / grid.shape[1])
    rgb, hidden = scale.rgb(grid), np.isnan(grid)
    shown = Matrix(rgb=rgb, rows=layers, hidden=hidden, dots=dots, frames=changed)
    draw_matrix(sheet, shown, at=(side, y), cell=cell)
    return y + len(layers) * cell + 2.0 * sheet.style.em
