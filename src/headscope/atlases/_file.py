"""Files of atlases."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headscope.atlases._atlas import Atlas
from headscope.atlases._frequent_pairs import FrequentPair, frequent_pairs
from headscope.atlases._sample import TextSample
from headscope.atlases._sums import AtlasSums
from headscope.patterns import Heads, heads_of_kept, kept_of_heads
from headscope.results import Kept, reads
from headscope.storage import arrays_below, load_kept, reading

HEADS = "heads."
NOT_KEPT = ("pairs",)
"""Counts that are not written: the pairs that were read from the sketches are."""


def atlas_of(heads: Heads, sums: AtlasSums) -> Atlas:
    """The atlas made from the labels of a run and from its sums."""
    layers = list(dict(sums.cells))
    even = [len(sums.cells) + layers.index(layer) for layer, _ in sums.cells]
    counts = {name: each for name, each in sums.counts.items() if name not in NOT_KEPT}
    pairs = frequent_pairs(sums, even)
    return Atlas(heads, sums.scores, counts, tuple(sums.sample.texts()), pairs)


def kept_of_atlas(atlas: Atlas) -> Kept:
    """The fields and arrays of an atlas's file."""
    heads, arrays = kept_of_heads(atlas.heads)
    sample = TextSample()
    for text in atlas.sample:
        sample.add(text)
    # Heads have different numbers of pairs: one flat table, in which words are numbers.
    flat = [(head, pair) for head, pairs in enumerate(atlas.pairs) for pair in pairs]
    words = sorted({word for _, pair in flat for word in (pair.query, pair.key)})
    number = {word: at for at, word in enumerate(words)}
    ends = [[head, number[pair.query], number[pair.key], pair.is_words] for head, pair in flat]
    shares = [[pair.share, pair.even] for _, pair in flat]
    document = {
        "heads": heads,
        "scores": list(atlas.scores),
        "sample": sample.documents,
        "words": words,
    }
    kept = {f"{HEADS}{name}": each for name, each in arrays.items()}
    kept |= {f"counts.{name}": each for name, each in atlas.counts.items()}
    kept |= {f"sample.{name}": each for name, each in sample.arrays.items()}
    kept["pairs.ends"] = np.array(ends, np.int32).reshape(-1, 4)
    kept["pairs.shares"] = np.array(shares, np.float64).reshape(-1, 2)
    return document, kept


@reads(Atlas.KIND)
def load_atlas(path: str | os.PathLike[str]) -> Atlas:
    """Read an atlas that `Atlas.save` wrote.

    Raises:
        FileError: where the file does not exist, is cut, or was not written by headscope.
    """
    document, arrays = load_kept(path, Atlas.KIND)
    with reading(path, Atlas.KIND):
        heads = heads_of_kept(dict(document["heads"]), arrays_below(arrays, HEADS))
        sample = TextSample.of_kept(document["sample"], arrays_below(arrays, "sample."))
        return Atlas(
            heads,
            tuple(map(str, document["scores"])),
            arrays_below(arrays, "counts."),
            tuple(sample.texts()),
            _pairs(document, arrays, len(heads.cells)),
        )


def _pairs(
    document: dict[str, Any], arrays: dict[str, np.ndarray], heads: int
) -> tuple[tuple[FrequentPair, ...], ...]:
    words: list[str] = document["words"]
    pairs: list[list[FrequentPair]] = [[] for _ in range(heads)]
    flat = zip(arrays["pairs.ends"].tolist(), arrays["pairs.shares"].tolist(), strict=True)
    for (head, query, key, is_words), (share, even) in flat:
        pairs[head].append(FrequentPair(words[query], words[key], share, even, bool(is_words)))
    return tuple(map(tuple, pairs))
