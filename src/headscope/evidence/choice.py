"""What was chosen among many, judged where it was not chosen: effect, interval and p, for which the
choice is made again on other documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Real

from headscope.evidence._interval import share_interval, wilson_ends
from headscope.evidence.chance import p_of_draws
from headscope.evidence.groups import effective_groups, group_variance

SPLITS = 10
"""How often documents are split by default: what a choice adds to the spread is then a third of one
split's.
"""
ERROR_SPLITS = 100
"""How many splits the error is estimated of; of fewer it would be a matter of luck itself."""
FLIPS = 999
FEWEST = 5
"""Documents of which p can be below 0.05."""
FAR = 8.0
"""So many errors below the best rule nothing is ever chosen, and need not be tried."""
HELD_OUT = ("chosen", "accuracy", "low", "high", "spread", "rule")
HELD_OUT += ("above", "above_low", "above_high", "above_spread")
"""What is known of the choices on the other half, as results name it."""
AT_ONCE = 640
"""Flips times splits that are judged together, to bound memory."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choices:
    """A question to every choice, such as a head and a direction, as sums by document.

    Args:
        wholes: how much was asked.
        scores: how much each choice answers right.
        baselines: of each rule that takes no head, of which the best is chosen, too.

    Example:
        >>> ten, right = np.full(2, 10.0), np.array([[7.0, 8.0], [3.0, 2.0]])
        >>> Choices(wholes=ten, scores=right, baselines=np.full((1, 2), 5.0)).scores.shape
        (2, 2)
    """

    wholes: Float[np.ndarray, " document"]
    scores: Float[np.ndarray, "choice document"]
    baselines: Float[np.ndarray, "rule document"]


@dataclass(frozen=True, kw_only=True, eq=False)
class _HeldOut:
    """What was chosen on each half of each split, and its sums on the other half.

    Args:
        wholes: of the documents in which something was asked.
        half: which of these are in the first half; a row for each split with two halves.
        count: how many of these splits effects are means over, the first ones.
        choices: choice and rule of each split, chosen on the first half and on the rest.
        sums: of the choice, and of the rule, on the documents they were not chosen on.
    """

    wholes: Float[np.ndarray, " document"]
    half: Bool[np.ndarray, "split document"]
    count: int
    choices: tuple[Int[np.ndarray, "2 split"], Int[np.ndarray, "2 split"]]
    sums: tuple[Float[np.ndarray, "split document"], Float[np.ndarray, "split document"]]


def halves_of(count: int, seed: int, splits: int) -> Bool[np.ndarray, "split document"]:
    """One half of the documents of every split; of an odd number the smaller one.

    Example:
        >>> halves_of(5, seed=0, splits=3).sum(axis=1).tolist()
        [2, 2, 2]
    """
    halves = np.zeros((splits, count), bool)
    for number, half in enumerate(halves):
        half[np.random.default_rng(seed + number).permutation(count)[: count // 2]] = True
    return halves


def chosen(
    asked: Sequence[Choices],
    *,
    margin: float = 0.0,
    confidence: float = 0.95,
    correction: str = "holm",
    splits: int = SPLITS,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """The best choice of every question, and how far it is above the best rule on documents that
    neither was chosen on.

    Documents are split into halves; choice and rule are chosen on either half and measured on the
    other; effects are means over splits. Two things make them less sure than a test over documents
    says: splits share documents, and what is chosen depends on all of them.

    - Error: ``mean_u (v_u - (m_u - m)^2) + s^2 / J``: m_u is what a half gives of that which was
      chosen on the other, v_u its variance over documents, m the mean of all halves of 100 splits,
      s^2 the variance over J splits. It is never below that over documents of the mean over splits.
      (Ours: v_u estimates the variance of m_u, as no document of that half had a say in the choice;
      and the variance of a mean is that of its terms less what these differ by.) The
      interval is of what these choices give on new documents, not of what these would have one
      choose.
    - p: whole documents are turned at random around what they are if nothing is above the best
      rule, and everything is chosen and measured again. A choice as good as that rule, or nearly
      so, is then equal to it; one that is worse keeps its distance (Hansen 2005, for tests of the
      best of many). Documents are multiplied by -0.62 or 1.62, which keep the skew of scores;
      signs alone do not, and find too much (Mammen 1993). p is the share of 999 draws that come as
      far, the one that was seen among them, and never below 2^-G of G documents.
    - ``"holm"``: steps down as Holm, with the largest of all flipped effects, each by its
      deviation, in place of a product (Westfall and Young 1993).

    Source: Nadeau and Bengio 2003 for the fault of tests over splits; Tsamardinos et al. 2018 for
    choosing again in each draw.

    Args:
        asked: all questions of a table.
        margin: how far above the rule is tested, as a share; p is of not being so.
        confidence: of the intervals.
        correction: ``"holm"`` or ``"benjamini-hochberg"``.
        splits: how many, for effects.
        seed: of the first split, and of the flips.

    Returns:
        Of each question, by the names of results: of the best choice and rule on all documents,
        measured on these, ``best``, ``rule``, ``accuracy``, ``low``, ``high``, ``rule_share``; and
        ``held_out_...``, ``p``, ``p_corrected``. NaN, or None, where documents are too few.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> wholes, heads = np.full(20, 8.0), rng.binomial(8, 0.5, (6, 20)).astype(float)
        >>> heads[3] = rng.binomial(8, 0.9, 20)
        >>> rule = rng.binomial(8, 0.5, (1, 20)).astype(float)
        >>> best = chosen([Choices(wholes=wholes, scores=heads, baselines=rule)])[0]
        >>> best["best"], best["held_best"], best["p"] < 0.01, best["held_out_above_low"] > 0.2
        (3, 3, True, True)
    """
    count = len(asked[0].wholes) if asked else 0
    halves = halves_of(count, seed, max(splits, ERROR_SPLITS))
    flips = _flips(seed, count)
    numbers, draws, documents = [], np.empty((FLIPS, len(asked))), []
    for place, each in enumerate(asked):
        held = _held_out(each, halves, splits)
        numbers.append(_on_all(each, confidence) | _off(held, confidence))
        draws[:, place] = _flipped(each, held, flips, margin)
        documents.append(len(held.wholes))
    effects = np.array([each["held_out_above"] for each in numbers]) - margin
    p, corrected = p_of_draws(effects, draws, 0.5 ** np.array(documents), correction)
    for each, own, family in zip(numbers, p, corrected, strict=True):
        each |= {"p": float(own), "p_corrected": float(family)}
    return numbers


def _flips(seed: int, count: int) -> Float[np.ndarray, "flip document"]:
    """Mammen's two values, of mean 0, variance 1 and skewness 1."""
    root = np.sqrt(5)
    is_small = np.random.default_rng([seed, 1]).random((FLIPS, count)) < (root + 1) / (2 * root)
    return np.where(is_small, (1 - root) / 2, (1 + root) / 2)


def _on_all(asked: Choices, confidence: float) -> dict[str, Any]:
    """Of the choice and the rule that are best on all documents, measured on them too."""
    whole = float(asked.wholes.sum())
    best, rule = _best(asked.scores.sum(axis=1)), _best(asked.baselines.sum(axis=1))
    low, high = share_interval(
        asked.scores[best][:, None], asked.wholes[:, None], confidence=confidence
    )[0]
    return {
        "best": int(best),
        "rule": int(rule),
        "rule_share": float(asked.baselines[rule].sum() / whole),
        "count": int(whole),
        "accuracy": float(asked.scores[best].sum() / whole),
        "low": float(low),
        "high": float(high),
    }


def _best(sums: Float[np.ndarray, "*axes choice"]) -> Any:
    """The first of the largest, to within rounding."""
    return np.round(sums, 9).argmax(axis=-1)


def _held_out(asked: Choices, halves: Bool[np.ndarray, "split document"], splits: int) -> _HeldOut:
    """Choose on each half of every split, and measure on the other."""
    there = asked.wholes > 0
    half = halves[:, there]
    # There is something to choose by on both halves.
    usable = np.logical_and(half.any(axis=1), ~half.all(axis=1))
    half = half[usable]
    choices, sums = [], []
    for values in (asked.scores[:, there], asked.baselines[:, there]):
        on_half = half.astype(np.float64) @ values.T
        both = np.stack([_best(on_half), _best(values.sum(axis=1) - on_half)])
        choices.append(both)
        sums.append(np.where(half, values[both[1]], values[both[0]]))
    return _HeldOut(
        wholes=asked.wholes[there],
        half=half,
        count=int(usable[:splits].sum()),
        choices=(choices[0], choices[1]),
        sums=(sums[0], sums[1]),
    )


def _off(held: _HeldOut, confidence: float) -> dict[str, Any]:
    """Of what was chosen on one half and measured on the other; NaN where nothing could be."""
    if not held.count:
        nothing = dict.fromkeys((f"held_out_{name}" for name in HELD_OUT), float("nan"))
        return nothing | {"held_best": None, "held_rule": None, "held_out_count": 0}
    whole, sizes = held.wholes.sum(), held.wholes[:, None]
    of_heads, of_rules = (each[: held.count].sum(axis=1) / whole for each in held.sums)
    apart, share = of_heads - of_rules, of_heads.mean()
    (best, often), (rule, _) = (_most(each[:, : held.count]) for each in held.choices)
    errors = [
        split_error(each, held.wholes[None], held.half, held.count)
        for each in (held.sums[0], held.sums[0] - held.sums[1])
    ]
    low, high = wilson_ends(
        np.array([share]),
        np.array([whole]),
        confidence=confidence,
        variance=np.array([errors[0]]),
        groups=(np.array([len(sizes)]), effective_groups(sizes)),
    )[0]
    reach = student_reach(errors[1], held.wholes, confidence)
    ends = low, high, of_heads.std(), of_rules.mean(), apart.mean()
    ends += max(apart.mean() - reach, -1.0), min(apart.mean() + reach, 1.0), apart.std()
    numbers = zip(HELD_OUT, map(float, (often, share, *ends)), strict=True)
    named = {f"held_out_{name}": number for name, number in numbers}
    return named | {"held_best": best, "held_rule": rule, "held_out_count": int(whole)}


def _most(choices: Int[np.ndarray, "2 split"]) -> tuple[int, float]:
    """What was chosen most often, of equal ones the first, and its part in all choices."""
    times = np.bincount(choices.ravel())
    return int(times.argmax()), float(times.max() / choices.size)


def split_error(
    rows: Real[np.ndarray, "split document"],
    wholes: Real[np.ndarray, "#split document"],
    half: Bool[np.ndarray, "split document"],
    count: int,
) -> float:
    """Variance of the mean over splits of ``sum rows / sum wholes``; see `chosen`.

    Args:
        rows: what each document gives, of that which was chosen where it is not.
        wholes: of how much.
        half: which documents are in the first half of each split.
        count: of how many splits, the first ones, the mean is.

    Example:
        >>> half = halves_of(4, seed=0, splits=100)
        >>> rows, wholes = np.full((100, 4), [0.0, 1.0, 2.0, 3.0]), np.full((1, 4), 4.0)
        >>> round(split_error(rows, wholes, half, 10) * 48, 1)  # the variance of a mean
        1.2
    """
    whole = np.broadcast_to(wholes, rows.shape).sum(axis=1)
    shares = rows.sum(axis=1) / whole
    apart = rows - shares.mean() * wholes
    within = []
    for measured in (half, ~half):
        own, size = np.where(measured, apart, 0.0), measured.sum(axis=1)
        total = own.sum(axis=1)
        squares = (own**2).sum(axis=1) - total**2 / size
        # A half of one document has no variance that could be seen.
        known = size > 1
        within.append((squares * size / np.maximum(size - 1, 1) - total**2)[known])
    terms = np.concatenate(within) * (2 / whole.mean()) ** 2
    means = rows[:count].mean(axis=0)[:, None], wholes.mean(axis=0)[:, None]
    least = float(group_variance(*means)[0])
    error = float(terms.mean()) + float(shares.var()) / count if len(terms) else 0.0
    return max(error, least)


def student_reach(error: float, wholes: Float[np.ndarray, " document"], confidence: float) -> float:
    """How far an interval reaches with such a variance: Student's, of documents of these sizes.

    Example:
        >>> round(student_reach(0.01, np.ones(20), 0.95), 3)
        0.209
    """
    from scipy.special import stdtrit

    freedom = max(1.0, float(effective_groups(wholes[:, None])[0]) - 1)
    return float(stdtrit(freedom, (1 + confidence) / 2) * np.sqrt(error))


def _flipped(
    asked: Choices, held: _HeldOut, flips: Float[np.ndarray, "flip document"], margin: float
) -> Float[np.ndarray, " flip"]:
    """The held-out effect, less the margin, where documents are flipped; NaN where no split has two
    halves.
    """
    half, there = held.half[: held.count].astype(np.float64), asked.wholes > 0
    if not held.count:
        return np.full(len(flips), np.nan)
    flips, wholes, heads = flips[:, there], held.wholes, len(asked.scores)
    scores = asked.scores - margin * asked.wholes
    values = np.concatenate([scores, asked.baselines])[:, there]
    levels, around, tried = _null_of(values, wholes, heads)
    values, heads = values[tried], int(tried[:heads].sum())
    # A last document that is never flipped gives the level of each half.
    sums = np.concatenate([(values - around[tried, None] * wholes).T, levels[None, tried]])
    masks = np.concatenate([half, 1.0 - half])
    other = np.roll(np.arange(len(masks)), len(half))
    effects = []
    for some in np.array_split(flips, -(-len(flips) * len(half) // AT_ONCE)):
        weights = np.empty((len(some), len(masks), len(sums)))
        weights[..., :-1] = some[:, None] * masks
        weights[..., -1] = masks @ wholes
        on = (weights.reshape(-1, len(sums)) @ sums).reshape(*weights.shape[:2], -1)
        flip, head = np.arange(len(some))[:, None], on[..., :heads].argmax(axis=-1)
        rule = heads + on[..., heads:].argmax(axis=-1)
        gained = on[flip, other, head] - on[flip, other, rule]
        effects.append(gained.sum(axis=1) / len(half))
    return np.concatenate(effects) / wholes.sum()


def _null_of(
    values: Float[np.ndarray, "choice document"], wholes: Float[np.ndarray, " document"], heads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where nothing is better than the best rule: the mean of each choice and rule, the mean that
    its documents are flipped around, and whether it can ever be chosen.
    """
    means = values.sum(axis=1) / wholes.sum()
    best = heads + int(means[heads:].argmax())
    apart = values - values[best] - (means - means[best])[:, None] * wholes
    errors = np.sqrt((apart**2).sum(axis=1)) / wholes.sum()
    # Hansen's limit: what is worse by more than that is worse in truth, for all we can tell.
    limit = np.sqrt(2 * np.log(np.log(max(len(wholes), 3))))
    near = means >= means[best] - limit * errors
    tried = means >= means[best] - FAR * errors
    tried[int(means[:heads].argmax())] = True
    return np.where(near, means[best], means), np.minimum(means, means[best]), tried
