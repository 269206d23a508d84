"""A bias on the scores that depends on positions alone: ALiBi, T5's relative positions."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

FEWEST = 4
"""Fewest queries to find one in: with fewer, anything looks like it."""
EXACT = 1e-5
HALF_EXACT = 1e-2
"""How far steps along one diagonal may be apart, in units of the largest score; for scores of half
precision.
"""


def position_bias(
    scores: Float[np.ndarray, "head query key"],
    ours: Float[np.ndarray, "head query key"],
    visible: Bool[np.ndarray, "query key"] | None,
    *,
    half: bool = False,
) -> Float[np.ndarray, "head query key"] | None:
    """What was added to our scores, or None where it is no function of the distance from query to
    key.

    A constant in a row does not change the softmax, so that what must depend on the distance alone
    is the step from one key to the next.

    Args:
        scores: what went into the softmax.
        ours: what follows from queries and keys.
        visible: where the query may look; None for everywhere.
        half: whether the scores were computed in half precision.
    """
    _, queries, keys = scores.shape
    seen = np.ones((queries, keys), bool) if visible is None else visible
    if queries < FEWEST or not np.isfinite(scores[:, seen]).all():
        return None
    bias = np.where(seen, scores.astype(np.float64), 0.0) - np.where(seen, ours, 0.0)
    # A step is known only where the query sees both keys.
    steps, both = np.diff(bias, axis=2), seen[:, 1:] & seen[:, :-1]
    allowed = (HALF_EXACT if half else EXACT) * float(np.abs(scores[:, seen]).max())
    # Along a diagonal the distance from query to key is the same, and so must be the step.
    for offset in range(1 - queries, keys - 1):
        along = np.diagonal(steps, offset, 1, 2)[:, np.diagonal(both, offset)]
        if along.size and float(np.ptp(along, axis=1).max()) > allowed:
            return None
    return bias.astype(np.float32)
