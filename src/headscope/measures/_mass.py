"""How much of a head's attention falls on some tokens."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from headscope.measures._rows import mask_of, mean_over_queries, pairs_of, ratio


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
