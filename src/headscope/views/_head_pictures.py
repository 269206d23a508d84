"""Thumbnails and kinds of the heads of a layer, from one pass over their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Int, UInt8

from headscope.patterns import (
    COLUMNS,
    PLACES,
    KindOfHead,
    TextFacts,
    numbers_of_heads,
    weights_together,
)
from headscope.record import Layer, Record, Stack, WeightBlock, sampled_in_rows
from headscope.views._grouped import QUERIES_OF_A_ROW, GroupedWeights, source_of
from headscope.views._thumbs import (
    Blocks,
    PooledRows,
    Starts,
    decoded,
    pooled_lifts,
    quantise,
    starts_of,
)
from headscope.views.contract import PageStack

MEASURED_QUERIES = 1024
"""Queries of a text up to which everything that a page reports about its heads is of all of them.
For longer texts this takes longer than reading the weights.
"""
KIND_QUERIES = 512
"""Queries of a longer text that the kinds of heads are measured on: their means are then off by
their spread / 23 at most.
"""
POOLED_QUERIES = 2**13
"""Queries of a text up to which its thumbnails are made of all of them; longer ones are shown in
groups, see `headscope.views._grouped`.
"""
ERROR_QUERIES = 128
"""Queries of a longer text that the error of half precision is measured on."""

Put = Callable[[int, "WeightBlock | Float[np.ndarray, 'query key']"], None]


@dataclass(frozen=True, eq=False)
class HeadPictures:
    """Thumbnails and kinds of heads; zero and NaN of those that the record does not hold.

    Args:
        thumbs: ``[head row column]``, multiples of the even share by `PooledRows`, bytes on
            the scale of `quantise`.
        kinds: ``[head column]``, the numbers of `headscope.patterns.COLUMNS`.
    """

    thumbs: UInt8[np.ndarray, "head row column"]
    kinds: Float[np.ndarray, "head number"]


def head_pictures(
    layer: Layer,
    heads: list[int],
    facts: TextFacts,
    put: Put | None = None,
    *,
    blocks: Blocks | None = None,
) -> HeadPictures:
    """Thumbnails and kinds of some heads of a layer.

    Args:
        layer: the layer.
        heads: numbers of the heads; of those that the record does not hold there is nothing.
        facts: facts about the stack, by `headscope.patterns.text_facts`.
        put: takes the place of each head among these and its weights, all of them, in order.
        blocks: what the rows and columns of a thumbnail stand for, by
            `headscope.views._thumbs.blocks_of`; even parts where it is not given.
    """
    blocks = blocks or (starts_of(layer.size[0]), starts_of(layer.size[1]))
    source = source_of(layer)
    if source is not None:
        return _of_single_tokens(layer, heads, source=source, put=put, blocks=blocks)
    pictures = HeadPictures(
        np.zeros((len(heads), len(blocks[0]), len(blocks[1])), np.uint8),
        np.full((len(heads), len(COLUMNS)), np.nan, np.float32),
    )
    indices = [index for index, head in enumerate(heads) if head in layer.head_numbers]
    together = weights_together(layer, [heads[index] for index in indices]) if indices else None
    if together is None:
        for index in indices:
            put_block = None if put is None else partial(put, index)
            thumb, kind = _in_blocks(layer, heads[index], facts, put=put_block, blocks=blocks)
            pictures.thumbs[index], pictures.kinds[index] = thumb, kind
        return pictures
    pictures.thumbs[indices] = quantise(pooled_lifts(together, layer.visible, blocks))
    pictures.kinds[indices] = numbers_of_heads(together, layer.visible, facts)
    if put is not None:
        for index, weights in zip(indices, together, strict=True):
            put(index, weights)
    return pictures


def _in_blocks(
    layer: Layer,
    head: int,
    facts: TextFacts,
    *,
    put: Callable[[WeightBlock], None] | None,
    blocks: Blocks,
) -> tuple[UInt8[np.ndarray, "row column"], Float[np.ndarray, " number"]]:
    """Thumbnail and numbers of one head, from blocks of its rows."""
    most = KIND_QUERIES if layer.size[0] > MEASURED_QUERIES else None
    kind, pooled = KindOfHead(layer, facts, most), PooledRows(blocks, layer.size[1])
    # Bytes are of all weights; without them a long text needs only some of its rows.
    queries = None if put is not None else _queries(layer, kind, blocks[0])
    for block in layer.weight_blocks(head, queries=queries):
        kind.add(block)
        weights = np.zeros((1, len(block.queries), layer.size[1]), np.float32)
        weights[0][:, block.keys] = block.weights
        pooled.add(weights, layer.visible.rows(block.queries), block.queries)
        if put is not None:
            put(block)
    return quantise(pooled.picture[0]), kind.numbers


def _of_single_tokens(
    layer: Layer, heads: list[int], *, source: GroupedWeights, put: Put | None, blocks: Blocks
) -> HeadPictures:
    """Pictures of a layer with tokens in groups: what its heads do is told of single tokens."""
    of_query, of_key = source.starts
    single = of_query[blocks[0]], of_key[blocks[1]]
    pictures = head_pictures(source.layer, heads, source.facts(), blocks=single)
    if put is not None:
        for index, head in enumerate(heads):
            if head in layer.head_numbers:
                put(index, layer.weights_of(head))
    kinds = pictures.kinds
    for name in PLACES:
        starts = of_query if name.endswith("_query") else of_key
        places = kinds[:, COLUMNS.index(name)]
        known = places >= 0  # -1 is none
        places[known] = np.searchsorted(starts, places[known], side="right") - 1
    # A page reads thumbnails as parts of the keys that it shows.
    larger = source.layer.size[1] / layer.size[1]
    return HeadPictures(quantise(np.minimum(1, larger * decoded(pictures.thumbs))), kinds)


def _queries(layer: Layer, kind: KindOfHead, starts: Starts) -> Int[np.ndarray, " query"] | None:
    """Queries of a long text whose rows are looked at; None for all."""
    if layer.size[0] <= POOLED_QUERIES:
        return None
    # As many for each row of the thumbnail, and those that the kind is measured on.
    drawn = sampled_in_rows(starts, layer.size[0], QUERIES_OF_A_ROW)
    return np.union1d(drawn, kind.queries)


def sampling_words(record: Record, stacks: Sequence[PageStack]) -> str:
    """What of a page comes from some of the queries only, in one sentence; empty where nothing
    does.

    Args:
        record: that is shown.
        stacks: its stacks as the page has them.
    """
    count = max(map(_single_queries, record.stacks.values()))
    if count <= MEASURED_QUERIES:
        return ""
    layers = [layer for stack in stacks for layer in stack["layers"]]
    parts = [f"kinds of heads are from {KIND_QUERIES:,} queries"]
    if count > POOLED_QUERIES:
        parts.append(f"thumbnails from {QUERIES_OF_A_ROW} for each of their rows")
    if any(layer["scores"] and not layer["weights"] for layer in layers):
        parts.append(f"errors from {ERROR_QUERIES}")
    *most, last = parts
    said = f"{', '.join(most)} and {last}" if most else last
    return f"Of {count:,} queries: {said}"


def _single_queries(stack: Stack) -> int:
    """How many queries a stack has, where tokens are in groups of single tokens."""
    source = source_of(stack.layers[0])
    return len(stack.query) if source is None else source.layer.size[0]
