"""The words of several texts of one length as numbers, so that their pairs and shuffles take a few
operations on arrays for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from headscope.evidence import orders_of_words, rng_of
from headscope.patterns._maps import QueryKeyTokens, numbered

SHUFFLES = 8
LIKE_WORDS = 1
"""Seed of the shuffles within kinds of words, which must differ from those among all words."""


class BatchWords:
    """The words of texts of one length, each looking at itself.

    Args:
        texts: tokens of each text, whose words stay whole when they are shuffled
            (`QueryKeyTokens.keeps_words`). What each says is the seed of its shuffles, so that its
            numbers do not depend on the texts beside it.

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
