"""Patterns before and after an intervention, drawn: the labels that held before."""

from __future__ import annotations

from typing_extensions import Unpack

from headscope.errors import FigureError
from headscope.patterns import Changes
from headscope.results import draws
from headscope.views.figures._figure import Figure
from headscope.views.figures._ranges import Row, Value, draw_ranges
from headscope.views.figures._result import FigureWords, ResultOptions, draw_result
from headscope.views.figures._sheet import Sheet

MOST = 60
"""Number of labels that are drawn; a page has room for no more."""


@draws(Changes.KIND)
def changes_figure(changes: Changes, **options: Unpack[ResultOptions]) -> Figure:
    """The score of each label that held before the change, before and after it, with intervals over
    texts; the largest fall first.

    Args:
        changes: the result of `headscope.embedding_role`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: no label held before, an unknown option, or matplotlib is missing.
    """
    if not changes.held:
        raise FigureError("No label held before, so there is nothing to draw; give more texts")
    cells = changes.before.cells
    drawn = FigureWords(
        kind="changes",
        title=f"{changes.before.model or 'A model'}: labels before and after",
        note=changes.summary(),
        model=changes.before.model,
        layers=[layer for layer, _ in cells],
        heads=[head for _, head in cells],
        texts=changes.before.tally.statistic.texts,
    )
    return draw_result(drawn, options, lambda sheet, y: _draw(sheet, changes, y))


def _draw(sheet: Sheet, changes: Changes, y: float) -> tuple[float, list[str]]:
    rows = []
    for each in changes.held[:MOST]:
        values = {
            "after": Value(each.after, each.after_low, each.after_high),
            "before": Value(each.before, each.before_low, each.before_high),
        }
        note = "gone" if each.gone else ""
        rows.append(Row(f"{each.layer}-{each.head}  {each.pattern}", values, note))
    y = draw_ranges(sheet, rows, y, ends=(0.0, 1.0))
    notes = [f"lines: {changes.before.confidence:.0%} bootstrap interval over texts"]
    if any(each.gone for each in changes.held):
        notes.append("gone: all of the interval below the threshold")
    if len(changes.held) > MOST:
        notes.append(f"{len(changes.held) - MOST} labels that fell less are not drawn")
    return y, notes
