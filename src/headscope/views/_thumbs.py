"""Thumbnails of the weights, for the overview of all heads."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from headscope.record import WeightBlock

MOST = 48
"""Number of rows and columns of a thumbnail at most."""


def thumb_shape(size: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of the thumbnail of so many queries and keys."""
    queries, keys = size
    return min(MOST, queries), min(MOST, keys)


def starts_of(count: int, most: int = MOST) -> Int[np.ndarray, " block"]:
    """First token of each block of a side: blocks are as even as they can be, and a side of up to
    ``most`` tokens stays as it is.
    """
    return np.arange(min(most, count)) * count // min(most, count)


def max_pooled(
    weights: Float[np.ndarray, "*heads query key"], most: int = MOST
) -> Float[np.ndarray, "*heads query_block key_block"]:
    """The largest weight of each block, so that a single strong weight is visible in a long
    text.
    """
    for axis in (-2, -1):
        # A side at a time: the maximum of maxima is that of the block, and reduceat takes one axis.
        starts = starts_of(weights.shape[axis], most)
        weights = np.maximum.reduceat(weights, starts, axis=axis)
    return weights


class PooledRows:
    """`max_pooled` of one head, from blocks of its rows.

    Args:
        size: number of queries and of keys.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        queries, keys = size
        self._starts = starts_of(queries)
        self._rows = np.zeros((len(self._starts), keys), np.float32)

    def add(self, block: WeightBlock) -> None:
        """Take up the rows of a block."""
        # Queries rise, so that those of a row of the picture are neighbours in the block.
        ends = [*np.searchsorted(block.queries, self._starts[1:]).tolist(), len(block.queries)]
        first = 0
        for row, end in zip(self._rows, ends, strict=True):
            if end > first:
                largest = block.weights[first:end].max(axis=0)
                np.maximum(row[block.keys], largest, out=row[block.keys])
            first = end

    @property
    def picture(self) -> Float[np.ndarray, "query_block key_block"]:
        """The largest weight of each block of queries and keys."""
        return max_pooled(self._rows)
