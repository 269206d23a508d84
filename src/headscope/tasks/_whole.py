"""A task whose examples were scored one by one, put together again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.tasks import _loss, _minimal_pairs, _similarity
from headscope.tasks._classification import totals_of
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
