"""A pattern of a head, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from headscope.evidence import effect_size, interval, p_above
from headscope.evidence._correction import CORRECTIONS
from headscope.patterns._pattern import Pattern
from headscope.patterns._tally import BASELINES, Tally

NUMBERS = ("score", "low", "high", "baseline", "effect", "p", "corrected")


@dataclass(frozen=True, kw_only=True)
class Label:
    """How far a head follows a pattern, and how sure that is.

    Args:
        layer: number of the layer, from 0.
        head: number of the head, from 0.
        pattern: name of the pattern.
        score: mean over texts.
        low: lower end of the bootstrap interval of the mean over texts; NaN for one text.
        high: upper end.
        baseline: mean of the strongest baseline, chosen text by text.
        against: the baselines it was compared with.
        effect: Cohen's d of score and baseline, paired by text; infinite where all texts differ alike.
        texts: how many texts can show the pattern.
        threshold: what the score must reach.
        p: of scores that far above the baseline by chance; NaN for one text.
        corrected: p corrected for all heads and patterns tried.
        holds: whether the label is given: score at the threshold or above, corrected p below alpha.
        only_one_text: whether the score reaches the threshold, but on one text, of which nothing can be said.
    """

    layer: int
    head: int
    pattern: str
    score: float
    low: float
    high: float
    baseline: float
    against: str
    effect: float
    texts: int
    threshold: float
    p: float
    corrected: float
    holds: bool
    only_one_text: bool

    def __str__(self) -> str:
        seen = "seen on one text only" if self.texts == 1 else f"{self.texts} texts"
        sure = "" if self.texts == 1 else f" [{self.low:.2f}, {self.high:.2f}]"
        effect = "" if np.isnan(self.effect) else f", d {self.effect:.1f}, p {self.corrected:.2g}"
        mark = "" if self.holds else " (not held)" if self.texts > 1 else ""
        return f"{self.pattern} {self.score:.2f}{sure} against {self.baseline:.2f}{effect}, {seen}{mark}"


FIELDS = tuple(field.name for field in fields(Label))


def labels_of(
    tally: Tally, *, confidence: float, alpha: float, correction: str, levels: dict[str, float]
) -> tuple[Label, ...]:
    """The label of every pattern and head that some text can show, in the order of patterns and heads."""
    values = tally.statistic.values
    rows = {name: number for number, name in enumerate(tally.rows)}
    found = []
    for pattern in tally.patterns:
        scores = values[:, rows[pattern.name]]
        against = {name: values[:, rows[f"{pattern.name}:{name}"]] for name in BASELINES}
        if pattern.name in levels:
            against["random weights"] = np.full(scores.shape, levels[pattern.name])
        found.append(_evidence(scores, against, confidence))
    p = CORRECTIONS[correction](np.stack([each["p"] for each in found])) if found else np.empty((0, 0))
    return tuple(
        _label(
            cell, pattern, {name: known[place] for name, known in each.items()} | {"corrected": p[number, place]}, alpha
        )
        for number, (pattern, each) in enumerate(zip(tally.patterns, found, strict=True))
        for place, cell in enumerate(tally.cells)
        if each["texts"][place]
    )


def _evidence(scores: np.ndarray, against: dict[str, np.ndarray], confidence: float) -> dict:
    known = {name: values for name, values in against.items() if not np.isnan(values).all()}
    highest = np.full(scores.shape, -np.inf)
    for values in known.values():
        highest = np.fmax(highest, values)
    highest = np.where(np.isfinite(highest), highest, np.nan)
    ends = interval(scores, confidence=confidence)
    return {
        "score": _mean(scores),
        "low": ends[:, 0],
        "high": ends[:, 1],
        "baseline": _mean(np.where(np.isnan(scores), np.nan, highest)),
        "against": [", ".join(known)] * scores.shape[1],
        "effect": effect_size(scores, highest),
        "texts": (~np.isnan(scores)).sum(axis=0),
        "p": p_above(scores, highest),
    }


def _label(cell: tuple[int, int], pattern: Pattern, each: dict, alpha: float) -> Label:
    reached = bool(each["score"] >= pattern.threshold)
    return Label(
        layer=cell[0],
        head=cell[1],
        pattern=pattern.name,
        **{name: float(each[name]) for name in NUMBERS},
        against=each["against"],
        texts=int(each["texts"]),
        threshold=pattern.threshold,
        holds=reached and bool(each["corrected"] < alpha),
        only_one_text=reached and int(each["texts"]) == 1 and bool(each["score"] > each["baseline"]),
    )


def _mean(values: np.ndarray) -> np.ndarray:
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    return np.divide(sums, count, out=np.full(values.shape[1], np.nan), where=count > 0)
