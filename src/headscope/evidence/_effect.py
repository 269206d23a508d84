"""How large a difference is, and whether texts could have made it by chance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.evidence.groups import effective_groups, group_variance, parse_groups, summed


def effect_size(
    scores: Float[np.ndarray, "text head"], baseline: Float[np.ndarray, "text head"]
) -> Float[np.ndarray, " head"]:
    """Cohen's d of paired texts: mean difference by the standard deviation of the differences.

    ``d_z = mean_t (s_t - b_t) / std_t (s_t - b_t)`` with n - 1 below; by convention 0.2 is small,
    0.8 large. Infinite where all texts differ alike, 0 where none differs, NaN for fewer than two
    texts.

    Source: Cohen 1988, section 2.3.5.

    Args:
        scores: one for each text and head; NaN for none.
        baseline: the same for what it is compared with.

    Example:
        >>> effect_size(np.array([[0.5], [0.75], [1.0]]), np.array([[0.0], [0.0], [0.0]])).round(
        ...     6
        ... ).tolist()
        [3.0]
    """
    return _effect(*_moments(scores - baseline))


def _effect(mean: np.ndarray, deviation: np.ndarray, count: np.ndarray) -> np.ndarray:
    alike = np.select([mean > 0, mean < 0], [np.inf, -np.inf], 0.0)
    effects = np.divide(mean, deviation, out=alike, where=deviation > 0)
    return np.where(count > 1, effects, np.nan)


def p_above(
    scores: Float[np.ndarray, "text head"],
    least: Float[np.ndarray, "text head"],
    *,
    groups: Iterable[Any] | None = None,
) -> Float[np.ndarray, " head"]:
    """Probability of scores that far above ``least`` if they were not above it: one-sided paired
    t-test over texts.

    Of texts that belong to documents: t is the mean difference by its deviation over documents
    (jackknife), with G' - 1 degrees of freedom as in `interval`. Never below ``2^-G``, the least
    that an exact test of G texts or documents by flipping signs could give (ours): few texts do not
    say more, however alike they are. Far below 1/1000 the value leans on differences that are
    distributed normally, which scores are not: read it as "less than 1 in 1000". 1 where all texts
    differ alike but not upwards; NaN for fewer than two documents.

    Source: Student 1908; SciPy's `ttest_rel` with ``alternative="greater"`` gives the same above
    that floor where no groups are given.

    Args:
        scores: one for each text and head; NaN for none.
        least: what they are compared with, text by text.
        groups: the document of each text, see `interval`.

    Raises:
        RecordError: where there is not a group for each text.

    Example:
        >>> p_above(np.array([[0.5], [0.75], [1.0]]), np.zeros((3, 1))).tolist()
        [0.125]
    """
    differences = scores - least
    sums, sizes = summed(differences, parse_groups(groups, len(differences)))
    mean, deviation, _ = _moments(differences)
    return _p_above(sums, sizes, mean, deviation)


def effect_of_sums(
    sums: Float[np.ndarray, "group head"],
    squares: Float[np.ndarray, " head"],
    sizes: Float[np.ndarray, "group head"],
) -> Float[np.ndarray, " head"]:
    """`effect_size` of texts that are known by sums over documents.

    Args:
        sums: of the differences of each document.
        squares: sum over all texts of their squares.
        sizes: how many texts each document has.

    Example:
        >>> sums, sizes = np.array([[1.25], [1.0]]), np.array([[2.0], [1.0]])
        >>> effect_of_sums(sums, np.array([1.8125]), sizes).round(6).tolist()
        [3.0]
    """
    mean, deviation, count = _moments_of_sums(sums, squares, sizes)
    return _effect(mean, deviation, count)


def p_above_of_sums(
    sums: Float[np.ndarray, "group head"],
    squares: Float[np.ndarray, " head"],
    sizes: Float[np.ndarray, "group head"],
) -> Float[np.ndarray, " head"]:
    """`p_above` of texts that are known by sums over documents; arguments as of `effect_of_sums`.

    Example:
        >>> p_above_of_sums(np.full((3, 1), 0.5), np.array([0.8125]), np.ones((3, 1))).tolist()
        [0.125]
    """
    mean, deviation, _ = _moments_of_sums(sums, squares, sizes)
    return _p_above(sums, sizes, mean, deviation)


def _p_above(
    sums: np.ndarray, sizes: np.ndarray, mean: np.ndarray, deviation: np.ndarray
) -> np.ndarray:
    # stdtr(df, -x) is scipy.stats.t.sf(x, df), whose import alone takes a second.
    from scipy.special import stdtr

    count, effective = (sizes > 0).sum(axis=0), effective_groups(sizes)
    error = np.where(deviation > 0, np.sqrt(group_variance(sums, sizes)), 0.0)
    # Documents may agree to the last bit where texts within them do not.
    varied = error > 1e-12 * np.abs(mean)
    p = np.where(mean > 0, 0.0, 1.0)
    freedom = np.maximum(1.0, effective[varied] - 1)
    p[varied] = stdtr(freedom, -mean[varied] / error[varied])
    return np.where(count > 1, np.maximum(p, 0.5**count), np.nan)


def _moments(values: Float[np.ndarray, "text head"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard deviation (n - 1) and number of the texts that have a value; deviation exactly
    0 for constants.
    """
    there = ~np.isnan(values)
    count = there.sum(axis=0)
    known = np.where(there, values, 0.0)
    mean = known.sum(axis=0) / np.maximum(count, 1)
    squares = (np.where(there, values - mean, 0.0) ** 2).sum(axis=0)
    # The mean of equal values is off by rounding, and so would be their deviation: tiny instead of
    # 0, which would make of it an effect of any size.
    largest = np.where(there, values, -np.inf).max(axis=0, initial=-np.inf)
    smallest = np.where(there, values, np.inf).min(axis=0, initial=np.inf)
    deviation = np.sqrt(squares / np.maximum(count - 1, 1))
    return mean, np.where(largest > smallest, deviation, 0.0), count


def _moments_of_sums(
    sums: np.ndarray, squares: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of sums by document: what is no more than rounding of the squares is no spread."""
    count = sizes.sum(axis=0)
    mean = sums.sum(axis=0) / np.maximum(count, 1)
    apart = squares - count * mean**2
    apart = np.where(apart > 1e-13 * squares, apart, 0.0)
    return mean, np.sqrt(apart / np.maximum(count - 1, 1)), count


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
