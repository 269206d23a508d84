"""How sure a ratio of sums over texts is."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.evidence._interval import _redrawn


def redrawn_ratios(
    parts: Float[np.ndarray, "text head"],
    wholes: Float[np.ndarray, "text head"],
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Float[np.ndarray, "resample head"]:
    """``sum parts / sum wholes`` over texts drawn anew with replacement, all heads on the same draw.

    The quantiles of a column are the bootstrap interval of its ratio; those of the difference of two columns are the
    paired interval of their difference.

    Args:
        parts: one for each text and head; NaN for none, in parts and wholes alike.
        wholes: the same.
        resamples: how many times texts are drawn.
        seed: of the draw.

    Returns:
        NaN where the wholes of a draw sum to nothing.

    Raises:
        RecordError: where parts and wholes differ in what is missing.

    Example:
        >>> np.unique(redrawn_ratios(np.array([[1.0], [2.0]]), np.array([[2.0], [4.0]]))).tolist()
        [0.5]
    """
    if parts.shape != wholes.shape or (np.isnan(parts) != np.isnan(wholes)).any():
        raise RecordError(f"Parts {parts.shape} and wholes {wholes.shape} must have one shape and miss the same values")
    means = _redrawn(np.concatenate([parts, wholes], axis=1), resamples, np.random.default_rng(seed))
    above, below = np.split(means, 2, axis=1)
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
