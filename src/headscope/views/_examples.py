"""Examples for a label: the texts that show it best, and the pairs of tokens that show it on the
shown text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Bool

from headscope.patterns import PATTERNS, Heads, Label, Pattern, QueryKeyTokens
from headscope.record import Stack
from headscope.views.contract import PagePair

EXAMPLES = 3
LONGEST = 200
"""Characters of an example; longer ones are cut."""
MOST_TEXTS = 400
"""Number of different example texts in a page."""

PAIRS: Mapping[str, Callable[[QueryKeyTokens], np.ndarray]] = {
    "next": lambda tokens: _beside(tokens, 1) & tokens.own_sentence,
    "previous": lambda tokens: _beside(tokens, -1) & tokens.own_sentence,
    "positional-next": lambda tokens: _beside(tokens, 1) & tokens.own_sentence,
    "positional-previous": lambda tokens: _beside(tokens, -1) & tokens.own_sentence,
    "previous-token": lambda tokens: _beside(tokens, -1),
    "delimiter": lambda tokens: np.broadcast_to(tokens.delimiters, tokens.words.shape),
    "first-token": lambda tokens: np.broadcast_to(
        np.arange(len(tokens.key)) == 0, tokens.words.shape
    ),
    "sink-elsewhere": lambda tokens: np.broadcast_to(tokens.later_sinks, tokens.words.shape),
    "sink": lambda tokens: np.broadcast_to(np.arange(len(tokens.key)) == 0, tokens.words.shape),
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

    def strongest(self, pattern: int, layer: int, head: int) -> list[PagePair]:
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
        return None if pairs is None else pairs(self._tokens)


def _beside(tokens: QueryKeyTokens, offset: int) -> np.ndarray:
    return np.eye(len(tokens.query), len(tokens.key), k=offset, dtype=bool)
