"""What mattered in more texts than are kept, from sums over these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.evidence import Statistic, StatisticSums
from headscope.studies.explaining._erasure import SHARES
from headscope.studies.explaining._explained import SIGNALS, ExplainedText
from headscope.studies.explaining._measures import ERASURE, Name, measures_of, names_of

MEASURES = names_of(SIGNALS)
ROWS: tuple[str, ...] = (
    *(", ".join(part for part in name if part) for name in MEASURES),
    *(", ".join(map(str, cut)) for cut in product(ERASURE, SIGNALS, SHARES)),
    *(f"has {signal}" for signal in SIGNALS),
)
"""What is added up of every text: its measures, what erasure does at each share, and which signals
it has."""


@dataclass(frozen=True, eq=False)
class FaithfulnessSums:
    """Sums over texts of every measure; of a text without one nothing.

    Args:
        statistic: one number for each of `ROWS`.
        missing: by name, why a signal cannot be had of the model.
    """

    statistic: StatisticSums
    missing: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(
        texts: Iterable[ExplainedText], groups: Sequence[Any] | None, missing: Mapping[str, str]
    ) -> FaithfulnessSums:
        """Of texts whose documents have no others."""
        statistic = Statistic((len(ROWS),), ROWS)
        for number, text in enumerate(texts):
            group = None if groups is None else groups[number]
            values, length = _row_of(text), len(text.pieces)
            statistic.update(str(number), values, group=group, length=length)
        return FaithfulnessSums(StatisticSums.of(statistic), dict(missing))

    @property
    def texts(self) -> int:
        """How many."""
        return len(self.statistic)

    @property
    def has_groups(self) -> bool:
        """Whether a text is of a document."""
        return self.statistic.sums.has_groups

    @property
    def lengths(self) -> Counter[int]:
        """How many texts have each number of tokens."""
        return self.statistic.lengths

    @property
    def signals(self) -> tuple[str, ...]:
        """Those that could be had of every text."""
        counts = self.statistic.count[-len(SIGNALS) :]
        return tuple(
            name for name, count in zip(SIGNALS, counts, strict=True) if count == self.texts
        )

    def means(self, confidence: float) -> dict[Name, tuple[float, float, float, float, int]]:
        """See `Faithfulness.means`."""
        ends, counts = self._ends(confidence), self.statistic.count
        # Over the texts themselves, as the mean is: n below and not n - 1.
        spreads = self.statistic.sums.deviation * np.sqrt(1 - 1 / np.maximum(counts, 1))
        means = {}
        for name in names_of(self.signals):
            row = MEASURES.index(name)
            if counts[row]:
                low, high = ends[row].tolist()
                mean, spread = float(self._mean[row]), float(spreads[row])
                means[name] = mean, spread, low, high, int(counts[row])
        return means

    def erasure(self, signal: str, measure: str, confidence: float) -> Float[np.ndarray, "share 3"]:
        """See `Faithfulness.erasure`."""
        first = ROWS.index(f"{measure}, {signal}, {SHARES[0]}")
        rows = slice(first, first + len(SHARES))
        return np.concatenate([self._mean[rows, None], self._ends(confidence)[rows]], axis=1)

    def _ends(self, confidence: float) -> Float[np.ndarray, "row 2"]:
        return self.statistic.interval(confidence)

    @cached_property
    def _mean(self) -> Float[np.ndarray, " row"]:
        return self.statistic.mean


def _row_of(text: ExplainedText) -> Float[np.ndarray, " row"]:
    """The numbers of one text, in the order of `ROWS`; NaN where there is none."""
    measures = measures_of(text)
    erased = np.full((len(ERASURE), len(SIGNALS), len(SHARES)), np.nan)
    for number, signal in enumerate(SIGNALS):
        if signal in text.erased:
            erased[:, number] = text.erased[signal]
    has = [1.0 if signal in text.signals else np.nan for signal in SIGNALS]
    return np.concatenate([[measures.get(name, np.nan) for name in MEASURES], erased.ravel(), has])
