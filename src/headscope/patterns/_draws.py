"""The pairs that patterns look for, in a text and after its words changed places."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from headscope.evidence import rng_of, shuffled_orders
from headscope.patterns._maps import Sides
from headscope.patterns._pattern import Pattern

SHUFFLES = 8
LIKE_WORDS = 1
"""Seed of the draws of words among their kind, which are other draws than those among all words."""


class Draws:
    """A text whose words changed places, some times over.

    Args:
        sides: of the text.
        name: what tells the text from others: draws are keyed by it, so that its numbers do not
            change with the texts before it.
        alike: whether words change places only with words of their kind.
    """

    def __init__(self, sides: Sides, name: str, *, alike: bool = False) -> None:
        self._sides, self._name, self._alike = sides, name, alike

    def pairs(self, pattern: Pattern) -> Bool[np.ndarray, "draw query key"] | None:
        """What a pattern looks for in each draw; None where there is nothing in any."""
        sides = self._sides
        if pattern.moved is None or not sides.is_self or not sides.keeps_words:
            return np.stack([pattern.wanted(each) for each in self._drawn])
        return pattern.moved(sides, self._orders) if sides.repeats else None

    @cached_property
    def _drawn(self) -> list[Sides]:
        rng = rng_of(self._name, self._seed)
        return [self._sides.shuffled(rng, alike=self._alike) for _ in range(SHUFFLES)]

    @cached_property
    def _orders(self) -> Int[np.ndarray, "draw token"]:
        classes = self._sides.classes[0] if self._alike else None
        rng = rng_of(self._name, self._seed)
        return shuffled_orders(self._sides.query, rng, SHUFFLES, classes)

    @property
    def _seed(self) -> int:
        return LIKE_WORDS if self._alike else 0
