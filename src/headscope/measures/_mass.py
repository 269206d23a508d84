"""How much of attention falls on tokens, offsets and sinks, and the rows that are counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError


def mass_on(
    weights: Float[np.ndarray, "head query key"],
    keys: Bool[np.ndarray, " key"],
    *,
    queries: Bool[np.ndarray, " query"] | None = None,
) -> Float[np.ndarray, " head"]:
    """Mean attention to a class of tokens, from 0 to 1.

    ``mean_q sum_{k in C} A[q, k]``.

    Source: Clark et al. 2019, section 3.2. [SEP] to [SEP] is the same with the [SEP] as
    ``queries``.

    Args:
        weights: attention, axes head, query, key.
        keys: True for the tokens of the class; `token_class` makes such masks.
        queries: True for the rows that count; all by default.

    Raises:
        RecordError: where a mask does not fit the weights.

    Example:
        >>> mass_on(np.array([[[0.5, 0.5], [0.75, 0.25]]]), np.array([True, False])).tolist()
        [0.625]
    """
    weights = np.asarray(weights, np.float64)
    chosen = mask_of(keys, weights.shape[2], "keys")
    return mean_over_queries(weights[:, :, chosen].sum(axis=-1), queries)


def mass_on_pairs(
    weights: Float[np.ndarray, "head query key"],
    pairs: Bool[np.ndarray, "query key"],
    *,
    queries: Bool[np.ndarray, " query"] | None = None,
) -> Float[np.ndarray, " head"]:
    """Mean attention of a token to its partners, over the tokens that have one; NaN where none has.

    ``mean_{q in Q} sum_k A[q, k] f(q, k)``, Q the queries with at least one pair.

    Source: ours, for the patterns that Vig 2019 describes in words (same word, same word in the
    other sentence).

    Args:
        weights: attention, axes head, query, key.
        pairs: f, True where key belongs to query; `same_token` and its like make such pairs.
        queries: True for the rows that may count; all by default.

    Raises:
        RecordError: where a mask does not fit the weights.

    Example:
        >>> mass_on_pairs(
        ...     np.array([[[0.5, 0.5], [0.75, 0.25]]]), np.array([[False, False], [True, False]])
        ... ).tolist()
        [0.75]
    """
    weights = np.asarray(weights, np.float64)
    pairs = pairs_of(pairs, weights)
    # A token without a partner says nothing about whether the head looks at partners.
    counted = np.asarray(pairs.any(axis=1))
    if queries is not None:
        counted = np.logical_and(counted, mask_of(queries, len(pairs), "queries"))
    return mean_over_queries((weights * pairs).sum(axis=-1), counted)


def property_share(
    weights: Float[np.ndarray, "head query key"],
    pairs: Bool[np.ndarray, "query key"],
    *,
    among: Bool[np.ndarray, "query key"] | None = None,
) -> Float[np.ndarray, " head"]:
    """Share of a head's attention that falls on pairs with a property; NaN where there is no
    attention at all.

    ``p(f) = sum_qk A[q, k] f(q, k) / sum_qk A[q, k]``, both sums over ``among``.

    Source: Vig and Belinkov 2019, section 4.2. Theirs pools both sums over all texts; for that, add
    up ``(A * f).sum()`` and ``A.sum()`` text by text. They leave the attention to the first token
    out: give it as ``among``.

    Args:
        weights: attention, axes head, query, key.
        pairs: f, True where the property holds.
        among: True for the pairs that count at all; all by default.

    Raises:
        RecordError: where a mask does not fit the weights.

    Example:
        >>> property_share(np.array([[[0.5, 0.5], [0.75, 0.25]]]), np.eye(2, dtype=bool)).tolist()
        [0.375]
    """
    weights = np.asarray(weights, np.float64)
    pairs = pairs_of(pairs, weights)
    # Taken off both sums, so that what is left out weighs neither for nor against the property.
    if among is not None:
        weights = weights * pairs_of(among, weights)
    return ratio((weights * pairs).sum(axis=(1, 2)), weights.sum(axis=(1, 2)))


def strongest_column(
    weights: Float[np.ndarray, "head query key"], keys: Bool[np.ndarray, " key"]
) -> Float[np.ndarray, " head"]:
    """Mean attention to the token of a class that gets most; NaN where the class is empty.

    ``max_{k in C} mean_q A[q, k]``.

    Source: Kovaleva et al. 2019, section 4.3, as their released notebook computes it: a maximum,
    not a sum.

    Args:
        weights: attention, axes head, query, key.
        keys: True for the tokens of the class.

    Raises:
        RecordError: where the mask does not fit the weights.

    Example:
        >>> strongest_column(
        ...     np.array([[[0.5, 0.25, 0.25], [0.75, 0.0, 0.25]]]), np.array([True, True, False])
        ... ).tolist()
        [0.625]
    """
    weights = np.asarray(weights, np.float64)
    keys = mask_of(keys, weights.shape[2], "keys")
    # NumPy has no maximum of nothing, and raises.
    if not keys.any():
        return np.full(len(weights), np.nan)
    return weights[:, :, keys].mean(axis=1).max(axis=1)


def with_missing_mass(
    weights: Float[np.ndarray, "head query key"],
) -> Float[np.ndarray, "head query key_and_none"]:
    """Weights with one more key at the end: the mass that went to no token.

    ``A[q, n] = max(0, 1 - sum_k A[q, k])``. Ours, for rows with a learned sink, whose weights sum
    to less than 1: give the result to `entropy` where "nowhere" is to count as a place.

    Args:
        weights: attention, axes head, query, key.

    Example:
        >>> with_missing_mass(np.array([[[0.25, 0.5]]])).tolist()
        [[[0.25, 0.5, 0.25]]]
    """
    weights = np.asarray(weights, np.float64)
    missing = np.maximum(0.0, 1.0 - weights.sum(axis=-1, keepdims=True))
    return np.concatenate([weights, missing], axis=-1)


def mean_over_queries(
    values: Float[np.ndarray, "head query"], queries: Bool[np.ndarray, " query"] | None
) -> Float[np.ndarray, " head"]:
    """Mean over the queries that count, all of them by default; NaN where none does."""
    chosen = values if queries is None else values[:, mask_of(queries, values.shape[1], "queries")]
    if not chosen.shape[1]:
        return np.full(len(values), np.nan)
    return chosen.mean(axis=1)


def ratio(
    parts: Float[np.ndarray, " head"], wholes: Float[np.ndarray, " head"] | np.float64
) -> Float[np.ndarray, " head"]:
    """``parts / wholes``; NaN where the whole is nothing."""
    wholes = np.broadcast_to(wholes, parts.shape)
    return np.divide(parts, wholes, out=np.full(parts.shape, np.nan), where=wholes > 0)


def mask_of(mask: np.ndarray, size: int, name: str) -> Bool[np.ndarray, " size"]:
    """The mask, if it has one truth value for each.

    Raises:
        RecordError: where it has another length or holds something else.
    """
    return _checked(mask, (size,), name, {"queries": "query", "keys": "key"}[name])


def pairs_of(
    pairs: np.ndarray, weights: Float[np.ndarray, "head query key"]
) -> Bool[np.ndarray, "query key"]:
    """The pairs, if they have one truth value for each query and key of the weights.

    Raises:
        RecordError: where they have another shape or hold something else.
    """
    return _checked(pairs, weights.shape[1:], "pairs", "query key")


def _checked(mask: np.ndarray, shape: tuple[int, ...], name: str, axes: str) -> np.ndarray:
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != shape:
        raise RecordError(
            f"{name} has shape {mask.shape} and type {mask.dtype}; expected truth values "
            f"[{axes}] of shape {shape}"
        )
    return mask


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


GU_THRESHOLD, GU_LENGTH = 0.3, 64


def sink_strength(
    weights: Float[np.ndarray, "head query key"], *, position: int = 0
) -> Float[np.ndarray, " head"]:
    """Mean attention to one position from all queries that come after it, itself included.

    ``alpha_k = 1 / (T - k) sum_{q >= k} A[q, k]``, positions from 0.

    Source: Gu et al. 2025, section 3, who count from 1 and take T = 64 tokens: cut the weights of a
    model that only looks back to the first 64. In models that look both ways earlier queries are
    left out too.

    Args:
        weights: attention, axes head, query, key; as many queries as keys.
        position: k.

    Raises:
        RecordError: where there is no such position.

    Example:
        >>> sink_strength(np.array([[[1.0, 0.0], [0.5, 0.5]]])).tolist()
        [0.75]
    """
    queries, keys = weights.shape[1:]
    if not 0 <= position < min(queries, keys):
        raise RecordError(
            f"There is no query and key at position {position}; there are {queries} and {keys}"
        )
    return np.asarray(weights, np.float64)[:, position:, position].mean(axis=1)


def sink_rate(strengths: Float[np.ndarray, "..."], *, threshold: float = GU_THRESHOLD) -> float:
    """Share of heads whose sink is stronger than a threshold.

    ``Sink_k = mean_{layers, heads} [alpha_k > eps]``.

    Source: Gu et al. 2025, section 3: eps = 0.3 (so by default), and the mean over 100 texts.

    Args:
        strengths: `sink_strength` of all heads, of any axes.
        threshold: eps.

    Raises:
        RecordError: where there is no head.

    Example:
        >>> sink_rate(np.array([[0.9, 0.1], [0.3, 0.31]]))
        0.5
    """
    strengths = np.asarray(strengths)
    if not strengths.size:
        raise RecordError("sink_rate was given no head; give the sink_strength of every head")
    return float((strengths > threshold).mean())
