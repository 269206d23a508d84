"""Word alignment: which source word a target word was translated from, read off attention, and how
wrong that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError

ROWS = ("mean", "first", "max")
Link = tuple[int, int]
"""Numbers of a source word and a target word, both from 0."""


def word_maps(
    maps: Float[np.ndarray, "head query key"],
    query_words: Sequence[Sequence[int]],
    key_words: Sequence[Sequence[int]],
    *,
    rows: str = "mean",
) -> Float[np.ndarray, "head query_word key_word"]:
    """Maps of tokens made maps of words: the sum over a key word's tokens, the mean over a query
    word's tokens.

    ``B[v, w] = (1 / |T(v)|) sum_{i in T(v)} sum_{j in T(w)} A[i, j]``; 0 for a word without tokens.

    Source: Clark et al. 2019, section 4.1 (their released extractor takes the first token's row);
    for translation Kobayashi et al. 2020, section 5.

    Args:
        maps: attention, or norms of what is added; axes head, query, key.
        query_words: the tokens of each query word.
        key_words: the tokens of each key word.
        rows: how the rows of a query word's tokens become one: ``"mean"``, ``"first"``, or
            ``"max"``, the largest value for each key word, scaled to the sum that their mean has.

    Raises:
        RecordError: where a token does not exist, or ``rows`` is not what it may be.

    Example:
        >>> word_maps(
        ...     np.array([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]]), [[0, 1]], [[0], [1, 2]]
        ... ).round(2).tolist()
        [[[0.3, 0.7]]]
    """
    if rows not in ROWS:
        raise RecordError(f"rows is {rows!r}; it may be {', '.join(map(repr, ROWS))}")
    maps = np.asarray(maps, np.float64)
    taken = [words[:1] for words in query_words] if rows == "first" else query_words
    # Two products of matrices: the first adds up the columns of words, the second averages rows.
    means = _members(taken, maps.shape[1], "query")
    # At least 1, so that a word without tokens gets a row of zeros, and not of NaN.
    means /= np.maximum(means.sum(axis=1, keepdims=True), 1)
    summed = maps @ _members(key_words, maps.shape[2], "key").T
    averaged = means @ summed
    if rows == "max":
        for number, positions in enumerate(query_words):
            if len(positions) > 1:
                averaged[:, number] = _largest(summed[:, list(positions)], averaged[:, number])
    return averaged


def _largest(
    rows: Float[np.ndarray, "head token key_word"], mean: Float[np.ndarray, "head key_word"]
) -> Float[np.ndarray, "head key_word"]:
    """The largest value for each key word, scaled to the sum of the mean row."""
    largest = rows.max(axis=1)
    # Maxima of several rows sum to more than any of them.
    sums = largest.sum(axis=1, keepdims=True)
    wanted = mean.sum(axis=1, keepdims=True)
    return largest * np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0)


def aligned_words(
    maps: Float[np.ndarray, "head query_word key_word"], *, words: int | None = None
) -> tuple[frozenset[Link], ...]:
    """For each head the links ``(source, target)``, source the key word with the largest value in
    target's row.

    Of equal ones the first is taken. A row of zeros gives no link.

    Source: Kobayashi et al. 2020, section 5; in their release the token that ends the source may be
    looked at most, and gives no link.

    Args:
        maps: see `word_maps`.
        words: how many of the key words are words; those after them, which stand for special
            tokens, may have the largest value too, and a row that does so gives no link. By default
            all.

    Example:
        >>> [sorted(links) for links in aligned_words(np.array([[[0.2, 0.8], [0.7, 0.3]]]))]
        [[(0, 1), (1, 0)]]
    """
    if not maps.shape[2]:
        return (frozenset(),) * len(maps)
    count = maps.shape[2] if words is None else words
    # argmax takes the first of equal values, which is what is promised.
    best, most = maps.argmax(axis=-1), maps.max(axis=-1)
    links = []
    for head in range(len(maps)):
        linked = np.flatnonzero((most[head] > 0) & (best[head] < count))
        links.append(frozenset((int(best[head, row]), int(row)) for row in linked))
    return tuple(links)


def alignment_counts(
    sure: AbstractSet[Link], possible: AbstractSet[Link], links: AbstractSet[Link]
) -> tuple[int, int]:
    """What the alignment error rate is made of: ``|A & P| + |A & S|`` and ``|A| + |S|``, to be
    summed over sentences.

    Source: Och and Ney 2003, section 5. Sure links are possible, whether they are named there or
    not.

    Args:
        sure: S, links that must be found.
        possible: P, links that may be found.
        links: A.

    Example:
        >>> alignment_counts({(0, 0)}, {(1, 1)}, {(0, 0), (1, 1), (2, 0)})
        (3, 4)
    """
    return len(links & (possible | sure)) + len(links & sure), len(links) + len(sure)


def alignment_error_rate(
    sure: AbstractSet[Link], possible: AbstractSet[Link], links: AbstractSet[Link]
) -> float:
    """``AER = 1 - (|A & P| + |A & S|) / (|A| + |S|)``: 0 where all is found and nothing wrong, 1
    where all is wrong.

    Source: Och and Ney 2003, section 5; Kobayashi et al. 2020, section 5. Of many sentences the
    counts are summed before they are divided (`alignment_counts`).

    Args:
        sure: S, links that must be found.
        possible: P, links that may be found; sure ones need not be repeated.
        links: A.

    Returns:
        From 0 to 1; NaN where there is no sure link and none was found.

    Example:
        >>> alignment_error_rate({(0, 0), (1, 1)}, {(2, 1)}, {(0, 0), (2, 1), (2, 2)})
        0.4
    """
    hits, size = alignment_counts(sure, possible, links)
    return 1 - hits / size if size else float("nan")


def _members(
    words: Sequence[Sequence[int]], tokens: int, side: str
) -> Float[np.ndarray, "word token"]:
    """1 where a token belongs to a word."""
    members = np.zeros((len(words), tokens))
    for number, positions in enumerate(words):
        for position in positions:
            if not 0 <= position < tokens:
                raise RecordError(
                    f"The {side} word {number} has token {position}; there are tokens 0 to "
                    f"{tokens - 1}"
                )
            members[number, position] = 1
    return members
