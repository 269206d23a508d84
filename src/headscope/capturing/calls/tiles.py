"""Weights of a call in tiles: a few rows of a few heads, so that neither the weights of a layer nor
its mask are ever there as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from headscope.capturing.calls._tile import FromScores, FromWeights, Rows, Tile, scratch_memory
from headscope.capturing.calls.attention import check_lost, has_own_weights
from headscope.capturing.calls.call import Call
from headscope.capturing.calls.visibility import RowVisibility, row_visibility_of
from headscope.capturing.device import full_precision
from headscope.errors import CaptureError
from headscope.record.vouched import ROW_SUM_TOLERANCE

TILE = 2**18
"""Weights in a tile, at most: two arrays of 1 MiB in single precision, which stay in a core's own
cache from one operation to the next.
"""
ROWS_OF_LONG, TILE_OF_LONG = 256, 2**20
"""With many keys a tile may be larger, so that it has as many rows: a product of few takes longer
for each of them than the next cache does.
"""
ROWS_AT_ONCE = 512
ROWS_OF_HIDDEN = 128
"""The same where keys are hidden, such as those after a query, which more rows would compute."""


@dataclass(frozen=True, eq=False)
class TextGroup:
    """Texts that are measured alike: one, or several whose padding is on the right.

    Args:
        texts: which of the batch.
        lengths: numbers of real queries and keys of each.
        kept: positions of the real queries and keys of one text; None for several, whose padding is
            computed too and cut off.
    """

    texts: slice
    lengths: tuple[tuple[int, int], ...]
    kept: tuple[torch.Tensor | None, torch.Tensor | None] = (None, None)

    def some(self, texts: slice) -> TextGroup:
        """Only these texts, counted within the group."""
        first = self.texts.start
        whole = slice(first + texts.start, first + texts.stop)
        return TextGroup(whole, self.lengths[texts], self.kept)

    def queries(self, call: Call) -> torch.Tensor:
        """Positions of the queries that are computed."""
        if self.kept[0] is not None:
            return self.kept[0]
        return torch.arange(call.size[2], device=call.context.device)


@dataclass(frozen=True)
class TileSlices:
    """Which part of the weights a tile holds, and what they are computed from.

    Args:
        source: of the weights.
        group: the texts of the tile.
        texts: the same texts, counted among those that are measured.
        heads: of the tile.
        rows: positions of its queries.
        covered: the same rows, counted among those that are measured.
        visibility: which keys the rows may attend to.
    """

    source: FromScores | FromWeights
    group: TextGroup
    texts: slice
    heads: slice
    rows: Rows
    covered: slice
    visibility: RowVisibility


@torch.no_grad()
@full_precision()
def fill_weights(
    call: Call,
    kept_queries: Sequence[torch.Tensor],
    kept_keys: Sequence[torch.Tensor],
    *,
    into: Sequence[torch.Tensor] | torch.Tensor,
    are_zeros: bool = True,
) -> bool:
    """Write the weights of each text into memory ``[head query key]``: as `weights_of`, the model's
    own where it gave them.

    Of zeros, memory that no weight comes to, such as most of what is after the queries of a causal
    model, is never touched.

    Args:
        call: with queries and keys, or with weights.
        kept_queries: for each text positions of the real queries, rising.
        kept_keys: the same of the keys.
        into: for each text memory of any precision and on any device; or memory of all texts, one
            after the other, where none has padding.
        are_zeros: whether it holds zeros, so that only weights need to be written.

    Returns:
        Whether all rows were looked at while they were in the processor's cache, and are what
        `headscope.record.vouched` demands of weights.

    Raises:
        CaptureError: where real tokens attend to padding, so that it cannot be cut off.
    """
    if has_own_weights(call):
        call = replace(call, query=None, key=None)
    scratch, sums = scratch_of(call), []
    for group in text_groups(call, kept_queries, kept_keys):
        for part in tiles_of(call, group, group.queries(call), scratch):
            wholes = into[part.group.texts]
            room = _room(wholes, part, call)
            tile = part.source.tile(part.heads, part.rows, part.visibility, room)
            if room is not None:
                if tile.share is not None:
                    room.mul_(tile.share.unsqueeze(-1))
                sums.append(_sums_of(part, tile, room.dtype))
                continue
            real = without_padding(tile, part.group, part.covered, call.name)
            sums.append(_sums_of(part, real, wholes[0].dtype))
            _write(real, part, wholes, are_zeros=are_zeros)
    seen = [each for each in sums if each is not None]
    return len(seen) == len(sums) and (not seen or are_one(torch.cat(seen)))


def _write(
    real: Tile,
    part: TileSlices,
    wholes: Sequence[torch.Tensor] | torch.Tensor,
    *,
    are_zeros: bool,
) -> None:
    """Write a tile of several texts into the memory of each."""
    stop = real.start + real.weights.shape[-1]
    if isinstance(wholes, torch.Tensor):
        rows = wholes[:, part.heads, part.covered]
        rows[..., real.start : stop] = real.shared
        if not are_zeros:
            rows[..., : real.start] = 0
            rows[..., stop:] = 0
        return
    for whole, (queries, keys), weights in zip(
        wholes, part.group.lengths, real.shared, strict=True
    ):
        rows = slice(part.covered.start, min(part.covered.stop, queries))
        columns = slice(real.start, min(stop, keys))
        real_weights = weights[:, : rows.stop - rows.start, : columns.stop - columns.start]
        whole[part.heads, rows, columns] = real_weights
        if not are_zeros:
            whole[part.heads, rows, : columns.start] = 0
            whole[part.heads, rows, columns.stop :] = 0


def _sums_of(part: TileSlices, tile: Tile, kept_as: torch.dtype) -> torch.Tensor | None:
    """The sums ``[element]`` of the rows of a tile, NaN where a weight is negative; None where rows
    may sum to less, or are kept in another precision.
    """
    if tile.share is not None or not tile.weights.shape[-1] or tile.weights.dtype != kept_as:
        return None
    sums = tile.weights.sum(-1)
    # A softmax has no negative weights; what a model gave itself may have.
    if isinstance(part.source, FromWeights):
        sums.masked_fill_(tile.weights.amin(-1) < 0, torch.nan)
    return sums.flatten()


def are_one(sums: torch.Tensor) -> bool:
    """Whether sums of rows are 1, as a record demands of them."""
    if not sums.numel():
        return True
    least, most = torch.stack(torch.aminmax(sums)).tolist()
    # false of NaN, too
    return least >= 1 - ROW_SUM_TOLERANCE and most <= 1 + ROW_SUM_TOLERANCE


def _room(
    wholes: Sequence[torch.Tensor] | torch.Tensor, part: TileSlices, call: Call
) -> torch.Tensor | None:
    """Where the weights of a tile can be written at once: of texts without padding, in one piece of
    memory; None where there is no such piece.
    """
    if not isinstance(wholes, torch.Tensor):
        if len(wholes) > 1 or part.group.lengths[0][1] != call.size[3]:
            return None
        wholes = wholes[0][None]
    # What is outside of the columns of a tile is not written to.
    if (part.visibility.start, part.visibility.stop) != (0, call.size[3]):
        return None
    room = wholes[:, part.heads, part.covered]
    fits = room.is_contiguous() and room.dtype == _dtype(call)
    return room if fits and room.device == call.context.device else None


def text_groups(
    call: Call,
    kept_queries: Sequence[torch.Tensor],
    kept_keys: Sequence[torch.Tensor],
    *,
    sampled: bool = False,
) -> Iterator[TextGroup]:
    """The texts of a call, all at once where they may be."""
    batch, _, queries, keys = call.size
    sides = list(zip(kept_queries, kept_keys, strict=True))
    lengths = tuple((len(rows), len(columns)) for rows, columns in sides)
    is_whole = all(each == (queries, keys) for each in lengths)
    # Sampled rows are other ones in each text, and padding on the left or inside puts tokens of a
    # text at other positions: neither is one slice of a batch.
    regular = is_whole or (not sampled and all(map(_begins, (*kept_queries, *kept_keys))))
    together = batch if regular else 1
    for first in range(0, batch, together):
        texts = slice(first, min(batch, first + together))
        several = texts.stop - first > 1
        yield TextGroup(texts, lengths[texts], (None, None) if several else sides[first])


def _begins(positions: torch.Tensor) -> bool:
    """Whether positions are the first ones, none of which is left out."""
    return bool(len(positions)) and int(positions[-1]) == len(positions) - 1


def tiles_of(
    call: Call, group: TextGroup, positions: torch.Tensor, scratch: torch.Tensor
) -> Iterator[TileSlices]:
    """Tiles of all heads and of the rows at these positions of some texts."""
    heads, queries, keys = call.size[1:]
    # Whole texts at a time, padding included, cost fewer calls than their tiles one by one.
    at_once = max(1, scratch.shape[1] // max(1, heads * queries * keys))
    known: dict[tuple[int, int], tuple[Rows, RowVisibility]] = {}
    # Without a mask and a bias all texts see alike.
    is_alike = call.mask is None and call.bias is None
    for first_text in range(0, len(group.lengths), at_once):
        texts = slice(first_text, min(len(group.lengths), first_text + at_once))
        some = group.some(texts)
        source, shared = _source(call, some.texts, scratch)
        count = texts.stop - first_text
        rows_at_once = max(1, scratch.shape[1] // (count * _together(call, shared) * keys))
        hides = call.causal or call.mask is not None
        rows_at_once = min(ROWS_OF_HIDDEN if hides else ROWS_AT_ONCE, rows_at_once)
        for first_row in range(0, len(positions), rows_at_once):
            part = slice(first_row, min(len(positions), first_row + rows_at_once))
            seen = (part.start, part.stop)
            if seen not in known or not is_alike:
                rows = _run(positions[part])
                known[seen] = rows, row_visibility_of(call, some.texts, rows, scratch.dtype)
            rows, visibility = known[seen]
            of_head = count * (part.stop - first_row) * (visibility.stop - visibility.start)
            # In multiples of the heads that share their keys, which are one product.
            heads_at_once = shared * max(1, scratch.shape[1] // (shared * of_head))
            for first in range(0, heads, heads_at_once):
                of_heads = slice(first, min(heads, first + heads_at_once))
                yield TileSlices(source, some, texts, of_heads, rows, part, visibility)


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


def scratch_of(call: Call) -> torch.Tensor:
    """Memory ``[2 element]`` that all tiles of a call share."""
    batch, heads, queries, keys = call.size
    size = max(TILE, heads * keys, min(TILE_OF_LONG, ROWS_OF_LONG * keys))
    size = min(size, batch * heads * queries * keys)
    return scratch_memory(size, call.context, _dtype(call))


def _dtype(call: Call) -> torch.dtype:
    given = call.weights if call.query is None else call.query
    # Half precision would lose the entropy of long rows: their weights are below its least steps.
    return torch.promote_types((call.context if given is None else given).dtype, torch.float32)


def without_padding(tile: Tile, group: TextGroup, part: slice, name: str) -> Tile:
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
    if lost is not None and lost.numel():
        check_lost(lost.max().item(), name)
