"""A task whose examples were scored one by one, put together again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from headscope.evidence import GroupSums
from headscope.tasks import _loss, _minimal_pairs, _similarity
from headscope.tasks._classification import f1, totals_of
from headscope.tasks._task import Batch, Task, Values


def whole_task(
    name: str,
    description: tuple[str, str, Sequence[str]],
    values: Float[np.ndarray, "example column"],
) -> Task:
    """What judges the values of all examples; it cannot score any.

    Args:
        name: one of `NAMES`, or whatever a function of one's own is called.
        description: name, metric and columns of the task of one example.
        values: of the intact model.

    Raises:
        TextError: where all pairs of a likeness are as alike.
    """
    title, metric, columns = description
    if name == "likeness":
        # Next to each cosine stands how alike the two are.
        metric, finish = _similarity.judged_by(values[:, 1])
        totals = _similarity.TOTALS
        return Task(
            ({},), _scores_none, title, metric, tuple(columns), finish=finish, totals=totals
        )
    largest = int(values[:, 3].max()) if name == "classification" else 0
    totals = totals_of_task(name, columns, largest)
    return Task(({},), _scores_none, title, metric, tuple(columns), totals=totals)


def totals_of_task(
    name: str, columns: Sequence[str], largest: int
) -> Mapping[str, Callable[[Values], float]]:
    """What is said of all values of a task by its name, but for a likeness.

    Args:
        name: see `whole_task`.
        columns: of the task of one example.
        largest: number of a class.
    """
    if name == "classification":
        return totals_of(columns[0], largest)
    if name == "minimal-pairs":
        return _minimal_pairs.TOTALS
    return _loss.TOTALS if name in ("next-word", "masked-word", "translation", "repeats") else {}


def _scores_none(model: Any, batch: Batch) -> Any:
    raise NotImplementedError


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
