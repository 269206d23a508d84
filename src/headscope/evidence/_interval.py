"""How sure a mean over texts is."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError

AT_ONCE = 256


def interval(
    values: Float[np.ndarray, "text head"],
    *,
    method: Literal["percentile", "bca"] = "percentile",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Float[np.ndarray, "head 2"]:
    """Bootstrap interval of the mean over texts: texts are drawn anew with replacement, all heads on the same draw.

    ``percentile`` takes the quantiles of the redrawn means; ``bca`` (Efron 1987) shifts them for bias and skew, with
    the jackknife's acceleration, and suits skewed values from about 20 texts on. Both are too short for few texts.
    SciPy's `bootstrap` gives the same up to the draw, but draws for each head anew and knows no missing values. With
    the same texts and seed the ends are the same, up to how a machine rounds a matrix product.

    Args:
        values: one for each text and head; NaN for none.
        method: which quantiles.
        confidence: how often the interval should hold the mean over all texts that could have been.
        resamples: how many times texts are drawn.
        seed: of the draw.

    Returns:
        Lower and upper end; NaN for a head with fewer than two texts, of which nothing can be said.

    Raises:
        RecordError: where method or confidence are not what they may be.

    Example:
        >>> interval(np.array([[0.25], [0.25], [0.25]])).tolist()
        [[0.25, 0.25]]
    """
    if method not in ("percentile", "bca") or not 0 < confidence < 1:
        raise RecordError(
            f"method {method!r} and confidence {confidence}: wanted are 'percentile' or 'bca', and a number within 0..1"
        )
    means = _redrawn(values, resamples, np.random.default_rng(seed))
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    found = np.full((values.shape[1], 2), np.nan)
    for head, column in enumerate(values.T):
        seen, drawn = column[~np.isnan(column)], means[:, head]
        drawn = drawn[~np.isnan(drawn)]
        if len(seen) < 2:
            continue
        if (seen == seen[0]).all():
            found[head] = seen[0]
            continue
        found[head] = np.quantile(drawn, tails if method == "percentile" else _corrected(tails, seen, drawn))
    return found


def _redrawn(
    values: Float[np.ndarray, "text head"], resamples: int, rng: np.random.Generator
) -> Float[np.ndarray, "resample head"]:
    """Means of texts drawn with replacement, some draws at once to bound memory."""
    texts = len(values)
    there = (~np.isnan(values)).astype(np.float64)
    known = np.nan_to_num(values)
    means = np.full((resamples, values.shape[1]), np.nan)
    for first in range(0, resamples if texts else 0, AT_ONCE):
        part = slice(first, min(first + AT_ONCE, resamples))
        times = rng.multinomial(texts, np.full(texts, 1 / texts), size=part.stop - part.start).astype(np.float64)
        counts = times @ there
        np.divide(times @ known, counts, out=means[part], where=counts > 0)
    return means


def _corrected(
    tails: Float[np.ndarray, " tail"], seen: Float[np.ndarray, " text"], drawn: Float[np.ndarray, " resample"]
) -> Float[np.ndarray, " tail"]:
    """The quantiles that BCa takes instead of the tails."""
    from scipy.special import ndtr, ndtri

    mean, least = seen.mean(), 0.5 / len(drawn)
    below = ((drawn < mean).mean() + (drawn <= mean).mean()) / 2
    bias = ndtri(np.clip(below, least, 1 - least))
    apart = seen - mean
    # of a mean the jackknife's values are the texts' own distances from it, up to a factor that cancels
    acceleration = (apart**3).sum() / (6 * (apart**2).sum() ** 1.5)
    shifted = bias + ndtri(tails)
    return ndtr(bias + shifted / (1 - acceleration * shifted))
