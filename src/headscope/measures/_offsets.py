"""Attention by how far the key is from the query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.measures._rows import pairs_of

OFFSETS = (-3, -2, -1, 0, 1, 2, 3)


def mass_at_offsets(
    weights: Float[np.ndarray, "head query key"],
    offsets: Sequence[int] = OFFSETS,
    *,
    pairs: Bool[np.ndarray, "query key"] | None = None,
    over_all: bool = False,
    start: int = 0,
) -> Float[np.ndarray, "head offset"]:
    """Mean attention to the token at each offset: -1 is the one before, 0 the token itself, +1 the
    next.

    ``mean_{q in Q} A[q, q + o]``, Q the queries that have such a key; NaN where none has.

    Source: Clark et al. 2019, section 3.1, who divide by all n queries (``over_all=True``),
    although the last has no next token. Vig's patterns are the same with ``pairs`` inside one
    sentence and no special tokens (`same_segment`).

    Args:
        weights: attention, axes head, query, key.
        offsets: o, in tokens.
        pairs: True for the pairs of query and key that count; all by default.
        over_all: divide by the number of all queries.
        start: place of the first query among the keys, where queries continue a text.

    Raises:
        RecordError: where the pairs do not fit the weights.

    Example:
        >>> mass_at_offsets(np.array([[[0.25, 0.75], [0.5, 0.5]]]), [-1, 0, 1]).tolist()
        [[0.5, 0.375, 0.75]]
    """
    weights = np.asarray(weights, np.float64)
    heads, queries, _ = weights.shape
    masses = np.full((heads, len(offsets)), np.nan)
    for index, offset in enumerate(offsets):
        # Query row `q` is token `q + start` of the keys, so its neighbour is that much further on.
        rows, columns = _diagonal(weights, offset + start, pairs)
        count = queries if over_all else len(rows)
        if count:
            masses[:, index] = weights[:, rows, columns].sum(axis=1) / count
    return masses


def peak_at_offset(
    weights: Float[np.ndarray, "head query key"],
    offset: int,
    *,
    pairs: Bool[np.ndarray, "query key"] | None = None,
    start: int = 0,
    peaks: tuple[Float[np.ndarray, "head query"], Int[np.ndarray, "head query"]] | None = None,
) -> Float[np.ndarray, " head"]:
    """Share of queries whose largest weight lies at an offset, over the queries that have such a
    key.

    ``mean_{q in Q} [argmax_k A[q, k] = q + o]``; of m keys that share the largest weight each
    counts 1/m, so that an even row scores what chance would.

    Source: Voita et al. 2019, section 4: a head is positional where this is at least 0.9 for -1 or
    +1. Ties are ours.

    Args:
        weights: attention, axes head, query, key.
        offset: o, in tokens.
        pairs: True for the pairs of query and key that count; all by default.
        start: place of the first query among the keys.
        peaks: `row_peaks` of these weights, where they are known already.

    Raises:
        RecordError: where the pairs do not fit the weights.

    Example:
        >>> peak_at_offset(np.array([[[0.25, 0.5, 0.25], [0.5, 0.3, 0.2]]]), 1).tolist()
        [0.5]
    """
    rows, columns = _diagonal(weights, offset + start, pairs)
    if not len(rows):
        return np.full(len(weights), np.nan)
    largest, alike = row_peaks(weights) if peaks is None else peaks
    hits = weights[:, rows, columns] == largest[:, rows]
    return (hits / alike[:, rows]).mean(axis=1)


def row_peaks(
    weights: Float[np.ndarray, "head query key"],
) -> tuple[Float[np.ndarray, "head query"], Int[np.ndarray, "head query"]]:
    """The largest weight of each row, and how many keys share it.

    Example:
        >>> [each.tolist() for each in row_peaks(np.array([[[0.2, 0.4, 0.4], [0.5, 0.3, 0.2]]]))]
        [[[0.4, 0.5]], [[2, 1]]]
    """
    largest = weights.max(axis=-1)
    # Exact equality is meant: weights that are computed alike, as in an even row, are equal bits.
    shared = weights == largest[:, :, None]
    # Counted in the smallest numbers that can hold it: casting takes longer than adding.
    fitting = np.min_scalar_type(weights.shape[-1])
    alike = np.add.reduce(shared.view(np.uint8), axis=-1, dtype=fitting)
    return largest, alike.astype(np.int64)


def _diagonal(
    weights: Float[np.ndarray, "head query key"], offset: int, pairs: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The queries that have a key at this offset, and these keys."""
    _, queries, keys = weights.shape
    rows = np.arange(queries)
    rows = rows[(rows + offset >= 0) & (rows + offset < keys)]
    if pairs is not None:
        rows = rows[pairs_of(pairs, weights)[rows, rows + offset]]
    return rows, rows + offset
