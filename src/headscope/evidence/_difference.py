"""How sure the difference of two means is, each of which has an interval of its own."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def difference_interval(
    first: Float[np.ndarray, " score"],
    first_ends: Float[np.ndarray, "score 2"],
    second: Float[np.ndarray, " score"],
    second_ends: Float[np.ndarray, "score 2"],
) -> Float[np.ndarray, "score 2"]:
    """Interval of ``second - first`` from the intervals of both.

    ``d - sqrt((second - low2)^2 + (high1 - first)^2)`` and ``d + sqrt((high2 - second)^2 + (first -
    low1)^2)``, d their difference. Both are taken as independent; of means over the same texts,
    which vary together as a rule, it is then wider than it had to be.

    Source: Zou and Donner 2008 (the method of variance estimates recovery); of two shares with
    Wilson's intervals it is method 10 of Newcombe 1998.

    Args:
        first: means of one side.
        first_ends: lower and upper end of their intervals.
        second: means of the other side.
        second_ends: theirs, of the same confidence.

    Returns:
        Lower and upper end; NaN where an end is not known.

    Example:
        >>> first, second = np.array([48 / 80]), np.array([56 / 70])
        >>> wilson = np.array([[0.4905, 0.7004]]), np.array([[0.6918, 0.8770]])
        >>> difference_interval(first, wilson[0], second, wilson[1]).round(3).tolist()
        [[0.052, 0.334]]
    """
    difference = second - first
    below = np.hypot(second - second_ends[:, 0], first_ends[:, 1] - first)
    above = np.hypot(second_ends[:, 1] - second, first - first_ends[:, 0])
    return np.stack([difference - below, difference + above], axis=1)
