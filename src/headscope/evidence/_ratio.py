"""How sure a ratio of sums over texts is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float, Real

from headscope.errors import RecordError
from headscope.evidence._interval import _redrawn, expanded_tails, wilson
from headscope.evidence.groups import added, effective_groups, parse_groups


def redrawn_ratios(
    parts: Real[np.ndarray, "text head"],
    wholes: Real[np.ndarray, "text head"],
    *,
    groups: Iterable[Any] | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Float[np.ndarray, "resample head"]:
    """``sum parts / sum wholes`` over texts, or documents, resampled with replacement, all heads
    on the same draw.

    Quantiles of a column, or of the difference of two, are intervals: see `redrawn_interval`.

    Args:
        parts: one for each text and head; NaN for none, in parts and wholes alike.
        wholes: the same.
        groups: the document of each text, see `interval`.
        resamples: how many times they are drawn.
        seed: of the draw.

    Returns:
        NaN where the wholes of a draw sum to nothing.

    Raises:
        RecordError: where parts and wholes differ in what is missing, or there is not a group for
            each text.

    Example:
        >>> np.unique(redrawn_ratios(np.array([[1.0], [2.0]]), np.array([[2.0], [4.0]]))).tolist()
        [0.5]
    """
    above, below = _grouped(parts, wholes, groups)
    # One call for both, so that parts and wholes are of the same draws; sizes of 1 make it give
    # their means, whose ratio is that of the sums.
    means = _redrawn(
        np.concatenate([above, below], axis=1),
        np.ones((len(above), 2 * above.shape[1])),
        resamples,
        seed,
    )
    above, below = np.split(means, 2, axis=1)
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


def redrawn_interval(
    drawn: Float[np.ndarray, "resample head"],
    sizes: Float[np.ndarray, "group head"],
    *,
    confidence: float = 0.95,
) -> Float[np.ndarray, "head 2"]:
    """Interval of whatever was computed of redrawn documents: quantiles as of `interval` with
    ``"expanded"``.

    Args:
        drawn: its value of each draw; NaN where it had none.
        sizes: of the documents, by what each weighs, such as its number of words; 0 for one that
            says nothing.
        confidence: how often the interval should hold the truth.

    Returns:
        Lower and upper end; NaN for fewer than two documents.

    Example:
        >>> redrawn_interval(np.linspace(0, 1, 101)[:, None], np.ones((100, 1))).round(3).tolist()
        [[0.023, 0.977]]
    """
    groups, effective = (sizes > 0).sum(axis=0), effective_groups(sizes)
    ends = np.full((drawn.shape[1], 2), np.nan)
    for head in range(drawn.shape[1]):
        known = drawn[~np.isnan(drawn[:, head]), head]
        if groups[head] > 1 and len(known):
            tails = expanded_tails(confidence, float(groups[head]), float(effective[head]))
            ends[head] = np.quantile(known, tails)
    return ends


def share_interval(
    hits: Real[np.ndarray, "text head"],
    counts: Real[np.ndarray, "text head"],
    *,
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> Float[np.ndarray, "head 2"]:
    """Interval of the share of questions that were answered right, several questions in each text.

    Args:
        hits: how many were right in each text.
        counts: of how many.
        groups: the document of each text; without them each text is a document.
        confidence: how often the interval should hold the true share.

    Raises:
        RecordError: where there is not a group for each text.

    Example:
        >>> share_interval(np.array([[3.0], [1.0]]), np.array([[4.0], [4.0]])).round(2).tolist()
        [[0.01, 0.99]]
    """
    return wilson(*_grouped(hits, counts, groups), confidence=confidence)


def _grouped(
    parts: np.ndarray, wholes: np.ndarray, groups: Iterable[Any] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the groups; 0 where a text has none."""
    if parts.shape != wholes.shape or (np.isnan(parts) != np.isnan(wholes)).any():
        raise RecordError(
            f"Parts {parts.shape} and wholes {wholes.shape} must have one shape and miss the same "
            "values"
        )
    numbers = parse_groups(groups, len(parts))
    sums = (np.nan_to_num(parts).astype(np.float64), np.nan_to_num(wholes).astype(np.float64))
    return sums if numbers is None else (added(sums[0], numbers), added(sums[1], numbers))
