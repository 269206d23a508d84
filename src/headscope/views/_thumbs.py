"""Thumbnails of the weights, for the overview of all heads."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

MOST = 48
"""Number of rows and columns of a thumbnail at most."""


def max_pooled(
    weights: Float[np.ndarray, "*heads query key"], most: int = MOST
) -> Float[np.ndarray, "*heads query_block key_block"]:
    """The largest weight of each block, so that a single strong weight is visible in a long text.

    Blocks are as even as they can be; a side of up to ``most`` tokens stays as it is.
    """
    for axis in (-2, -1):
        count = weights.shape[axis]
        # A side at a time: the maximum of maxima is that of the block, and reduceat takes one axis.
        starts = np.arange(min(most, count)) * count // min(most, count)
        weights = np.maximum.reduceat(weights, starts, axis=axis)
    return weights
