"""What a probe that knows no model may look at: distances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import RecordError
from headscope.linguistics.dependencies import OFFSETS, offset_heads

FARTHEST = 10


def head_distances(words: int) -> Float[np.ndarray, "candidate word feature"]:
    """Clark's eight distance features of every candidate for a head; the first is the root, the
    others the words.

    How far the candidate lies before and behind the word by the number of words (0 on the other
    side), whether it lies at 0, -1, +1, -2, +2, and whether it is the root, which has no distance.

    Source: Clark et al. 2019, released notebook (distances + GloVe baseline).

    Args:
        words: in the sentence.

    Example:
        >>> head_distances(2)[2, 0].tolist(), head_distances(2)[0, 0].tolist()
        ([0.0, 0.5, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    """
    # Of candidate i and word j: how many words the candidate stands after the word.
    ahead = np.arange(words)[:, None] - np.arange(words)
    features = np.zeros((words + 1, words, 8))
    features[1:, :, 0] = np.maximum(-ahead, 0) / words
    features[1:, :, 1] = np.maximum(ahead, 0) / words
    for index, offset in enumerate((0, -1, 1, -2, 2)):
        features[1:, :, 2 + index] = ahead == offset
    features[0, :, 7] = 1
    return features


def best_offset(heads: Sequence[np.ndarray]) -> int:
    """The offset of `OFFSETS` that hits most heads; of equal ones the first.

    Example:
        >>> best_offset([np.array([1, 2, -1]), np.array([-1, 0, 3, 1])])
        1
    """
    # offset_heads counts words from 1, with 0 for the root; heads here count from 0.
    hits = [
        sum(int((offset_heads(len(each), offset) - 1 == each).sum()) for each in heads)
        for offset in OFFSETS
    ]
    return OFFSETS[int(np.argmax(hits))]


def pair_distances(
    first: Int[np.ndarray, " pair"],
    second: Int[np.ndarray, " pair"],
    words: Int[np.ndarray, " pair"],
) -> Float[np.ndarray, "pair feature"]:
    """Distance features of pairs: which of -10 .. 10 the offset is, cut off there, and the distance
    by the words.

    Args:
        first: where one word stands.
        second: where the other does.
        words: in the sentence of each pair.

    Example:
        >>> pair_distances(np.array([3]), np.array([1]), np.array([8])).nonzero()[1].tolist()
        [8, 21]
    """
    offset = second - first
    features = np.zeros((len(offset), 2 * FARTHEST + 2))
    features[np.arange(len(offset)), np.clip(offset, -FARTHEST, FARTHEST) + FARTHEST] = 1
    # By the sentence's length, as in Clark's features: 5 words are far in a sentence of 6.
    features[:, -1] = np.abs(offset) / words
    return features


def unrelated_pairs(
    heads: Int[np.ndarray, " word"],
    counted: Sequence[int],
    count: int,
    rng: np.random.Generator,
) -> Int[np.ndarray, "pair 2"]:
    """Ordered pairs of different words without an edge in either direction, drawn without repeats.

    Coenen et al. 2019 do not say how they drew theirs; this is ours.

    Args:
        heads: number of each word's head, from 0; -1 at the root.
        counted: the words to draw from.
        count: how many; fewer where there are not so many.
        rng: where the randomness comes from.

    Example:
        >>> unrelated_pairs(np.array([1, -1, 1]), [0, 1, 2], 9, np.random.default_rng(0)).tolist()
        [[0, 2], [2, 0]]
    """
    apart = np.zeros((len(heads), len(heads)), bool)
    apart[np.ix_(counted, counted)] = True
    np.fill_diagonal(apart, False)
    words = np.flatnonzero(heads >= 0)
    apart[words, heads[words]] = apart[heads[words], words] = False
    pairs = np.argwhere(apart)
    drawn = rng.permutation(len(pairs))[:count]
    # In the order of the sentence: what is drawn matters, not when.
    return pairs[np.sort(drawn)]


def read_vectors(lines: Iterable[str], wanted: frozenset[str] | set[str]) -> dict[str, np.ndarray]:
    """Word vectors of GloVe's text format, a word and its numbers on each line; a line of two
    counts first may be.

    Args:
        lines: of the file.
        wanted: the words to keep; others are passed over.

    Raises:
        RecordError: where a line holds other than as many numbers as those before it.

    Example:
        >>> read_vectors(["the 1 0.5", "cat 0 2"], {"cat"})["cat"].tolist()
        [0.0, 2.0]
    """
    vectors: dict[str, np.ndarray] = {}
    size = None
    for number, line in enumerate(lines):
        # Split at spaces only: a word may hold other white space, such as a no-break space.
        word, *values = line.rstrip().split(" ")
        if number == 0 and len(values) == 1 and word.isdigit():
            continue  # word2vec's text format begins with both counts
        size = len(values) if size is None else size
        # Before the numbers are read: a file has hundreds of thousands of words, few are wanted.
        if word not in wanted:
            continue
        try:
            vector = np.array(values, np.float32)
        except ValueError:
            vector = np.zeros(0, np.float32)
        if not size or len(vector) != size:
            raise RecordError(
                f"Line {number + 1} of the word vectors should hold a word and {size} numbers, as "
                "GloVe's text files do"
            )
        vectors[word] = vector
    return vectors
