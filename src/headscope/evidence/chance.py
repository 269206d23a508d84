"""Whether chance could have made a difference: p by flipping documents, and its corrections."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.evidence.groups import parse_groups, summed

FLIPS = 1023
"""Random patterns of signs; with the one that was seen a power of 2, so that the patterns of up to
ten documents come equally often.
"""
AT_ONCE = 512
LEAST = 0.001
"""Nothing smaller is printed: flips say nothing of it."""


def p_flipped(
    differences: Float[np.ndarray, "text head"],
    *,
    groups: Iterable[Any] | None = None,
    two_sided: bool = True,
    flips: int = FLIPS,
    seed: int = 0,
) -> Float[np.ndarray, " head"]:
    """Probability of a mean that far from 0, or above it, if each text's difference were as likely
    with the other sign.

    ``p = (1 + #{|mean'| >= |mean|}) / (1 + flips)``, over random patterns of signs, the same for
    all heads; of up to ten texts all patterns come equally often, which is the exact test. The
    texts of one document get one sign. Of right and wrong answers this is McNemar's test. NaN for
    fewer than two texts, or documents. Corrected for many heads: `judged`.

    Source: Fisher 1935, section 21; Phipson and Smyth 2010 for the 1. SciPy's `permutation_test`
    with ``permutation_type="samples"`` gives the same for few texts.

    Args:
        differences: one for each text and head, such as scores less a baseline; NaN for none.
        groups: the document of each text, see `interval`.
        two_sided: whether a mean as far below 0 counts, too.
        flips: how many random patterns.
        seed: of the patterns.

    Raises:
        RecordError: where a difference is infinite, or there is not a group for each text.

    Example:
        >>> p_flipped(np.array([[1.0], [1.0], [1.0]])).tolist()
        [0.25]
        >>> p_flipped(np.array([[1.0], [1.0], [1.0]]), two_sided=False).tolist()
        [0.125]
    """
    if np.isinf(differences).any():
        raise RecordError("A difference is infinite; give finite ones, and NaN for none")
    asked = summed(differences, parse_groups(groups, len(differences)))
    return judged([asked], two_sided=two_sided, flips=flips, seed=seed)[0][0]


def judged(
    asked: Sequence[tuple[Float[np.ndarray, "_ _"], Float[np.ndarray, "_ _"]]],
    *,
    margin: float = 0.0,
    two_sided: bool = False,
    correction: str = "holm",
    tried: int = 0,
    flips: int = FLIPS,
    seed: int = 0,
) -> list[tuple[Float[np.ndarray, " _"], Float[np.ndarray, " _"]]]:
    """The p of heads that were given and not chosen, as of `p_flipped`, and the same corrected for
    all of them; for a head that was chosen see `headscope.evidence.choice.chosen`.

    Never below ``2^-G``, twice that of both sides, of G documents in which a head has a value.

    Args:
        asked: of each question to all heads, sums by document and of how many texts; questions to
            the same documents share their flips.
        margin: of a mean; p is of not being above it.
        two_sided: see `p_flipped`.
        correction: ``"holm"``, with the largest of all flipped effects in place of a product
            (Westfall and Young 1993), or ``"benjamini-hochberg"``.
        tried: how many heads were tried, where only the most promising are asked here: Holm's
            product then stands for the rest, and p is multiplied by the number tried over that of
            those asked, since all that come so far by chance are among these.
        flips: see `p_flipped`.
        seed: likewise.

    Example:
        >>> sums = np.array([[1.0, -1.0]] * 8), np.ones((8, 2))
        >>> [each.tolist() for each in judged([sums])[0]]
        [[0.00390625, 1.0], [0.0078125, 1.0]]
    """
    effects, draws, floors = [], [], []
    for sums, sizes in asked:
        values, there = sums - margin * sizes, (sizes > 0).sum(axis=0)
        drawn = _flipped(values, flips, seed)
        effect = values.sum(axis=0)
        draws.append(drawn)
        effects.append(np.where(there > 1, np.abs(effect) if two_sided else effect, np.nan))
        floors.append(0.5 ** (there - two_sided))
    if not asked:
        return []
    stacked = [np.concatenate(each, axis=-1) for each in (effects, draws, floors)]
    tested = p_of_draws(*stacked, correction, two_sided=two_sided, tried=tried)
    places = np.cumsum([len(each) for each in effects])[:-1]
    return list(zip(*(np.split(each, places) for each in tested), strict=True))


def _flipped(
    values: Float[np.ndarray, "document head"], flips: int, seed: int
) -> Float[np.ndarray, "flip head"]:
    """Sums of documents with other signs."""
    documents = len(values)
    rng, drawn = np.random.default_rng([seed, documents]), np.empty((flips, values.shape[1]))
    for first in range(0, flips, AT_ONCE):
        count = min(AT_ONCE, flips - first)
        if 2**documents <= 1 + flips:
            numbers = np.arange(1 + first, 1 + first + count)
            bits = (numbers[:, None] >> np.arange(documents)) & 1
        else:
            bits = rng.integers(0, 2, (count, documents))
        drawn[first : first + count] = (1.0 - 2.0 * bits) @ values
    return drawn


def p_of_draws(
    effects: Float[np.ndarray, " question"],
    draws: Float[np.ndarray, "flip question"],
    floor: Float[np.ndarray, " question"],
    correction: str,
    *,
    two_sided: bool = False,
    tried: int = 0,
) -> tuple[Float[np.ndarray, " question"], Float[np.ndarray, " question"]]:
    """The p of each effect among its draws, and corrected for all of them; none is below its
    floor.
    """
    known = np.flatnonzero(~np.isnan(effects))
    p = np.full((2, len(effects)), np.nan)
    draws, floor = draws[:, known], floor[known]
    # Of the draws with their signs: an effect in one document has the same size in all of them.
    spread = np.maximum(draws.std(axis=0), 1e-12)
    draws = np.abs(draws) if two_sided else draws
    # What is as far to within rounding counts as as far.
    least = effects[known] - 1e-9 * np.abs(draws).max(axis=0, initial=0.0)
    p[0, known] = np.maximum((1 + (draws >= least).sum(axis=0)) / (1 + len(draws)), floor)
    if correction != "holm" or tried > len(known):
        # What was tried and not asked has a p of 1.
        family = np.append(p[0, known], np.ones(max(0, tried - len(known))))
        p[1, known] = CORRECTIONS[correction](family)[: len(known)]
        # Those with the largest effects were left: as many more of these come so far by chance.
        p[0, known] = np.minimum(1.0, p[0, known] * max(1.0, tried / max(1, len(known))))
        return p[0], p[1]
    least, draws = least / spread, draws / spread
    most, order, steps = np.full(len(draws), -np.inf), np.argsort(least, kind="stable"), []
    for number in order:
        most = np.maximum(most, draws[:, number])
        steps.append((1 + (most >= least[number]).sum()) / (1 + len(draws)))
    order = order[::-1]
    # The floors are corrected as Holm does.
    steps = np.maximum(steps[::-1], np.minimum(1.0, floor[order] * len(known)))
    p[1, known[order]] = np.maximum.accumulate(steps)
    return p[0], p[1]


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


def check_correction(given: Any) -> None:
    """Raise where there is no such correction.

    Raises:
        RecordError: with what was given.
    """
    if given not in tuple(CORRECTIONS):
        raise RecordError(f"correction is {given!r}; give one of {', '.join(CORRECTIONS)}")


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


def p_text(p: float) -> str:
    """A probability as printed; ``"-"`` where nothing could be tested.

    Example:
        >>> p_text(0.0312), p_text(1e-9), p_text(float("nan"))
        ('0.031', '< 0.001', '-')
    """
    if math.isnan(p):
        return "-"
    if p < LEAST:
        return f"< {LEAST}"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
