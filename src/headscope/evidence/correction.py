"""Corrections for trying many heads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError


def holm(p: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """P values corrected after Holm 1979: below alpha with at most alpha chance of a single false
    one among all.

    ``p'_(i) = max_{j <= i} min(1, (m - j + 1) p_(j))`` for the sorted p. NaN stays NaN and is not
    counted in m. SciPy has no Holm (1.17), hence our own.

    Args:
        p: of all tests that were made, of any axes.

    Raises:
        RecordError: where a value is not a probability.

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).round(9).tolist()
        [0.03, 0.06, 0.06]
    """
    return _adjusted(p, _holm)


def benjamini_hochberg(p: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """P values corrected after Benjamini and Hochberg 1995: among those below alpha at most a share
    alpha is false.

    That share is a mean over repetitions, for independent or positively dependent tests. SciPy's
    `false_discovery_control`; arguments, NaN and errors as of `holm`.

    Example:
        >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(9).tolist()
        [0.03, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control

    return _adjusted(p, false_discovery_control)


CORRECTIONS = {"holm": holm, "benjamini-hochberg": benjamini_hochberg}
"""By the names that studies take."""


def _holm(known: np.ndarray) -> np.ndarray:
    order = np.argsort(known, kind="stable")
    steps = np.minimum(1.0, known[order] * np.arange(len(known), 0, -1))
    adjusted = np.empty_like(known)
    # A larger p never comes out smaller: a test is rejected only after all that are surer than it.
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def _adjusted(p: np.ndarray, adjust: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    adjusted = np.array(p, np.float64)
    known = ~np.isnan(adjusted)
    if (adjusted[known] < 0).any() or (adjusted[known] > 1).any():
        raise RecordError(
            f"A p value lies between 0 and 1; given were {adjusted[known].min()} to "
            f"{adjusted[known].max()}"
        )
    if known.any():
        adjusted[known] = adjust(adjusted[known])
    return adjusted
