"""Figure of neurons by label: how many carry the heads of each label, and how fixed they are."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from headscope.errors import FigureError
from headscope.results import draws
from headscope.views.figures._figure import Figure
from headscope.views.figures._ranges import Row, Value, draw_ranges
from headscope.views.figures._result import FigureWords, ResultOptions, draw_result
from headscope.views.figures._sheet import Sheet


@draws("mechanism groups")
def groups_figure(groups: Any, **options: Unpack[ResultOptions]) -> Figure:
    """The smallest number of neurons that carry a query's score, and how fixed their set is, by the
    label of the heads.

    Source: Vig 2019, part 2 (few fixed neurons, or many that shift).

    Args:
        groups: the result of `Mechanism.grouped`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: no head holds a label, an unknown option, or matplotlib is missing.
    """
    if not groups.all:
        raise FigureError("No head holds a label, so there is nothing to draw")
    drawn = FigureWords(
        kind="mechanism groups",
        title="Neurons that carry heads, by label",
        texts=[group.label for group in groups.all],
    )
    return draw_result(drawn, options, lambda sheet, y: _draw(sheet, groups, y))


def _draw(sheet: Sheet, groups: Any, y: float) -> tuple[float, list[str]]:
    neurons, fixed = [], []
    for group in groups.all:
        name = f"{group.label}  ({group.heads})"
        many = Value(group.neurons, group.neurons_low, group.neurons_high)
        alike = Value(group.fixed, group.fixed_low, group.fixed_high)
        neurons.append(Row(name, {"neurons that carry a query's score": many}))
        fixed.append(Row(name, {"fixed: Jaccard above chance": alike}))
    most = [end for group in groups.all for end in (group.neurons, group.neurons_high)]
    least = [end for group in groups.all for end in (group.fixed, group.fixed_low)]
    y = draw_ranges(sheet, neurons, y, ends=(0.0, max(1.0, 1.05 * float(np.nanmax(most)))))
    y = draw_ranges(sheet, fixed, y, ends=(min(0.0, float(np.nanmin(least))), 1.0))
    notes = [
        "in brackets: how many heads hold the label",
        "fixed: 0 as by chance, 1 the same neurons at all positions",
        f"lines: {groups.confidence:.0%} interval over texts",
    ]
    return y, notes
