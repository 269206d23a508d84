"""Examples for a head in five strata of its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from headscope.atlases._sample import LINKS, NO_LINK, SampledText

STRATA = 5
EXAMPLES = 4
"""Number of texts that are shown for each stratum."""
Links = tuple[tuple[int, int, float], ...]


@dataclass(frozen=True)
class Example:
    """A text of the sample, as one head sees it.

    Args:
        name: name of the text.
        words: its tokens.
        special: True for special tokens.
        score: score of the head on this text.
        links: query, key and weight of the strongest links, the strongest first.
        word_links: the same without special tokens.
    """

    name: str
    words: tuple[str, ...]
    special: tuple[bool, ...]
    score: float
    links: Links
    word_links: Links


@dataclass(frozen=True)
class Stratum:
    """A fifth of all texts by the score of a head.

    Args:
        low: its lowest score, a multiple of 1/128.
        high: the score that it ends below.
        texts: number of texts of the corpus in it.
        examples: a uniform sample of them.
    """

    low: float
    high: float
    texts: int
    examples: tuple[Example, ...]


def stratum_of_bins(counts: Int[np.ndarray, " bin"]) -> Int[np.ndarray, " bin"]:
    """The fifth of the texts that each bin of scores belongs to, without dividing a bin.

    A bin belongs to the fifth that holds the middle of its texts. Where many texts have one score,
    some fifths are empty.

    Example:
        >>> stratum_of_bins(np.array([1, 1, 1, 1, 1])).tolist()
        [0, 1, 2, 3, 4]
        >>> stratum_of_bins(np.array([8, 0, 1, 0, 1])).tolist()
        [2, 4, 4, 4, 4]
    """
    total = max(1, int(counts.sum()))
    # Counted in halves of a text, so that the middle of a bin is a whole number.
    middle = 2 * (np.cumsum(counts) - counts) + counts
    return np.minimum(STRATA - 1, STRATA * middle // (2 * total))


def strata(
    counts: Int[np.ndarray, " bin"], texts: Sequence[SampledText], score: int, head: int
) -> tuple[Stratum, ...]:
    """The fifths of all texts by a score of a head, the lowest first; empty ones are left out.

    Args:
        counts: number of texts of the corpus with a score in each bin.
        texts: a sample, in the order in which it was drawn.
        score: index of the score.
        head: index of the head.
    """
    of_bins, bins = stratum_of_bins(counts), len(counts)
    examples: dict[int, list[Example]] = {}
    for text in texts:
        value = float(text.scores[score, head])
        if not np.isnan(value):
            # A score of exactly 1 belongs to the last bin.
            number = int(of_bins[min(bins - 1, int(value * bins))])
            examples.setdefault(number, []).append(example_of(text, score, head))
    made = []
    for number in range(STRATA):
        chosen = np.flatnonzero((of_bins == number) & (counts > 0))
        if len(chosen):
            some = examples.get(number, [])[:EXAMPLES]
            low, high = chosen[0] / bins, (chosen[-1] + 1) / bins
            made.append(Stratum(low, high, int(counts[chosen].sum()), tuple(some)))
    return tuple(made)


def example_of(text: SampledText, score: int, head: int) -> Example:
    """A text of a sample as one head sees it."""
    links: list[tuple[int, int, float]] = []
    ends = zip(text.links[head].tolist(), text.weights[head].tolist(), strict=True)
    for (query, key), weight in ends:
        links.append((query, key, weight))
    return Example(
        name=text.name,
        words=text.words,
        special=text.special,
        score=float(text.scores[score, head]),
        links=_there(links[:LINKS]),
        word_links=_there(links[LINKS:]),
    )


def _there(links: Sequence[tuple[int, int, float]]) -> Links:
    return tuple(link for link in links if link[0] != NO_LINK)
