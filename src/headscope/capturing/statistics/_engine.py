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
from headscope.capturing.calls.visibility import RowVisibility, row_visibility_of
from headscope.capturing.statistics._accumulator import Accumulator
from headscope.capturing.statistics._plan import StatisticsPlan
from headscope.capturing.statistics._tile import FromScores, FromWeights, QueryRows, Tile
from headscope.errors import CaptureError
from headscope.record import Statistics

TILE = 2**20
"""Weights in a tile, at most: two arrays of 4 MiB in single precision."""
TILE_IN_CACHE = 2**18
"""If only the weights are needed: two arrays of 1 MiB, so that each is still in the cache
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
        plan: what is measured.
        kept_queries: for each example the positions of the queries that are real tokens, rising.
        kept_keys: the same for the keys.

    Raises:
        CaptureError: where real tokens attend to padding, so that it cannot be cut off.
    """
    statistics, scratch = [], _scratch(call, TILE)
    for group in _groups(call, kept_queries, kept_keys, sampled=plan.rows is not None):
        marks = plan.marks(group.texts, *group.kept)
        queries = group.queries(call)
        covered = plan.sampled(len(queries))
        rows = torch.arange(len(queries)) if covered is None else torch.from_numpy(covered)
        rows = rows.to(call.context.device)
        lengths = group.lengths
        if covered is not None:
            lengths = tuple((len(rows), keys) for _, keys in lengths)
        keys = call.size[3] if group.kept[1] is None else len(group.kept[1])
        accumulator = Accumulator(marks, rows, lengths, heads=call.size[1], keys=keys, top=plan.top)
        for part in _tiles_of(call, group.texts, queries[rows], scratch):
            tile, measured = part.source.measured(part.heads, part.rows, part.visibility)
            real = _without_padding(tile, group, part.covered, call.name)
            # A tile may lie wholly on padding, such as that on the left of a short text.
            if real.weights.shape[-1]:
                accumulator.enter(real, measured, part.heads, part.covered)
        statistics += accumulator.statistics(covered, len(queries))
    return statistics


@torch.no_grad()
def fill_weights(
    call: Call,
    kept_queries: Sequence[torch.Tensor],
    kept_keys: Sequence[torch.Tensor],
    *,
    into: Sequence[torch.Tensor],
) -> None:
    """Write the weights of each text, recomputed from queries and keys, into zeros ``[head query
    key]``.

    Memory that no weight comes to, such as most of what is after the queries of a causal model, is
    never touched.

    Args:
        call: with queries and keys, or with weights.
        kept_queries: for each text positions of the real queries, rising.
        kept_keys: the same of the keys.
        into: for each text zeros of any precision and on any device.

    Raises:
        CaptureError: where real tokens attend to padding, so that it cannot be cut off.
    """
    scratch = _scratch(call, TILE_IN_CACHE)
    for group in _groups(call, kept_queries, kept_keys, most=TILE_IN_CACHE):
        wholes = into[group.texts]
        for part in _tiles_of(call, group.texts, group.queries(call), scratch):
            room = _room(wholes, group, part, call)
            tile = part.source.tile(part.heads, part.rows, part.visibility, room)
            if room is not None:
                if tile.share is not None:
                    room.mul_(tile.share.unsqueeze(-1))
                continue
            real = _without_padding(tile, group, part.covered, call.name)
            stop = real.start + real.weights.shape[-1]
            for whole, (queries, keys), weights in zip(
                wholes, group.lengths, real.shared, strict=True
            ):
                rows = slice(part.covered.start, min(part.covered.stop, queries))
                columns = slice(real.start, min(stop, keys))
                real_weights = weights[:, : rows.stop - rows.start, : columns.stop - columns.start]
                whole[part.heads, rows, columns] = real_weights


def _room(
    wholes: Sequence[torch.Tensor], group: TextGroup, part: TileSlices, call: Call
) -> torch.Tensor | None:
    """Where the weights of a tile can be written at once: of one text without padding, in one piece
    of memory; None where there is no such piece.
    """
    if len(wholes) > 1 or group.lengths[0][1] != call.size[3]:
        return None
    columns = slice(part.visibility.start, part.visibility.stop)
    room = wholes[0][None, part.heads, part.covered, columns]
    fits = room.is_contiguous() and room.dtype == _dtype(call)
    return room if fits and room.device == call.context.device else None


@dataclass(frozen=True, eq=False)
class TextGroup:
    """Texts whose weights are computed together: one, or several whose padding is on the right.

    Args:
        texts: which of the batch.
        lengths: numbers of real queries and keys of each.
        kept: positions of the real queries and keys of one text; None for several, whose padding is
            computed too and cut off.
    """

    texts: slice
    lengths: tuple[tuple[int, int], ...]
    kept: tuple[torch.Tensor | None, torch.Tensor | None] = (None, None)

    def queries(self, call: Call) -> torch.Tensor:
        """Positions of the queries that are computed."""
        if self.kept[0] is not None:
            return self.kept[0]
        return torch.arange(call.size[2], device=call.context.device)


def _groups(
    call: Call,
    kept_queries: Sequence[torch.Tensor],
    kept_keys: Sequence[torch.Tensor],
    *,
    most: int | None = None,
    sampled: bool = False,
) -> Iterator[TextGroup]:
    """The texts of a call, as many at once as fit in a tile."""
    batch, heads, queries, keys = call.size
    sides = list(zip(kept_queries, kept_keys, strict=True))
    lengths = tuple((len(rows), len(columns)) for rows, columns in sides)
    # Whole texts at a time, padding included, cost fewer calls than their tiles one by one.
    together = max(1, (TILE if most is None else most) // max(1, heads * queries * keys))
    is_whole = all(each == (queries, keys) for each in lengths)
    # Sampled rows are other ones in each text, and padding on the left or inside puts tokens of a
    # text at other positions: neither is one slice of a batch.
    regular = is_whole or (not sampled and all(map(_begins, (*kept_queries, *kept_keys))))
    if not regular:
        together = 1
    for first in range(0, batch, together):
        texts = slice(first, min(batch, first + together))
        several = texts.stop - first > 1
        yield TextGroup(texts, lengths[texts], (None, None) if several else sides[first])


def _begins(positions: torch.Tensor) -> bool:
    """Whether positions are the first ones, none of which is left out."""
    return bool(len(positions)) and int(positions[-1]) == len(positions) - 1


@torch.no_grad()
def weights_of_rows(call: Call, example: int, rows: torch.Tensor) -> torch.Tensor:
    """Weights ``[head row key]`` of a few rows of one example, over all keys, padding included.

    For the check of a capture: multiplied with the values they give the model's own context of
    these rows. Rows that may attend to nothing are zero. The rows are positions, padding included,
    and must rise.
    """
    text = call.of_text(example)
    weights = call.context.new_zeros(call.size[1], len(rows), call.size[3], dtype=_dtype(call))
    keys = torch.arange(call.size[3], device=rows.device)
    fill_weights(text, [rows], [keys], into=[weights])
    return weights


@dataclass(frozen=True)
class TileSlices:
    """Which part of the weights a tile holds, and what they are computed from.

    Args:
        source: of the weights.
        heads: of the tile.
        rows: positions of its queries.
        covered: the same rows, counted among those that are measured.
        visibility: which keys the rows may attend to.
    """

    source: FromScores | FromWeights
    heads: slice
    rows: QueryRows
    covered: slice
    visibility: RowVisibility


def _tiles_of(
    call: Call, texts: slice, positions: torch.Tensor, scratch: torch.Tensor
) -> Iterator[TileSlices]:
    """Tiles of all heads and of the rows at these positions of some texts."""
    source, shared = _source(call, texts, scratch)
    heads, count = call.size[1], texts.stop - texts.start
    together = count * _together(call, shared)
    rows_at_once = min(ROWS_AT_ONCE, max(1, scratch.shape[1] // (together * call.size[3])))
    for first_row in range(0, len(positions), rows_at_once):
        part = slice(first_row, min(len(positions), first_row + rows_at_once))
        rows = positions[part]
        run = _run(rows)
        visibility = row_visibility_of(call, texts, run, scratch.dtype)
        of_head = count * len(rows) * (visibility.stop - visibility.start)
        # In multiples of the heads that share their keys, which are one product.
        heads_at_once = shared * max(1, scratch.shape[1] // (shared * of_head))
        for first in range(0, heads, heads_at_once):
            yield TileSlices(
                source, slice(first, min(heads, first + heads_at_once)), run, part, visibility
            )


def _run(rows: torch.Tensor) -> torch.Tensor | slice:
    """Rising positions as a slice where none is left out, which copies nothing."""
    first, last = int(rows[0]), int(rows[-1])
    return slice(first, last + 1) if last - first + 1 == len(rows) else rows


def _source(
    call: Call, texts: slice, scratch: torch.Tensor
) -> tuple[FromScores | FromWeights, int]:
    """Where the tiles of some texts come from, and how many heads share their keys."""
    if call.query is not None and call.key is not None:
        query, key = call.query[texts], call.key[texts].to(scratch.dtype)
        source = FromScores(call=call, query=query, key=key, scratch=scratch)
        return source, query.shape[1] // key.shape[1]
    if call.weights is None:
        raise CaptureError(f"{call.name}: neither weights nor queries and keys were seen")
    return FromWeights(weights=call.weights[texts], scratch=scratch), 1


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
    batch, heads, queries, keys = call.size
    size = min(max(tile, heads * keys), batch * heads * queries * keys)
    return torch.empty(2, size, dtype=_dtype(call), device=call.context.device)


def _dtype(call: Call) -> torch.dtype:
    given = call.weights if call.query is None else call.query
    # Half precision would lose the entropy of long rows: their weights are below its least steps.
    return torch.promote_types((call.context if given is None else given).dtype, torch.float32)


def _without_padding(tile: Tile, group: TextGroup, part: slice, name: str) -> Tile:
    """The tile over the real keys, counted among them; of several texts over all keys.

    Raises:
        CaptureError: where more than rounding of a row's weight lies on padding.
    """
    keys = group.kept[1]
    if keys is None:
        _check_lost(_on_padding(tile, group, part), name)
        return tile
    kept, stop = keys.cpu().numpy(), tile.start + tile.weights.shape[-1]
    first, last = (int(index) for index in np.searchsorted(kept, (tile.start, stop)))
    if last - first == stop - tile.start:
        return tile.starting(first)
    real = tile.taking(keys[first:last] - tile.start)
    _check_lost(tile.scaled(tile.weights.sum(-1) - real.weights.sum(-1)), name)
    return real.starting(first)


def _on_padding(tile: Tile, group: TextGroup, part: slice) -> torch.Tensor | None:
    """What lies on padding of the rows of real tokens, ``[text head row]``; None without
    padding.
    """
    stop = tile.start + tile.weights.shape[-1]
    if all(keys >= stop for _, keys in group.lengths):
        return None
    lost = torch.zeros_like(tile.weights[..., 0])
    for text, (queries, keys) in enumerate(group.lengths):
        rows = slice(0, max(0, queries - part.start))
        beyond = tile.weights[text, :, rows, max(0, keys - tile.start) :]
        lost[text, :, rows] = beyond.sum(-1)
    return tile.scaled(lost)


def _check_lost(lost: torch.Tensor | None, name: str) -> None:
    if lost is None or not lost.numel():
        return
    most = lost.max().item()
    if most > LOST_AT_MOST:
        raise CaptureError(
            f"{name}: up to {most:.3g} of a row's weight lies on padding, so that the padding "
            "cannot be cut off; capture the text alone, without padding"
        )
