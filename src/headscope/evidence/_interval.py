"""How sure a mean over texts is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.evidence.groups import effective_groups, group_variance, parse_groups, summed

AT_ONCE = 256
MOST_KEPT = 64
"""Groups of which the draws are kept: 1 MB for 2000 resamples."""
Method = Literal["auto", "expanded", "wilson", "percentile", "bca"]
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
    - ``percentile``, ``bca`` (Efron 1987): the quantiles of the redrawn means as they are, and
      shifted for bias and skew. Both are too short for few texts.

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
    if method not in METHODS or not 0 < confidence < 1:
        raise RecordError(
            f"method {method!r} and confidence {confidence}: expected one of "
            f"{', '.join(METHODS)}, and a number within 0..1"
        )
    numbers = parse_groups(groups, len(values))
    sums, sizes = summed(values, numbers)
    ones = np.full(values.shape[1], method == "wilson")
    if method == "auto":
        ones = _shares(values) & (shares | (values == 1).any(axis=0))
    ends = np.full((values.shape[1], 2), np.nan)
    if ones.any():
        ends[ones] = wilson(
            sums[:, ones], sizes[:, ones], confidence=confidence, grouped=numbers is not None
        )
    if not ones.all():
        how = "expanded" if method == "auto" else method
        ends[~ones] = interval_of_sums(
            sums[:, ~ones],
            sizes[:, ~ones],
            method=how,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
        )
    return np.where((sizes > 0).sum(axis=0)[:, None] > 1, ends, np.nan)


def interval_of_sums(
    sums: Float[np.ndarray, "group head"],
    sizes: Float[np.ndarray, "group head"],
    *,
    method: Method = "expanded",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Float[np.ndarray, "head 2"]:
    """`interval` of the mean over texts that are known by their sums over documents.

    Args:
        sums: of the known values of each document.
        sizes: how many these are.
        method: any but ``auto`` and ``wilson``.
        confidence: as of `interval`.
        resamples: as of `interval`.
        seed: as of `interval`.

    Example:
        >>> interval_of_sums(np.array([[0.5], [0.25]]), np.array([[2.0], [1.0]])).tolist()
        [[0.25, 0.25]]
    """
    drawn = _redrawn(sums, sizes, resamples, seed)
    ends = _quantiles(drawn, (sums, sizes), method, confidence)
    # Where all documents have one mean, the ends are that and not what rounding makes of it.
    means = np.divide(sums, sizes, out=np.full(sums.shape, np.nan), where=sizes > 0)
    alike, first = _alike(means), _first(means)
    ends = np.where(alike[:, None], first[:, None], ends)
    return np.where((sizes > 0).sum(axis=0)[:, None] > 1, ends, np.nan)


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
    if groups < 2:
        return tails
    # Below two effective groups Student's distribution has no meaning; one degree of freedom is its
    # widest.
    return ndtr(np.sqrt(groups / (groups - 1)) * stdtrit(max(1.0, effective - 1), tails))


def _shares(values: Float[np.ndarray, "text head"]) -> Bool[np.ndarray, " head"]:
    """Which heads have scores of 0 and 1 only."""
    return (np.isnan(values) | (values == 0) | (values == 1)).all(axis=0)


def _alike(values: Float[np.ndarray, "text head"]) -> Bool[np.ndarray, " head"]:
    """Which heads have one value on all texts; a product of matrices would give it a width by
    rounding.
    """
    first = _first(values)
    return (np.isnan(values) | np.isclose(values, first, rtol=1e-12, atol=0)).all(axis=0)


def _first(values: Float[np.ndarray, "text head"]) -> Float[np.ndarray, " head"]:
    """The first known value of each head; NaN where there is none."""
    there = ~np.isnan(values)
    if not len(values):
        return np.full(values.shape[1], np.nan)
    return np.take_along_axis(values, there.argmax(axis=0)[None], axis=0)[0]


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


def _quantiles(
    drawn: Float[np.ndarray, "resample head"],
    of: tuple[np.ndarray, np.ndarray],
    method: str,
    confidence: float,
) -> Float[np.ndarray, "head 2"]:
    """The ends of the interval of each head from its redrawn means; ``of`` is the sums and sizes of
    the groups.
    """
    sums, sizes = of
    plain = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    there, effective = (sizes > 0).sum(axis=0), effective_groups(sizes)
    ends = np.full((drawn.shape[1], 2), np.nan)
    if method != "bca" and _is_of_one_kind(drawn, sizes):
        if method == "expanded":
            plain = expanded_tails(confidence, float(there[0]), float(effective[0]))
        return np.quantile(drawn, plain, axis=0).T
    for head in range(drawn.shape[1]):
        known = drawn[~np.isnan(drawn[:, head]), head]
        if there[head] < 2 or not len(known):
            continue
        tails = plain
        if method == "expanded":
            tails = expanded_tails(confidence, float(there[head]), float(effective[head]))
        elif method == "bca":
            tails = _corrected(plain, sums[:, head], sizes[:, head], known)
        ends[head] = np.quantile(known, tails)
    return ends


def _is_of_one_kind(
    drawn: Float[np.ndarray, "resample head"], sizes: Float[np.ndarray, "group head"]
) -> bool:
    """Whether all heads have the same texts, as they mostly have: they share their quantiles."""
    if not drawn.size or not (sizes == sizes[:, :1]).all():
        return False
    return bool((sizes[:, 0] > 0).sum() > 1 and not np.isnan(drawn).any())


def _corrected(
    tails: Float[np.ndarray, " tail"],
    sums: Float[np.ndarray, " group"],
    sizes: Float[np.ndarray, " group"],
    drawn: Float[np.ndarray, " resample"],
) -> Float[np.ndarray, " tail"]:
    """The quantiles that BCa takes instead of the tails."""
    from scipy.special import ndtr, ndtri

    mean, least = sums.sum() / sizes.sum(), 0.5 / len(drawn)
    # Draws that equal the mean count half, as values of a few kinds make many of them.
    below = ((drawn < mean).mean() + (drawn <= mean).mean()) / 2
    # Clipped, as the normal quantile of 0 or 1 is infinite.
    bias = ndtri(np.clip(below, least, 1 - least))
    apart = (sums - mean * sizes)[sizes > 0]
    if not apart.any():
        return tails
    # Of a mean the jackknife's values are the groups' own distances from it, up to a factor that
    # cancels.
    acceleration = (apart**3).sum() / (6 * (apart**2).sum() ** 1.5)
    shifted = bias + ndtri(tails)
    return ndtr(bias + shifted / (1 - acceleration * shifted))


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
