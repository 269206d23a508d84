"""The pairs of patterns after shuffling the words of a text."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from headscope.evidence import rng_of, shuffled_orders
from headscope.patterns._maps import QueryKeyTokens
from headscope.patterns._pattern import Pattern

SHUFFLES = 8
LIKE_WORDS = 1
"""Seed of the shuffles within kinds of words, which must differ from those among all words."""


class WordShuffles:
    """Several shuffles of the words of a text.

    Args:
        tokens: tokens of the text.
        name: identifier of the text, which is the seed: so its numbers do not depend on the texts
            before it.
        alike: whether words are shuffled only within their kind.
    """

    def __init__(self, tokens: QueryKeyTokens, name: str, *, alike: bool = False) -> None:
        self._tokens, self._name, self._alike = tokens, name, alike

    def pairs(self, pattern: Pattern) -> Bool[np.ndarray, "draw query key"] | None:
        """The pairs of a pattern in each shuffle; None where no shuffle has any."""
        tokens = self._tokens
        # The short way needs whole words: otherwise pieces of one word would be torn apart.
        if pattern.moved is None or not tokens.is_self or not tokens.keeps_words:
            return np.stack([pattern.wanted(each) for each in self._drawn])
        return pattern.moved(tokens, self._orders) if tokens.repeats else None

    @cached_property
    def _drawn(self) -> list[QueryKeyTokens]:
        rng = rng_of(self._name, self._seed)
        return [self._tokens.shuffled(rng, alike=self._alike) for _ in range(SHUFFLES)]

    @cached_property
    def _orders(self) -> Int[np.ndarray, "draw token"]:
        classes = self._tokens.classes[0] if self._alike else None
        rng = rng_of(self._name, self._seed)
        return shuffled_orders(self._tokens.query, rng, SHUFFLES, classes)

    @property
    def _seed(self) -> int:
        return LIKE_WORDS if self._alike else 0
