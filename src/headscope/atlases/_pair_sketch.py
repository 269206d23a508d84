"""How much attention goes from one word to another, over all texts, in memory that does not grow.

Texts have millions of different pairs of words. Each pair is given three places by its hash, one in
each of three rows, and what it gets is added there, beside what the other pairs of those places
get. The least of its three sums is then never too small, and too large only by what shares a place
with it in all three rows (Cormode and Muthukrishnan 2005, the count-min sketch). Sums are of whole
numbers, so a sketch of all texts is the sum of those of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int, UInt64

from headscope.corpus import key_of

ROWS = 3
MOST_PLACES, MOST_BYTES = 4096, 2**25
"""Of each row, and of the sketches of all heads: 32 MiB."""
MIXES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Odd numbers that spread bits: of the golden ratio, of xxHash, and of SplitMix64."""
BITS_OF_ROW = 21
"""Each row takes its own bits of a hash of 64."""


def places_for(heads: int) -> int:
    """Places of a row, for so many heads: a power of two.

    Example:
        >>> places_for(72), places_for(1024)
        (4096, 1024)
    """
    places = MOST_PLACES
    while places > 64 and heads * ROWS * places * 8 > MOST_BYTES:
        places //= 2
    return places


@lru_cache(maxsize=2**17)
def _key_of_word(word: str) -> int:
    return key_of("word", word)


def word_hashes(words: Sequence[str]) -> UInt64[np.ndarray, " word"]:
    """A number of each word, the same on every machine."""
    return np.array([_key_of_word(word) for word in words], np.uint64)


def pair_hashes(
    queries: UInt64[np.ndarray, "..."], keys: UInt64[np.ndarray, "..."]
) -> UInt64[np.ndarray, "..."]:
    """A number of each pair of words.

    Args:
        queries: numbers of the words that look, see `word_hashes`.
        keys: of those that are looked at; both are broadcast to pairs.
    """
    first, second, *finish = (np.uint64(mix) for mix in MIXES)
    # Rotated, so that a pair and its reverse are two.
    turned = keys * second
    turned = (turned << np.uint64(31)) | (turned >> np.uint64(33))
    hashes = (queries * first) ^ turned
    for shift, mix in zip((30, 27), finish, strict=True):
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * mix
    return hashes ^ (hashes >> np.uint64(31))


def places_of(hashes: UInt64[np.ndarray, " pair"], places: int) -> Int[np.ndarray, "row pair"]:
    """The place of each pair in every row."""
    rows = []
    for row in range(ROWS):
        shifted = hashes >> np.uint64(BITS_OF_ROW * row)
        rows.append((shifted & np.uint64(places - 1)).astype(np.int64))
    return np.stack(rows)


def add_pairs(
    sketch: Int[np.ndarray, "map row place"],
    hashes: UInt64[np.ndarray, " pair"],
    weights: Float[np.ndarray, "map pair"],
) -> None:
    """Add what each pair of one text gets, in whole numbers, to the sketch of each map."""
    for row, places in enumerate(places_of(hashes, sketch.shape[2])):
        order = np.argsort(places, kind="stable")
        chosen, starts = np.unique(places[order], return_index=True)
        sums = np.add.reduceat(weights[:, order], starts, axis=1)
        sketch[:, row, chosen] += sums.astype(np.int64)


def estimates(
    sketch: Int[np.ndarray, "map row place"], hashes: UInt64[np.ndarray, " pair"]
) -> Int[np.ndarray, "map pair"]:
    """What each pair got at most."""
    rows = [sketch[:, row, at] for row, at in enumerate(places_of(hashes, sketch.shape[2]))]
    return np.min(rows, axis=0)


def typical_excess(sketch: Int[np.ndarray, "map row place"]) -> Float[np.ndarray, " map"]:
    """What a pair that never occurred would be given, in the mean over places: the least of three
    places taken by chance.
    """
    places = sketch.shape[2]
    ordered = np.sort(sketch, axis=2)
    # The least of one place of each row: the chance that each of the others lies above it is that
    # of a place drawn evenly, here for rows that are alike.
    mean = ordered.mean(axis=1)
    left = 1 - np.arange(places + 1) / places
    chance = left[:-1] ** ROWS - left[1:] ** ROWS
    return mean @ chance
