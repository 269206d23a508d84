"""How sure a head is of one token."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from headscope.measures._rows import mask_of, mean_over_queries


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
