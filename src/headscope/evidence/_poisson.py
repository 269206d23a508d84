"""The Poisson bootstrap: intervals of what is not a mean, of values that are not kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt64

from headscope.errors import RecordError
from headscope.evidence._exact_sum import carried, floats, sums_of
from headscope.evidence._interval import expanded_tails

AT_ONCE = 256
"""Texts that are added up together."""
DRAWS = 1000
"""Enough for ends that differ from those of the exact bootstrap by a few hundredths of the width;
see docs/intervals.md."""
PERSON = b"poisson draws"
"""Keeps these draws apart from all others that are keyed by what a text says."""
MOST = 16
"""More than this often no text is drawn: the probability is below 2^-48."""


class PoissonSums:
    """Sums over texts, and over texts that are drawn again with replacement, many times over.

    Every document is drawn k times in a draw, k with Poisson's distribution of mean 1 (Hanley and
    MacGibbon 2006; Chamandy et al. 2012), by its name: so nothing of a text is kept, parts add up
    in any order to the same bits, and memory is that of the sums of all draws whatever the number
    of texts. Any statistic of sums has an interval so: a ratio, the rank of a head, a share above a
    limit, a quantile of counts in bins. For means, `GroupSums` is exact and needs no draws.

    Args:
        shape: axes of the values of one text, which are added up.
        draws: how many.

    Example:
        >>> sums = PoissonSums((2,), draws=400)
        >>> for number in range(200):
        ...     sums.update(f"text {number}", np.array([number % 4, 2.0]))
        >>> low, high = sums.interval(lambda total: total[..., 0] / total[..., 1])
        >>> bool(0.6 < low < 0.75 < high < 0.9)
        True
    """

    def __init__(self, shape: tuple[int, ...], *, draws: int = DRAWS) -> None:
        if draws < 1:
            raise RecordError(f"Expected a number of draws from 1 on, got {draws}")
        self.shape: tuple[int, ...] = tuple(shape)
        self.draws: int = draws
        self.texts: int = 0
        """How many were counted."""
        # The texts themselves, and each draw.
        self._sums = np.zeros((3, 1 + draws, *self.shape), np.int64)

    def update(
        self,
        text: str,
        values: Float[np.ndarray, "..."],
        *,
        group: str | None = None,
        times: int = 1,
    ) -> None:
        """Count one text.

        Args:
            text: its name, which is what it says or a hash of it, and not its number.
            values: finite; 0 for what does not count.
            group: the document that it is of, which is drawn whole; None for a text that is one of
                its own.
            times: how often it is there.

        Raises:
            RecordError: where values are not finite, or of another shape.
        """
        name = text if group is None else group
        self.update_many([(name, times)], np.asarray(values, np.float64)[None])

    def update_many(
        self, given: Sequence[tuple[str, int]], values: Float[np.ndarray, "text ..."]
    ) -> None:
        """Count several texts, many times faster than one by one.

        Args:
            given: the name of each text, or of its document, and how often it is there.
            values: of each; see `update`.

        Raises:
            RecordError: where they are not finite, or of another shape.
        """
        values = np.asarray(values, np.float64)
        if values.shape[1:] != self.shape or not np.isfinite(values).all():
            raise RecordError(
                f"Expected finite values of shape {self.shape}, got {values.shape[1:]}"
                f"{'' if np.isfinite(values).all() else ' with some that are not finite'}"
            )
        for first in range(0, len(given), AT_ONCE):
            some = given[first : first + AT_ONCE]
            times = np.array([often for _, often in some])
            drawn = np.stack([times_drawn(name, self.draws) for name, _ in some], axis=1)
            weights = np.concatenate([np.ones((1, len(some)), np.int64), drawn]) * times
            sums = sums_of(values[first : first + AT_ONCE], weights.astype(np.float64))
            self._sums = carried(self._sums + np.moveaxis(sums, 1, 0))
            self.texts += int(times.sum())

    def __add__(self, other: PoissonSums) -> PoissonSums:
        """The texts of both.

        Raises:
            RecordError: where they have other shapes or numbers of draws.
        """
        if not isinstance(other, PoissonSums):
            return NotImplemented
        if (self.shape, self.draws) != (other.shape, other.draws):
            raise RecordError(
                f"Sums of {self.shape} with {self.draws} draws and of {other.shape} with "
                f"{other.draws} cannot be added up"
            )
        both = PoissonSums(self.shape, draws=self.draws)
        both.texts = self.texts + other.texts
        both._sums = carried(self._sums + other._sums)
        return both

    @property
    def total(self) -> Float[np.ndarray, "..."]:
        """Sum over the texts."""
        return floats(self._sums[:, 0])

    @property
    def redrawn(self) -> Float[np.ndarray, "draw ..."]:
        """Sum over the texts of each draw."""
        return floats(self._sums[:, 1:])

    def interval(
        self,
        of: Callable[[Any], Any],
        confidence: float = 0.95,
        *,
        documents: tuple[float, float] | None = None,
    ) -> Float[np.ndarray, "2 ..."]:
        """Percentile interval of a statistic of sums.

        Args:
            of: the statistic, of sums with an axis of draws before their own.
            confidence: how often it should hold the statistic of all texts that could have been.
            documents: how many there are, and how many of one size would say as much: of few,
                wider quantiles are taken, as `headscope.evidence.interval` does.

        Returns:
            Lower and upper end; NaN where no draw has the statistic.
        """
        tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
        if documents is not None:
            tails = expanded_tails(confidence, *documents)
        values = np.asarray(of(self.redrawn), np.float64)
        known = ~np.isnan(values).all(axis=0)
        ends = np.full((2, *values.shape[1:]), np.nan)
        ends[:, known] = np.nanquantile(values[:, known], tails, axis=0)
        return ends


def times_drawn(name: str, draws: int) -> Int[np.ndarray, " draw"]:
    """How often a document is drawn in each draw: by its name alone, on any machine.

    Example:
        >>> times_drawn("a", 8).tolist() == times_drawn("a", 8).tolist()
        True
    """
    # Of SHAKE and not of NumPy's generators, whose streams may change with its version (NEP 19).
    digest = hashlib.shake_128(PERSON + name.encode()).digest(6 * draws)
    bits = np.frombuffer(digest, np.uint8).reshape(draws, 6).astype(np.uint64)
    numbers = (bits << np.arange(0, 48, 8, dtype=np.uint64)).sum(axis=1)
    return np.searchsorted(LIMITS, numbers, side="right").astype(np.int64)


def _limits() -> UInt64[np.ndarray, " times"]:
    """Below which 48 random bits say 0, 1, 2 ... times."""
    probability = np.exp(-1.0) / np.cumprod(np.maximum(1, np.arange(MOST)))
    return np.rint(2.0**48 * np.cumsum(probability)).astype(np.uint64)


LIMITS = _limits()
