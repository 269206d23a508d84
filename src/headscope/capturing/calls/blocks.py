"""The weights of a call, block by block, for all texts of a batch.

A block is as many texts, heads and rows as the device works on best at once: what stays in the
cache of a processor, or what fills a graphics card. All weights that are kept, and all that
statistics are made of, are computed here; `weights_of` computes the same for chosen rows.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from headscope.capturing.calls.attention import QueryRows, has_own_weights, scores_of
from headscope.capturing.calls.call import HIDDEN, Call, Visibility
from headscope.capturing.device import full_precision
from headscope.errors import CaptureError

LOG2_E, LN_2 = math.log2(math.e), math.log(2)
LEAST = HIDDEN / 1e10
"""Far below every score, and far above `HIDDEN`."""
SMALLEST = 1e-30
"""In the place of the sum of a row that may attend to nothing."""
NUMBERS = {"cpu": 2**18, "cuda": 2**26}
"""Weights in a block, by kind of device: 1 MiB stays in a processor's cache, 256 MiB fill a
card.
"""
ROWS_OF_LONG, NUMBERS_OF_LONG = 256, 2**20
"""With many keys a block may be larger, so that it has as many rows: a product of few rows takes
longer for each of them than the next cache does.
"""
CAUSAL_PARTS = 4
"""Into how many blocks at least the rows of a long causal text go: keys after the last row of a
block are not computed.
"""


class RowMeasures(NamedTuple):
    """What is known of rows ``[text head row]``.

    Args:
        entropy: in nats.
        largest: the largest weight.
        total: the sum.
    """

    entropy: torch.Tensor
    largest: torch.Tensor
    total: torch.Tensor


class WeightsBlock(NamedTuple):
    """Weights of some texts, heads and rows.

    Args:
        texts: which of the batch.
        heads: which.
        rows: which queries.
        weights: ``[text head row key]``, of the first keys: those after them are zero. Valid until
            the next block is computed.
        spare: of the shape of the weights, to be written to.
        measures: of its rows, where they were asked for.
    """

    texts: slice
    heads: slice
    rows: slice
    weights: torch.Tensor
    spare: torch.Tensor
    measures: Any


Place = tuple[slice, slice, slice]
Room = tuple[torch.Tensor, torch.Tensor]


@torch.no_grad()
@full_precision()
def fill(call: Call, visibility: Visibility, into: torch.Tensor) -> None:
    """Write all weights of a call into memory ``[text head query key]``."""
    for _ in blocks_of(call, visibility, into=into):
        pass


def blocks_of(
    call: Call,
    visibility: Visibility,
    *,
    into: torch.Tensor | None = None,
    measured: bool = False,
) -> Iterator[WeightsBlock]:
    """All weights of a call: the model's own where it gave them, or from queries and keys. Callers
    see to it that products are in full precision, and no gradients are kept.

    Args:
        call: with queries and keys, or with weights.
        visibility: which keys the queries may attend to.
        into: memory ``[text head query key]`` that takes them; None to forget them.
        measured: whether entropies and largest weights are wanted.

    Raises:
        CaptureError: where neither weights nor queries and keys were seen.
    """
    compute, given, shared = _copy, call.weights, 1
    if call.query is not None and call.key is not None and not has_own_weights(call):
        compute, given, shared = _compute, call.query, call.query.shape[1] // call.key.shape[1]
        dtype = torch.promote_types(given.dtype, torch.float32)
        call = replace(call, query=call.query.to(dtype), key=call.key.to(dtype))
    if given is None:
        raise CaptureError(f"{call.name}: neither weights nor queries and keys were seen")
    dtype = torch.promote_types(given.dtype, torch.float32)
    scratch = torch.empty(2, _numbers(call, shared), dtype=dtype, device=given.device)
    for at in _slices(call, visibility, shared):
        texts, heads, rows = at
        keys = min(call.size[3], rows.stop) if visibility.causal else call.size[3]
        shape = [each.stop - each.start for each in at] + [keys]
        weights, spare = (room[: math.prod(shape)].view(shape) for room in scratch)
        if into is not None:
            weights = into[at][..., :keys]
            into[at][..., keys:] = 0
        measures = compute(call, visibility, at, (weights, spare), measured=measured)
        yield WeightsBlock(texts, heads, rows, weights, spare, measures)


def _copy(
    call: Call, visibility: Visibility, at: Place, room: Room, *, measured: bool
) -> RowMeasures | None:
    """Write weights that the model gave itself."""
    weights, spare = room
    weights.copy_(call.weights[at][..., : weights.shape[-1]])  # ty: ignore[not-subscriptable]
    if visibility.alive is not None:
        weights.mul_(_part(visibility.alive, at))
    if not measured:
        return None
    entropy = torch.special.entr(weights, out=spare).sum(-1)
    return RowMeasures(entropy, weights.amax(-1), weights.sum(-1))


def _compute(
    call: Call, visibility: Visibility, at: Place, room: Room, *, measured: bool
) -> RowMeasures | None:
    """Write weights that follow from queries and keys."""
    weights, scores = room
    _write_scores(call, visibility, at, scores)
    top = scores.amax(-1).clamp_(min=LEAST)
    # Less the largest score, so that p log p below is made of small numbers. Powers of 2, since
    # those of e take torch three times as long, and more where they underflow.
    torch.add(top.mul(-LOG2_E).unsqueeze(-1), scores, alpha=LOG2_E, out=scores)
    torch.exp2(scores, out=weights)
    total = weights.sum(-1)
    # Rows that may attend to nothing are zero.
    share = total.reciprocal().masked_fill_(total == 0, 0)
    if not measured and call.sinks is None:
        weights.mul_(share.unsqueeze(-1))
        return None
    largest, left = weights.amax(-1).mul_(share), None
    if call.sinks is not None:
        sinks = call.sinks.reshape(-1)[at[1]].to(top.dtype).unsqueeze(-1)
        # exp(lse) / (exp(lse) + exp(sink)), which cannot overflow as its parts can; the largest
        # weight is exp(largest score) over exp(lse).
        left = torch.sigmoid(top - largest.log() - sinks).masked_fill_(total == 0, 0)
    products = scores.mul_(weights).sum(-1)
    # With p = w / total it is ln total - sum(w ln w) / total: no logarithm of what became 0.
    entropy = (total.clamp(min=SMALLEST).log_() - products * share * LN_2).clamp_(min=0)
    if left is not None:
        entropy, share = left * entropy + torch.special.entr(left), share * left
        largest = largest * left
    weights.mul_(share.unsqueeze(-1))
    return RowMeasures(entropy, largest, total * share)


def _write_scores(call: Call, visibility: Visibility, at: Place, out: torch.Tensor) -> None:
    """Write the scores of a block, `HIDDEN` for what its rows may not attend to."""
    texts, heads, rows = at
    query, key, keys = call.query, call.key, out.shape[-1]
    if query is None or key is None:
        return
    shared = query.shape[1] // key.shape[1]
    kv_heads = slice(heads.start // shared, -(-heads.stop // shared))
    key = key[texts, kv_heads, :keys]
    scores_of(query[at], key, scale=call.scale, soft_cap=call.soft_cap, out=out)
    if visibility.bias is not None:
        out.add_(_part(visibility.bias, at)[..., :keys].to(out.dtype).clamp(min=HIDDEN))
    if visibility.causal and rows.start + 1 < keys:
        later = _later(rows.stop - rows.start, out.device)[:, : keys - rows.start]
        out[..., rows.start :].masked_fill_(later, HIDDEN)
    if visibility.visible is not None:
        out.masked_fill_(~_part(visibility.visible, at)[..., :keys], HIDDEN)


@lru_cache(maxsize=4)
def _later(count: int, device: torch.device) -> torch.Tensor:
    """``[row key]``: True for keys after the row."""
    return torch.ones(count, count, dtype=torch.bool, device=device).triu_(1)


def _numbers(call: Call, shared: int) -> int:
    """How many weights a block of a call may have."""
    batch, heads, queries, keys = call.size
    usual = NUMBERS.get(call.context.device.type, NUMBERS["cuda"])
    most = max(usual, shared * keys, min(NUMBERS_OF_LONG, ROWS_OF_LONG * keys))
    return min(most, batch * heads * queries * keys)


def _slices(call: Call, visibility: Visibility, shared: int) -> Iterator[Place]:
    """Texts, heads and rows of blocks; heads that share their keys are in one."""
    (batch, heads, queries, keys), most = call.size, _numbers(call, shared)
    rows = queries
    if visibility.causal and heads * queries * keys > most:
        rows = -(-queries // CAUSAL_PARTS)
    texts = max(1, most // max(1, heads * rows * keys))
    some = shared * max(1, min(heads // shared, most // max(1, shared * rows * keys)))
    rows = max(1, min(rows, most // max(1, some * keys)))
    for text in range(0, batch, texts):
        for head in range(0, heads, some):
            for row in range(0, queries, rows):
                ends = text + texts, head + some, row + rows
                last = (min(end, size) for end, size in zip(ends, call.size, strict=False))
                yield tuple(map(slice, (text, head, row), last))  # ty: ignore[invalid-yield]


def _part(tensor: torch.Tensor, at: tuple[slice, slice, slice]) -> torch.Tensor:
    """A part of ``[text head query key]``, where 1 may stand for all."""
    sizes = zip(tensor.shape, at, strict=False)
    return tensor[tuple([slice(None) if size == 1 else part for size, part in sizes])]


class ChosenRows:
    """Rows of the weights of texts without padding, copied from blocks.

    Args:
        call: the call.
        at: positions ``[row]`` of the queries, rising, the same in all texts.

    Attributes:
        weights: ``[text head row key]``.
    """

    def __init__(self, call: Call, at: torch.Tensor) -> None:
        texts, heads, _, keys = call.size
        self._at, self._positions = at, at.tolist()
        self.weights: torch.Tensor = torch.zeros(texts, heads, len(at), keys, device=at.device)

    @classmethod
    def of(cls, call: Call, rows: QueryRows | None) -> ChosenRows | None:
        """Those at which a call is checked; None where texts differ in them."""
        if rows is None or not rows.is_shared:
            return None
        return cls(call, rows.positions(call.size[2], call.context.device)[0])

    def enter(self, block: WeightsBlock) -> None:
        """Copy the rows that a block has."""
        ends = block.rows.start, block.rows.stop
        first, last = (bisect_left(self._positions, end) for end in ends)
        if first < last:
            keys = block.weights.shape[-1]
            into = self.weights[block.texts, block.heads, first:last, :keys]
            into.copy_(block.weights.index_select(2, self._at[first:last] - block.rows.start))
