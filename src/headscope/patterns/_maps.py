"""What a pattern looks at: the attention of one layer on one text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from headscope.evidence import shuffled_tokens
from headscope.measures import (
    other_segment,
    same_form,
    same_segment,
    token_class,
    word_classes,
    words,
)
from headscope.record import Layer, Stack, Tokens


@dataclass(frozen=True, eq=False)
class Sides:
    """The tokens of a text, and which of them belong together; worked out once for all layers.

    Args:
        query: tokens that look.
        key: tokens that are looked at.
    """

    query: Tokens
    key: Tokens

    @cached_property
    def is_self(self) -> bool:
        """Whether tokens look at themselves: offsets mean nothing in cross-attention."""
        return self.query == self.key

    @cached_property
    def is_pair(self) -> bool:
        """Whether there are words of two texts."""
        return bool(self.other_sentence.any())

    @cached_property
    def query_words(self) -> Bool[np.ndarray, " query"]:
        """Tokens that look and stand for text."""
        return ~token_class(self.query, "special")

    @cached_property
    def key_words(self) -> Bool[np.ndarray, " key"]:
        """Tokens that are looked at and stand for text."""
        return ~token_class(self.key, "special")

    @cached_property
    def delimiters(self) -> Bool[np.ndarray, " key"]:
        """[CLS], [SEP] and their like."""
        return token_class(self.key, "delimiter")

    @cached_property
    def later_sinks(self) -> Bool[np.ndarray, " key"]:
        """Where sinks are seen beside the first token: the first full stop, the first line break,
        [SEP] and its like.

        Source: Sun et al. 2024 (Massive Activations in Large Language Models), section 2; Clark et
        al. 2019 for [SEP].
        """
        places = token_class(self.key, "sep").copy()
        for mark in (".", "\n"):
            at = [
                number for number, label in enumerate(self.key.labels) if label.strip(" ") == mark
            ]
            places[at[:1]] = True
        places[0] = False
        return places

    @cached_property
    def words(self) -> Bool[np.ndarray, "query key"]:
        """Pairs of words."""
        return words(self.query, self.key)

    @cached_property
    def own_sentence(self) -> Bool[np.ndarray, "query key"]:
        """Pairs of words of the same text."""
        return same_segment(self.query, self.key)

    @cached_property
    def other_sentence(self) -> Bool[np.ndarray, "query key"]:
        """Pairs of words of different texts."""
        return other_segment(self.query, self.key)

    @cached_property
    def same_word(self) -> Bool[np.ndarray, "query key"]:
        """Pairs of words of the same form, the word itself included, for the words that occur more
        than once.
        """
        others = same_form(self.query, self.key, itself=False)
        return same_form(self.query, self.key) & others.any(axis=1, keepdims=True)

    @cached_property
    def classes(self) -> tuple[list[str], list[str]]:
        """Kind of word of every token that looks, and that is looked at."""
        query = word_classes(self.query)
        return query, query if self.is_self else word_classes(self.key)

    def shuffled(self, rng: np.random.Generator, *, alike: bool = False) -> Sides:
        """The tokens after the words of each sentence changed places, on both sides alike where
        both are the same.

        Args:
            rng: where the randomness comes from.
            alike: whether words change places only with words of their kind; see `word_classes`.
        """
        of_query, of_key = self.classes if alike else (None, None)
        query = shuffled_tokens(self.query, rng, of_query)
        return Sides(query, query if self.is_self else shuffled_tokens(self.key, rng, of_key))


@dataclass(frozen=True, eq=False)
class Maps:
    """The attention of the heads of one layer on one text.

    Args:
        weights: in float64.
        sides: the tokens.
        visible: True where a query may look.
    """

    weights: Float[np.ndarray, "head query key"]
    sides: Sides
    visible: Bool[np.ndarray, "query key"]

    @cached_property
    def seeing(self) -> Bool[np.ndarray, " query"]:
        """Queries that may look at anything at all; the rows of the others are all zero and do not
        count.
        """
        return np.asarray(self.visible.any(axis=1))


def maps_of(stack: Stack, layer: Layer, sides: Sides | None = None) -> Maps:
    """The maps of the heads of one layer that a record holds.

    Raises:
        RecordError: where neither weights nor queries and keys were kept.

    Example:
        >>> from headscope.testing import random_record
        >>> stack = random_record()["cross"]
        >>> maps_of(stack, stack.layers[0]).weights.shape
        (3, 5, 7)
    """
    visible = layer.visible.dense()
    weights = np.asarray(layer.held_weights(), np.float64)
    return Maps(weights, sides or Sides(stack.query, stack.key), visible)
