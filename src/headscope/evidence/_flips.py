"""Whether a difference between paired scores could be chance, by flipping signs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.evidence.groups import added, parse_groups

ALL_OF = 13
"""Up to so many texts every pattern of signs is tried."""
AT_ONCE = 512


def p_flipped(
    differences: Float[np.ndarray, "text head"],
    *,
    groups: Iterable[Any] | None = None,
    flips: int = 9999,
    seed: int = 0,
) -> Float[np.ndarray, " head"]:
    """Probability of a mean that far from 0 if each text's difference were as likely with the other
    sign; two-sided.

    With up to 13 texts all patterns of signs are tried, with more ``flips`` random ones, the same
    for all heads, and the one that was seen counts among them: ``p = (1 + #{|mean'| >= |mean|}) /
    (1 + flips)``, which is never below ``1 / (1 + flips)`` (`least_p`). Of right and wrong answers
    this is McNemar's test. The texts of one document get one sign. NaN for fewer than two texts, or
    documents.

    Source: Fisher 1935, section 21; Phipson and Smyth 2010 for the 1. SciPy's `permutation_test`
    with ``permutation_type="samples"`` gives the same for few texts.

    Args:
        differences: one for each text and head, none missing.
        groups: the document of each text, see `interval`.
        flips: how many random patterns.
        seed: of the patterns.

    Raises:
        RecordError: where a difference is missing, or there is not a group for each text.

    Example:
        >>> p_flipped(np.array([[1.0], [1.0], [1.0]])).tolist()
        [0.25]
    """
    if not np.isfinite(differences).all():
        raise RecordError("A difference is missing or infinite; give one for each text and head")
    numbers = parse_groups(groups, len(differences))
    differences = differences if numbers is None else added(differences, numbers)
    texts, heads = differences.shape
    if texts < 2:
        return np.full(heads, np.nan)
    # Sums of rounded numbers differ by their order: what is as far to within rounding counts as as
    # far.
    scale = np.abs(differences).sum(axis=0)
    least = np.abs(differences.sum(axis=0)) - 1e-12 * scale
    every = texts <= ALL_OF
    count, rng, reached = 2**texts if every else flips, np.random.default_rng(seed), np.zeros(heads)
    for first in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - first)
        if every:
            bits = (np.arange(first, first + size)[:, None] >> np.arange(texts)) & 1
        else:
            bits = rng.integers(0, 2, (size, texts))
        reached += (np.abs((2.0 * bits - 1.0) @ differences) >= least).sum(axis=0)
    return reached / count if every else (1 + reached) / (1 + count)


def least_p(groups: int, *, flips: int = 9999) -> float:
    """The least that `p_flipped` can give of so many texts, or documents.

    Example:
        >>> least_p(3), least_p(100)
        (0.25, 0.0001)
    """
    return 2.0 ** (1 - groups) if groups <= ALL_OF else 1 / (1 + flips)
