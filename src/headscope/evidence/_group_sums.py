"""Means with intervals of values that are not kept: from five sums over documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError
from headscope.evidence._exact_sum import carried, floats, sums_of, whole_numbers
from headscope.evidence._wilson import wilson_ends
from headscope.evidence.groups import group_of

AT_ONCE = 2**19
"""Bytes of values that wait to be added up together, which is cheaper than one by one: few enough
to stay in the processor's cache."""
QUANTUM = 2.0**36
"""Steps in one, of the sums of a document while it is open: 1.5e-11 is far below any interval."""
MOST = 2**62
EXACT = ("total", "squares", "group_squares", "group_products")
COUNTS = ("count", "zeros_and_ones", "groups", "group_sizes")
TOLERANCE = 1e-12
"""Least error that is more than rounding, as a share of the mean."""


class GroupSums:
    """Means, intervals and tests of values that are counted and not kept.

    Memory does not grow with the number of texts. Sums are of whole numbers (steps of 2^-60), so
    that they are the same to the last bit in any order and for any parts that are added up. Over
    documents, the interval is that of a ratio, linearised (Cochran 1977, section 6.5):
    with sums S_g and counts n_g of G documents, m = sum S / sum n,
    ``var m = G / (G - 1) sum (S_g - m n_g)^2 / (sum n)^2``, which the five sums of S, n, S^2, S n
    and n^2 give; the ends are Student's with G' - 1 degrees of freedom, G' as in `interval`. A text
    without a document is one of its own.

    All texts of a document belong into one part: close it before parts are added up.

    Args:
        shape: axes of the values of one text.

    Example:
        >>> sums = GroupSums((1,))
        >>> for value in (0.25, 0.5, 0.75):
        ...     sums.update(np.array([value]))
        >>> sums.mean.tolist(), sums.interval().round(2).tolist()
        ([0.5], [[-0.12, 1.12]])
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape: tuple[int, ...] = tuple(shape)
        self.texts: int = 0
        """How many were counted."""
        self.documents: int = 0
        """How many documents they are of; a text without one counts as one."""
        self.has_groups: bool = False
        self._exact = {name: np.zeros((3, *self.shape), np.int64) for name in EXACT}
        self._counts = {name: np.zeros(self.shape, np.int64) for name in COUNTS}
        self._least = np.full(self.shape, np.inf)
        self._most = np.full(self.shape, -np.inf)
        self._waiting: list[tuple[np.ndarray, str | None, int]] = []
        self._open: dict[str, tuple[np.ndarray, Any]] = {}

    def update(
        self, values: Float[np.ndarray, "..."], *, group: Any = None, times: int = 1
    ) -> None:
        """Count one text.

        Args:
            values: NaN where there is none.
            group: the document that it is of; None for a text that belongs to no other.
            times: how often it is there.

        Raises:
            RecordError: where values are infinite or of another shape.
        """
        self.update_many(np.asarray(values)[None], [(group, times)])

    def update_many(
        self, values: Float[np.ndarray, "text ..."], given: Sequence[tuple[Any, int]]
    ) -> None:
        """Count several texts, faster than one by one.

        Args:
            values: of each.
            given: the document of each, and how often it is there; see `update`.

        Raises:
            RecordError: where values are infinite or of another shape.
        """
        values = np.array(values, np.float64)
        if values.shape[1:] != self.shape or np.isinf(values).any():
            raise RecordError(
                f"Expected finite values of shape {self.shape}, got {values.shape[1:]}"
                f"{' with infinite ones' if np.isinf(values).any() else ''}"
            )
        for own, (group, times) in zip(values, given, strict=True):
            self._waiting.append((own, group_of(group), times))
            if len(self._waiting) * own.nbytes >= AT_ONCE:
                self._add_waiting()

    def close(self) -> GroupSums:
        """No more texts of the documents so far will come; returns itself."""
        self._add_waiting()
        for group in sorted(self._open):
            total, sizes = self._open.pop(group)
            sums = total / QUANTUM
            self._add_exact("group_squares", whole_numbers(sums**2))
            self._add_exact("group_products", whole_numbers(sums * sizes))
            self._counts["group_sizes"] += sizes**2
            self._counts["groups"] += sizes > 0
            self.documents += 1
        return self

    @property
    def open_bytes(self) -> int:
        """What the documents that are not closed take."""
        return 2 * 8 * int(np.prod(self.shape)) * len(self._open)

    def __add__(self, other: GroupSums) -> GroupSums:
        """The texts of both; documents of one are none of the other.

        Raises:
            RecordError: where they have other shapes.
        """
        if not isinstance(other, GroupSums):
            return NotImplemented
        if self.shape != other.shape:
            raise RecordError(f"Sums of {self.shape} and of {other.shape} cannot be added up")
        both = GroupSums(self.shape)
        for part in (self, other):
            part.close()
            both.texts += part.texts
            both.documents += part.documents
            both.has_groups |= part.has_groups
            for name in EXACT:
                both._add_exact(name, part._exact[name])
            for name in COUNTS:
                both._counts[name] += part._counts[name]
            both._least = np.minimum(both._least, part._least)
            both._most = np.maximum(both._most, part._most)
        return both

    @property
    def count(self) -> Int[np.ndarray, "..."]:
        """How many texts have a value."""
        self._add_waiting()
        return self._counts["count"]

    @property
    def mean(self) -> Float[np.ndarray, "..."]:
        """Mean over texts; NaN where none has a value."""
        return _divided(floats(self._closed("total")), self.count)

    @property
    def deviation(self) -> Float[np.ndarray, "..."]:
        """Standard deviation over texts (n - 1 below); exactly 0 where all have one value."""
        count, mean = self.count, self.mean
        squares = floats(self._closed("squares")) - count * mean**2
        spread = np.sqrt(np.maximum(squares, 0.0) / np.maximum(count - 1, 1))
        return np.where(self._least < self._most, spread, 0.0)

    @property
    def effect(self) -> Float[np.ndarray, "..."]:
        """Cohen's d of differences, as `effect_size`; NaN for fewer than two texts."""
        mean, deviation = self.mean, self.deviation
        alike = np.select([mean > 0, mean < 0], [np.inf, -np.inf], 0.0)
        effects = np.divide(mean, deviation, out=alike, where=deviation > 0)
        return np.where(self.count > 1, effects, np.nan)

    def interval(
        self, confidence: float = 0.95, *, shares: bool = True
    ) -> Float[np.ndarray, "... 2"]:
        """Interval of the mean over texts, or over documents where there are any.

        Args:
            confidence: how often it should hold the mean over all texts that could have been.
            shares: whether values that are all 0 or 1, some of them 1, get Wilson's interval.

        Returns:
            Lower and upper end; NaN for fewer than two documents.
        """
        from scipy.special import stdtrit

        mean, error = self.mean, self._error
        reach = stdtrit(np.maximum(1.0, self._effective - 1), (1 + confidence) / 2) * error
        ends = np.stack([mean - reach, mean + reach], axis=-1)
        ends = np.where((self._least == self._most)[..., None], self._least[..., None], ends)
        if shares:
            wilson = wilson_ends(
                mean,
                self.count.astype(float),
                confidence=confidence,
                variance=error**2 if self.has_groups else None,
                groups=(self._counts["groups"], self._effective),
            )
            ends = np.where(self._is_share[..., None], wilson, ends)
        return np.where((self._closed("groups") > 1)[..., None], ends, np.nan)

    def p_above(self) -> Float[np.ndarray, "..."]:
        """Probability of a mean that far above 0 if it were not: one-sided t-test over texts or
        documents, see `headscope.evidence.p_above`.
        """
        # stdtr(df, -x) is scipy.stats.t.sf(x, df), whose import alone takes a second.
        from scipy.special import stdtr

        mean, groups = self.mean, self._closed("groups")
        error = np.where(self._least < self._most, self._error, 0.0)
        varied = error > TOLERANCE * np.abs(mean)
        p = np.where(mean > 0, 0.0, 1.0)
        freedom = np.maximum(1.0, self._effective[varied] - 1)
        p[varied] = stdtr(freedom, -mean[varied] / error[varied])
        return np.where(groups > 1, np.maximum(p, 0.5 ** groups.astype(float)), np.nan)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What a file of it holds, for `of_arrays`; closes all documents."""
        self.close()
        facts = np.array([self.texts, self.documents, self.has_groups], np.int64)
        ends = {"least": self._least, "most": self._most, "facts": facts}
        return self._exact | self._counts | ends

    @staticmethod
    def of_arrays(arrays: Mapping[str, np.ndarray]) -> GroupSums:
        """What `arrays` gave.

        Raises:
            KeyError: where an array is missing.
            ValueError: where they have other shapes.
        """
        sums = GroupSums(arrays["count"].shape)
        for name in EXACT:
            sums._exact[name] = _of_shape(arrays[name], (3, *sums.shape), name)
        for name in COUNTS:
            sums._counts[name] = _of_shape(arrays[name], sums.shape, name)
        sums._least = _of_shape(arrays["least"], sums.shape, "least")
        sums._most = _of_shape(arrays["most"], sums.shape, "most")
        texts, documents, has_groups = (int(fact) for fact in arrays["facts"])
        sums.texts, sums.documents, sums.has_groups = texts, documents, bool(has_groups)
        return sums

    @property
    def _error(self) -> Float[np.ndarray, "..."]:
        """Standard error of the mean over documents."""
        mean, groups = self.mean, self._closed("groups")
        squares, products = (
            floats(self._closed(name)) for name in ("group_squares", "group_products")
        )
        spread = squares - 2 * mean * products + mean**2 * self._counts["group_sizes"]
        # Rounding may leave a little less than nothing.
        inner = np.maximum(spread, 0.0) * _divided(groups, np.maximum(groups - 1, 1))
        return np.sqrt(inner) / np.maximum(self.count, 1)

    @property
    def _effective(self) -> Float[np.ndarray, "..."]:
        """Documents of one size that say as much, see `headscope.evidence.effective_groups`."""
        sizes = self._closed("group_sizes")
        return np.nan_to_num(_divided(self.count.astype(float) ** 2, sizes))

    @property
    def _is_share(self) -> Bool[np.ndarray, "..."]:
        return (self._counts["zeros_and_ones"] == self.count) & (self._most == 1)

    def _closed(self, name: str) -> Int[np.ndarray, "..."]:
        self.close()
        return self._exact[name] if name in EXACT else self._counts[name]

    def _add_waiting(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        values = np.stack([each for each, _, _ in waiting])
        there = ~np.isnan(values)
        with np.errstate(invalid="ignore"):
            self._least = np.fmin(self._least, np.fmin.reduce(values))
            self._most = np.fmax(self._most, np.fmax.reduce(values))
        known = np.where(there, values, 0.0)
        squares = known * known
        times = np.array([often for _, _, often in waiting])
        # A text without a document is a group of its own, as often as it is there.
        alone = np.array([group is None for _, group, _ in waiting])
        of_alone = times * alone
        self.texts += int(times.sum())
        self.documents += int(of_alone.sum())
        counts = _counted(there, times)
        counts_alone = counts if alone.all() else _counted(there, of_alone)
        for name, number in (("count", counts), ("groups", counts_alone)):
            self._counts[name] += number
        self._counts["group_sizes"] += counts_alone
        # Of all numbers, 0 and 1 alone are their own squares.
        self._counts["zeros_and_ones"] += _counted((squares == known) & there, times)
        # Where no text has a document, sums over texts are those over documents.
        weights = np.stack([times] if alone.all() else [times, of_alone]).astype(np.float64)
        for part, names in (
            (known, ("total", "group_products")),
            (squares, ("squares", "group_squares")),
        ):
            sums = sums_of(part, weights)
            for name, numbers in zip(names, (sums[0], sums[-1]), strict=True):
                self._add_exact(name, numbers)
        for index in np.flatnonzero(~alone):
            # Rounded before it is counted twice: else once twice would not be two times once.
            steps = np.rint(known[index] * QUANTUM) * times[index]
            self._add_to_group(str(waiting[index][1]), steps, there[index] * times[index])

    def _add_to_group(self, group: str, steps: np.ndarray, seen: np.ndarray) -> None:
        self.has_groups = True
        total, sizes = self._open.get(group, (np.zeros(self.shape, np.int64), 0))
        if (np.abs(steps) + np.abs(total)).max(initial=0.0) >= MOST:
            raise RecordError(f"The values of document {group!r} are too large to be added up")
        self._open[group] = total + steps.astype(np.int64), sizes + seen.astype(np.int64)

    def _add_exact(self, name: str, numbers: Int[np.ndarray, "3 ..."]) -> None:
        self._exact[name] = carried(self._exact[name] + numbers)


def _counted(
    mask: Bool[np.ndarray, "text ..."], times: Int[np.ndarray, " text"]
) -> Int[np.ndarray, "..."]:
    """How many texts have it, each as often as it is there."""
    if mask.all():
        return np.full(mask.shape[1:], times.sum())
    # Exact in double precision, and many times faster than a sum of whole numbers.
    counts = times.astype(np.float64) @ mask.reshape(len(mask), -1).astype(np.float64)
    return counts.reshape(mask.shape[1:]).astype(np.int64)


def _divided(values: np.ndarray, count: np.ndarray) -> np.ndarray:
    values = np.asarray(values, np.float64)
    return np.divide(values, count, out=np.full(values.shape, np.nan), where=count > 0)


def _of_shape(array: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    if array.shape != shape:
        raise ValueError(f"its {name} have the shape {array.shape}, expected {shape}")
    return array
