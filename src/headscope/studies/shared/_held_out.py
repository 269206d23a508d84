"""Heads chosen on one half of the documents and measured on the other, both ways and over several
splits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from headscope.evidence import p_above, redrawn_interval, redrawn_ratios, share_interval
from headscope.evidence.correction import CORRECTIONS

SPLITS = 10
"""How often documents are split by default: what a choice adds to the spread is then a third of one
split's.
"""


def half_of(count: int, seed: int) -> Bool[np.ndarray, " document"]:
    """One half of the documents; of an odd number the smaller one."""
    half = np.zeros(count, bool)
    half[np.random.default_rng(seed).permutation(count)[: count // 2]] = True
    return half


def halves_of(count: int, seed: int, splits: int) -> Bool[np.ndarray, "split document"]:
    """One half of the documents of every split; heads are chosen on it and then on the other."""
    return np.stack([half_of(count, seed + number) for number in range(splits)])


@dataclass(frozen=True, kw_only=True, eq=False)
class DocumentHits:
    """What was right in each document, of everything that was asked of one kind.

    Args:
        wholes: how much was asked.
        hits: right by each head, or head and direction.
        baselines: right by each rule that takes no head, of which the best is chosen, too.
    """

    wholes: Float[np.ndarray, " document"]
    hits: Float[np.ndarray, "choice document"]
    baselines: Float[np.ndarray, "rule document"]


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOutHits:
    """What the chosen head, and the chosen rule, got right on the documents they were not chosen
    on.

    Args:
        head: right in each document; a row for each split in which there was something to choose by
            on both halves.
        rule: the same.
        choices: how often each head and each rule was chosen, twice a split.
    """

    head: Float[np.ndarray, "split document"]
    rule: Float[np.ndarray, "split document"]
    choices: tuple[Counter[int], Counter[int]]

    def most(self, which: int) -> int | None:
        """The head (0) or rule (1) that was chosen most often; of equal ones the first. None where
        nothing was.
        """
        ranked = sorted(self.choices[which].items(), key=lambda each: (-each[1], each[0]))
        return ranked[0][0] if ranked else None

    @property
    def share_of_most(self) -> float:
        """How often that head was chosen, of all choices."""
        count = self.choices[0].total()
        return max(self.choices[0].values()) / count if count else float("nan")


def held_out(asked: DocumentHits, halves: Bool[np.ndarray, "split document"]) -> HeldOutHits:
    """Choose on each half of every split and measure on the other."""
    heads, rules = [], []
    choices: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    for half in halves:
        if not asked.wholes[half].any() or not asked.wholes[~half].any():
            continue
        head, rule = np.zeros(len(half)), np.zeros(len(half))
        for part in (half, ~half):
            best, base = (
                int(each[:, part].sum(axis=1).argmax()) for each in (asked.hits, asked.baselines)
            )
            head[~part], rule[~part] = asked.hits[best, ~part], asked.baselines[base, ~part]
            choices[0][best] += 1
            choices[1][base] += 1
        heads.append(head)
        rules.append(rule)
    shape = (len(heads), len(asked.wholes))
    return HeldOutHits(
        head=np.reshape(heads, shape), rule=np.reshape(rules, shape), choices=choices
    )


def measured(
    asked: Sequence[DocumentHits],
    halves: Bool[np.ndarray, "split document"],
    *,
    confidence: float,
    correction: str,
) -> list[dict[str, Any]]:
    """The numbers of everything that was asked, by their names in results.

    Those of the best head on all documents, measured on them too: ``accuracy``, ``low``, ``high``;
    and ``best`` and ``rule``, the numbers of head and rule. Of heads that were chosen elsewhere
    ``held_out_accuracy``, mean over splits, each measuring every document once; ``held_out_low``
    and ``held_out_high``, over documents with the choices held fixed; ``held_out_spread``, standard
    deviation over splits; and the same of what they are above the chosen rule.

    Args:
        asked: for each thing that was asked.
        halves: one half of the documents of every split.
        confidence: of the intervals over documents.
        correction: of the tests, for the number of things asked.
    """
    held = [held_out(each, halves) for each in asked]
    wholes = np.stack([each.wholes for each in asked], axis=1)
    # Mean over splits of what was right in each document.
    heads = np.stack([_mean(each.head) for each in held], axis=1)
    rules = np.stack([_mean(each.rule) for each in held], axis=1)
    # A document without a question of a kind must not count as one that was answered wrong.
    there = np.where((wholes > 0) & ~np.isnan(heads), 1.0, np.nan)
    p = p_above(heads * there, rules * there)
    tests = CORRECTIONS[correction](p)
    best = [int(each.hits.sum(axis=1).argmax()) for each in asked]
    same = np.stack([each.hits[number] for each, number in zip(asked, best, strict=True)], axis=1)
    ends = share_interval(same, wholes, confidence=confidence)
    held_ends = share_interval(np.nan_to_num(heads), wholes, confidence=confidence)
    above = redrawn_interval(
        redrawn_ratios(np.nan_to_num(heads - rules), wholes), wholes, confidence=confidence
    )
    numbers = []
    for number, (each, own) in enumerate(zip(asked, held, strict=True)):
        low, high = ends[number]
        on_all = _on_all(each, best[number]) | {"low": float(low), "high": float(high)}
        off = held_out_numbers(own, each.wholes.sum(), held_ends[number], above[number])
        tested = {"p": float(p[number]), "p_corrected": float(tests[number])}
        numbers.append(on_all | off | tested)
    return numbers


def _on_all(asked: DocumentHits, best: int) -> dict[str, Any]:
    """Of the head and the rule that are best on all documents, measured on them too."""
    whole = float(asked.wholes.sum())
    rule = int(asked.baselines.sum(axis=1).argmax())
    return {
        "best": best,
        "rule": rule,
        "rule_share": float(asked.baselines[rule].sum() / whole),
        "count": int(whole),
        "accuracy": float(asked.hits[best].sum() / whole),
    }


def held_out_numbers(
    held: HeldOutHits,
    whole: float,
    ends: Float[np.ndarray, " 2"],
    above: Float[np.ndarray, " 2"],
) -> dict[str, Any]:
    """Of what was chosen on one half and measured on the other; NaN where nothing could be.

    Args:
        held: what was chosen, and what it got right.
        whole: how much was asked.
        ends: of the interval of the share.
        above: of that of its difference from the rule.
    """
    heads, rules = held.head.sum(axis=1) / whole, held.rule.sum(axis=1) / whole
    # With no split to choose by there are no choices, and ends would be those of zeros.
    if held.most(0) is None:
        ends, above = np.full(2, np.nan), np.full(2, np.nan)
    return {
        "held_best": held.most(0),
        "held_rule": held.most(1),
        "held_out_chosen": held.share_of_most,
        "held_out_count": 0 if held.most(0) is None else int(whole),
        "held_out_accuracy": _over(heads, np.mean),
        "held_out_low": float(ends[0]),
        "held_out_high": float(ends[1]),
        "held_out_spread": _over(heads, np.std),
        "held_out_rule": _over(rules, np.mean),
        "held_out_above": _over(heads - rules, np.mean),
        "held_out_above_low": float(above[0]),
        "held_out_above_high": float(above[1]),
        "held_out_above_spread": _over(heads - rules, np.std),
    }


def _over(values: np.ndarray, what: Any) -> float:
    return float(what(values)) if len(values) else float("nan")


def _mean(rows: Float[np.ndarray, "split document"]) -> Float[np.ndarray, " document"]:
    return rows.mean(axis=0) if len(rows) else np.full(rows.shape[1], np.nan)
