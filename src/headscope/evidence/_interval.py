"""How sure a mean over texts is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Real

from headscope.errors import RecordError
from headscope.evidence.groups import (
    added,
    check_confidence,
    effective_groups,
    group_variance,
    parse_groups,
    summed,
)

AT_ONCE = 256
MOST_KEPT = 64
"""Groups of which the draws are kept: 1 MB for 2000 resamples."""
Method = Literal["auto", "expanded", "wilson"]
METHODS: tuple[str, ...] = get_args(Method)


def interval(
    values: Float[np.ndarray, "text head"],
    *,
    groups: Iterable[Any] | None = None,
    method: Method = "auto",
    shares: bool = True,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Float[np.ndarray, "head 2"]:
    """Interval of the mean over texts, or, where texts belong to documents, over documents.

    - ``expanded``: documents are resampled with replacement, all heads on the same draw; of the
      redrawn means the quantiles ``Phi(sqrt(G / (G - 1)) t)`` are taken, t those of Student's
      distribution with G' - 1 degrees of freedom (Hesterberg 2015, section 5.3: plain percentiles
      are too short for few documents). G' is the number of documents of one size that say as much,
      ``(sum n)^2 / sum n^2`` (ours; G where all have one size).
    - ``wilson``: for scores of 0 and 1 (Wilson 1927), the number of texts divided by the design
      effect where these belong to documents, with Student's quantiles (Korn and Graubard 1998).
      Where all documents agree nothing shows how alike texts are within one; each document then
      counts as one text.
    - ``auto``: ``wilson`` for heads whose known scores are all 0 or 1, else ``expanded``.
      Differences of scores are no shares, whatever their values: give ``expanded`` for these.

    Without groups each text is its own. Docs page "Intervals" has measured coverage. With the same
    texts and seed the ends are the same, up to how a machine rounds a matrix product.

    Args:
        values: one for each text and head; NaN for none.
        groups: the document of each text, by name or number; None for a text that belongs to no
            other.
        method: how.
        shares: whether scores that are all 0 are answers, none of which is right, and get Wilson's
            interval; False where 0 may be all that a score can be, such as a weight that is masked.
        confidence: how often the interval should hold the mean over all texts that could have been.
        resamples: how many times documents are drawn.
        seed: of the draw.

    Returns:
        Lower and upper end; NaN for a head with fewer than two documents, whose mean has no
        interval.

    Raises:
        RecordError: where method or confidence are not what they may be, or there is not a group
            for each text.

    Example:
        >>> interval(np.array([[0.25], [0.25], [0.25]])).tolist()
        [[0.25, 0.25]]
        >>> interval(np.ones((20, 1))).round(2).tolist()
        [[0.84, 1.0]]
    """
    check_confidence(confidence)
    if method not in METHODS:
        raise RecordError(f"method is {method!r}; give one of {', '.join(METHODS)}")
    numbers = parse_groups(groups, len(values))
    sums, sizes = summed(values, numbers)
    ones = np.full(values.shape[1], method == "wilson")
    if method == "auto":
        are_shares = (np.isnan(values) | (values == 0) | (values == 1)).all(axis=0)
        ones = are_shares & (shares | (values == 1).any(axis=0))
    ends = np.full((values.shape[1], 2), np.nan)
    if ones.any():
        ends[ones] = wilson(
            sums[:, ones], sizes[:, ones], confidence=confidence, grouped=numbers is not None
        )
    if not ones.all():
        how: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed}
        ends[~ones] = interval_of_sums(sums[:, ~ones], sizes[:, ~ones], **how)
    return np.where((sizes > 0).sum(axis=0)[:, None] > 1, ends, np.nan)


def interval_of_sums(
    sums: Real[np.ndarray, "group ..."],
    sizes: Real[np.ndarray, "group ..."],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Float[np.ndarray, "... 2"]:
    """`interval` of the mean over texts that are known by their sums over documents, ``expanded``.

    Args:
        sums: of the known values of each document.
        sizes: how many these are.
        confidence: as of `interval`.
        resamples: as of `interval`.
        seed: as of `interval`.

    Example:
        >>> interval_of_sums(np.array([[0.5], [0.25]]), np.array([[2.0], [1.0]])).tolist()
        [[0.25, 0.25]]
    """
    drawn = _redrawn(_flat(sums), _flat(sizes), resamples, seed)
    return redrawn_interval(drawn.reshape(-1, *sums.shape[1:]), sizes, confidence=confidence)


def _flat(values: Real[np.ndarray, "group ..."]) -> Float[np.ndarray, "group column"]:
    return values.reshape(len(values), math.prod(values.shape[1:])).astype(np.float64)


def expanded_tails(confidence: float, groups: float, effective: float) -> Float[np.ndarray, " 2"]:
    """The quantiles of redrawn means that hold for few groups; see `interval`.

    Args:
        confidence: how often the interval should hold the truth.
        groups: number of groups.
        effective: `effective_groups` of their sizes.

    Example:
        >>> expanded_tails(0.95, 20.0, 20.0).round(4).tolist()
        [0.0159, 0.9841]
    """
    from scipy.special import ndtr, stdtrit

    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    # Below two effective groups Student's distribution has no meaning; one degree of freedom is its
    # widest.
    return ndtr(np.sqrt(groups / (groups - 1)) * stdtrit(max(1.0, effective - 1), tails))


def _redrawn(
    sums: Float[np.ndarray, "group head"],
    sizes: Float[np.ndarray, "group head"],
    resamples: int,
    seed: int,
) -> Float[np.ndarray, "resample head"]:
    """``sum sums / sum sizes`` of groups drawn with replacement, some draws at once to bound
    memory.
    """
    groups = len(sums)
    means = np.full((resamples, sums.shape[1]), np.nan)
    if not groups:
        return means
    # Pages and tables ask for the intervals of many heads over the same few texts one by one.
    draws = _kept_draws if groups <= MOST_KEPT else _draws
    first = 0
    for times in draws(groups, resamples, seed):
        part = slice(first, first + len(times))
        first = part.stop
        counts = times @ sizes
        np.divide(times @ sums, counts, out=means[part], where=counts > 0)
    return means


def _draws(groups: int, resamples: int, seed: int) -> Iterator[Float[np.ndarray, "some group"]]:
    """How often each group is drawn, some resamples at once.

    That stands for the draw itself: its sums are then a product of matrices.
    """
    rng = np.random.default_rng(seed)
    for first in range(0, resamples, AT_ONCE):
        count = min(AT_ONCE, resamples - first)
        times = rng.multinomial(groups, np.full(groups, 1 / groups), size=count)
        yield times.astype(np.float64)


@lru_cache(maxsize=8)
def _kept_draws(groups: int, resamples: int, seed: int) -> tuple[np.ndarray, ...]:
    return tuple(_draws(groups, resamples, seed))


def redrawn_interval(
    drawn: Float[np.ndarray, "resample ..."],
    sizes: Real[np.ndarray, "group ..."],
    *,
    confidence: float = 0.95,
) -> Float[np.ndarray, "... 2"]:
    """Interval of whatever was computed of redrawn documents: quantiles as of `interval` with
    ``"expanded"``.

    Args:
        drawn: its value of each draw; NaN where it had none.
        sizes: of the documents, by what each weighs, such as its number of words; 0 for one that
            is no evidence.
        confidence: how often the interval should hold the truth.

    Returns:
        Lower and upper end; NaN for fewer than two documents.

    Example:
        >>> redrawn_interval(np.linspace(0, 1, 101)[:, None], np.ones((100, 1))).round(3).tolist()
        [[0.023, 0.977]]
    """
    shape, drawn, sizes = drawn.shape[1:], _flat(drawn), _flat(sizes)
    there, effective = (sizes > 0).sum(axis=0), effective_groups(sizes)
    ends = np.full((drawn.shape[1], 2), np.nan)
    # All heads have the same texts, as they mostly have: they share their quantiles.
    if drawn.size and (sizes == sizes[:, :1]).all() and not np.isnan(drawn).any():
        if there[0] > 1:
            tails = expanded_tails(confidence, float(there[0]), float(effective[0]))
            ends = np.quantile(drawn, tails, axis=0).T
        return ends.reshape(*shape, 2)
    for head in np.flatnonzero(there > 1):
        known = drawn[~np.isnan(drawn[:, head]), head]
        if len(known):
            tails = expanded_tails(confidence, float(there[head]), float(effective[head]))
            ends[head] = np.quantile(known, tails)
    return ends.reshape(*shape, 2)


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


def effect_size(
    sums: Float[np.ndarray, "group head"],
    squares: Float[np.ndarray, " head"],
    sizes: Float[np.ndarray, "group head"],
) -> Float[np.ndarray, " head"]:
    """Cohen's d of paired texts: mean difference by the standard deviation of the differences.

    ``d_z = mean_t (s_t - b_t) / std_t (s_t - b_t)`` with n - 1 below; by convention 0.2 is small,
    0.8 large. Infinite where all texts differ alike, 0 where none differs, NaN for fewer than two
    texts.

    Source: Cohen 1988, section 2.3.5.

    Args:
        sums: of the differences of each document, or text.
        squares: sum over all texts of their squares.
        sizes: how many texts each document has.

    Example:
        >>> sums, sizes = np.array([[1.25], [1.0]]), np.array([[2.0], [1.0]])
        >>> effect_size(sums, np.array([1.8125]), sizes).round(6).tolist()
        [3.0]
    """
    count = sizes.sum(axis=0)
    mean = sums.sum(axis=0) / np.maximum(count, 1)
    apart = squares - count * mean**2
    # What is no more than rounding of the squares is no spread.
    apart = np.where(apart > 1e-13 * squares, apart, 0.0)
    deviation = np.sqrt(apart / np.maximum(count - 1, 1))
    alike = np.select([mean > 0, mean < 0], [np.inf, -np.inf], 0.0)
    effects = np.divide(mean, deviation, out=alike, where=deviation > 0)
    return np.where(count > 1, effects, np.nan)


def redrawn_ratios(
    parts: Real[np.ndarray, "text ..."],
    wholes: Real[np.ndarray, "text ..."],
    *,
    groups: Iterable[Any] | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Float[np.ndarray, "resample ..."]:
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
    above, below = _grouped(_flat(parts), _flat(wholes), groups)
    # One call for both, so that parts and wholes are of the same draws; sizes of 1 make it give
    # their means, whose ratio is that of the sums.
    both = np.concatenate([above, below], axis=1)
    above, below = np.split(_redrawn(both, np.ones(both.shape), resamples, seed), 2, axis=1)
    ratios = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return ratios.reshape(-1, *parts.shape[1:])


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
) -> tuple[np.ndarray, ...]:
    """Sums of the groups; 0 where a text has none."""
    if parts.shape != wholes.shape or (np.isnan(parts) != np.isnan(wholes)).any():
        raise RecordError(
            f"Parts {parts.shape} and wholes {wholes.shape} must have one shape and miss the same "
            "values"
        )
    numbers = parse_groups(groups, len(parts))
    sums = tuple(np.nan_to_num(each).astype(np.float64) for each in (parts, wholes))
    return sums if numbers is None else tuple(added(each, numbers) for each in sums)
