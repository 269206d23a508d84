"""What an atlas shows of a sample of texts: examples of each head, and frequent pairs of words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from headscope.atlases._counts import LINKS, NO_LINK, ROWS, STEP, cells_of, pair_hashes

STRATA = 5
EXAMPLES = 4
"""Number of texts that are shown for each stratum."""
PAIRS = 30
"""Number of pairs that are kept for each head, and as many without special tokens."""
LEAST = 3
"""A pair must exceed this many times the typical excess of the sketch: less may be only excess."""
Links = tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, eq=False)
class SampledText:
    """One text of a sample.

    Args:
        name: name of the text.
        words: its tokens, marked where one continues a word.
        special: True for special tokens.
        links: query and key of the strongest links of each head; `NO_LINK` where there are fewer.
        weights: weights of these links.
        scores: scores of each head.
    """

    name: str
    words: tuple[str, ...]
    special: tuple[bool, ...]
    links: Int[np.ndarray, "head link 2"]
    weights: Float[np.ndarray, "head link"]
    scores: Float[np.ndarray, "score head"]


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


class FrequentPair(NamedTuple):
    """The attention from one word to another.

    Args:
        query: the word that attends.
        key: the word that is attended to.
        share: its share of the attention of all queries in all texts; an upper bound.
        even: the same for a head with uniform attention.
        is_words: whether both are text and not special tokens.
    """

    query: str
    key: str
    share: float
    even: float
    is_words: bool

    @property
    def ratio(self) -> float:
        """The share divided by that of uniform attention."""
        return self.share / self.even if self.even > 0 else float("nan")


def sample_of(examples: Mapping[str, np.ndarray]) -> tuple[SampledText, ...]:
    """The texts of the arrays that `text_counts` gives of them."""
    texts = []
    for number, written in enumerate(examples.get("text", ())):
        said = json.loads(written.tobytes().rstrip(b"\0"))
        special = np.zeros(len(said["words"]), bool)
        special[said["special"]] = True
        arrays = {name: examples[name][number] for name in ("links", "weights", "scores")}
        words = tuple(said["words"])
        texts.append(SampledText(str(said["name"]), words, tuple(special.tolist()), **arrays))
    return tuple(texts)


def frequent_pairs(
    counts: Mapping[str, np.ndarray], texts: Sequence[SampledText], even: Sequence[int]
) -> tuple[tuple[FrequentPair, ...], ...]:
    """The pairs of words that get most attention of each head, the strongest first.

    Candidates are the strongest links of the sampled texts: a pair that is strong in many texts is
    strong in one of these, too.

    Args:
        counts: over all texts.
        texts: of the sample.
        even: for each head, the index of the map of uniform attention that it is compared with.
    """
    special = set()
    for text in texts:
        special |= {text.words[at] for at in np.flatnonzero(text.special)}
    sketch, queries = counts["pairs"], max(1, int(counts["totals"][1]))
    excess = _typical_excess(sketch)
    chosen_pairs = []
    for head, against in enumerate(even):
        candidates = set()
        for text in texts:
            for query, key in text.links[head].tolist():
                if query != NO_LINK:
                    candidates.add((text.words[query], text.words[key]))
        of_words = zip(*sorted(candidates), strict=True) if candidates else ((), ())
        at = cells_of(pair_hashes(*map(list, of_words)), sketch.shape[2])
        # An upper bound of the weight of each pair, by the head and by uniform attention.
        rows = [sketch[[head, against], row][:, at[row]] for row in range(ROWS)]
        shares = np.min(rows, axis=0) / STEP / queries
        pairs = []
        for (query, key), share, chance in zip(sorted(candidates), *shares.tolist(), strict=True):
            if share > LEAST * excess[head] / STEP / queries:
                is_words = query not in special and key not in special
                pairs.append(FrequentPair(query, key, share, chance, is_words))
        # By name where shares are equal, so that the order does not depend on that of the texts.
        pairs.sort(key=lambda pair: (-pair.share, pair.query, pair.key))
        chosen = {*pairs[:PAIRS], *[pair for pair in pairs if pair.is_words][:PAIRS]}
        chosen_pairs.append(tuple(pair for pair in pairs if pair in chosen))
    return tuple(chosen_pairs)


def _typical_excess(sketch: Int[np.ndarray, "map row cell"]) -> Float[np.ndarray, " map"]:
    """Mean estimate for a pair that never occurred: the smallest of three cells drawn at random."""
    width = sketch.shape[2]
    ordered = np.sort(sketch, axis=2)
    # The chance that the smallest of the three is the cell of each rank, as if all rows had the
    # same distribution: all three are of this rank or higher, but not all are higher.
    mean = ordered.mean(axis=1)
    left = 1 - np.arange(width + 1) / width
    chance = left[:-1] ** ROWS - left[1:] ** ROWS
    return mean @ chance


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
    examples: dict[int, list[Example]] = {number: [] for number in range(STRATA)}
    for text in texts:
        value = float(text.scores[score, head])
        if not np.isnan(value):
            # A score of exactly 1 belongs to the last bin.
            number = int(of_bins[min(bins - 1, int(value * bins))])
            examples[number].append(example_of(text, score, head))
    made = []
    for number, some in examples.items():
        chosen = np.flatnonzero((of_bins == number) & (counts > 0))
        if len(chosen):
            low, high = chosen[0] / bins, (chosen[-1] + 1) / bins
            made.append(Stratum(low, high, int(counts[chosen].sum()), tuple(some[:EXAMPLES])))
    return tuple(made)


def example_of(text: SampledText, score: int, head: int) -> Example:
    """A text of a sample as one head sees it."""
    ends = zip(text.links[head].tolist(), text.weights[head].tolist(), strict=True)
    links = [(query, key, weight) for (query, key), weight in ends]
    there = [tuple(row for row in of if row[0] != NO_LINK) for of in (links[:LINKS], links[LINKS:])]
    value = float(text.scores[score, head])
    return Example(text.name, text.words, text.special, value, *there)
