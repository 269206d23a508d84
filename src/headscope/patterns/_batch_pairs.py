"""The pairs that patterns of content want, of all texts of a batch: in each text, and after
shuffling its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float

from headscope.evidence import rng_of
from headscope.patterns._maps import LIKE_WORDS, SHUFFLES, BatchWords, QueryKeyTokens
from headscope.patterns._pattern import Pattern

KINDS_OF_PAIRS = 3
"""The text itself, its words shuffled, and its words shuffled within their kind."""


class BatchPairs:
    """Pairs of patterns in texts of one length, as factors of a product with their maps.

    The mean mass on pairs is a weighted sum over the map, so that one product gives the scores of
    all patterns and shuffles.

    Args:
        patterns: patterns that are made of pairs.
        texts: tokens of each text.
    """

    def __init__(self, patterns: Sequence[Pattern], texts: Sequence[QueryKeyTokens]) -> None:
        self._patterns, self._texts = patterns, texts
        # Words in parts would join when they are moved, so that each shuffle is read anew.
        self._whole = [
            index for index, text in enumerate(texts) if text.is_self and text.keeps_words
        ]

    def factors(
        self, visible: Bool[np.ndarray, "query key"]
    ) -> tuple[Float[np.ndarray, "text column pair"], Bool[np.ndarray, "text column"]]:
        """Factors of the pairs that queries may look at, three columns for each pattern; False
        where a text has no pair, whose factors are 0.
        """
        shape = len(self._texts), KINDS_OF_PAIRS * len(self._patterns)
        wanted, known = np.zeros((*shape, visible.size)), np.zeros(shape, bool)
        hides = not visible.all()
        for indices, column, pairs in self._all():
            seen = pairs & visible if hides else pairs
            shares, any_pair = _mean_over_queries(seen)
            wanted[indices, column], known[indices, column] = shares, any_pair
        return wanted, known

    def _all(self) -> Iterator[tuple[list[int], int, Bool[np.ndarray, "text draw query key"]]]:
        """Places of texts, column, and their pairs in every draw."""
        yield from self._moved()
        for number, pattern in enumerate(self._patterns):
            whole = set() if pattern.moved is None else set(self._whole)
            for index, text in enumerate(self._texts):
                if index not in whole:
                    for kind, pairs in _kinds_of(pattern, text):
                        yield [index], KINDS_OF_PAIRS * number + kind, pairs[None]

    def _moved(self) -> Iterator[tuple[list[int], int, Bool[np.ndarray, "text draw query key"]]]:
        """Those that follow from the order of the words, of all texts at once."""
        moved = [(number, each) for number, each in enumerate(self._patterns) if each.moved]
        if not moved or not self._whole:
            return
        words = BatchWords([self._texts[index] for index in self._whole])
        repeating = np.flatnonzero(words.repeats).tolist()
        if not repeating:
            return
        indices = [self._whole[place] for place in repeating]
        words = words.take(repeating)
        orders = words.unmoved, words.orders(), words.orders(alike=True)
        for number, pattern in moved:
            for kind in range(KINDS_OF_PAIRS):
                if _is_compared(pattern, kind) and pattern.moved is not None:
                    pairs = pattern.moved(words, orders[kind])
                    if pairs is not None:
                        yield indices, KINDS_OF_PAIRS * number + kind, pairs


def _is_compared(pattern: Pattern, kind: int) -> bool:
    """Whether a pattern has this kind of pairs; of shuffles, those that it is compared with."""
    if kind == 0:
        return True
    return not pattern.by_place and (kind == 1 or pattern.by_word)


def _kinds_of(
    pattern: Pattern, tokens: QueryKeyTokens
) -> Iterator[tuple[int, Bool[np.ndarray, "draw query key"]]]:
    """The pairs of a pattern in one text, by their kind."""
    yield 0, pattern.wanted(tokens)[None]
    for kind in (1, 2):
        if _is_compared(pattern, kind):
            alike = kind == 2
            rng = rng_of(tokens.said, LIKE_WORDS if alike else 0)
            drawn = (tokens.shuffled(rng, alike=alike) for _ in range(SHUFFLES))
            yield kind, np.stack([pattern.wanted(each) for each in drawn])


def _mean_over_queries(
    pairs: Bool[np.ndarray, "text draw query key"],
) -> tuple[Float[np.ndarray, "text pair"], Bool[np.ndarray, " text"]]:
    """The factors whose product with a map is its `mass_on_pairs`, as a mean over the draws that
    have any pair; and whether any has one.
    """
    counts = pairs.any(axis=3).sum(axis=2)
    known = counts > 0
    draws = np.maximum(1, known.sum(axis=1, keepdims=True))
    shares = np.divide(1.0, counts, out=np.zeros(counts.shape), where=known) / draws
    flat = pairs.reshape(*counts.shape, -1).astype(np.float64)
    return (shares[:, None] @ flat)[:, 0], known.any(axis=1)
