"""Whether two rankings agree."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError


def kendall(first: Float[np.ndarray, " token"], second: Float[np.ndarray, " token"]) -> float:
    """Kendall's tau-b: 1 the same order, -1 the opposite, NaN where one of them is all ties.

    ``(C - D) / sqrt((C + D + T_1) (C + D + T_2))`` over all pairs: concordant, discordant, tied in
    one only.

    Source: Jain and Wallace 2019 compare attention and importance so; SciPy's `kendalltau` computes
    it.

    Args:
        first: values.
        second: values of the same tokens.

    Raises:
        RecordError: where there are fewer than two tokens, not equally many, or values that are not
            finite.

    Example:
        >>> round(kendall(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])), 9)
        0.333333333
    """
    from scipy.stats import kendalltau

    _check(first, second)
    return np.nan if _flat(first) or _flat(second) else float(kendalltau(first, second).statistic)


def spearman(first: Float[np.ndarray, " token"], second: Float[np.ndarray, " token"]) -> float:
    """Spearman's rho, the correlation of ranks: ties share the mean of their ranks; NaN where one
    is all ties.

    Source: Abnar and Zuidema 2020 and Hewitt and Manning 2019 compare so; ranks by SciPy's
    `rankdata`. The release of ALTI gives ties dense ranks, which is another number.

    Args:
        first: values.
        second: values of the same tokens.

    Raises:
        RecordError: where there are fewer than two tokens, not equally many, or values that are not
            finite.

    Example:
        >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
        0.5
    """
    from scipy.stats import rankdata

    _check(first, second)
    if _flat(first) or _flat(second):
        return np.nan
    a, b = rankdata(first), rankdata(second)
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def _flat(values: np.ndarray) -> bool:
    return bool((values == values[0]).all())


def _check(first: np.ndarray, second: np.ndarray) -> None:
    if first.shape != second.shape or first.ndim != 1 or len(first) < 2:
        raise RecordError(
            f"Rankings of shapes {first.shape} and {second.shape}; give two lists of equal "
            "length, from 2"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise RecordError(
            "A ranking holds values that are not finite; leave those tokens out of both"
        )
