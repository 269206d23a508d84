"""Evidence about heads as a page holds it: labels with their evidence, measures, and examples
to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from headscope.axes import HEAD, LAYER
from headscope.errors import PageError
from headscope.patterns import (
    CLASSES,
    MEASURES,
    PATTERNS,
    RUNS,
    Heads,
    Label,
    Pattern,
    QueryKeyTokens,
)
from headscope.record import Record, Stack
from headscope.views import contract
from headscope.views._payload import Chunks
from headscope.views.constants import valid

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
    evidence: Heads, record: Record, stacks: Sequence[contract.PageStack], chunks: Chunks
) -> contract.PageEvidence:
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
    cells = HeadPositions([one["layer"] for one in stack["layers"]], stack["head_numbers"], known)
    labels = [label for label in evidence.all_labels if (label.layer, label.head) in cells]
    axes, patterns = _axes(evidence), evidence.tally.patterns
    maps = np.stack([cells.grid(values) for _, values in axes])
    texts, pairs = BestTexts(evidence), BestPairs(patterns, record[stack["name"]])
    # Choosing the examples fills `texts.kept`, so this must come before the next line.
    shown = _shown(evidence, labels, texts, pairs)
    examples, name = [valid(text) for text in texts.kept], stack["name"]
    status, numbers = _status_and_numbers(evidence, labels, cells)
    return {
        "stack": name,
        "model": valid(evidence.tally.model),
        "texts": evidence.texts,
        "tokens": None if np.isnan(evidence.tokens) else evidence.tokens,
        "confidence": evidence.confidence,
        "alpha": evidence.alpha,
        "correction": evidence.correction,
        "caution": evidence.caution,
        "patterns": [_pattern(evidence, number) for number in range(len(patterns))],
        "status": chunks.add(f"status/{name}", status, ("pattern", LAYER, HEAD)),
        "numbers": chunks.add(f"numbers/{name}", numbers, ("number", "pattern", LAYER, HEAD)),
        "measures": [measure for measure, _ in axes],
        "values": chunks.add(f"values/{name}", maps, ("measure", LAYER, HEAD)),
        "shown": shown,
        "examples": examples,
    }


def _stack(
    evidence: Heads, record: Record, stacks: Sequence[contract.PageStack]
) -> contract.PageStack:
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
    raise PageError(f"The evidence is of stack {name!r}, which include_layers= leaves out")


def _ends(cells: Sequence[tuple[int, int]]) -> str:
    return " to ".join(f"{layer}-{head}" for layer, head in (cells[0], cells[-1]))


def _pattern(evidence: Heads, number: int) -> contract.PagePattern:
    pattern = evidence.tally.patterns[number]
    against = (label.against for label in evidence.all_labels if label.pattern == pattern.name)
    says = f"{pattern.says}, detected with {RUNS}"
    return {
        "name": valid(pattern.name),
        "says": valid(says if evidence.tally.is_by_battery(pattern) else pattern.says),
        "source": valid(pattern.source),
        "threshold": pattern.threshold,
        "against": next(against, ""),
    }


def _axes(evidence: Heads) -> list[tuple[contract.PageMeasure, np.ndarray]]:
    """What is told of each head, with its values: layer, measures, classes of maps."""
    rows = [("layer", *LAYER_AXIS, np.array([layer for layer, _ in evidence.cells]))]
    for name, values in evidence.measures.items():
        rows.append((name, MEASURES[name].says, MEASURES[name].unit, values))
    for name in CLASSES:
        says = f"share of texts whose map is {name}"
        rows.append((f"class {name}", says, "", evidence.classes[name]))
    return [({"name": name, "says": says, "unit": unit}, of) for name, says, unit, of in rows]


def _status_and_numbers(
    evidence: Heads, labels: Sequence[Label], cells: HeadPositions
) -> tuple[np.ndarray, np.ndarray]:
    """Whether each head holds each label, and the numbers of its evidence."""
    names = [pattern.name for pattern in evidence.tally.patterns]
    shape = (len(names), len(cells.layers), len(cells.heads))
    status = np.full(shape, NONE, np.uint8)
    numbers = np.full((len(NUMBERS), *shape), np.nan, np.float32)
    for label in labels:
        index = (names.index(label.pattern), *cells.index(label.layer, label.head))
        numbers[(slice(None), *index)] = [getattr(label, name) for name in NUMBERS]
        status[index] = HOLDS if label.holds else label.candidate * CANDIDATE
    return status, numbers


def _shown(
    evidence: Heads, labels: Sequence[Label], texts: BestTexts, pairs: BestPairs
) -> list[contract.PageShown]:
    names = [pattern.name for pattern in evidence.tally.patterns]
    told = [label for label in labels if label.holds or label.candidate]
    shown: list[contract.PageShown] = []
    for label in sorted(told, key=lambda label: -label.score)[:MOST_SHOWN]:
        best, pattern = texts.best(label), names.index(label.pattern)
        shown.append(
            {
                "pattern": pattern,
                "layer": label.layer,
                "head": label.head,
                "texts": [text for text, _ in best],
                "scores": [score for _, score in best],
                "pairs": pairs.strongest(pattern, label.layer, label.head),
            }
        )
    return shown


EXAMPLES = 3
LONGEST = 200
"""Characters of an example; longer ones are cut."""
MOST_TEXTS = 400
"""Number of different example texts in a page."""

PAIRS: Mapping[str, Callable[[QueryKeyTokens], np.ndarray]] = {
    "next": lambda tokens: _beside(tokens, 1) & tokens.own_sentence,
    "positional-next": lambda tokens: _beside(tokens, 1) & tokens.own_sentence,
    "previous": lambda tokens: _beside(tokens, -1) & tokens.own_sentence,
    "positional-previous": lambda tokens: _beside(tokens, -1) & tokens.own_sentence,
    **dict.fromkeys(("first-token", "sink"), lambda tokens: np.arange(len(tokens.key)) == 0),
    "previous-token": lambda tokens: _beside(tokens, -1),
    "delimiter": lambda tokens: tokens.delimiters,
    "sink-elsewhere": lambda tokens: tokens.later_sinks,
}
"""The pairs of tokens of patterns that do not depend on content. ``bag`` is missing: no single pair
shows it.
"""


class BestTexts:
    """The best texts of every label, each kept once."""

    def __init__(self, evidence: Heads) -> None:
        tally = evidence.tally
        size = len(tally.patterns), len(evidence.cells)
        self._values = np.array([scores for _, scores in tally.examples]).reshape(-1, *size)
        self._texts = [says for says, _ in tally.examples]
        self._rows = {pattern.name: row for row, pattern in enumerate(tally.patterns)}
        self._cells = {cell: index for index, cell in enumerate(evidence.cells)}
        self._numbers: dict[str, int] = {}

    @property
    def kept(self) -> list[str]:
        """Texts that some label has as an example."""
        return list(self._numbers)

    def best(self, label: Label) -> list[tuple[int, float]]:
        """Index among the kept texts, and score, of each example; fewer where the page is full."""
        scores = self._values[:, self._rows[label.pattern], self._cells[label.layer, label.head]]
        # NaN, on texts that cannot show the pattern, is sorted last and then cut off.
        order = np.argsort(-np.where(np.isnan(scores), -np.inf, scores), kind="stable")
        scored = int((~np.isnan(scores)).sum())
        examples = []
        for index in order[: min(EXAMPLES, scored)]:
            text, score = self._texts[index], float(scores[index])
            cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}\u2026"
            # A full page still takes texts that it already holds for another label.
            if cut in self._numbers or len(self._numbers) < MOST_TEXTS:
                examples.append((self._numbers.setdefault(cut, len(self._numbers)), score))
        return examples


class BestPairs:
    """The pairs of tokens of one text that show a pattern most."""

    def __init__(self, patterns: tuple[Pattern, ...], stack: Stack) -> None:
        self._patterns, self._stack = patterns, stack
        self._tokens = QueryKeyTokens(stack.query, stack.key)
        self._wanted: dict[int, Bool[np.ndarray, "query key"] | None] = {}

    def strongest(self, pattern: int, layer: int, head: int) -> list[contract.PagePair]:
        """The strongest pair of each of the queries that show a pattern most."""
        # Many heads share a pattern, and its pairs depend on the text alone: they are kept.
        if pattern not in self._wanted:
            self._wanted[pattern] = self._pairs(self._patterns[pattern])
        wanted = self._wanted[pattern]
        if wanted is None:
            return []
        shown = np.where(wanted, self._stack.layer(layer).weights_of(head), 0.0)
        keys = shown.argmax(axis=1)
        peaks = shown[np.arange(len(keys)), keys]
        order = np.argsort(-peaks, kind="stable")[:EXAMPLES]
        return [
            {"query": int(query), "key": int(keys[query]), "weight": float(peaks[query])}
            for query in order
            if peaks[query] > 0
        ]

    def _pairs(self, pattern: Pattern) -> Bool[np.ndarray, "query key"] | None:
        if pattern.pairs is not None:
            return pattern.wanted(self._tokens)
        pairs = PAIRS.get(pattern.name) if pattern in PATTERNS else None
        shape = self._tokens.words.shape
        return None if pairs is None else np.broadcast_to(pairs(self._tokens), shape)


def _beside(tokens: QueryKeyTokens, offset: int) -> np.ndarray:
    return np.eye(len(tokens.query), len(tokens.key), k=offset, dtype=bool)
