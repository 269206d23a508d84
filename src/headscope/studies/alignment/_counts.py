"""Hits and links of one sentence: of every head by weight and by norm, and of the diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.linguistics import Words
from headscope.measures import alignment_counts
from headscope.measures.alignment import Link
from headscope.record import Layer, Stack
from headscope.studies.alignment._word_alignment import BY, STATES, links_of

Gold = tuple[frozenset[Link], frozenset[Link]]
"""Links that must be found, and those that may be."""


def counts_of(
    stack: Stack, source: Words, target: dict[str, Words], gold: Gold, *, special: bool = True
) -> tuple[Float[np.ndarray, "2 state by layer head_and_all"], dict[int, str]]:
    """`alignment_counts` of one sentence; NaN where there is no map, and why a layer has none by
    norm.

    Args:
        stack: with weights, and norms where they were kept.
        source: words of the keys.
        target: words of the queries by state; see
            `headscope.studies.alignment._word_alignment.written_words_of`.
        gold: the true links.
        special: see `headscope.word_alignment`.
    """
    values = np.full((2, len(STATES), len(BY), len(stack), stack.heads + 1), np.nan)
    refused = {}
    for number, layer in enumerate(stack):
        for way, by in enumerate(BY):
            maps_of_layer = _maps(layer, by)
            # One map for the heads and one for all together; by norm either may be missing.
            if len(maps_of_layer) < 2:
                added = layer.contributions
                refused[layer.layer] = (
                    "norms were not kept" if added is None else added.missing.get("attention", "")
                )
            for maps, heads in maps_of_layer:
                for index, state in enumerate(STATES):
                    links = links_of(maps, source, target[state], special=special)
                    counts = [alignment_counts(*gold, each) for each in links]
                    # From a pair for each head to a row of hits and a row of links.
                    values[:, index, way, number, heads] = np.transpose(counts)
    return values, refused


def diagonal_counts(source: int, target: int, gold: Gold) -> Float[np.ndarray, " 2"]:
    """`alignment_counts` of the diagonal; see `diagonal_links`."""
    return np.array(alignment_counts(*gold, diagonal_links(source, target)), np.float64)


def diagonal_links(source: int, target: int) -> frozenset[Link]:
    """Each of so many target words linked to the source word at its relative place: what position
    alone can do.

    ``i = floor((j + 1/2) source / target)``.

    Source: Dyer et al. 2013, section 2, where links near the diagonal are preferred.
    """
    # In whole numbers, since rounding would decide where the product falls on an integer.
    return frozenset(
        ((2 * number + 1) * source // (2 * target), number) for number in range(target) if source
    )


def rates_of(counts: Float[np.ndarray, "2 ..."]) -> Any:
    """``1 - hits / links``; NaN where there are none."""
    hits, size = counts
    return 1 - np.divide(hits, size, out=np.full(np.shape(hits), np.nan), where=size > 0)


def _maps(layer: Layer, by: str) -> list[tuple[np.ndarray, slice]]:
    """Maps ``[head query key]`` and where their counts go: those of heads, and that of all heads
    together.
    """
    heads, together = slice(0, layer.heads), slice(-1, None)
    if by == "weight":
        weights = np.asarray(layer.weights_of(), np.float64)
        return [(weights, heads), (weights.mean(axis=0, keepdims=True), together)]
    added = layer.contributions
    maps = []
    if layer.has("value_norms"):
        maps.append((np.asarray(layer.head_contributions_of()), heads))
    # Not the sum over heads of their norms: vectors of heads may cancel, see `attention_norms`.
    if added is not None and added.attention is not None:
        maps.append((np.asarray(added.attention)[None], together))
    return maps
