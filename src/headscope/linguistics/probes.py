"""What probes are set beside and scored by: distances, control tasks, and hits of sentences."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError
from headscope.linguistics.dependencies import OFFSETS, offset_heads
from headscope.linguistics.trees import spanning_tree
from headscope.measures import spearman

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
    heads: Int[np.ndarray, " word"], counted: Sequence[int], count: int, rng: np.random.Generator
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


HEAD_BEHAVIOURS = ("itself", "first", "last")
TREE_BEHAVIOURS = ("previous", "one before", "first")


def drawn_of(name: str, seed: int = 0) -> float:
    """A number from 0 to 1 that belongs to a word type, the same in every sentence and on every
    machine.

    Example:
        >>> drawn_of("the") == drawn_of("the"), drawn_of("the") == drawn_of("cat")
        (True, False)
    """
    # hash() of a string is salted anew in each process, so a checksum takes its place.
    return _drawn(zlib.crc32(name.encode()), seed)


@lru_cache(maxsize=2**16)
def _drawn(checksum: int, seed: int) -> float:
    """Kept for words that come again, since a generator takes some microseconds to make."""
    return float(np.random.default_rng([seed, checksum]).random())


def control_heads(forms: Sequence[str], *, seed: int = 0) -> Int[np.ndarray, " word"]:
    """Heads of the control task: each word type has itself, the first or the last word for its
    head.

    Source: Hewitt and Liang 2019, section 2.2 (dependency edge prediction).

    Args:
        forms: the words of a sentence.
        seed: of the draw.

    Example:
        >>> heads = control_heads(["a", "b", "a", "c"])
        >>> all(head in (place, 0, 3) for place, head in enumerate(heads))
        True
    """
    words = len(forms)
    kinds = [int(len(HEAD_BEHAVIOURS) * drawn_of(form, seed)) for form in forms]
    return np.array([(index, 0, words - 1)[kind] for index, kind in enumerate(kinds)], int)


def control_tree(forms: Sequence[str], *, seed: int = 0) -> Int[np.ndarray, " word"]:
    """Heads of a control tree: each word type hangs from the word before it, the one before that,
    or the first.

    The first word is the root. Hewitt and Liang 2019 have no control task for trees; this is ours,
    after theirs: what a word hangs from depends on the word alone.

    Args:
        forms: the words of a sentence.
        seed: of the draw.

    Example:
        >>> bool((control_tree(["a", "b", "c", "d"]) < np.arange(4)).all())
        True
    """
    heads = [-1]
    for index, form in enumerate(forms[1:], start=1):
        kind = int(len(TREE_BEHAVIOURS) * drawn_of(form, seed))
        # All of these stand before the word, so that no word can hang from itself in a circle.
        heads.append((index - 1, max(index - 2, 0), 0)[kind])
    return np.array(heads[: len(forms)], int)


def control_labels(
    names: Iterable[str], shares: Float[np.ndarray, " label"], *, seed: int = 0
) -> np.ndarray:
    """Labels of the control task: each type has one, drawn by how often the true labels are.

    Source: Hewitt and Liang 2019, section 2.1 (part-of-speech tagging).

    Args:
        names: the type of each example, such as its word.
        shares: how often each label is; they sum to 1.
        seed: of the draw.

    Example:
        >>> control_labels(["a", "b", "a"], np.array([0.0, 1.0])).tolist()
        [1, 1, 1]
    """
    draws = np.fromiter((drawn_of(name, seed) for name in names), np.float64)
    labels = np.searchsorted(np.cumsum(shares), draws, side="right")
    # The last sum may be a rounding error below 1, and a draw may lie between the two.
    return np.minimum(labels, len(shares) - 1)


Hits = tuple[float, float]
"""The sum of what was hit, and how much there was to hit."""

LENGTHS = (5, 50)
"""The sentence lengths that rank correlations are averaged over, both included (Hewitt and Manning
2019).
"""


def attached(
    scores: Float[np.ndarray, "candidate word"],
    heads: Int[np.ndarray, " word"],
    counted: Bool[np.ndarray, " word"] | None = None,
) -> Hits:
    """How many words have their highest score at their head: the parts of the unlabelled attachment
    score (UAS).

    Source: Clark et al. 2019, section 5 (without punctuation).

    Args:
        scores: of every candidate for each word's head; the first candidate is the root, the others
            the words.
        heads: number of each word's head, from 0; -1 at the root.
        counted: the words that count; by default all.

    Example:
        >>> attached(np.array([[1.0, 3.0], [0.0, 1.0], [2.0, 0.0]]), np.array([1, -1]))
        (2.0, 2.0)
    """
    # The root is candidate 0, and its dependent's head is -1: both are one off in the same way.
    right = scores.argmax(axis=0) == heads + 1
    counted = np.ones(len(heads), bool) if counted is None else counted
    return float((right & counted).sum()), float(counted.sum())


def edges_hit(
    distances: Float[np.ndarray, "word word"],
    gold: Float[np.ndarray, "word word"],
    counted: Bool[np.ndarray, " word"] | None = None,
) -> Hits:
    """How many edges of the gold tree are in that of the distances: the parts of UUAS.

    Both trees are minimum spanning trees of the words that count.

    Source: Hewitt and Manning 2019, section 3.2 (without punctuation).

    Args:
        distances: that a probe says.
        gold: of the tree.
        counted: the words that count; by default all.

    Example:
        >>> gold = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
        >>> edges_hit(gold[:, [0, 2, 1]][[0, 2, 1]], gold)
        (1.0, 2.0)
    """
    wanted = spanning_tree(gold, counted)
    return float(len(wanted & spanning_tree(distances, counted))), float(len(wanted))


def distance_ranks(
    distances: Float[np.ndarray, "word word"], gold: Float[np.ndarray, "word word"]
) -> Hits:
    """Sum over words of Spearman's rho of the distances to all words, and the number of words: the
    parts of DSpr.

    DSpr is the mean over words of one sentence length, then over the lengths 5 to 50.

    Source: Hewitt and Manning 2019, section 3.2.

    Args:
        distances: that a probe says.
        gold: of the tree.

    Example:
        >>> gold = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
        >>> [round(part, 6) for part in distance_ranks(gold**2, gold)]
        [3.0, 3.0]
    """
    ranks = [spearman(row, wanted) for row, wanted in zip(distances, gold, strict=True)]
    return _known(np.array(ranks))


def depth_ranks(depths: Float[np.ndarray, " word"], gold: Float[np.ndarray, " word"]) -> Hits:
    """Spearman's rho of depths, and 1: the parts of NSpr; both 0 where all are alike.

    Source: Hewitt and Manning 2019, section 3.2.

    Args:
        depths: that a probe says.
        gold: of the tree.

    Example:
        >>> [
        ...     round(part, 6)
        ...     for part in depth_ranks(np.array([0.0, 3.0, 1.0]), np.array([0.0, 2.0, 1.0]))
        ... ]
        [1.0, 1.0]
    """
    return _known(np.array([spearman(depths, gold)]))


def root_hit(
    depths: Float[np.ndarray, " word"],
    heads: Int[np.ndarray, " word"],
    counted: Bool[np.ndarray, " word"] | None = None,
) -> Hits:
    """Whether the least deep word is the root, and 1.

    Source: Hewitt and Manning 2019, section 3.2; the word is sought among those that count, as in
    their release.

    Args:
        depths: that a probe says.
        heads: number of each word's head, from 0; -1 at the root.
        counted: the words that count; by default all.

    Example:
        >>> root_hit(np.array([0.5, 0.25, 1.0]), np.array([1, -1, 1]))
        (1.0, 1.0)
    """
    sought = depths if counted is None or not counted.any() else np.where(counted, depths, np.inf)
    return float(heads[int(sought.argmin())] < 0), 1.0


def centre_of_gravity(weights: Float[np.ndarray, " layer"]) -> float:
    """The mean layer that a scalar mix looks at, ``sum_l l s_l`` with layers numbered from 0, the
    embeddings.

    Source: Tenney et al. 2019 (BERT Rediscovers the Classical NLP Pipeline), equation 2.

    Args:
        weights: of the layers; they sum to 1.

    Example:
        >>> centre_of_gravity(np.array([0.25, 0.25, 0.5]))
        1.25
    """
    return float(np.arange(len(weights)) @ weights)


def expected_layer(scores: Float[np.ndarray, " layer"]) -> float:
    """The layer at which a label is found, ``sum_l l D_l / sum_l D_l`` over l >= 1, ``D_l = score_l
    - score_(l-1)``.

    Source: Tenney et al. 2019 (BERT Rediscovers the Classical NLP Pipeline), equation 4. Scores
    that fall make some ``D_l`` negative, so that it may leave the range of layers; NaN where the
    last score is the first.

    Args:
        scores: of probes that may look at the layers 0 to l.

    Example:
        >>> expected_layer(np.array([0.5, 0.75, 1.0]))
        1.5
    """
    gains = np.diff(scores)
    if not gains.sum():
        return float("nan")
    layers = np.arange(1, len(scores))
    return float(layers @ gains / gains.sum())


def _known(values: np.ndarray) -> Hits:
    # Spearman's rho is NaN where all values of one side are equal; such a row is not counted.
    there = values[~np.isnan(values)]
    return float(there.sum()), float(len(there))
