"""How far a head looks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from headscope.measures._rows import mask_of, ratio


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
