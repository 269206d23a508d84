"""How evenly a head looks at some of the tokens."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from headscope.measures._entropy import row_entropy
from headscope.measures._rows import pairs_of


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
