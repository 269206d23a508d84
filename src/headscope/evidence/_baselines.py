"""What a score would be without the pattern."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError
from headscope.record import Tokens


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
        ('[CLS]', 'taste', 'straw', '##berries', 'good', '[SEP]')
    """
    # Pieces at other places would make other words.
    numbered = replace(tokens, words=tuple(np.cumsum(np.invert(tokens.continues)).tolist()))
    return numbered.take(shuffled_orders(tokens, rng, 1, classes)[0].tolist())


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
        [[0, 3, 2, 1, 4], [0, 3, 1, 2, 4]]
    """
    random = rng.random((count, len(tokens)))
    return orders_of_words(
        random[None],
        ~np.array([tokens.special], bool),
        np.array([tokens.segments], int),
        starts=~np.array([tokens.continues], bool),
        classes=None if classes is None else np.unique(list(classes), return_inverse=True)[1][None],
    )[0]


def orders_of_words(
    random: Float[np.ndarray, "text draw token"],
    words: Bool[np.ndarray, "text token"],
    segments: Int[np.ndarray, "text token"],
    *,
    starts: Bool[np.ndarray, "text token"],
    classes: Int[np.ndarray, "text token"] | None = None,
) -> Int[np.ndarray, "text draw token"]:
    """The orders of `shuffled_orders`, for several texts of one length at once.

    Args:
        random: numbers from 0 to 1, which decide; of each word that of its first token.
        words: True for tokens that are moved, and are not special.
        segments: which text of a pair each token belongs to.
        starts: True for tokens that begin a word.
        classes: number of the kind of word of each token, where words change places within their
            kind.

    Example:
        >>> random = np.array([[[0.0, 0.9, 0.0, 0.2, 0.0]]])
        >>> words = np.array([[False, True, True, True, False]])
        >>> starts = np.array([[True, True, False, True, True]])
        >>> orders_of_words(random, words, np.zeros((1, 5), int), starts=starts)[0].tolist()
        [[0, 3, 1, 2, 4]]
    """
    texts, tokens = words.shape
    places = np.arange(tokens)
    # Sorted so that what changes places lies side by side; special tokens stay where they are.
    exchanged = np.where(words, segments, 2 + places)
    first = np.broadcast_to(places, words.shape).copy()
    for segment in (0, 1):
        of_segment = words & (segments == segment)
        # What goes on with a word that has no beginning here is one word with all that follows.
        begins = of_segment & (starts | (np.cumsum(of_segment, axis=1) == 1))
        word = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
        first = np.where(of_segment, word, first)
    if classes is not None:
        # Words are alike where kind and number of pieces are the same.
        pieces = np.zeros((texts, tokens), int)
        np.add.at(pieces, (np.arange(texts)[:, None], first), 1)
        rows = np.arange(texts)[:, None]
        kind = (classes[rows, first] * (tokens + 1) + pieces[rows, first]) * 2 + segments
        exchanged = np.where(words, kind, kind.max(initial=0) + 1 + places)
    # Halved, so that adding a large number cannot round it up to the next one.
    drawn = np.take_along_axis(random, first[:, None], axis=2) / 2
    sources = np.argsort(exchanged[:, None] + drawn, axis=2, kind="stable")
    targets = np.argsort(exchanged, axis=1, kind="stable")
    orders = np.empty_like(sources)
    np.put_along_axis(orders, targets[:, None], sources, axis=2)
    return orders


def rng_of(text: str, seed: int = 0) -> np.random.Generator:
    """Randomness that belongs to a text, so that it does not depend on which texts came before.

    Example:
        >>> bool(rng_of("a").random() == rng_of("a").random())
        True
    """
    # hash() of a string is salted anew in each process, so a checksum takes its place.
    return np.random.default_rng([seed, zlib.crc32(text.encode())])


def mean_map(
    maps: Iterable[Float[np.ndarray, "head _ _"]], length: int
) -> Float[np.ndarray, "head length length"]:
    """Mean of the attention maps of texts, place by place, for the map that positions alone would
    give; NaN where no text is long enough for a place.

    Args:
        maps: of each text, of as many heads.
        length: how many tokens of each text are read; later ones are left out.

    Raises:
        RecordError: where texts have different numbers of heads.

    Example:
        >>> mean_map([np.array([[[1.0, 0.0], [0.5, 0.5]]]), np.array([[[1.0]]])], 2).tolist()
        [[[1.0, 0.0], [0.5, 0.5]]]
    """
    total, count = np.zeros((0, length, length)), np.zeros((length, length))
    for each in maps:
        heads, queries, keys = (cut := each[:, :length, :length]).shape
        total = total if count.any() else np.zeros((heads, length, length))
        if heads != len(total):
            raise RecordError(f"maps of {len(total)}, then of {heads} heads have no mean map")
        total[:, :queries, :keys] += cut
        count[:queries, :keys] += 1
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def position_map(
    mean: Float[np.ndarray, "head length length"], visible: Bool[np.ndarray, "query key"]
) -> Float[np.ndarray, "head query key"]:
    """The map that positions alone would give on a text: the average one, cut to it, its rows made
    to sum to 1.

    Args:
        mean: see `mean_map`.
        visible: True where a query of the text may look.

    Raises:
        RecordError: where the text is longer than the average map.

    Example:
        >>> position_map(
        ...     np.array([[[0.5, 0.5], [0.25, 0.75]]]), np.array([[True, False], [True, True]])
        ... ).tolist()
        [[[1.0, 0.0], [0.25, 0.75]]]
    """
    queries, keys = visible.shape
    if max(queries, keys) > mean.shape[1]:
        raise RecordError(
            f"The text has {max(queries, keys)} tokens, the average map {mean.shape[1]}; cut the "
            "text"
        )
    cut = np.where(visible, np.nan_to_num(mean[:, :queries, :keys]), 0.0)
    sums = cut.sum(axis=-1, keepdims=True)
    return np.divide(cut, sums, out=np.zeros_like(cut), where=sums > 0)
