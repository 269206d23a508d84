"""Pairs of a likeness judged together, counted and not kept."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from headscope.evidence import GroupSums
from headscope.tasks._similarity import metric_of


class LikenessCounts:
    """How many pairs have which cosine, by which threshold and ranks are found.

    Every cosine of a sample is a bin of its own, and so is what lies between two that are
    neighbours, so that ranks are exact where all pairs are in the sample, and else those of pairs
    in one bin are tied. It takes the same memory whatever the number of pairs.

    Args:
        sample: of the intact model and without each head, the cosine of some pairs and how alike
            the two are.
    """

    def __init__(self, sample: Float[np.ndarray, "pair cell 2"]) -> None:
        columns = [*sample[:, :, 0].T, sample[:, 0, 1]]
        self._edges = [np.unique(column) for column in columns]
        bins = 2 * max(map(len, self._edges)) + 1
        self._pairs: Int[np.ndarray, "column bin"] = np.zeros((len(columns), bins), np.int64)
        self._alike: Int[np.ndarray, "column bin"] = np.zeros((len(columns), bins), np.int64)
        self._ends = (np.inf, -np.inf)
        self._is_binary = True
        self._cosines = GroupSums((len(columns) - 1,))

    def update(self, values: Float[np.ndarray, "pair cell 2"]) -> None:
        """Count some pairs."""
        wanted = values[:, 0, 1]
        self._ends = (min(self._ends[0], wanted.min()), max(self._ends[1], wanted.max()))
        self._is_binary = self._is_binary and bool(np.isin(wanted, (0, 1)).all())
        # Some hundred bytes a cell, whatever the number of pairs.
        self._cosines.update_many(values[:, :, 0], [(None, 1)] * len(values))
        self._cosines.close()
        size = self._pairs.shape[1]
        for number, bins in enumerate(self._bins(values)):
            self._pairs[number] += np.bincount(bins, minlength=size)
            self._alike[number] += np.bincount(bins[wanted == 1], minlength=size)

    @property
    def metric(self) -> str:
        """What the mean score is.

        Raises:
            TextError: where all pairs are as alike.
        """
        least, most = self._ends
        return metric_of(bool(least < most), is_binary=self._is_binary)

    @property
    def mean_cosines(self) -> tuple[float, ...]:
        """Over all pairs, of the intact model first."""
        return tuple(self._cosines.mean.tolist())

    def scores(self, values: Float[np.ndarray, "pair cell 2"]) -> Float[np.ndarray, "pair cell"]:
        """Of some of the pairs that were counted, as `headscope.tasks.likeness` scores them."""
        *bins, golds = self._bins(values)
        wanted = values[:, 0, 1]
        scores = np.empty(values.shape[:2])
        for number, own in enumerate(bins):
            if self._is_binary:
                scores[:, number] = (own >= self._cuts[number]) == (wanted == 1)
            else:
                scores[:, number] = self._ranks[number][own] * self._ranks[-1][golds]
        return scores

    def _bins(self, values: Float[np.ndarray, "pair cell 2"]) -> list[Int[np.ndarray, " pair"]]:
        """The bins of the cosines, and last those of how alike the pairs are."""
        columns = [*values[:, :, 0].T, values[:, 0, 1]]
        bins = []
        for edges, column in zip(self._edges, columns, strict=True):
            # 2 k between the edges k - 1 and k, 2 k + 1 on edge k.
            below = np.searchsorted(edges, column, "left")
            bins.append(below + np.searchsorted(edges, column, "right"))
        return bins

    @cached_property
    def _cuts(self) -> list[int]:
        """Of each cell, the bin from which on pairs are best called alike."""
        cuts = []
        for pairs, alike in zip(self._pairs[:-1], self._alike[:-1], strict=True):
            others_below = np.concatenate([[0], np.cumsum(pairs - alike)])
            alike_above = alike.sum() - np.concatenate([[0], np.cumsum(alike)])
            right = others_below + alike_above
            # The highest of equally good ones, as `headscope.tasks._similarity.threshold` has it.
            cuts.append(len(right) - 1 - int(np.argmax(right[::-1])))
        return cuts

    @cached_property
    def _ranks(self) -> Float[np.ndarray, "column bin"]:
        """The rank of the pairs in each bin, standardised over all pairs."""
        # Tied pairs have the mean of their ranks, which are counted from 1.
        ranks = np.cumsum(self._pairs, axis=1) - (self._pairs - 1) / 2
        apart = ranks - (self._cosines.texts + 1) / 2
        variance = (self._pairs * apart**2).sum(axis=1) / self._cosines.texts
        return apart / np.maximum(np.sqrt(variance), 1e-30)[:, None]
