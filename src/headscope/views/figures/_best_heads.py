"""The best head for each relation, or kind of mention, with its baselines: what the figures of
`Relations` and `Coreference` share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from headscope.views.figures._axis import percent_written
from headscope.views.figures._figure import Figure
from headscope.views.figures._ranges import Row, draw_ranges
from headscope.views.figures._result import FigureWords, ResultOptions, draw_result
from headscope.views.figures._sheet import Sheet


class BestHeadsWords(TypedDict):
    """The words of such a figure."""

    title: str
    note: str
    """The line below the title."""
    chosen: str
    """Options of this figure alone, as written in a call."""
    counted: str
    """What the numbers in brackets count."""
    beside: str
    """What stands to the right of each row."""


def best_heads_figure(
    study: Any, rows: Sequence[Row], words: BestHeadsWords, options: ResultOptions
) -> Figure:
    """Held-out shares with their intervals, a row for each question, from 0 to 100 %.

    Args:
        study: `Relations` or `Coreference`.
        rows: from top to bottom.
        words: of the figure.
        options: as given by the user.

    Raises:
        FigureError: an unknown option, or matplotlib is missing.
    """

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        notes = [
            f"in brackets: how many {words['counted']}",
            f"on the right: {words['beside']}",
            f"lines: {study.confidence:.0%} interval over documents",
        ]
        return draw_ranges(sheet, rows, y, ends=(0.0, 1.0), written=percent_written), notes

    drawn = FigureWords(
        kind=study.KIND,
        title=words["title"],
        note=words["note"],
        model=study.model,
        layers=[layer for layer, _ in study.cells],
        heads=[head for _, head in study.cells],
        texts=study.names,
        chosen=words["chosen"],
    )
    return draw_result(drawn, options, draw)
