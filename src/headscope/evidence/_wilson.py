"""How sure a share is."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.evidence.groups import effective_groups, group_variance


def wilson(
    hits: Float[np.ndarray, "group head"],
    counts: Float[np.ndarray, "group head"],
    *,
    confidence: float = 0.95,
    grouped: bool = True,
) -> Float[np.ndarray, "head 2"]:
    """Wilson's interval of the share ``sum hits / sum counts``; see `headscope.evidence.interval`.

    ``(p + z^2/2n -+ z sqrt(p (1 - p) / n + z^2/4n^2)) / (1 + z^2/n)``. Of groups n is ``p (1 - p) /
    v``, v the variance of the share over groups, but not more than there were questions; where all
    groups agree, the number of groups.

    Args:
        hits: how many were right in each group.
        counts: of how many; 0 where a group has none.
        confidence: how often the interval should hold the true share.
        grouped: whether groups are documents with several texts each; else each is one text, and z
            is normal.

    Returns:
        Lower and upper end; NaN for fewer than two groups.

    Example:
        >>> wilson(np.array([[1.0], [0.0]]), np.ones((2, 1)), grouped=False).round(3).tolist()
        [[0.095, 0.905]]
    """
    there = (counts > 0).sum(axis=0)
    whole = counts.sum(axis=0)
    share = np.divide(hits.sum(axis=0), whole, out=np.full(whole.shape, np.nan), where=whole > 0)
    variance = group_variance(hits, counts) if grouped else None
    return wilson_ends(
        share,
        whole,
        confidence=confidence,
        variance=variance,
        groups=(there, effective_groups(counts)),
    )


def wilson_ends(
    share: Float[np.ndarray, "..."],
    whole: Float[np.ndarray, "..."],
    *,
    confidence: float,
    variance: Float[np.ndarray, "..."] | None,
    groups: tuple[np.ndarray, np.ndarray],
) -> Float[np.ndarray, "... 2"]:
    """Wilson's interval of a share; see `wilson`.

    Args:
        share: of the questions that were right.
        whole: how many questions there were.
        confidence: how often the interval should hold the true share.
        variance: of the share over groups; None where each text is its own, and z is normal.
        groups: how many have a question, and how many of one size would say as much.
    """
    from scipy.special import ndtri, stdtrit

    there, effective = groups
    number, tail = whole, (1 + confidence) / 2
    z = np.full(whole.shape, ndtri(tail))
    if variance is not None:
        inner = share * (1 - share)
        number = np.minimum(
            whole, np.divide(inner, variance, out=there.astype(float), where=variance > 0)
        )
        z = stdtrit(np.maximum(1.0, effective - 1), tail)
    # Heads without a question divide by 0 here, and become NaN at the end.
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = share + z**2 / (2 * number)
        reach = z * np.sqrt(share * (1 - share) / number + z**2 / (4 * number**2))
        ends = np.stack([middle - reach, middle + reach], axis=-1) / (1 + z**2 / number)[..., None]
    return np.where((there > 1)[..., None], np.clip(ends, 0.0, 1.0), np.nan)
