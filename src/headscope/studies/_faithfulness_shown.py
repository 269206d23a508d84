"""Faithfulness as it is printed, and the names of its numbers."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from headscope.evidence import length_text
from headscope.results import TextTable

if TYPE_CHECKING:
    from headscope.studies.faithfulness import Faithfulness

SIGNALS = ("attention", "contribution", "rollout", "alti", "gradient", "leave_one_out", "random")
AGAINST = ("gradient", "leave_one_out")
AGREEMENT = ("kendall", "spearman")
ERASURE = ("comprehensiveness", "sufficiency")
PERMUTED, ADVERSARIAL = "output moved, attention shuffled", "attention moved, output held"
Name = tuple[str, str, str]
"""A measure, a signal and what it is set against."""
SAYS = {
    "kendall, gradient": "rank correlation (tau-b) with gradient times input",
    "spearman, gradient": "the same by Spearman's rho",
    "kendall, leave_one_out": "rank correlation (tau-b) with the change when a token is left out",
    "spearman, leave_one_out": "the same by Spearman's rho",
    "comprehensiveness": (
        "what the answer loses without the tokens of the highest rank, mean over shares"
    ),
    "sufficiency": "what it loses with these alone",
}
"""The legend of the tables."""


def summary_of(result: Faithfulness) -> str:
    """How far attention agrees with the gradient and with leaving tokens out."""
    parts = []
    for against, words in zip(AGAINST, ("the gradient", "leaving tokens out"), strict=True):
        name = ("kendall", "attention", against)
        if name in result.means:
            parts.append(f"Kendall's tau {result.means[name][0]:.2f} with {words}")
    length = length_text(result.sums.lengths)
    texts = f"{result.texts} texts, {length} without special ones"
    agreement = " and ".join(parts) or "no rank correlation, since all ties"
    return f"{result.model or 'a model'}: {texts}. Attention has {agreement}"


def blocks_of(result: Faithfulness) -> list[TextTable | str]:
    """The tables of agreement and erasure, and what counterfactual attention did."""
    first = f"mean (standard deviation) [{result.confidence:.0%} interval over {result.over}]"
    missing = [f"{name} is left out: {why}" for name, why in result.missing.items()]
    blocks: list[TextTable | str] = [first, *_tables(result), "\n".join(missing)]
    if result.control is not None:
        blocks += ["The same with random weights:", *_tables(result.control)]
    return blocks


def _tables(result: Faithfulness) -> list[TextTable | str]:
    agreement = [
        (f"{measure}, {against}", measure, against)
        for against, measure in product(AGAINST, AGREEMENT)
    ]
    erasure = [(measure, measure, "") for measure in ERASURE]
    lines = []
    for measure, unit in (
        (PERMUTED, "median total variation distance"),
        (ADVERSARIAL, "nats, log 2 at most"),
    ):
        name = (measure, "attention", "")
        if name in result.means:
            texts = result.means[name][-1]
            lines.append(f"{measure}: {_cell(result, name)} ({unit}; {texts} texts)")
    tables = [_table(result, "signal", agreement), _table(result, "erasure by", erasure)]
    return [*tables, "\n".join(lines)]


def _table(result: Faithfulness, corner: str, columns: list[tuple[str, str, str]]) -> TextTable:
    rows = [[corner, *(title for title, _, _ in columns)]]
    for signal in result.signals:
        cells = [_cell(result, (measure, signal, against)) for _, measure, against in columns]
        rows.append([signal, *cells])
    return TextTable.of_rows(rows, align="right", says=SAYS)


def _cell(result: Faithfulness, name: Name) -> str:
    if name not in result.means:
        return "-"
    mean, deviation, low, high, _ = result.means[name]
    ends = "" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]"
    return f"{mean:.2f} ({deviation:.2f}){ends}"
