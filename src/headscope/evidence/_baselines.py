"""What a score would be without the pattern."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError
from headscope.evidence._statistic import Statistic
from headscope.record import Record, Tokens


def uniform_map(visible: Bool[np.ndarray, "query key"]) -> Float[np.ndarray, "1 query key"]:
    """The head that looks at everything it may look at alike.

    Args:
        visible: True where a query may look; a query that may look at nothing keeps a row of zeros.

    Example:
        >>> uniform_map(np.array([[True, False], [True, True]])).tolist()
        [[[1.0, 0.0], [0.5, 0.5]]]
    """
    counts = visible.sum(axis=1, keepdims=True)
    return np.divide(visible, counts, out=np.zeros(visible.shape), where=counts > 0)[None]


def shuffled_tokens(
    tokens: Tokens, rng: np.random.Generator, classes: Sequence[str] | None = None
) -> Tokens:
    """The tokens after the words of each sentence changed places: for what a head hits that follows
    positions only.

    Scores are then taken of the same map with these tokens. Words keep their pieces together and
    stay in their sentence, and special tokens stay where they are: a head that looks far, or back,
    would else hit the true pairs of a pattern more often than the shuffled ones without heeding any
    word.

    Args:
        tokens: of one side of a stack.
        rng: where the randomness comes from.
        classes: kind of word of each token, such as `headscope.measures.word_classes`: words then
            change places only with words of their kind and of as many pieces, so that every place
            keeps its kind of word. That is for what a head hits that follows kinds of words only.

    Example:
        >>> tokens = Tokens(pieces=("[CLS]", "straw", "##berries", "taste", "good", "[SEP]"))
        >>> shuffled_tokens(tokens, np.random.default_rng(0)).pieces
        ('[CLS]', 'good', 'straw', '##berries', 'taste', '[SEP]')
    """
    return tokens.take(shuffled_orders(tokens, rng, 1, classes)[0].tolist())


def shuffled_orders(
    tokens: Tokens, rng: np.random.Generator, count: int, classes: Sequence[str] | None = None
) -> Int[np.ndarray, "draw token"]:
    """Which token comes to each place, in so many draws of `shuffled_tokens` one after the other.

    Args:
        tokens: as of `shuffled_tokens`.
        rng: likewise.
        count: how many draws.
        classes: likewise.

    Example:
        >>> tokens = Tokens(pieces=("[CLS]", "a", "b", "c", "[SEP]"))
        >>> shuffled_orders(tokens, np.random.default_rng(0), 2).tolist()
        [[0, 3, 1, 2, 4], [0, 3, 2, 1, 4]]
    """
    orders = np.tile(np.arange(len(tokens)), (count, 1))
    # A block is a word with all of its pieces, within one text of a pair.
    segments, words = np.array(tokens.segments, int), ~np.array(tokens.special, bool)
    starts = ~np.array(tokens.continues, bool)
    parts = []
    for segment in np.unique(segments[words]):
        positions = np.flatnonzero(words & (segments == segment))
        # What goes on with a word that has no beginning here is one block with all that follows.
        begins = np.flatnonzero(starts[positions])[1:] if starts[positions[0]] else np.zeros(0, int)
        begins = np.concatenate([[0], begins])
        lengths = np.diff(begins, append=len(positions))
        alike = None if classes is None else _alike(positions[begins], lengths, classes)
        parts.append((positions, begins, lengths, alike))
    for order in orders:
        for positions, begins, lengths, alike in parts:
            drawn = rng.permutation(len(begins)) if alike is None else _among(alike, rng)
            order[positions] = positions[_ranges(begins[drawn], lengths[drawn])]
    return orders


def _ranges(begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers from each beginning on, as many as its length, one after the other."""
    stops = np.cumsum(lengths)
    return np.arange(stops[-1]) + np.repeat(begins - stops + lengths, lengths)


def _alike(
    firsts: np.ndarray, lengths: np.ndarray, classes: Sequence[str]
) -> tuple[int, list[np.ndarray]]:
    """How many words there are, and the numbers of those of each class and length, where there are
    several.
    """
    alike: dict[tuple[str, int], list[int]] = {}
    kinds = zip(firsts.tolist(), lengths.tolist(), strict=True)
    for number, (first, length) in enumerate(kinds):
        alike.setdefault((classes[first], length), []).append(number)
    # A word alone stays where it is, and nothing is drawn for it.
    several = [np.array(numbers) for numbers in alike.values() if len(numbers) > 1]
    return len(firsts), several


def _among(alike: tuple[int, list[np.ndarray]], rng: np.random.Generator) -> np.ndarray:
    """Which word comes to each place, where words change places among those that are alike."""
    drawn = np.arange(alike[0])
    for numbers in alike[1]:
        drawn[numbers] = rng.permutation(numbers)
    return drawn


def rng_of(text: str, seed: int = 0) -> np.random.Generator:
    """Randomness that belongs to a text, so that it does not depend on which texts came before.

    Example:
        >>> bool(rng_of("a").random() == rng_of("a").random())
        True
    """
    # hash() of a string is salted anew in each process, so a checksum takes its place.
    return np.random.default_rng([seed, zlib.crc32(text.encode())])


def null_scores(
    records: Iterable[Record], score: Callable[[Record], Float[np.ndarray, "..."]]
) -> Statistic:
    """Scores on records of a model without the pattern: the same architecture with random weights.

    Such a model is made by ``AutoModel.from_config(model.config)``; capture the same texts with it.

    Args:
        records: of that model, one for each text.
        score: values of one record, such as ``lambda record: entropy(record["self"].weights(0))``.

    Raises:
        RecordError: where there is no record.

    Example:
        >>> from headscope.testing import random_record
        >>> len(
        ...     null_scores(
        ...         [random_record()], lambda record: record["cross"].weights(0).max(axis=(1, 2))
        ...     )
        ... )
        1
    """
    scores: Statistic | None = None
    for number, record in enumerate(records):
        values = np.asarray(score(record), np.float64)
        if scores is None:
            scores = Statistic(values.shape)
        scores.update(str(number), values)
    if scores is None:
        raise RecordError(
            "No record of the model with random weights was given; capture the texts with it"
        )
    return scores
