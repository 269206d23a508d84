"""How the weights of a row are spread: how sharp, how far, how much the same in all rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.measures._mass import mask_of, mean_over_queries, pairs_of, ratio


def confidence(
    weights: Float[np.ndarray, "head query key"],
    *,
    keys: Bool[np.ndarray, " key"] | None = None,
    queries: Bool[np.ndarray, " query"] | None = None,
) -> Float[np.ndarray, " head"]:
    """Mean of the largest weight of each row, from 1/n to 1.

    ``mean_q max_k A[q, k]``.

    Source: Voita et al. 2019, section 4, "excluding the end of sentence symbol": they do not say
    whether as a token that looks or that is looked at; leave it out of ``queries``, of ``keys``, or
    of both.

    Args:
        weights: attention, axes head, query, key.
        keys: True for the keys that may be the largest; all by default.
        queries: True for the rows that count; all by default.

    Raises:
        RecordError: where a mask does not fit the weights.

    Example:
        >>> confidence(np.array([[[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]])).tolist()
        [0.75]
    """
    weights = np.asarray(weights, np.float64)
    if keys is not None:
        weights = weights * mask_of(keys, weights.shape[2], "keys")
    return mean_over_queries(weights.max(axis=-1), queries)


CLARK_SMOOTHING = 1e-4
"""What Clark et al. mix in of the uniform row before they take the entropy."""


def entropy(
    weights: Float[np.ndarray, "head query key"],
    *,
    smoothing: float = 0.0,
    queries: Bool[np.ndarray, " query"] | None = None,
) -> Float[np.ndarray, " head"]:
    """Mean entropy of a head's rows, in nats: 0 looks at one token, ``ln n`` at all n alike.

    ``H = mean_q -sum_k A'[q, k] ln A'[q, k]`` with ``A' = (1 - s) A + s / n`` and ``0 ln 0 = 0``.

    Source: Clark et al. 2019, section 3.3, whose code smooths with s = 0.0001 (`CLARK_SMOOTHING`);
    ours does not by default. A row that sums to less than 1 is taken as it is; see
    `with_missing_mass`.

    Args:
        weights: attention, axes head, query, key.
        smoothing: s, from 0 to 1.
        queries: True for the rows that count; all by default.

    Example:
        >>> entropy(np.array([[[0.5, 0.5], [1.0, 0.0]]])).round(4).tolist()
        [0.3466]
    """
    return mean_over_queries(row_entropy(weights, smoothing=smoothing), queries)


def row_entropy(
    weights: Float[np.ndarray, "head query key"], *, smoothing: float = 0.0
) -> Float[np.ndarray, "head query"]:
    """Entropy of every row, in nats; see `entropy`.

    Example:
        >>> row_entropy(np.array([[[0.5, 0.5], [1.0, 0.0]]])).round(4).tolist()
        [[0.6931, 0.0]]
    """
    weights = np.asarray(weights, np.float64)
    if smoothing:
        weights = (1 - smoothing) * weights + smoothing / weights.shape[-1]
    tiny = np.finfo(np.float64).tiny
    # 0 times any logarithm is 0; one of some places only takes twice as long.
    has_zeros = weights.size and weights.min() < tiny
    logs = np.log(np.maximum(weights, tiny) if has_zeros else weights)
    # Weights a little above 1 by rounding would give an entropy below 0; "0.0 -" avoids -0.0.
    return np.maximum(0.0, 0.0 - np.einsum("hqk,hqk->hq", weights, logs))


def evenness(
    weights: Float[np.ndarray, "head query key"], pairs: Bool[np.ndarray, "query key"]
) -> Float[np.ndarray, " head"]:
    """How evenly attention spreads over the pairs of each query: 0 all on one, 1 all alike.

    ``mean_{q in Q} H(B[q]) / ln n_q``, where B is A on the n_q pairs of q, its rows made to sum to
    1, H the entropy, and Q the queries with two pairs or more that look at any; NaN where there are
    none.

    Source: ours, for Vig's bag of words ("evenly over the words of the same sentence"): pairs are
    `same_segment`. How much of the attention lies on the pairs at all is `mass_on_pairs`.

    Args:
        weights: attention, axes head, query, key.
        pairs: True where key belongs to query.

    Raises:
        RecordError: where the pairs do not fit the weights.

    Example:
        >>> evenness(np.array([[[0.25, 0.25, 0.5]]]), np.array([[True, True, False]])).tolist()
        [1.0]
    """
    weights = np.asarray(weights, np.float64) * pairs_of(pairs, weights)
    sums, counts = weights.sum(axis=-1), pairs.sum(axis=1)
    counted = (counts > 1) & (sums > 0)
    inside = weights / np.where(counted, sums, 1.0)[:, :, None]
    # ln 1 is 0, and on a single pair an even row looks like any other: such rows are not
    # counted, and are divided by ln 2 to keep them finite.
    shares = row_entropy(inside) / np.log(np.maximum(counts, 2))
    rows = counted.sum(axis=1)
    return np.where(rows > 0, (shares * counted).sum(axis=1) / np.maximum(rows, 1), np.nan)


def mean_distance(
    weights: Float[np.ndarray, "head query key"],
    *,
    signed: bool = True,
    keys: Bool[np.ndarray, " key"] | None = None,
    start: int = 0,
) -> Float[np.ndarray, " head"]:
    """Mean distance from query to key, in tokens, weighted by attention; positive looks back.

    ``D = sum_qk A[q, k] (q - k) / sum_qk A[q, k]``; NaN where the head looks at none of the keys.

    Source: Vig and Belinkov 2019, section 4.4, for GPT-2, which only looks back; they leave the
    first token out of both sums (``keys``). For models that look both ways take ``signed=False``,
    which averages ``|q - k|`` (ours).

    Args:
        weights: attention, axes head, query, key.
        signed: whether looking ahead counts as negative.
        keys: True for the keys that count; all by default.
        start: place of the first query among the keys.

    Raises:
        RecordError: where the mask does not fit the weights.

    Example:
        >>> mean_distance(np.array([[[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]])).tolist()
        [0.0]
        >>> mean_distance(np.array([[[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]]), signed=False).tolist()
        [0.5]
    """
    weights = np.asarray(weights, np.float64)
    _, rows, columns = weights.shape
    if keys is not None:
        weights = weights * mask_of(keys, columns, "keys")
    distance = np.arange(start, start + rows)[:, None] - np.arange(columns)
    distance = (distance if signed else np.abs(distance)).astype(np.float64)
    # In one pass: an array of products takes five times as long.
    far = np.einsum("hqk,qk->h", weights, distance)
    return ratio(far, weights.sum(axis=(1, 2)))


def variability(maps: Float[np.ndarray, "text head query key"]) -> Float[np.ndarray, " head"]:
    """How much a head's map changes from text to text: near 0 positions decide, near 1 the content
    does.

    ``sum_x sum_qk |A_x[q, k] - mean_x A[q, k]| / (2 sum_x sum_qk A_x[q, k])``.

    Source: Vig and Belinkov 2019, section 4.3, on the first tokens of each text (`first_tokens`).
    They leave the attention to the first token out: cut that column off before. With x texts the
    value is at most ``1 - 1/x``.

    Args:
        maps: attention of several texts, axes text, head, query, key.

    Raises:
        RecordError: where there are fewer than two texts.

    Example:
        >>> variability(np.array([[[[1.0, 0.0]]], [[[0.0, 1.0]]]])).tolist()
        [0.5]
    """
    if len(maps) < 2:
        raise RecordError(
            f"Variability compares texts, and {len(maps)} was given; give two or more"
        )
    maps = np.asarray(maps, np.float64)
    # Half the sum of absolute differences of two distributions is at most 1, hence the 2 below.
    changes = np.abs(maps - maps.mean(axis=0)).sum(axis=(0, 2, 3))
    whole = maps.sum(axis=(0, 2, 3))
    return np.divide(changes, 2 * whole, out=np.full(len(whole), np.nan), where=whole > 0)


def first_tokens(
    maps: Iterable[Float[np.ndarray, "head _ _"]], count: int
) -> Float[np.ndarray, "text head query key"]:
    """The first tokens of each text's map, of the texts that have as many, in one array.

    What is cut off takes its mass with it: rows then sum to less than 1, but for models that only
    look back.

    Args:
        maps: attention of several texts, axes head, query, key.
        count: how many tokens.

    Raises:
        RecordError: where no text is as long.

    Example:
        >>> first_tokens([np.ones((1, 3, 3)), np.ones((1, 1, 1))], 2).shape
        (1, 1, 2, 2)
    """
    long = [
        np.asarray(each, np.float64)[:, :count, :count]
        for each in maps
        if min(each.shape[1:]) >= count
    ]
    if not long:
        raise RecordError(f"No text has {count} tokens; take fewer")
    return np.stack(long)


def effective_attention(
    weights: Float[np.ndarray, "head query key"], vectors: Float[np.ndarray, "head key feature"]
) -> Float[np.ndarray, "head query key"]:
    """Attention without the part that changes nothing in the head's output.

    ``A_perp = A - A N N^T``, N an orthonormal basis of ``{u : u^T T = 0}``; ``A_perp T = A T``. Its
    rows need not sum to 1 and may be negative.

    Source: Brunner et al. 2020, section 3.2. Where there are more tokens than T has independent
    rows, the weights are not identifiable, and A_perp is the shortest of those that give the same
    output. Rank as `null_dimension`.

    Args:
        weights: A, axes head, query, key.
        vectors: T, what each token adds where it is looked at: values times the head's part of the
            output projection.

    Raises:
        RecordError: where weights and vectors do not fit.

    Example:
        >>> effective_attention(np.array([[[0.75, 0.25]]]), np.array([[[1.0], [1.0]]])).round(
        ...     9
        ... ).tolist()
        [[[0.5, 0.5]]]
    """
    weights, vectors = np.asarray(weights, np.float64), np.asarray(vectors, np.float64)
    if len(weights) != len(vectors) or weights.shape[2] != vectors.shape[1]:
        raise RecordError(
            f"Weights [head query key] of shape {weights.shape} and vectors [head key feature] of "
            f"shape {vectors.shape} differ in heads or keys; repeat shared values for each head "
            "that uses them"
        )
    effective = np.empty_like(weights)
    for head, (rows, vector) in enumerate(zip(weights, vectors, strict=True)):
        # A - A N N^T is A projected on what is orthogonal to N, the range of T, which is the
        # smaller of the two where there are more tokens than features.
        basis = _range_of(vector)
        effective[head] = rows @ basis @ basis.T
    return effective


def null_dimension(vectors: Float[np.ndarray, "head key feature"]) -> list[int]:
    """How many independent changes of a head's row leave its output as it is: number of keys minus
    rank of T.

    The rank counts singular values above ``largest * max(key, feature) * eps`` of float64 (as
    NumPy's `matrix_rank`); float32 vectors are seldom of lower rank by that, whatever they hold.

    Source: Brunner et al. 2020, section 3.1.

    Args:
        vectors: T, axes head, key, feature.

    Example:
        >>> null_dimension(np.array([[[1.0], [1.0]], [[0.0], [0.0]]]))
        [1, 2]
    """
    return [
        vector.shape[0] - _range_of(np.asarray(vector, np.float64)).shape[1] for vector in vectors
    ]


def _range_of(vectors: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the columns, which is what is orthogonal to the null space."""
    left, sizes, _ = np.linalg.svd(vectors, full_matrices=False)
    least = sizes.max(initial=0.0) * max(vectors.shape) * np.finfo(np.float64).eps
    return left[:, sizes > least]
