"""Probabilities as printed: no smaller than the method can tell."""

from __future__ import annotations

import math

LEAST = 0.001
"""t-tests and random flips of signs say nothing of smaller chances that would hold for scores of
any distribution.
"""


def p_text(p: float, least: float = LEAST) -> str:
    """A probability as printed; below the least that the test can give ``"< least"``.

    Args:
        p: the probability; NaN where nothing could be tested.
        least: what the method can tell, such as `least_p` times the number of tests.

    Example:
        >>> p_text(0.0312), p_text(1e-9), p_text(0.0001, least=0.25)
        ('0.031', '< 0.001', '< 0.25')
    """
    if math.isnan(p):
        return "-"
    bound = max(least, LEAST)
    if p < bound:
        return f"< {bound:.2g}"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
