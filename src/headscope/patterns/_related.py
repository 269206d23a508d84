"""Words of similar meaning, by the model's own input embeddings."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.measures import related
from headscope.patterns._maps import QueryKeyTokens
from headscope.patterns._pattern import Pattern
from headscope.record import Tokens

NEAREST, THRESHOLD = 20, 0.3
CACHED_WORDS = 20_000
SOURCE = (
    "Vig 2019; ours: by the cosine of input embeddings, as near as the {} nearest of the vocabulary"
)


def related_patterns(
    embeddings: Float[np.ndarray, "vocabulary feature"],
    *,
    nearest: int = NEAREST,
    threshold: float = THRESHOLD,
) -> tuple[Pattern, Pattern]:
    """Patterns of Vig's related words, anywhere (`related`) and in the other sentence
    (`related-other`).

    Two words are related where the cosine of their embeddings is at least that of the first one and
    its ``nearest``-th nearest token of the vocabulary: cat and kitten, bought and purchased. The
    embedding of a word of several pieces is their mean. The same form belongs to the pattern `same`
    instead.

    Source: Vig 2019, patterns 3 and 4 ("identical or related words"); what is related is ours.

    Args:
        embeddings: the model's input embeddings, one row for each token of the vocabulary.
        nearest: number of tokens of the vocabulary that count as near, without the word's own.
        threshold: smallest mean mass on related words for the label; ours.

    Raises:
        RecordError: where the vocabulary has no more tokens than that; on a text whose record keeps
            no vocabulary numbers, or has numbers beyond the embeddings.

    Example:
        >>> vocabulary = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
        >>> [pattern.name for pattern in related_patterns(vocabulary, nearest=1)]
        ['related', 'related-other']
    """
    if not 0 < nearest < len(embeddings):
        raise RecordError(
            f"The {nearest} nearest of {len(embeddings)} tokens were asked for; ask for fewer, at "
            "least 1"
        )
    return named_related(_Related(embeddings, nearest), nearest=nearest, threshold=threshold)


def named_related(
    pairs: Callable[[QueryKeyTokens], np.ndarray],
    *,
    nearest: int = NEAREST,
    threshold: float = THRESHOLD,
) -> tuple[Pattern, Pattern]:
    """The patterns of `related_patterns`, of any function that gives the pairs."""
    source = SOURCE.format(nearest)
    return (
        Pattern(
            name="related",
            says="looks at related words",
            source=source,
            threshold=threshold,
            pairs=pairs,
        ),
        Pattern(
            name="related-other",
            says="looks at related words in the other sentence",
            source=source,
            threshold=threshold,
            pairs=lambda tokens: pairs(tokens) & tokens.other_sentence,
        ),
    )


class _Related:
    def __init__(self, embeddings: Float[np.ndarray, "vocabulary feature"], nearest: int) -> None:
        self.embeddings, self.nearest = embeddings, nearest
        self.lengths = np.maximum(
            np.linalg.norm(embeddings, axis=1), np.finfo(embeddings.dtype).tiny
        )
        self.least = lru_cache(maxsize=CACHED_WORDS)(self._least)

    def __call__(self, tokens: QueryKeyTokens) -> Bool[np.ndarray, "query key"]:
        queries, keys = self._words(tokens.query), self._words(tokens.key)
        least = np.array([self.least(word) for word in queries])
        wanted = related(
            tokens.query, tokens.key, self._vectors(queries), self._vectors(keys), threshold=least
        )
        if tokens.is_self:
            occurrence = np.cumsum(~np.array(tokens.query.continues, bool))
            wanted &= occurrence[:, None] != occurrence
        return wanted & ~tokens.same_word

    def _words(self, tokens: Tokens) -> list[tuple[int, ...]]:
        """For each token the vocabulary numbers of its whole word."""
        if tokens.ids is None:
            raise RecordError(
                "Related words need the vocabulary numbers of the tokens, which this record does "
                "not keep"
            )
        if tokens.ids and max(tokens.ids) >= len(self.embeddings):
            raise RecordError(
                f"Token {max(tokens.ids)} has no embedding: {len(self.embeddings)} were given; "
                "give those of the model"
            )
        runs = tokens.whole_words.tokens
        words = [tuple(tokens.ids[position] for position in run) for run in runs]
        return [word for word in words for _ in word]

    def _vector(self, word: tuple[int, ...]) -> Float[np.ndarray, " feature"]:
        return self.embeddings[list(word)].mean(axis=0)

    def _vectors(self, words: list[tuple[int, ...]]) -> Float[np.ndarray, "token feature"]:
        return np.stack([self._vector(word) for word in words]).astype(np.float64)

    def _least(self, word: tuple[int, ...]) -> float:
        """The smallest cosine of a related word, less a little for rounding errors."""
        vector = self._vector(word)
        cosines = (
            self.embeddings @ vector / (self.lengths * max(float(np.linalg.norm(vector)), 1e-30))
        )
        # The word itself is its nearest neighbour and must not count.
        cosines[list(word)] = -np.inf
        return float(np.partition(cosines, -self.nearest)[-self.nearest]) - 1e-6
