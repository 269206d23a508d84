"""The totals of a task, such as F1, from sums over its examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from headscope.evidence import GroupSums
from headscope.tasks._classification import f1
from headscope.tasks._whole import totals_of_task


class TotalSums:
    """Totals of the examples of a task, whose values are counted and not kept.

    Args:
        name: of the task, see `whole_task`; not ``"likeness"``, whose pairs are judged together.
        columns: of the task of one example.
        cells: how many times every example was scored: by the intact model, and without each head.
    """

    def __init__(self, name: str, columns: Sequence[str], cells: int) -> None:
        self._name, self._columns = name, tuple(columns)
        self._second = GroupSums((cells,))
        self._largest: int = 0
        # Of class 1: predicted and right, and either of the two without the other.
        self._hits: Int[np.ndarray, " cell"] = np.zeros(cells, np.int64)
        self._misses: Int[np.ndarray, " cell"] = np.zeros(cells, np.int64)

    def update(self, values: Float[np.ndarray, "example cell column"]) -> None:
        """Count some examples."""
        # Every total but F1 is the mean of the second column.
        if len(self._columns):
            self._second.update_many(values[:, :, 1], [(None, 1)] * len(values))
            # Else the values of some thousand examples wait to be added up together.
            self._second.close()
        if self._name == "classification":
            predicted, right = values[:, :, 2] == 1, values[:, :, 3] == 1
            self._hits += (predicted & right).sum(axis=0)
            self._misses += (predicted != right).sum(axis=0)
            self._largest = max(self._largest, int(values[:, 0, 3].max()))

    def totals(self) -> dict[str, tuple[float, ...]]:
        """Every total, of the intact model first."""
        totals = {}
        for name, total in totals_of_task(self._name, self._columns, self._largest).items():
            numbers = self._f1() if total is f1 else self._second.mean
            totals[name] = tuple(numbers.tolist())
        return totals

    def _f1(self) -> Float[np.ndarray, " cell"]:
        return 2 * self._hits / np.maximum(2 * self._hits + self._misses, 1)
