"""Facts about the tokens and pairs of a text, for the numbers of heads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.record import Layer, Stack, Tokens


@dataclass(frozen=True)
class TextFacts:
    """Facts about tokens and pairs; the same for all layers and heads of a stack.

    Args:
        query: the tokens of the queries.
        key: the tokens of the keys.
        causal: True where a query sees no later key; then the first token counts as special,
            because attention rests on it.
        alone: True where queries and keys are the same tokens; else positions cannot be compared.
    """

    query: Tokens
    key: Tokens
    causal: bool
    alone: bool

    @cached_property
    def words(self) -> Bool[np.ndarray, " query"]:
        """Queries that are not special tokens; all of them where every token is special."""
        return self._words(self.query)

    @cached_property
    def key_words(self) -> Bool[np.ndarray, " key"]:
        """Keys that are not special tokens."""
        return self._words(self.key)

    @cached_property
    def neighbours(self) -> Bool[np.ndarray, " query"]:
        """True for each word whose next token is a word of the same text."""
        segments = np.array(self.query.segments)
        return self.words[:-1] & self.words[1:] & (segments[:-1] == segments[1:])

    @cached_property
    def pair(self) -> bool:
        """Whether there are two texts, so that a head can stay in one of them."""
        return self.alone and len({*np.array(self.query.segments)[self.words]}) > 1

    @cached_property
    def names(self) -> tuple[Int[np.ndarray, " query"], Int[np.ndarray, " key"]]:
        """A number for each token, the same for equal tokens regardless of case; -1 for tokens that
        are not text.
        """
        numbers: dict[str, int] = {}
        sides = []
        for tokens, words in ((self.query, self.words), (self.key, self.key_words)):
            counts = np.array(tokens.worded, bool) & words
            labels = [label.strip().lower() for label in tokens.labels]
            side = [
                numbers.setdefault(label, len(numbers)) if counts[at] else -1
                for at, label in enumerate(labels)
            ]
            sides.append(np.array(side, int))
        return sides[0], sides[1]

    @cached_property
    def own_at(self) -> Float[np.ndarray, " distance"]:
        """Share of pairs of words at each distance that belong to the same text."""
        segments = np.where(self.words, self.query.segments, -1)
        count, own = np.zeros(len(segments)), np.zeros(len(segments))
        for distance in range(len(segments)):
            left, right = segments[: len(segments) - distance], segments[distance:]
            words = (left >= 0) & (right >= 0)
            count[distance] = words.sum()
            own[distance] = (words & (left == right)).sum()
        return np.divide(own, count, out=np.zeros_like(own), where=count > 0)

    def _words(self, tokens: Tokens) -> Bool[np.ndarray, " token"]:
        words = ~np.array(tokens.special, bool)
        if self.causal and len(words) > 1:
            words[0] = False
        return words if words.any() else np.ones(len(words), bool)


def text_facts(stack: Stack) -> TextFacts:
    """The facts about a stack's tokens, for all of its layers."""
    alone = stack.query.pieces == stack.key.pieces
    causal = alone and all(_is_causal(layer) for layer in stack)
    return TextFacts(stack.query, stack.key, causal, alone)


def _is_causal(layer: Layer) -> bool:
    """Whether no query sees a later key: by the mask, or else by the weights."""
    if layer.visible is not None and not layer.visible.is_full:
        queries = np.repeat(np.arange(layer.visible.shape[0]), np.diff(layer.visible.firsts))
        return len(queries) > 0 and bool((layer.visible.runs[:, 1] <= queries + 1).all())
    if layer.weights is None or layer.size[0] < 2:
        return False
    later = np.arange(layer.size[1])[None, :] > np.arange(layer.size[0])[:, None]
    return not any((np.asarray(weights)[later] > 0).any() for weights in layer.weights)
