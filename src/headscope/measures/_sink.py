"""Attention that rests on one position."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError

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
