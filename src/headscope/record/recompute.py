"""Scores and weights from queries and keys, in float64."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float


def scores_of(
    queries: Float[np.ndarray, "head query feature"],
    keys: Float[np.ndarray, "head key feature"],
    *,
    scale: float,
    soft_cap: float | None = None,
    bias: Float[np.ndarray, "_ query key"] | None = None,
    visible: Bool[np.ndarray, "query key"] | None = None,
) -> Float[np.ndarray, "head query key"]:
    """What goes into the softmax: ``soft_cap * tanh(q . k * scale / soft_cap) + bias``, -inf where
    not visible.
    """
    scores = queries.astype(np.float64) @ keys.astype(np.float64).swapaxes(-1, -2) * scale
    if soft_cap is not None:
        scores = soft_cap * np.tanh(scores / soft_cap)
    if bias is not None:
        scores = scores + bias
    return scores if visible is None else np.where(visible, scores, -np.inf)


def softmax_of(
    scores: Float[np.ndarray, "head query key"], sinks: Float[np.ndarray, " head"] | None = None
) -> Float[np.ndarray, "head query key"]:
    """Softmax over the keys and the sink of each head; a row of nothing but -inf becomes zero."""
    # The largest score is taken off first, so that exp cannot overflow. In a row of nothing but
    # -inf that would be -inf - -inf, which is NaN; 0 is taken off there.
    top = scores.max(axis=-1, keepdims=True)
    if sinks is not None:
        top = np.maximum(top, sinks[:, None, None])
    raised = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = raised.sum(axis=-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(sinks[:, None, None] - top)
    return raised / np.where(total > 0, total, 1.0)
