"""An ablation put together from its parts, one after the other, so that none is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.corpus import Kept, key_of
from headscope.evidence import median_of
from headscope.studies.ablation._sums import AblationSums
from headscope.tasks import LikenessCounts, TotalSums

SAMPLED = 4096
"""Pairs of a likeness whose cosines are kept, as the bins in which those of all are counted."""


def summed_parts(
    parts: Iterable[Kept], name: str, columns: Sequence[str]
) -> tuple[AblationSums, dict[str, Any]]:
    """Sums over the examples of all parts, one after the other; and totals and the median length
    of these, as fields of an `Ablation`.

    Args:
        parts: what files of parts hold, some examples in each.
        name: of the task, see `headscope.tasks.whole_task`; no likeness.
        columns: of the task of one example.
    """
    whole: AblationSums | None = None
    totals: TotalSums | None = None
    lengths = _Lengths()
    for state, arrays in parts:
        values = arrays["values"]
        own = AblationSums.of(values[:, 1:, 0], values[:, 0, 0], state["groups"])
        whole = own if whole is None else whole + own
        totals = totals or TotalSums(name, columns, values.shape[1])
        totals.update(values)
        lengths.update(arrays["tokens"])
    assert whole is not None, "there are more examples than are kept"
    assert totals is not None, "there are more examples than are kept"
    return whole, {"totals": totals.totals(), "tokens": lengths.median}


def summed_likeness(
    parts: Callable[[], Iterable[Kept]],
) -> tuple[AblationSums, dict[str, Any]]:
    """The same of pairs that are judged together, and the metric: parts are read three times, for
    a sample, for threshold and ranks, and for what these say of each pair.

    Args:
        parts: gives what files of parts hold, some pairs in each.
    """
    counts = LikenessCounts(_sampled(parts()))
    lengths = _Lengths()
    for _, arrays in parts():
        counts.update(arrays["values"])
        lengths.update(arrays["tokens"])
    metric = counts.metric
    whole: AblationSums | None = None
    for state, arrays in parts():
        scores = counts.scores(arrays["values"])
        own = AblationSums.of(scores[:, 1:], scores[:, 0], state["groups"])
        whole = own if whole is None else whole + own
    assert whole is not None, "there are more pairs than are kept"
    totals = {"mean cosine": counts.mean_cosines}
    return whole, {"metric": metric, "totals": totals, "tokens": lengths.median}


def _sampled(parts: Iterable[Kept]) -> Float[np.ndarray, "pair cell 2"]:
    """Values of the pairs whose names have the lowest numbers, whatever the parts."""
    keys, rows = np.empty(0, np.uint64), None
    for state, arrays in parts:
        own = np.array([key_of("sampled pairs", name) for name in state["names"]], np.uint64)
        values = arrays["values"]
        keys = np.concatenate([keys, own])
        rows = values if rows is None else np.concatenate([rows, values])
        chosen = np.argsort(keys, kind="stable")[:SAMPLED]
        keys, rows = keys[chosen], rows[chosen]
    assert rows is not None, "there are more pairs than are kept"
    return rows


class _Lengths:
    """Lengths of examples, counted."""

    def __init__(self) -> None:
        # A median of two rows may lie halfway between whole numbers.
        self._halves: Counter[int] = Counter()
        self._is_known = True

    def update(self, lengths: Float[np.ndarray, " example"]) -> None:
        """Count those of some examples; NaN where they are no tokens."""
        self._is_known = self._is_known and not np.isnan(lengths).any()
        if self._is_known:
            self._halves.update((2 * lengths).astype(int).tolist())

    @property
    def median(self) -> float | None:
        """Of all; None where one is not known."""
        return median_of(self._halves) / 2 if self._is_known else None
