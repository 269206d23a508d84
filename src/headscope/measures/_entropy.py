"""How broadly a head looks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from headscope.measures._rows import mean_over_queries

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
