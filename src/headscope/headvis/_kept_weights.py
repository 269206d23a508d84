"""Which weights of a row a tree keeps."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

ROW = 8
"""Weights that are kept of a row, at most."""
LEAST = 0.005
"""And none below it."""
DECIMALS = 4
"""As the original writes its numbers."""


def strongest_of_rows(
    weights: Float[np.ndarray, "query key"],
) -> tuple[Int[np.ndarray, " kept"], Float[np.ndarray, " kept"]]:
    """The entries of a map that a tree keeps: the 8 largest of each row, as far as they are at
    least 0.005.

    The largest weight outside row and column 0 is kept even where it is smaller, since readers take
    the maximum from what is kept.

    Returns:
        ``query * tokens + key`` of each entry, ascending, and its weight to four decimals.

    Example:
        >>> indices, values = strongest_of_rows(np.array([[1.0, 0.0], [0.996, 0.004]]))
        >>> indices.tolist(), values.tolist()
        ([0, 2, 3], [1.0, 0.996, 0.004])
    """
    weights = weights.astype(np.float64)
    order = np.argsort(-weights, axis=1, kind="stable")[:, :ROW]
    kept = np.zeros(weights.shape, bool)
    np.put_along_axis(kept, order, values=True, axis=1)
    kept &= weights >= LEAST
    inner = weights[1:, 1:]
    query, key = np.unravel_index(np.argmax(inner), inner.shape)
    kept[query + 1, key + 1] = True
    indices = np.flatnonzero(kept)
    return indices, weights.reshape(-1)[indices].round(DECIMALS)


def largest(
    weights: Float[np.ndarray, "*texts query key"],
) -> Float[np.ndarray, "*texts"]:
    """The largest weight outside row and column 0, which every reader skips."""
    return weights[..., 1:, 1:].max(axis=(-2, -1))
