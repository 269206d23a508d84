"""Which texts a tree shows of each head: drawn evenly from each stratum, and the strongest."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

MOST = 20_000
"""Texts whose largest weights are held, for the strata: those with the smallest hashes."""


@dataclass(frozen=True)
class ChosenText:
    """A text that a tree shows.

    Args:
        number: its place among all texts.
        given: what a model reads.
        strata: of each head that it is shown for, the stratum, from 1.
    """

    number: int
    given: Any
    strata: Mapping[int, int]


class SampleOfTexts:
    """Holds the largest weights of an even sample of the texts, and the strongest texts of each
    head.

    Both go by the hash of what a text says, so that neither depends on the order of the texts, and
    a text that is there twice is drawn once.

    Args:
        heads: how many there are.
        strongest: texts that are held of each.
        most: texts in the sample.
    """

    def __init__(self, heads: int, strongest: int, most: int = MOST) -> None:
        self._most, self._count = most, strongest
        self._maxima: dict[int, np.ndarray] = {}
        self._strongest: list[list[tuple[float, int]]] = [[] for _ in range(heads)]
        # What a text must surpass to be among the strongest: its weight, or at a tie its hash.
        self._weight = np.full(heads, -np.inf)
        self._hash = np.full(heads, 2**64 - 1, np.uint64)
        self._texts: dict[int, tuple[int, Any]] = {}

    def add(self, key: int, text: tuple[int, Any], maxima: Float[np.ndarray, " head"]) -> None:
        """Look at a text.

        Args:
            key: the hash of what it says.
            text: its place among all texts, and what a model reads.
            maxima: its largest weight in each head.
        """
        self._texts.setdefault(key, text)
        self._maxima.setdefault(key, maxima.copy())
        is_tie = (maxima == self._weight) & (np.uint64(key) < self._hash)
        for head in np.flatnonzero((maxima > self._weight) | is_tie).tolist():
            self._add_strong(head, float(maxima[head]), key)
        # Twice as many at times, so that sorting costs little.
        if len(self._maxima) > 2 * self._most:
            self._prune()

    def _add_strong(self, head: int, weight: float, key: int) -> None:
        strong = self._strongest[head]
        if any(key == other for _, other in strong):
            return
        bisect.insort(strong, (-weight, key))
        del strong[self._count :]
        if len(strong) == self._count:
            self._weight[head], self._hash[head] = -strong[-1][0], strong[-1][1]

    def _prune(self) -> None:
        kept = sorted(self._maxima)[: self._most]
        self._maxima = {key: self._maxima[key] for key in kept}
        strong = {key for head in self._strongest for _, key in head}
        self._texts = {key: self._texts[key] for key in {*kept, *strong}}

    def chosen(self, strata: int, of_stratum: int) -> list[ChosenText]:
        """The texts to show, by their hashes.

        Args:
            strata: equal parts of the texts by the largest weight; of the last one the strongest
                texts are taken, of the others those with the smallest hashes.
            of_stratum: texts of each but the last.
        """
        self._prune()
        keys = sorted(self._maxima)
        maxima = np.stack([self._maxima[key] for key in keys])
        numbers: dict[int, dict[int, int]] = {}
        for head, strong in enumerate(self._strongest):
            borders = borders_of(maxima[:, head], strata)
            stratum = np.searchsorted(borders, maxima[:, head], side="right") + 1
            for number in range(1, strata):
                for index in np.flatnonzero(stratum == number)[:of_stratum].tolist():
                    numbers.setdefault(keys[index], {})[head] = number
            for negative, key in strong:
                if not len(borders) or -negative >= borders[-1]:
                    numbers.setdefault(key, {})[head] = strata
        return [ChosenText(*self._texts[key], numbers[key]) for key in sorted(numbers)]


def borders_of(maxima: Float[np.ndarray, " text"], strata: int) -> Float[np.ndarray, " border"]:
    """Where each stratum but the first begins: equal parts of the sorted values.

    Example:
        >>> borders_of(np.array([0.1, 0.4, 0.2, 0.3]), 2).tolist()
        [0.3]
    """
    ordered = np.sort(maxima)
    at: Int[np.ndarray, " border"] = np.array(
        [min(round(at * len(ordered) / strata), len(ordered) - 1) for at in range(1, strata)], int
    )
    return ordered[at]
