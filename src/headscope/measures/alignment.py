"""Word alignment: which source word a target word was translated from, read off attention, and how
wrong that is.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np
from jaxtyping import Float

Link = tuple[int, int]
"""Numbers of a source word and a target word, both from 0."""


def aligned_words(
    maps: Float[np.ndarray, "head query_word key_word"], *, words: int | None = None
) -> tuple[frozenset[Link], ...]:
    """For each head the links ``(source, target)``, source the key word with the largest value in
    target's row.

    Of equal ones the first is taken. A row of zeros gives no link.

    Source: Kobayashi et al. 2020, section 5; in their release the token that ends the source may be
    looked at most, and gives no link.

    Args:
        maps: see `headscope.record.word_maps`.
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
