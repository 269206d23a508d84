"""Attention weights recomputed from the tensors of a call: any rows and heads at once, or all of
them block by block, for all texts of a batch.

A block is as many texts, heads and rows as the device works on best at once: what stays in the
cache of a processor, or what fills a graphics card. All weights that are kept, and all that
statistics are made of, come in blocks; checks and interventions take chosen rows and heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from headscope.capturing.calls.call import HIDDEN, Call, Visibility
from headscope.capturing.device import full_precision
from headscope.errors import CaptureError

EXACT = (torch.float32, torch.float64)
LOST_AT_MOST = 1e-5
"""How much of a row's weight may lie on padding that is cut off: rounding."""
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


@dataclass(frozen=True, eq=False)
class QueryRows:
    """A choice of queries of each text of a call.

    Args:
        at: positions of the queries, ``[row]`` if they are the same in all texts, or ``[text
            row]``; None for all queries.
    """

    at: torch.Tensor | None = None

    @classmethod
    def spread(cls, positions: Sequence[torch.Tensor], queries: int, most: int) -> QueryRows:
        """A few rows of each text, from its first real token to its last.

        The last row of a text with fewer tokens is repeated.

        Args:
            positions: of the real tokens of each text, rising.
            queries: number of queries, padding included.
            most: how many of each text.
        """
        lengths = {len(at) for at in positions}
        rows = min(most, max(lengths))
        if lengths == {queries}:
            if queries <= most:
                return cls()
            return cls(spread(queries, most).to(positions[0].device))
        row_numbers = [spread(len(at), min(rows, len(at))).to(at.device) for at in positions]
        row_numbers = [
            torch.cat([chosen, chosen[-1:].expand(rows - len(chosen))]) for chosen in row_numbers
        ]
        return cls(
            torch.stack([at[chosen] for at, chosen in zip(positions, row_numbers, strict=True)])
        )

    def of(self, tensor: torch.Tensor, axis: int = 2) -> torch.Tensor:
        """These rows of ``[text ... query ...]``, the queries being on an axis; 1 may stand for
        all.
        """
        if self.at is None or tensor.shape[axis] == 1:
            return tensor
        if self.at.ndim == 1:
            return tensor.index_select(axis, self.at)
        texts, rows = self.at.shape
        sizes = [texts, *tensor.shape[1:]]
        at = self.at.view([texts] + [1] * (axis - 1) + [rows] + [1] * (tensor.ndim - axis - 1))
        return tensor.expand(sizes).gather(
            axis, at.expand([*sizes[:axis], rows, *sizes[axis + 1 :]])
        )

    def positions(self, queries: int, device: torch.device) -> torch.Tensor:
        """Positions of the rows, ``[text row]`` or ``[1 row]``."""
        if self.at is None:
            return torch.arange(queries, device=device)[None]
        return self.at[None] if self.at.ndim == 1 else self.at


ALL = QueryRows()


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
        weights: ``[text head row key]``, of the first keys: those after them are zero.
        measures: of its rows, where they were asked for.
    """

    texts: slice
    heads: slice
    rows: slice
    weights: torch.Tensor
    measures: Any


Place = tuple[slice, slice, slice]


def weights_of(call: Call, visibility: Visibility, rows: QueryRows = ALL) -> torch.Tensor:
    """Weights ``[text head row key]`` in float32 or better: the model's own where it gave them.

    Otherwise they are recomputed from queries and keys. Rows in which every key is masked are
    undefined (uniform in eager, zero in sdpa); here they are zero.

    Args:
        call: with weights, or with queries and keys.
        visibility: which keys the queries may attend to.
        rows: which queries.
    """
    call, visibility = of_rows(call, visibility, rows)
    batch, heads, queries, _ = call.size
    every = slice(0, batch), slice(0, heads), slice(0, queries)
    if call.weights is None:
        return _computed(call, visibility, every, measured=False)[0]
    return _given(call.weights, visibility, every, measured=False)[0]


def recomputed(call: Call, visibility: Visibility, rows: QueryRows = ALL) -> torch.Tensor:
    """As `weights_of`, from queries and keys."""
    return weights_of(replace(call, weights=None), visibility, rows)


def of_rows(call: Call, visibility: Visibility, rows: QueryRows) -> tuple[Call, Visibility]:
    """The call as if it had no other queries than these."""
    bias, alive = (
        None if part is None else rows.of(part) for part in (visibility.bias, visibility.alive)
    )
    seen = Visibility(visible_of(call, visibility, rows), bias=bias, alive=alive)
    if rows.at is None:
        return call, seen
    query, weights = (None if one is None else rows.of(one) for one in (call.query, call.weights))
    return replace(call, query=query, weights=weights, context=rows.of(call.context, axis=1)), seen


@torch.no_grad()
@full_precision()
def fill(call: Call, visibility: Visibility, into: torch.Tensor) -> None:
    """Write all weights of a call into memory ``[text head query key]``."""
    for block in blocks_of(call, visibility):
        part, keys = into[block.texts, block.heads, block.rows], block.weights.shape[-1]
        part[..., :keys] = block.weights
        part[..., keys:] = 0


def blocks_of(
    call: Call, visibility: Visibility, *, measured: bool = False
) -> Iterator[WeightsBlock]:
    """All weights of a call: the model's own where it gave them, or from queries and keys. Callers
    see to it that products are in full precision, and no gradients are kept.

    Args:
        call: with queries and keys, or with weights.
        visibility: which keys the queries may attend to.
        measured: whether entropies and largest weights are wanted.

    Raises:
        CaptureError: where neither weights nor queries and keys were seen.
    """
    own, shared = call.weights, 1
    if own is None and call.query is not None and call.key is not None:
        shared = call.query.shape[1] // call.key.shape[1]
        dtype = torch.promote_types(call.query.dtype, torch.float32)
        call = replace(call, query=call.query.to(dtype), key=call.key.to(dtype))
    elif own is None:
        raise CaptureError(f"{call.name}: neither weights nor queries and keys were seen")
    for at in _slices(call, visibility, shared):
        if own is None:
            weights, measures = _computed(call, visibility, at, measured=measured)
        else:
            weights, measures = _given(own[at], visibility, at, measured=measured)
        yield WeightsBlock(*at, weights, measures)


def _given(
    own: torch.Tensor, visibility: Visibility, at: Place, *, measured: bool
) -> tuple[torch.Tensor, RowMeasures | None]:
    """Weights that a model gave itself, and what is known of their rows."""
    weights = own.to(torch.promote_types(own.dtype, torch.float32))
    if visibility.alive is not None:
        weights = weights * _part(visibility.alive, at)
    if not measured:
        return weights, None
    entropy = torch.special.entr(weights).sum(-1)
    return weights, RowMeasures(entropy, weights.amax(-1), weights.sum(-1))


def _computed(
    call: Call, visibility: Visibility, at: Place, *, measured: bool
) -> tuple[torch.Tensor, RowMeasures | None]:
    """The same of weights that follow from queries and keys."""
    (texts, heads, rows), query, key = at, call.query, call.key
    if query is None or key is None:
        raise ValueError(call.name)
    keys = min(call.size[3], rows.stop) if visibility.causal else call.size[3]
    shared = query.shape[1] // key.shape[1]
    kv_heads = slice(heads.start // shared, -(-heads.stop // shared))
    scores = scores_of(query[at], key[texts, kv_heads, :keys], call)
    if visibility.bias is not None:
        # finite, so that 0 times it is 0
        scores.add_(_part(visibility.bias, at)[..., :keys].to(scores.dtype).clamp(min=HIDDEN))
    visible = None if visibility.visible is None else _part(visibility.visible, at)[..., :keys]
    if visibility.causal:
        numbers = torch.arange(max(keys, rows.stop), device=scores.device)
        visible = numbers[:keys] <= numbers[rows, None]
    alive = None if visibility.alive is None else _part(visibility.alive, at)
    sinks = None if call.sinks is None else call.sinks.reshape(-1)[heads]
    return _softmax(scores, visible, alive, sinks, measured=measured)


def _softmax(
    scores: torch.Tensor,
    visible: torch.Tensor | None,
    alive: torch.Tensor | None,
    sinks: torch.Tensor | None,
    *,
    measured: bool = False,
) -> tuple[torch.Tensor, RowMeasures | None]:
    """Weights of scores, which are written over, and what is known of their rows.

    Args:
        scores: ``[text head row key]``.
        visible: True where a query may attend to a key.
        alive: False for rows that may attend to nothing, whose weights are zero; None for none.
        sinks: ``[head]``.
        measured: whether anything is to be known.
    """
    if visible is not None:
        scores = scores.masked_fill_(~visible, HIDDEN)
    if measured:
        # Less the largest score, so that p log p below is made of small numbers.
        top = scores.amax(-1, keepdim=True)
        scores.sub_(top)
    weights = scores.softmax(-1)
    left = alive
    if sinks is not None:  # a column of its own that takes its share and is left out
        sums = scores.logsumexp(-1, keepdim=True) + (top if measured else 0)
        left = torch.sigmoid(sums - sinks.to(scores.dtype)[:, None, None])
        left = left if alive is None else left * alive
    measures = None
    if measured:
        largest = weights.amax(-1)
        # With s - max s for s it is ln sum(e^s) - sum(p s), and e^0 / sum(e^s) is the largest p.
        entropy = (-largest.log() - scores.mul_(weights).sum(-1)).clamp_(min=0)
        measures = RowMeasures(entropy, largest, torch.ones_like(largest))
    if left is None:
        return weights, measures
    if measures is not None:
        of_rows, (entropy, largest, total) = left.squeeze(-1), measures
        entropy = of_rows * entropy + torch.special.entr(of_rows)
        measures = RowMeasures(entropy, largest * of_rows, total * of_rows)
    return weights * left, measures


def visible_of(call: Call, visibility: Visibility, rows: QueryRows = ALL) -> torch.Tensor | None:
    """True where a query may attend to a key, broadcast to ``[text head row key]``; None if nothing
    is masked.
    """
    _, _, queries, keys = call.size
    if visibility.causal:
        positions = rows.positions(queries, call.context.device)[:, None, :, None]
        return torch.arange(keys, device=call.context.device) <= positions
    return None if visibility.visible is None else rows.of(visibility.visible[..., :keys])


def scores_of(query: torch.Tensor, key: torch.Tensor, call: Call) -> torch.Tensor:
    """Scores ``[text head row key]`` before bias and mask, in float32 or better; heads that share
    their keys are one product with more rows.

    Args:
        query: ``[text head row feature]``.
        key: ``[text kv_head key feature]``.
        call: whose scale and soft cap they have.
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    scaled, key = query.to(dtype) * call.scale, key.to(dtype)
    shared = scaled.reshape(len(query), key.shape[1], -1, query.shape[-1])
    scores = _products(shared, key.transpose(-1, -2)).view(*query.shape[:3], -1)
    if call.soft_cap is None:
        return scores
    return torch.tanh(scores / call.soft_cap) * call.soft_cap


def difference(
    call: Call, weights: torch.Tensor, rows: QueryRows = ALL
) -> tuple[torch.Tensor, torch.Tensor]:
    """How far the layer output recomputed from weights and values is from the model's own.

    Args:
        call: with its projection, if one was found; without one the context itself is compared.
        weights: ``[text head row key]`` of these rows.
        rows: which queries.

    Returns:
        For each text the largest absolute difference, and the largest absolute value of the model's
        own output.
    """
    texts, heads, count, keys = weights.shape
    value = call.value.to(weights.dtype)
    shared = _products(weights.reshape(texts, value.shape[1], -1, keys), value)
    ours = shared.reshape(texts, heads, count, value.shape[-1]).transpose(1, 2)
    if call.added is not None:
        ours = ours + rows.of(call.added, axis=1).to(ours.dtype)
    theirs = call.context
    if call.projection is not None and call.output is not None:
        # forward, not a call: hooks that the user put on the module must not run again
        ours = call.projection.forward(ours.flatten(2).flatten(0, 1).to(call.context.dtype))
        ours = ours.view(texts, count, -1)
        theirs = call.output.reshape(*call.context.shape[:2], -1)
    theirs = rows.of(theirs, axis=1).flatten(1)
    apart = ours.flatten(1).to(theirs.dtype) - theirs
    return apart.abs().amax(1), theirs.abs().amax(1)


@full_precision()
def _products(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Products of matrices ``[text head row x]`` and ``[text head x column]``."""
    return left @ right


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


def check_lost(lost: float, name: str) -> None:
    """Raise where so much of a row's weight lies on padding that it cannot be cut off.

    Raises:
        CaptureError: naming the module.
    """
    if lost > LOST_AT_MOST:
        raise CaptureError(
            f"{name}: up to {lost:.3g} of a row's weight lies on padding, so that the padding "
            "cannot be cut off; capture the text alone, without padding"
        )


def spread(count: int, most: int) -> torch.Tensor:
    """Places from the first to the last of so many."""
    if count <= most:
        return torch.arange(count)
    return torch.linspace(0, count - 1, most).round().long()
