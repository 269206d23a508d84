"""What the texts of a mechanism say together: of values of each text, or of sums over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import RecordError
from headscope.evidence import Statistic, StatisticSums, interval
from headscope.measures import carriers
from headscope.patterns._mechanism_tally import MechanismTally, Reading


@dataclass(frozen=True, kw_only=True)
class UnitNumbers:
    """What the units of one head do, over the texts that show something.

    Args:
        adds: mean of what each adds to the score.
        ends: of its interval.
        carries: share of queries whose score it helps to carry.
        stable: share of texts in which it is among those that carry the mean score.
    """

    adds: Float[np.ndarray, " unit"]
    ends: Float[np.ndarray, "unit 2"]
    carries: Float[np.ndarray, " unit"]
    stable: Float[np.ndarray, " unit"]


class HeldTexts:
    """Of the values of each text, which are drawn again for intervals.

    Args:
        tally: that holds them.
        confidence: of the intervals.
    """

    def __init__(self, tally: MechanismTally, confidence: float) -> None:
        self._tally, self._confidence = tally, confidence
        assert isinstance(tally.statistic, Statistic), "that is asked before"
        self._groups: tuple[str | None, ...] | None = tally.statistic.groups

    def mean(self, name: str, of: Reading) -> Float[np.ndarray, " head"]:
        """Mean over texts of one number of each head."""
        return mean_of(self._tally.row(name, of))

    def ends(self, name: str, of: Reading) -> Float[np.ndarray, "head 2"]:
        """Interval of `mean`."""
        return self.interval(self._tally.row(name, of))

    def count(self, of: Reading) -> Int[np.ndarray, " head"]:
        """How many texts show something of each head."""
        return (~np.isnan(self._tally.row("neurons", of))).sum(axis=0)

    def units(self, cell: int, of: Reading) -> UnitNumbers | None:
        """The units of a head; None where no text shows anything."""
        width = len(self._tally.units[self._tally.cells[cell][0]])
        texts = self._tally.by_unit("adds", of)[:, cell, :width]
        # Texts that show nothing are left out, and so are their documents.
        known = ~np.isnan(texts).any(axis=1)
        groups = None
        if self._groups is not None:
            groups = np.array(self._groups, object)[known].tolist()
        texts = texts[known]
        if not len(texts):
            return None
        return UnitNumbers(
            adds=texts.mean(axis=0),
            ends=self.interval(texts, groups),
            carries=mean_of(self._tally.by_unit("carries", of)[:, cell, :width]),
            stable=carriers(texts, share=self._tally.share).mean(axis=0),
        )

    def group(self, cells: list[int], of: Reading) -> dict[str, Float[np.ndarray, "text head"]]:
        """Of some heads and each text, the numbers that a group of heads is described by."""
        names = ("neurons", "overlap", "chance")
        return {name: self._tally.row(name, of)[:, cells] for name in names}

    def interval(
        self, texts: Float[np.ndarray, "text head"], groups: list | tuple | None = None
    ) -> Float[np.ndarray, "head 2"]:
        """Interval of means over texts, or over their documents."""
        groups = self._groups if groups is None else groups
        return interval(texts, groups=groups, method="expanded", confidence=self._confidence)


class SummedTexts:
    """Of sums over texts, with Student's intervals.

    Args:
        tally: that has them.
        confidence: of the intervals.
    """

    def __init__(self, tally: MechanismTally, confidence: float) -> None:
        self._tally, self._confidence = tally, confidence
        assert isinstance(tally.statistic, StatisticSums), "that is asked before"
        self._sums: StatisticSums = tally.statistic

    def mean(self, name: str, of: Reading) -> Float[np.ndarray, " head"]:
        """Mean over texts of one number of each head."""
        return self._means[:, self._tally.place(name, of)]

    def ends(self, name: str, of: Reading) -> Float[np.ndarray, "head 2"]:
        """Interval of `mean`."""
        return self._ends[:, self._tally.place(name, of)]

    def count(self, of: Reading) -> Int[np.ndarray, " head"]:
        """How many texts show something of each head."""
        return self._sums.count[:, self._tally.place("neurons", of)]

    def units(self, cell: int, of: Reading) -> UnitNumbers | None:
        """The units of a head; None where no text shows anything."""
        width = len(self._tally.units[self._tally.cells[cell][0]])
        parts = {}
        for name in ("adds", "carries", "steady"):
            first = self._tally.place(f"{name} {of} 0")
            parts[name] = slice(first, first + width)
        if not self._sums.count[cell, parts["adds"]].any():
            return None
        return UnitNumbers(
            adds=self._means[cell, parts["adds"]],
            ends=self._ends[cell, parts["adds"]],
            carries=self._means[cell, parts["carries"]],
            stable=self._means[cell, parts["steady"]],
        )

    def group(self, cells: list[int], of: Reading) -> dict[str, Float[np.ndarray, "text head"]]:
        """Nothing of single texts is known.

        Raises:
            RecordError: saying so.
        """
        raise RecordError(
            f"Heads are grouped by means over heads of each text, and of these {len(self._sums)} "
            "texts sums alone are known; group fewer texts, or leave out=, workers= and executor= "
            "out"
        )

    def interval(
        self, texts: Float[np.ndarray, "text head"], groups: list | tuple | None = None
    ) -> Float[np.ndarray, "head 2"]:
        """Nothing of single texts is known; see `group`."""
        raise NotImplementedError

    @cached_property
    def _means(self) -> Float[np.ndarray, "head row"]:
        return self._sums.mean

    @cached_property
    def _ends(self) -> Float[np.ndarray, "head row 2"]:
        return self._sums.interval(self._confidence)


def mean_of(values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Mean over the first axis of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    return np.divide(sums, count, out=np.full(values.shape[1:], np.nan), where=count > 0)
