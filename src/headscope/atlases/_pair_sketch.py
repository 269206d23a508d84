"""A sketch of the attention between words over all texts, in memory that does not grow.

Texts have millions of different pairs of words. The hash of a pair gives it one cell in each of
three rows, and its weight is added to all three, where other pairs add theirs, too. The smallest of
its three sums is then never too small, and too large only by the weight of pairs that share its
cells in all three rows (Cormode and Muthukrishnan 2005, the count-min sketch). Sums are whole
numbers, so a sketch of all texts is the sum of the sketches of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int, UInt64

from headscope.corpus import key_of

ROWS = 3
MOST_WIDTH, MOST_BYTES = 4096, 2**25
"""Largest number of cells in a row, and of bytes of the sketches of all heads: 32 MiB."""
MIXES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Odd numbers that spread bits: of the golden ratio, of xxHash, and of SplitMix64."""
BITS_OF_ROW = 21
"""Each row uses its own bits of a hash of 64 bits."""


def width_for(heads: int) -> int:
    """Number of cells in a row for so many heads: a power of two.

    Example:
        >>> width_for(72), width_for(1024)
        (4096, 1024)
    """
    width = MOST_WIDTH
    while width > 64 and heads * ROWS * width * 8 > MOST_BYTES:
        width //= 2
    return width


@lru_cache(maxsize=2**17)
def _key_of_word(word: str) -> int:
    return key_of("word", word)


def word_hashes(words: Sequence[str]) -> UInt64[np.ndarray, " word"]:
    """The hash of each word, the same on every machine."""
    return np.array([_key_of_word(word) for word in words], np.uint64)


def pair_hashes(
    queries: UInt64[np.ndarray, "..."], keys: UInt64[np.ndarray, "..."]
) -> UInt64[np.ndarray, "..."]:
    """The hash of each pair of words.

    Args:
        queries: hashes of the words that attend, see `word_hashes`.
        keys: hashes of the words that are attended to; both are broadcast to pairs.
    """
    first, second, *finish = (np.uint64(mix) for mix in MIXES)
    # Rotated, so that a pair and its reverse have different hashes.
    turned = keys * second
    turned = (turned << np.uint64(31)) | (turned >> np.uint64(33))
    hashes = (queries * first) ^ turned
    for shift, mix in zip((30, 27), finish, strict=True):
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * mix
    return hashes ^ (hashes >> np.uint64(31))


def cells_of(hashes: UInt64[np.ndarray, " pair"], width: int) -> Int[np.ndarray, "row pair"]:
    """The index of each pair's cell in every row."""
    rows = []
    for row in range(ROWS):
        shifted = hashes >> np.uint64(BITS_OF_ROW * row)
        # The lowest bits are the remainder, because the number of cells is a power of two.
        rows.append((shifted & np.uint64(width - 1)).astype(np.int64))
    return np.stack(rows)


def add_pairs(
    sketch: Int[np.ndarray, "map row cell"],
    hashes: UInt64[np.ndarray, " pair"],
    weights: Float[np.ndarray, "map pair"],
) -> None:
    """Add the weight of each pair of one text, in whole numbers, to the sketch of each map."""
    # Several pairs may share a cell, and `sketch[...] += ` would add only one of them: their sums
    # are computed first.
    for row, cells in enumerate(cells_of(hashes, sketch.shape[2])):
        order = np.argsort(cells, kind="stable")
        chosen, starts = np.unique(cells[order], return_index=True)
        sums = np.add.reduceat(weights[:, order], starts, axis=1)
        sketch[:, row, chosen] += sums.astype(np.int64)


def estimates(
    sketch: Int[np.ndarray, "map row cell"], hashes: UInt64[np.ndarray, " pair"]
) -> Int[np.ndarray, "map pair"]:
    """An upper bound of the weight of each pair."""
    rows = [sketch[:, row, at] for row, at in enumerate(cells_of(hashes, sketch.shape[2]))]
    return np.min(rows, axis=0)


def typical_excess(sketch: Int[np.ndarray, "map row cell"]) -> Float[np.ndarray, " map"]:
    """Mean estimate for a pair that never occurred: the smallest of three cells drawn at random."""
    width = sketch.shape[2]
    ordered = np.sort(sketch, axis=2)
    # The chance that the smallest of the three is the cell of each rank, as if all rows had the
    # same distribution: all three are of this rank or higher, but not all are higher.
    mean = ordered.mean(axis=1)
    left = 1 - np.arange(width + 1) / width
    chance = left[:-1] ** ROWS - left[1:] ** ROWS
    return mean @ chance
