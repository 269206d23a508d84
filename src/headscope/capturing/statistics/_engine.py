"""Statistics of one attention call, tile by tile.

A tile is a few rows of a few heads. Its weights are computed, read off and forgotten, so that
``[query key]`` is never there as a whole, not as a mask either: one product with the keys, one
softmax and half a dozen sums. That takes about as long as the model's own attention at head size
64, and half as long again at 32. The fused kernel, run once more with the keys as values, takes as
long and gives the log-sum-exp and the entropy alone: neither the largest weight nor what the keys
receive, and nothing where there are soft caps, biases or sinks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headscope.capturing.calls.call import Call
from headscope.capturing.calls.sight import RowSight, row_sight_of
from headscope.capturing.statistics._ledger import Ledger
from headscope.capturing.statistics._plan import StatisticsPlan
from headscope.capturing.statistics._tile import FromScores, FromWeights, Rows, Tile
from headscope.errors import CaptureError
from headscope.record import Statistics

TILE = 2**20
"""Weights in a tile, at most: two arrays of 4 MiB in single precision."""
TILE_IN_CACHE = 2**18
"""Where nothing but the weights is wanted: two arrays of 1 MiB, so that each is still in the cache
when it is read.
"""
ROWS_AT_ONCE = 128
LOST_AT_MOST = 1e-5


@torch.no_grad()
def statistics_of_call(
    call: Call,
    plan: StatisticsPlan,
    *,
    kept_queries: Sequence[torch.Tensor],
    kept_keys: Sequence[torch.Tensor],
) -> list[Statistics]:
    """Statistics of one call, for each example of the batch; what is cut off is padding.

    Args:
        call: with queries and keys, or with weights, of a model on any device and in any precision.
        plan: what is asked.
        kept_queries: for each example the positions of the queries that are real tokens, rising.
        kept_keys: the same for the keys.

    Raises:
        CaptureError: where real tokens look at padding, so that it cannot be cut off.
    """
    found, scratch = [], _scratch(call, TILE)
    for example, (queries, keys) in enumerate(zip(kept_queries, kept_keys, strict=True)):
        covered = plan.sampled(len(queries))
        rows = torch.arange(len(queries)) if covered is None else torch.from_numpy(covered)
        rows = rows.to(call.context.device)
        marks = plan.marks(example, queries, keys)
        ledger = Ledger(marks, rows, heads=call.size[1], keys=len(keys), top=plan.top)
        kept = keys.cpu().numpy()
        for place in _places(call, example, queries[rows], scratch):
            tile, measured = place.source.measured(place.heads, place.rows, place.sight)
            real = _without_padding(tile, kept, keys, call.name)
            if real.weights.shape[-1]:
                ledger.enter(real, measured, place.heads, place.part)
        found.append(ledger.statistics(covered, len(queries)))
    return found


@torch.no_grad()
def fill_weights(
    call: Call, example: int, queries: torch.Tensor, keys: torch.Tensor, *, found: torch.Tensor
) -> torch.Tensor:
    """Write the weights of one example, recomputed from queries and keys, into zeros ``[head query
    key]``; return it.

    Memory that no weight comes to, such as most of what is after the queries of a causal model, is
    never touched.

    Args:
        call: with queries and keys, or with weights.
        example: which of the batch.
        queries: positions of the real queries, rising.
        keys: the same of the keys.
        found: zeros of any precision and on any device.

    Raises:
        CaptureError: where real tokens look at padding, so that it cannot be cut off.
    """
    kept = keys.cpu().numpy()
    for place in _places(call, example, queries, _scratch(call, TILE_IN_CACHE)):
        tile = _without_padding(
            place.source.tile(place.heads, place.rows, place.sight), kept, keys, call.name
        )
        found[place.heads, place.part, tile.start : tile.start + tile.weights.shape[-1]] = (
            tile.shared
        )
    return found


@torch.no_grad()
def weights_of_rows(call: Call, example: int, rows: torch.Tensor) -> torch.Tensor:
    """Weights ``[head row key]`` of a few rows of one example, over all keys, padding included.

    For the check of a capture: multiplied with the values they give the model's own context of
    these rows. Rows that may look at nothing are zero. The rows are positions, padding included,
    and must rise.
    """
    found = call.context.new_zeros(call.size[1], len(rows), call.size[3], dtype=_dtype(call))
    return fill_weights(
        call, example, rows, torch.arange(call.size[3], device=rows.device), found=found
    )


@dataclass(frozen=True)
class Place:
    """Where a tile is: its heads, rows as positions, and their part of all rows that are asked
    for.
    """

    source: FromScores | FromWeights
    heads: slice
    rows: Rows
    part: slice
    sight: RowSight


def _places(
    call: Call, example: int, positions: torch.Tensor, scratch: torch.Tensor
) -> Iterator[Place]:
    """Tiles of all heads and of the rows at these positions of one example."""
    source, shared = _source(call, example, scratch)
    heads, together = call.size[1], _together(call, shared)
    rows_at_once = min(ROWS_AT_ONCE, max(1, scratch.shape[1] // (together * call.size[3])))
    for first_row in range(0, len(positions), rows_at_once):
        part = slice(first_row, min(len(positions), first_row + rows_at_once))
        rows = positions[part]
        run = _run(rows)
        sight = row_sight_of(call, example, rows, scratch.dtype)
        heads_at_once = shared * max(
            1, scratch.shape[1] // (shared * len(rows) * (sight.stop - sight.start))
        )
        for first in range(0, heads, heads_at_once):
            yield Place(source, slice(first, min(heads, first + heads_at_once)), run, part, sight)


def _run(rows: torch.Tensor) -> torch.Tensor | slice:
    """Rising positions as a slice where none is left out, which copies nothing."""
    first, last = int(rows[0]), int(rows[-1])
    return slice(first, last + 1) if last - first + 1 == len(rows) else rows


def _source(
    call: Call, example: int, scratch: torch.Tensor
) -> tuple[FromScores | FromWeights, int]:
    """Where the tiles of one example come from, and how many heads share their keys."""
    if call.query is not None and call.key is not None:
        query, key = call.query[example], call.key[example].to(scratch.dtype)
        return FromScores(call=call, query=query, key=key, scratch=scratch), query.shape[
            0
        ] // key.shape[0]
    if call.weights is None:
        raise CaptureError(f"{call.name}: neither weights nor queries and keys were seen")
    return FromWeights(weights=call.weights[example], scratch=scratch), 1


def _together(call: Call, shared: int) -> int:
    """How many heads a tile must hold: those that share their keys, or all where each has additions
    of its own.
    """
    added = (call.mask, call.bias)
    return (
        call.size[1]
        if any(tensor is not None and tensor.shape[1] > 1 for tensor in added)
        else shared
    )


def _scratch(call: Call, tile: int) -> torch.Tensor:
    _, heads, queries, keys = call.size
    size = min(max(tile, heads * keys), heads * queries * keys)
    return torch.empty(2, size, dtype=_dtype(call), device=call.context.device)


def _dtype(call: Call) -> torch.dtype:
    given = call.weights if call.query is None else call.query
    return torch.promote_types((call.context if given is None else given).dtype, torch.float32)


def _without_padding(tile: Tile, kept: np.ndarray, keys: torch.Tensor, name: str) -> Tile:
    """The tile over the real keys, counted among them.

    Raises:
        CaptureError: where more than rounding of a row's weight lies on padding.
    """
    stop = tile.start + tile.weights.shape[-1]
    first, last = (int(place) for place in np.searchsorted(kept, (tile.start, stop)))
    if last - first == stop - tile.start:
        return tile.starting(first)
    part = tile.taking(keys[first:last] - tile.start)
    lost = tile.scaled(tile.weights.sum(-1) - part.weights.sum(-1)).max().item()
    if lost > LOST_AT_MOST:
        raise CaptureError(
            f"{name}: up to {lost:.3g} of a row's weight lies on padding, so that the padding "
            "cannot be cut off; capture the text alone, without padding"
        )
    return part.starting(first)
