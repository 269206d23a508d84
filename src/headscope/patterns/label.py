"""A pattern of a head, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from headscope.evidence import judged, median_of, p_text
from headscope.patterns._pattern import Pattern
from headscope.patterns._tally import Tally

MARGIN = 0.1
"""Smallest excess over the baseline; ours. benchmarks/false_labels.py measures the excess of heads
with random weights.
"""
RUNS = "runs of repeated tokens"
FACTOR = 1.5
"""Smallest ratio of the lengths of both halves of the texts for a score at two lengths."""
LEAST_TEXTS = 4
"""Smallest number of texts for a score at two lengths: two in each half."""


@dataclass(frozen=True, kw_only=True)
class Label:
    """The score of a head in a pattern, with its evidence.

    Args:
        layer: number of the layer, from 0.
        head: number of the head, from 0.
        pattern: name of the pattern.
        score: mean score over texts.
        low: lower end of the interval of the mean over texts, or over their documents; NaN for one.
        high: upper end.
        baseline: mean of the strongest baseline, chosen text by text.
        against: the baselines it was compared with.
        excess: mean over texts of score less baseline.
        excess_low: lower end of its bootstrap interval, score and baseline paired by text; NaN for
            one text.
        excess_high: upper end.
        effect: Cohen's d of score and baseline, paired by text; infinite where the difference is
            the same on all texts.
        texts: number of texts that can show the pattern.
        threshold: the score that a label must reach.
        p: probability of such an excess if it were not above the margin; NaN for one text. Values
            below 0.001 are not exact, see `headscope.evidence.judged`.
        corrected: p corrected for all heads and patterns tried.
        shorter: mean score on the shorter half of the texts; NaN where both halves have about the
            same length.
        shorter_tokens: their median length in tokens.
        longer: mean score on the longer half.
        longer_tokens: their median length in tokens.
        holds: whether the label is given: score at the threshold or above, excess above the margin,
            corrected p below alpha.
        candidate: whether score and excess are high enough, but on too few texts to be sure; in a
            study of several texts, on at least two.
        only_one_text: whether it is a candidate in a study of one text, which shows nothing about
            other texts.
    """

    layer: int
    head: int
    pattern: str
    score: float
    low: float
    high: float
    baseline: float
    against: str
    excess: float
    excess_low: float
    excess_high: float
    effect: float
    texts: int
    on: str
    threshold: float
    p: float
    corrected: float
    shorter: float
    shorter_tokens: float
    longer: float
    longer_tokens: float
    holds: bool
    candidate: bool
    only_one_text: bool

    @property
    def short(self) -> str:
        """Name and score with its interval; and the lengths at which it is below the threshold, if
        any.
        """
        sure = "" if np.isnan(self.low) else f" [{self.low:.2f}, {self.high:.2f}]"
        halves = ((self.shorter, self.shorter_tokens), (self.longer, self.longer_tokens))
        below = [
            f"{score:.2f} at {tokens:.0f} tokens"
            for score, tokens in halves
            if score < self.threshold
        ]
        lost = f" ({', '.join(below)})" if below and self.score >= self.threshold else ""
        return f"{self.pattern} {self.score:.2f}{sure}{lost}"

    def __str__(self) -> str:
        sure = "" if np.isnan(self.low) else f" [{self.low:.2f}, {self.high:.2f}]"
        text = f"{self.pattern} {self.score:.2f}{sure} against {self.baseline:.2f}"
        if not np.isnan(self.excess_low):
            text += f", {self.excess:+.2f} [{self.excess_low:.2f}, {self.excess_high:.2f}]"
        if not np.isnan(self.effect):
            text += f", d {self.effect:.1f}, p {p_text(self.corrected)}"
        seen = "seen on one text only" if self.texts == 1 else f"{self.texts} {self.on}"
        return f"{text}, {seen}{self._lengths}{self._mark}"

    @property
    def _lengths(self) -> str:
        if np.isnan(self.shorter):
            return ""
        shorter = f"{self.shorter:.2f} at {self.shorter_tokens:.0f} tokens"
        return f", {shorter} and {self.longer:.2f} at {self.longer_tokens:.0f}"

    @property
    def _mark(self) -> str:
        if self.holds or self.only_one_text:
            return ""
        return " (candidate: too few texts to tell)" if self.candidate else " (not held)"


FIELDS = tuple(field.name for field in fields(Label))
NUMBERS = [each.name for each in fields(Label) if each.type == "float" and each.name != "threshold"]


def labels_of(
    tally: Tally, *, confidence: float, alpha: float, correction: str, margin: float
) -> tuple[Label, ...]:
    """The label of every pattern and head that some text can show, in the order of patterns and
    heads.
    """
    evidence, asked = [], []
    for pattern in tally.patterns:
        numbers = tally.evidence(pattern, confidence)
        asked.append(numbers.pop("asked"))
        evidence.append(numbers | _at_two_lengths(tally.at_lengths(pattern), len(tally.cells)))
    tested = judged(asked, margin=margin, correction=correction)
    tests = sum(int((~np.isnan(p)).sum()) for p, _ in tested)
    rule = _Rule(alpha, margin, texts_needed(tests, alpha, correction), tally.documents)
    labels = []
    for pattern, each, (p, corrected) in zip(tally.patterns, evidence, tested, strict=True):
        columns = each | {"p": p, "corrected": corrected}
        on = RUNS if tally.is_by_battery(pattern) else "texts"
        for index, cell in enumerate(tally.cells):
            if each["texts"][index]:
                numbers = {name: column[index] for name, column in columns.items()}
                labels.append(_label(cell, pattern, numbers | {"on": on}, rule))
    return tuple(labels)


def texts_needed(tests: int, alpha: float, correction: str) -> int:
    """Number of texts that any label needs: the smallest p of n texts is 2^-n, before correction.

    Holm's correction multiplies the smallest p by the number of tests. That of Benjamini and
    Hochberg leaves it unchanged where all p are as small as possible.
    """
    factor = max(tests, 1) if correction == "holm" else 1
    return int(np.floor(np.log2(factor / alpha))) + 1


@dataclass(frozen=True)
class _Rule:
    """The rule for giving labels.

    Args:
        alpha: upper limit of the corrected p.
        margin: lower limit of the excess.
        needed: smallest number of texts that can give a label.
        texts: number of documents of the study; each text is one where documents are unknown.
    """

    alpha: float
    margin: float
    needed: int
    texts: int


def _at_two_lengths(
    lengths: list[tuple[int, int, np.ndarray, np.ndarray]], heads: int
) -> dict[str, np.ndarray]:
    """Mean scores of the shorter and the longer half of the texts that show a pattern; NaN where
    their lengths are similar.
    """
    nothing = np.full(heads, np.nan)
    parts = dict.fromkeys(("shorter", "shorter_tokens", "longer", "longer_tokens"), nothing)
    middle = median_of({tokens: texts for tokens, texts, _, _ in lengths})
    halves = {
        "shorter": [each for each in lengths if each[0] <= middle],
        "longer": [each for each in lengths if each[0] > middle],
    }
    counts = [sum(texts for _, texts, _, _ in half) for half in halves.values()]
    if sum(counts) < LEAST_TEXTS or min(counts) < LEAST_TEXTS // 2:
        return parts
    tokens = {
        name: median_of({length: texts for length, texts, _, _ in half})
        for name, half in halves.items()
    }
    if tokens["longer"] < FACTOR * tokens["shorter"]:
        return parts
    for name, half in halves.items():
        count = np.sum([known for _, _, known, _ in half], axis=0)
        total = np.sum([sums for _, _, _, sums in half], axis=0)
        parts[name] = np.divide(total, count, out=nothing.copy(), where=count > 0)
        parts[f"{name}_tokens"] = np.full(heads, tokens[name])
    return parts


def _label(cell: tuple[int, int], pattern: Pattern, each: dict, rule: _Rule) -> Label:
    texts = int(each["texts"])
    reached = bool(each["score"] >= pattern.threshold and each["excess"] > rule.margin)
    sure = bool(each["corrected"] < rule.alpha)
    # Texts of one document count once, so a label cannot rest on more of them than there are
    # documents.
    independent = texts if each["on"] == RUNS else min(texts, rule.texts)
    candidate = reached and not sure and independent < rule.needed and texts >= min(2, rule.texts)
    return Label(
        layer=cell[0],
        head=cell[1],
        pattern=pattern.name,
        **{name: float(each[name]) for name in NUMBERS},
        against=each["against"],
        texts=texts,
        on=each["on"],
        threshold=pattern.threshold,
        holds=reached and sure,
        candidate=candidate,
        only_one_text=candidate and rule.texts == 1,
    )


EXAMPLES = 3
WIDTH = 80


@dataclass(frozen=True, kw_only=True, repr=False)
class HeadCard:
    """One head: labels with their evidence, measures, classes, and the texts that show each label
    best.

    Args:
        layer: number of the layer, from 0.
        head: number of the head, from 0.
        labels: every pattern with its evidence, whether the label holds or not.
        measures: means over texts.
        classes: share of texts in each of Kovaleva's classes.
        scores: for each pattern the texts that can show it with their scores, the highest first.
    """

    layer: int
    head: int
    labels: tuple[Label, ...]
    measures: dict[str, float]
    classes: dict[str, float]
    scores: dict[str, list[tuple[str, float]]]

    def examples(self, pattern: str, count: int = EXAMPLES) -> list[tuple[str, float]]:
        """The texts on which the head follows a pattern most, with their scores."""
        return self.scores[pattern][:count]

    def __repr__(self) -> str:
        held = ", ".join(label.pattern for label in self.labels if label.holds)
        return f"<HeadCard {self.layer}-{self.head}: {held or 'no label'}>"

    def __str__(self) -> str:
        lines = [f"Head {self.layer}-{self.head} (layer and head from 0)"]
        shown = [label for label in self.labels if any((label.holds, label.candidate))]
        lines += [f"  {label}" for label in shown] or ["  no label"]
        for label in shown:
            for text, score in self.examples(label.pattern):
                lines.append(f"  {label.pattern} {score:.2f}: {text[:WIDTH]}")
        measures = [f"{name} {value:.2f}" for name, value in self.measures.items()]
        classes = [f"{name} {share:.0%}" for name, share in self.classes.items() if share]
        lines += [f"  {', '.join(measures)}", f"  {', '.join(classes)}"]
        return "\n".join(lines)
