"""Bins of distances between query and key, and of positions near the ends of a text."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

NEAR = 8
"""Largest offset that has a bin of its own."""
FAR = (8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)
"""Beyond `NEAR`, bins end at each of these offsets; the last bin has no end."""
SIDE = 12
"""Number of tokens at each end of a text that a mean map shows."""


def offset_bins() -> list[tuple[int, int | None]]:
    """First and last distance of each bin on one side, from 1; the last bin has no end.

    Example:
        >>> offset_bins()[:2], offset_bins()[8:10], offset_bins()[-1]
        ([(1, 1), (2, 2)], [(9, 12), (13, 16)], (513, None))
    """
    near: list[tuple[int, int | None]] = [(distance, distance) for distance in range(1, NEAR + 1)]
    far = [(low + 1, high) for low, high in pairwise(FAR)]
    return [*near, *far, (FAR[-1] + 1, None)]


def bin_names() -> list[str]:
    """Names of all bins, from far before the query to far after it.

    Example:
        >>> bin_names()[0], bin_names()[len(bin_names()) // 2]
        ('513 or more before', 'itself')
    """
    names = []
    for low, high in offset_bins():
        if high is None:
            names.append(f"{low} or more")
        else:
            names.append(str(low) if low == high else f"{low} to {high}")
    before = [f"{name} before" for name in reversed(names)]
    return [*before, "itself", *(f"{name} after" for name in names)]


@lru_cache(maxsize=256)
def bin_of_pairs(length: int) -> Int[np.ndarray, "query key"]:
    """The bin of the offset from each query to each key."""
    bins = offset_bins()
    firsts = np.array([low for low, _ in bins])
    offset = np.arange(length)[None, :] - np.arange(length)[:, None]
    side = np.searchsorted(firsts, np.abs(offset), side="right")
    return len(bins) + np.sign(offset) * side


def end_rows(length: int) -> Int[np.ndarray, " token"]:
    """The row of each token in a map of the ends of texts; -1 for those in the middle.

    The first half of a text counts from its beginning, the other from its end, so that the first
    token is always in row 0 and the last one in the last row.

    Example:
        >>> end_rows(5).tolist()
        [0, 1, 2, 22, 23]
    """
    tokens = np.arange(length)
    from_end = length - 1 - tokens
    is_first = tokens <= from_end
    rows = np.where(is_first, tokens, 2 * SIDE - 1 - from_end)
    return np.where(np.minimum(tokens, from_end) < SIDE, rows, -1)


def onto_bins(bins: Int[np.ndarray, " pair"], count: int) -> Float[np.ndarray, "pair bin"]:
    """The matrix that adds up flat maps by bin, in a product; pairs of bin -1 are left out."""
    onto = np.zeros((len(bins), count))
    chosen = np.flatnonzero(bins >= 0)
    onto[chosen, bins[chosen]] = 1.0
    return onto
