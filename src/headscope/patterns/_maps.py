"""The attention of one layer on one text, and facts about its tokens, for patterns."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.evidence import orders_of_words, rng_of, shuffled_tokens
from headscope.measures import (
    other_segment,
    row_peaks,
    same_form,
    same_segment,
    token_class,
    word_classes,
    word_forms,
    words,
)
from headscope.record import Layer, Stack, Tokens


@dataclass(frozen=True, eq=False)
class QueryKeyTokens:
    """The query and key tokens of a text, with facts about them that patterns use; each fact is
    computed once for all layers.

    Args:
        query: query tokens.
        key: key tokens.
    """

    query: Tokens
    key: Tokens

    @cached_property
    def is_self(self) -> bool:
        """Whether queries and keys are the same tokens; otherwise offsets have no meaning."""
        # Mostly one object, whose fields need not be compared.
        return self.query is self.key or self.query == self.key

    @cached_property
    def said(self) -> str:
        """What the text says: random draws for it depend on nothing else."""
        return "\0".join((*self.query.pieces, *(() if self.is_self else self.key.pieces)))

    @cached_property
    def is_pair(self) -> bool:
        """Whether there are words of two texts."""
        return bool(self.other_sentence.any())

    @cached_property
    def query_words(self) -> Bool[np.ndarray, " query"]:
        """Query tokens that are text and not special tokens."""
        return ~token_class(self.query, "special")

    @cached_property
    def key_words(self) -> Bool[np.ndarray, " key"]:
        """Key tokens that are text and not special tokens."""
        return ~token_class(self.key, "special")

    @cached_property
    def delimiters(self) -> Bool[np.ndarray, " key"]:
        """Delimiters such as [CLS] and [SEP]."""
        return token_class(self.key, "delimiter")

    @cached_property
    def later_sinks(self) -> Bool[np.ndarray, " key"]:
        """Tokens besides the first one that are often sinks: the first full stop, the first line
        break, and tokens such as [SEP].

        Source: Sun et al. 2024 (Massive Activations in Large Language Models), section 2; Clark et
        al. 2019 for [SEP].
        """
        sinks = token_class(self.key, "sep").copy()
        labels = [label.strip(" ") for label in self.key.labels]
        for mark in (".", "\n"):
            if mark in labels:
                sinks[labels.index(mark)] = True
        sinks[0] = False
        return sinks

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
        """Pairs of different words of the same form."""
        return same_form(self.query, self.key, itself=False)

    @cached_property
    def names(self) -> Int[np.ndarray, " query"]:
        """A number for each query token, the same for equal pieces; each patch or frame has a
        number of its own.
        """
        names: Sequence[int | str] = self.query.pieces
        if not all(self.query.worded):
            named = enumerate(zip(self.query.pieces, self.query.worded, strict=True))
            names = [piece if worded else number for number, (piece, worded) in named]
        return numbered(names)

    @cached_property
    def forms(self) -> list[str]:
        """The form of the word that each query token belongs to; see `headscope.measures.form`."""
        return word_forms(self.query)

    @cached_property
    def layout(self) -> tuple[Any, ...]:
        """A key for all facts except `same_word`, `names`, `forms`, `classes` and `later_sinks`:
        texts of one layout differ only in their words.
        """
        sides = [self.query] if self.is_self else [self.query, self.key]
        kinds = [(side.special, side.segments) for side in sides]
        return (*kinds, self.delimiters.tobytes())

    @cached_property
    def classes(self) -> tuple[list[str], list[str]]:
        """Kind of word of every query token and of every key token."""
        query = word_classes(self.query)
        return query, query if self.is_self else word_classes(self.key)

    def shuffled(self, rng: np.random.Generator, *, alike: bool = False) -> QueryKeyTokens:
        """The tokens after shuffling the words of each sentence, in the same way among queries and
        keys where both are the same tokens.

        Args:
            rng: the random generator.
            alike: whether words are shuffled only within their kind; see `word_classes`.
        """
        of_query, of_key = self.classes if alike else (None, None)
        query = shuffled_tokens(self.query, rng, of_query)
        return QueryKeyTokens(
            query, query if self.is_self else shuffled_tokens(self.key, rng, of_key)
        )


def numbered(names: Sequence[int | str]) -> Int[np.ndarray, " token"]:
    """A number for each token, the same for equal names, in the order in which they come.

    Example:
        >>> numbered(["to", "be", "or", "to"]).tolist()
        [0, 1, 2, 0]
    """
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], int)


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """The attention of the heads of one layer on one text.

    Args:
        weights: the weights in float64.
        tokens: the tokens.
        visible: True where a query may look.
    """

    weights: Float[np.ndarray, "head query key"]
    tokens: QueryKeyTokens
    visible: Bool[np.ndarray, "query key"]

    @cached_property
    def seeing(self) -> Bool[np.ndarray, " query"]:
        """Queries that may look at some key; the rows of all others are zero and do not count."""
        return np.asarray(self.visible.any(axis=1))

    @cached_property
    def peaks(self) -> tuple[Float[np.ndarray, "head query"], Int[np.ndarray, "head query"]]:
        """The largest weight of each row, and how many keys share it; found once for all that need
        it.
        """
        return row_peaks(self.weights)


def maps_of(stack: Stack, layer: Layer, tokens: QueryKeyTokens | None = None) -> AttentionMaps:
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
    return AttentionMaps(weights, tokens or QueryKeyTokens(stack.query, stack.key), visible)


SHUFFLES = 8
LIKE_WORDS = 1
"""Seed of the shuffles within kinds of words, which must differ from those among all words."""


class BatchWords:
    """The words of texts of one length, each looking at itself.

    Args:
        texts: tokens of each text. The text of each is the seed of its shuffles, so its numbers
            do not depend on the texts beside it.

    Example:
        >>> from headscope.record import Tokens
        >>> tokens = Tokens(pieces=("[CLS]", "a", "cat", "a", "[SEP]"))
        >>> words = BatchWords([QueryKeyTokens(tokens, tokens)])
        >>> words.same(words.unmoved)[0, 0, 1].astype(int).tolist()
        [0, 0, 0, 1, 0]
    """

    def __init__(self, texts: Sequence[QueryKeyTokens]) -> None:
        self._texts = texts
        sides = [text.query for text in texts]
        self.pieces: Int[np.ndarray, "text token"] = np.stack([text.names for text in texts])
        """A number for each piece, the same for equal pieces of a text."""
        self.text: Bool[np.ndarray, "text token"] = np.stack([text.query_words for text in texts])
        """True for tokens that stand for text, and are not special tokens."""
        self._worded = np.array([side.worded for side in sides], bool)
        self._segments = np.array([side.segments for side in sides], int)
        self._starts = ~np.array([side.continues for side in sides], bool)

    def take(self, indices: Sequence[int]) -> BatchWords:
        """Some of the texts, with all that is known of them already."""
        taken = copy(self)
        taken._texts = [self._texts[index] for index in indices]
        known = {name: array for name, array in vars(self).items() if isinstance(array, np.ndarray)}
        for name, array in known.items():
            setattr(taken, name, array[indices])
        return taken

    @cached_property
    def repeats(self) -> Bool[np.ndarray, " text"]:
        """Texts in which a word or a token occurs more than once."""
        ordered = np.sort(self.pieces, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        return twice | self._same.any(axis=(1, 2))

    @property
    def unmoved(self) -> Int[np.ndarray, "text draw token"]:
        """The order of the texts themselves, as one draw."""
        texts, tokens = self.pieces.shape
        return np.broadcast_to(np.arange(tokens), (texts, 1, tokens))

    def orders(self, *, alike: bool = False) -> Int[np.ndarray, "text draw token"]:
        """Which token comes to each place in every shuffle of the words of each text.

        Args:
            alike: whether words are shuffled only within their kind.
        """
        seed = LIKE_WORDS if alike else 0
        shape = SHUFFLES, self.pieces.shape[1]
        random = np.stack([rng_of(text.said, seed).random(shape) for text in self._texts])
        classes = None
        if alike:
            classes = np.stack([numbered(text.classes[0]) for text in self._texts])
        return orders_of_words(
            random, self.text, self._segments, starts=self._starts, classes=classes
        )

    def same(
        self, orders: Int[np.ndarray, "text draw token"]
    ) -> Bool[np.ndarray, "text draw token token"]:
        """Pairs of different words of the same form after the tokens changed places; see
        `QueryKeyTokens.same_word`.
        """
        texts, tokens = self.pieces.shape
        rows = np.arange(texts)[:, None] * tokens + orders.reshape(texts, -1)
        flat = (rows.reshape(orders.shape) * tokens)[..., None] + orders[..., None, :]
        return self._same.reshape(-1)[flat]

    def followed(
        self, orders: Int[np.ndarray, "text draw token"]
    ) -> Bool[np.ndarray, "text draw token token"]:
        """Pairs of a word and what followed its piece before, after the tokens changed places; see
        `headscope.measures.prefix_targets`.
        """
        pieces = np.take_along_axis(self.pieces[:, None], orders, axis=2)
        pairs = np.zeros((*orders.shape, orders.shape[2]), bool)
        # The target is the token after an earlier occurrence of the query's token: pairs with an
        # equal, earlier key, moved by one key.
        earlier = np.tri(orders.shape[2], k=-1, dtype=bool)
        np.logical_and(
            pieces[..., :, None] == pieces[..., None, :-1], earlier[:, :-1], out=pairs[..., 1:]
        )
        pairs &= self._pairs[:, None]
        return pairs

    @cached_property
    def other_text(self) -> Bool[np.ndarray, "text token token"]:
        """Pairs of words of different texts of a pair."""
        return self._pairs & (self._segments[:, :, None] != self._segments[:, None, :])

    @cached_property
    def _pairs(self) -> Bool[np.ndarray, "text token token"]:
        return self.text[:, :, None] & self.text[:, None, :]

    @cached_property
    def _same(self) -> Bool[np.ndarray, "text token token"]:
        forms = np.stack([numbered(text.forms) for text in self._texts])
        words = np.cumsum(self._starts, axis=1)
        counted = self._worded & self.text
        pairs = (forms[:, :, None] == forms[:, None, :]) & (words[:, :, None] != words[:, None, :])
        pairs &= counted[:, :, None] & counted[:, None, :]
        return pairs
