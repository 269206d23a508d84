"""What is said of all examples of a task together, where these were scored one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from headscope.tasks import _loss, _minimal_pairs
from headscope.tasks._classification import f1, totals_of
from headscope.tasks._task import Values


def total_counts(name: str, values: Float[np.ndarray, "cell column"]) -> dict[str, np.ndarray]:
    """What is counted of one example for `totals_of_counts`.

    Args:
        name: of the task, one of `NAMES`, or whatever a function of one's own is called.
        values: of the intact model, and without each head.
    """
    counts = {}
    if values.shape[1] > 1:
        # Every total but F1 is the mean of the second column.
        counts["second"] = values[:, 1]
    if name == "classification":
        predicted, right = values[:, 2] == 1, values[:, 3] == 1
        counts["classes"] = np.eye(3, dtype=np.int64)[int(min(values[0, 3], 2))]
        # Of class 1: both of the two, and either of them without the other.
        counts["both"] = (predicted & right).astype(np.int64)
        counts["either"] = (predicted != right).astype(np.int64)
    return counts


def totals_of_counts(
    name: str, columns: Sequence[str], counts: Mapping[str, np.ndarray], examples: int
) -> dict[str, tuple[float, ...]]:
    """Every total, such as F1, of the intact model first.

    Args:
        name: see `total_counts`.
        columns: of the task of one example.
        counts: of all examples, added up.
        examples: how many these are.
    """
    largest = int(np.flatnonzero(counts.get("classes", [1])).max())
    totals = {}
    for total, function in _totals_of_task(name, columns, largest).items():
        if function is f1:
            both = 2 * counts["both"]
            totals[total] = tuple((both / np.maximum(both + counts["either"], 1)).tolist())
        else:
            totals[total] = tuple((counts["second"] / examples).tolist())
    return totals


def _totals_of_task(
    name: str, columns: Sequence[str], largest: int
) -> Mapping[str, Callable[[Values], float]]:
    """What is said of all values of a task by its name, but for a likeness."""
    if name == "classification":
        return totals_of(columns[0], largest)
    if name == "minimal-pairs":
        return _minimal_pairs.TOTALS
    return _loss.TOTALS if name in ("next-word", "masked-word", "translation", "repeats") else {}
