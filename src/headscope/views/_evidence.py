"""Evidence about heads as a page holds it: labels with their evidence, measures, and examples
to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headscope.axes import HEAD, LAYER
from headscope.errors import PageError
from headscope.patterns import CLASSES, MEASURES, RUNS, Heads, Label
from headscope.record import Record
from headscope.views._examples import BestPairs, BestTexts
from headscope.views._payload import Chunks
from headscope.views.constants import valid
from headscope.views.contract import (
    PageEvidence,
    PageMeasure,
    PagePattern,
    PageShown,
    PageStack,
)

NUMBERS = ("score", "low", "high", "baseline", "effect", "corrected", "texts")
NONE, CANDIDATE, HOLDS = 0, 1, 2
MOST_SHOWN = 1000
"""Number of labels for which the page has examples; those with the highest scores."""
LAYER_AXIS = ("number of the layer, from 0", "")
"""Explanation and unit of the axis of layers, in the form of a measure."""


@dataclass(frozen=True)
class HeadPositions:
    """Row and column of each head of a page, and its index among the measured heads."""

    layers: list[int]
    heads: list[int]
    known: dict[tuple[int, int], int]

    def __contains__(self, cell: tuple[int, int]) -> bool:
        return cell[0] in self.layers and cell[1] in self.heads

    def index(self, layer: int, head: int) -> tuple[int, int]:
        """Row and column of a head in the page."""
        return self.layers.index(layer), self.heads.index(head)

    def grid(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Values of the measured heads as layers x heads of the page; NaN where a layer has no such
        head.
        """
        grid = np.full((len(self.layers), len(self.heads)), np.nan, np.float32)
        for (layer, head), at in self.known.items():
            if (layer, head) in self:
                grid[self.index(layer, head)] = values[at]
        return grid


def page_evidence(
    evidence: Heads, record: Record, stacks: Sequence[PageStack], chunks: Chunks
) -> PageEvidence:
    """The evidence of the heads that a page holds.

    Args:
        evidence: evidence about the same model, over any texts.
        record: the record that the page shows.
        stacks: the stacks that the page holds.
        chunks: takes the bytes of the arrays.

    Raises:
        PageError: where the record has other heads, or the page leaves their stack out.
    """
    stack = _stack(evidence, record, stacks)
    known = {cell: at for at, cell in enumerate(evidence.cells)}
    cells = HeadPositions(
        [layer["layer"] for layer in stack["layers"]], stack["head_numbers"], known
    )
    labels = [label for label in evidence.all_labels if (label.layer, label.head) in cells]
    axes = _axes(evidence)
    maps = np.stack([cells.grid(values) for _, values in axes])
    texts = BestTexts(evidence)
    pairs = BestPairs(evidence.tally.patterns, record[stack["name"]])
    patterns = [_pattern(evidence, number) for number in range(len(evidence.tally.patterns))]
    # Choosing the examples fills `texts.kept`, so this must come before the next line.
    shown = _shown(evidence, labels, texts, pairs)
    examples = [valid(text) for text in texts.kept]
    return {
        "stack": stack["name"],
        "model": valid(evidence.tally.model),
        "texts": evidence.texts,
        "tokens": None if np.isnan(evidence.tokens) else evidence.tokens,
        "confidence": evidence.confidence,
        "alpha": evidence.alpha,
        "correction": evidence.correction,
        "caution": evidence.caution,
        "patterns": patterns,
        "status": chunks.add(
            f"status/{stack['name']}",
            _status(evidence, labels, cells),
            ("pattern", LAYER, HEAD),
            sqrt=False,
        ),
        "numbers": chunks.add(
            f"numbers/{stack['name']}",
            _numbers(evidence, labels, cells),
            ("number", "pattern", LAYER, HEAD),
        ),
        "measures": [measure for measure, _ in axes],
        "values": chunks.add(f"values/{stack['name']}", maps, ("measure", LAYER, HEAD)),
        "shown": shown,
        "examples": examples,
    }


def _stack(evidence: Heads, record: Record, stacks: Sequence[PageStack]) -> PageStack:
    name = evidence.tally.stack or next(iter(record.stacks))
    wanted = list(record[name].held_heads)
    if evidence.cells != wanted:
        raise PageError(
            f"The evidence is of {len(evidence.cells)} heads, {_ends(evidence.cells)}, and stack "
            f"{name!r} of this record has {len(wanted)}, {_ends(wanted)}; give what hs.heads "
            "found for the same model"
        )
    for stack in stacks:
        if stack["name"] == name:
            return stack
    raise PageError(
        f"The evidence is of stack {name!r}, and include_layers= leaves it out of the page"
    )


def _ends(cells: Sequence[tuple[int, int]]) -> str:
    return " to ".join(f"{layer}-{head}" for layer, head in (cells[0], cells[-1]))


def _pattern(evidence: Heads, number: int) -> PagePattern:
    pattern = evidence.tally.patterns[number]
    against = next(
        (label.against for label in evidence.all_labels if label.pattern == pattern.name), ""
    )
    return {
        "name": valid(pattern.name),
        "says": valid(
            f"{pattern.says}, detected with {RUNS}"
            if evidence.tally.is_by_battery(pattern)
            else pattern.says
        ),
        "source": valid(pattern.source),
        "threshold": pattern.threshold,
        "against": against,
    }


def _axes(evidence: Heads) -> list[tuple[PageMeasure, np.ndarray]]:
    """What is told of each head, with its values: layer, measures, classes of maps."""
    says, unit = LAYER_AXIS
    depth = np.array([layer for layer, _ in evidence.cells])
    axes: list[tuple[PageMeasure, np.ndarray]] = [
        ({"name": "layer", "says": says, "unit": unit}, depth)
    ]
    for name, values in evidence.measures.items():
        words: PageMeasure = {
            "name": name,
            "says": MEASURES[name].says,
            "unit": MEASURES[name].unit,
        }
        axes.append((words, values))
    for name in CLASSES:
        says = f"share of texts whose map is {name}"
        words = {"name": f"class {name}", "says": says, "unit": ""}
        axes.append((words, evidence.classes[name]))
    return axes


def _status(evidence: Heads, labels: Sequence[Label], cells: HeadPositions) -> np.ndarray:
    names = [pattern.name for pattern in evidence.tally.patterns]
    status = np.full((len(names), len(cells.layers), len(cells.heads)), NONE, np.uint8)
    for label in labels:
        if label.holds:
            value = HOLDS
        else:
            value = CANDIDATE if label.candidate else NONE
        status[(names.index(label.pattern), *cells.index(label.layer, label.head))] = value
    return status


def _numbers(evidence: Heads, labels: Sequence[Label], cells: HeadPositions) -> np.ndarray:
    names = [pattern.name for pattern in evidence.tally.patterns]
    numbers = np.full(
        (len(NUMBERS), len(names), len(cells.layers), len(cells.heads)), np.nan, np.float32
    )
    for label in labels:
        index = (names.index(label.pattern), *cells.index(label.layer, label.head))
        numbers[(slice(None), *index)] = [getattr(label, name) for name in NUMBERS]
    return numbers


def _shown(
    evidence: Heads, labels: Sequence[Label], texts: BestTexts, pairs: BestPairs
) -> list[PageShown]:
    names = [pattern.name for pattern in evidence.tally.patterns]
    ordered = sorted(
        (label for label in labels if label.holds or label.candidate),
        key=lambda label: -label.score,
    )
    shown: list[PageShown] = []
    for label in ordered[:MOST_SHOWN]:
        best = texts.best(label)
        shown.append(
            {
                "pattern": names.index(label.pattern),
                "layer": label.layer,
                "head": label.head,
                "texts": [text for text, _ in best],
                "scores": [score for _, score in best],
                "pairs": pairs.strongest(names.index(label.pattern), label.layer, label.head),
            }
        )
    return shown
