"""What a statistic says of many texts, from sums over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import RecordError
from headscope.evidence._group_sums import GroupSums
from headscope.evidence._statistic import Statistic

TOGETHER = 16
"""Texts that are added up together, which is cheaper than one by one."""


class StatisticSums:
    """Sums over the texts of a `Statistic`, whose values are not kept.

    Memory does not grow with the texts. Means are those of the statistic to rounding, intervals
    those of `GroupSums`. All texts of a document belong into one of the parts that are added up.

    Args:
        shape: axes of the values of one text.
        names: what the values are called.

    Example:
        >>> values = Statistic((1,))
        >>> for number, value in enumerate((0.25, 0.5, 0.75)):
        ...     values.update(str(number), np.array([value]), length=4)
        >>> sums = StatisticSums.of(values)
        >>> len(sums), sums.mean.tolist(), sums.lengths
        (3, [0.5], Counter({4: 3}))
    """

    texts: tuple[str, ...] = ()
    """No names of single texts are kept."""

    def __init__(self, shape: tuple[int, ...], names: tuple[str, ...] = ()) -> None:
        self.shape: tuple[int, ...] = tuple(shape)
        self.names: tuple[str, ...] = tuple(names)
        self.sums: GroupSums = GroupSums(self.shape)
        self._lengths: Counter[int] = Counter()

    @staticmethod
    def of(
        statistic: Statistic,
        made: Callable[[np.ndarray], np.ndarray] | None = None,
        names: tuple[str, ...] | None = None,
    ) -> StatisticSums:
        """The sums over the texts of a statistic, whose documents have no other texts.

        Args:
            statistic: of all texts of these documents.
            made: gives what is added up, of the values of some texts; by default the values.
            names: of what is added up; by default those of the values.
        """
        nothing = np.empty((0, *statistic.shape))
        shape = statistic.shape if made is None else made(nothing).shape[1:]
        own = StatisticSums(shape, statistic.names if names is None else names)
        for values, groups in statistic.some_at_a_time(TOGETHER):
            rows = values if made is None else made(values)
            own.sums.update_many(rows, [(group, 1) for group in groups])
        own.sums.close()
        known = [length for length in statistic.lengths if not np.isnan(length)]
        own._lengths = Counter(map(int, known))
        return own

    def __len__(self) -> int:
        return self.sums.texts

    def __repr__(self) -> str:
        return f"<StatisticSums of {len(self)} texts, values {list(self.shape)}>"

    def __add__(self, other: StatisticSums | Statistic) -> StatisticSums:
        """The texts of both, which share no document.

        Raises:
            RecordError: where they differ in shape or names.
        """
        if isinstance(other, Statistic):
            other = StatisticSums.of(other)
        if not isinstance(other, StatisticSums):
            return NotImplemented
        if self.names != other.names:
            raise RecordError(
                "Statistics of other names cannot be added up; were they made of the same patterns?"
            )
        both = StatisticSums(self.shape, self.names)
        both.sums = self.sums + other.sums
        both._lengths = self._lengths + other._lengths
        return both

    __radd__ = __add__

    @property
    def documents(self) -> int:
        """How many documents the texts are of; a text that belongs to none counts as one."""
        return self.sums.documents

    @property
    def lengths(self) -> Counter[int]:
        """How many texts have each number of tokens, where that is known."""
        return self._lengths

    @property
    def count(self) -> Int[np.ndarray, "..."]:
        """How many texts have a value."""
        return self.sums.count

    @property
    def mean(self) -> Float[np.ndarray, "..."]:
        """Mean over texts, each weighing the same; NaN where none has a value."""
        return self.sums.mean

    def interval(
        self, confidence: float = 0.95, *, shares: bool = False
    ) -> Float[np.ndarray, "... 2"]:
        """Interval of the mean over texts, or over documents where there are any; see
        `GroupSums.interval`.
        """
        return self.sums.interval(confidence, shares=shares)

    @property
    def kept(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file of it holds, for `of_kept`."""
        document = {
            "names": list(self.names),
            "lengths": [list(each) for each in sorted(self.lengths.items())],
        }
        return document, dict(self.sums.arrays)

    @staticmethod
    def of_kept(document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> StatisticSums:
        """What `kept` gave.

        Raises:
            KeyError: where an array is missing.
            ValueError: where arrays have other shapes.
        """
        sums = GroupSums.of_arrays(arrays)
        own = StatisticSums(sums.shape, tuple(document["names"]))
        own.sums = sums
        own._lengths = Counter(dict(document["lengths"]))
        return own
