"""The pairs of words that get most of a head's attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.atlases._pair_sketch import (
    estimates,
    pair_hashes,
    typical_excess,
    word_hashes,
)
from headscope.atlases._sample import NO_LINK, SampledText
from headscope.atlases._sums import STEP, AtlasSums

PAIRS = 30
"""Number of pairs that are kept for each head, and as many without special tokens."""
LEAST = 3
"""A pair must exceed this many times the typical excess of the sketch: less may be only excess."""


@dataclass(frozen=True)
class FrequentPair:
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


def frequent_pairs(sums: AtlasSums, even: Sequence[int]) -> tuple[tuple[FrequentPair, ...], ...]:
    """The pairs of words that get most attention of each head, the strongest first.

    Candidates are the strongest links of the sampled texts: a pair that is strong in many texts is
    strong in one of these, too.

    Args:
        sums: sums over all texts.
        even: for each head, the index of the map of uniform attention that it is compared with.
    """
    texts = sums.sample.texts()
    special = {
        word
        for text in texts
        for word, is_special in zip(text.words, text.special, strict=True)
        if is_special
    }
    queries = max(1, int(sums.counts["totals"][1]))
    excess = typical_excess(sums.counts["pairs"])
    chosen_pairs = []
    for head, against in enumerate(even):
        candidates = _candidates(texts, head)
        shares = _shares(sums, candidates, (head, against), queries)
        least = LEAST * excess[head] / STEP / queries
        pairs = []
        for (query, key), (share, chance) in zip(candidates, shares, strict=True):
            if share > least:
                is_words = query not in special and key not in special
                pairs.append(FrequentPair(query, key, float(share), float(chance), is_words))
        # By name where shares are equal, so that the order does not depend on that of the texts.
        pairs.sort(key=lambda pair: (-pair.share, pair.query, pair.key))
        words = [pair for pair in pairs if pair.is_words][:PAIRS]
        chosen = {*pairs[:PAIRS], *words}
        chosen_pairs.append(tuple(pair for pair in pairs if pair in chosen))
    return tuple(chosen_pairs)


def _candidates(texts: Sequence[SampledText], head: int) -> list[tuple[str, str]]:
    pairs = set()
    for text in texts:
        for query, key in text.links[head].tolist():
            if query != NO_LINK:
                pairs.add((text.words[query], text.words[key]))
    return sorted(pairs)


def _shares(
    sums: AtlasSums, pairs: Sequence[tuple[str, str]], maps: tuple[int, int], queries: int
) -> Float[np.ndarray, "pair 2"]:
    if not pairs:
        return np.zeros((0, 2))
    queries_of, keys_of = (word_hashes(words) for words in zip(*pairs, strict=True))
    hashes = pair_hashes(queries_of, keys_of)
    return estimates(sums.counts["pairs"][list(maps)], hashes).T / STEP / queries
