"""Attention weights recomputed from the tensors of a call: any rows, any heads, all texts at once.

Captures recompute attention here, for checks and interventions, and in blocks of all weights
(calls/blocks.py), which take their scores from `scores_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from headscope.capturing.calls.call import Call, Visibility
from headscope.capturing.device import full_precision
from headscope.errors import CaptureError

EXACT = (torch.float32, torch.float64)
LOST_AT_MOST = 1e-5
"""How much of a row's weight may lie on padding that is cut off: rounding."""


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

    @property
    def is_shared(self) -> bool:
        """Whether the rows are the same in all texts."""
        return self.at is None or self.at.ndim == 1

    def of_each(self, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """These rows of the weights ``[head query key]`` of each text, ``[text head row key]``."""
        if self.at is None:
            return torch.stack(list(weights))
        at = self.at.expand(len(weights), -1)
        rows = (own.index_select(1, chosen) for own, chosen in zip(weights, at, strict=True))
        return torch.stack(list(rows))

    def positions(self, queries: int, device: torch.device) -> torch.Tensor:
        """Positions of the rows, ``[text row]`` or ``[1 row]``."""
        if self.at is None:
            return torch.arange(queries, device=device)[None]
        return self.at[None] if self.at.ndim == 1 else self.at


ALL = QueryRows()


def has_own_weights(call: Call) -> bool:
    """Whether the weights that the model returned are the ones to keep.

    Those of a model in half precision are rounded: where queries and keys were seen, they are
    recomputed.
    """
    return call.weights is not None and (call.query is None or call.weights.dtype in EXACT)


def weights_of(
    call: Call, visibility: Visibility, rows: QueryRows = ALL, heads: torch.Tensor | None = None
) -> torch.Tensor:
    """Weights ``[text head row key]`` in float32 or better: the model's own where it gave them.

    Otherwise they are recomputed from queries and keys. Rows in which every key is masked are
    undefined (uniform in eager, zero in sdpa); here they are zero.

    Args:
        call: with weights, or with queries and keys.
        visibility: which keys the queries may attend to.
        rows: which queries.
        heads: numbers ``[head]`` of the chosen ones; None for all.
    """
    if call.weights is None or not has_own_weights(call):
        return recomputed(call, visibility, rows, heads)
    own = call.weights if heads is None else call.weights[:, heads]
    own = rows.of(own)
    visible = visible_of(call, visibility, rows, heads)
    return _without_dead_rows(own.to(torch.promote_types(own.dtype, torch.float32)), visible)


def recomputed(
    call: Call, visibility: Visibility, rows: QueryRows = ALL, heads: torch.Tensor | None = None
) -> torch.Tensor:
    """As `weights_of`, from queries and keys."""
    visible = visible_of(call, visibility, rows, heads)
    scores = _scores(call, visibility, rows, heads)
    if visible is not None:
        scores = scores.masked_fill_(~visible, torch.finfo(scores.dtype).min)
    if call.sinks is None:
        return _without_dead_rows(scores.softmax(-1), visible)
    sinks = call.sinks.reshape(-1) if heads is None else call.sinks.reshape(-1)[heads]
    sinks = sinks.to(scores.dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    return _without_dead_rows(torch.cat([scores, sinks], -1).softmax(-1)[..., :-1], visible)


def visible_of(
    call: Call, visibility: Visibility, rows: QueryRows = ALL, heads: torch.Tensor | None = None
) -> torch.Tensor | None:
    """True where a query may attend to a key, broadcast to ``[text head row key]``; None if nothing
    is masked.
    """
    _, _, queries, keys = call.size
    device = call.context.device
    if visibility.causal:
        positions = rows.positions(queries, device)[:, None, :, None]
        return torch.arange(keys, device=device) <= positions
    if visibility.visible is None:
        return None
    return rows.of(_of_heads(visibility.visible, heads)[..., :keys])


def scores_of(
    query: torch.Tensor,
    key: torch.Tensor,
    *,
    scale: float,
    soft_cap: float | None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Scores ``[text head row key]`` before bias and mask; heads that share their keys are one
    product with more rows.

    Args:
        query: ``[text head row feature]``.
        key: ``[text kv_head key feature]``, in the same precision.
        scale: what the products are multiplied by.
        soft_cap: see `headscope.record.Layer`.
        out: takes the scores, without gradients; None for new memory.
    """
    shared = query.reshape(len(query), key.shape[1], -1, query.shape[-1])
    if out is None:
        scores = _products(shared, key.transpose(-1, -2)).view(*query.shape[:3], -1) * scale
    else:
        left, right, scores = shared.flatten(0, 1), key.flatten(0, 1).transpose(1, 2), out
        # what is in the memory before counts 0 times
        out.view(*left.shape[:2], -1).baddbmm_(left, right, beta=0, alpha=scale)
    if soft_cap is not None:
        scores = torch.tanh(torch.div(scores, soft_cap, out=out), out=out)
        scores = torch.mul(scores, soft_cap, out=out)
    return scores


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


def _scores(
    call: Call, visibility: Visibility, rows: QueryRows, heads: torch.Tensor | None
) -> torch.Tensor:
    """The scores before the softmax, ``[text head row key]``, before masking."""
    if call.query is None or call.key is None:
        raise ValueError(f"{call.name}: neither weights nor queries and keys were seen")
    dtype = torch.promote_types(call.query.dtype, torch.float32)
    query, key = call.query, call.key
    if heads is not None:
        query, key = query[:, heads], key[:, heads // (query.shape[1] // key.shape[1])]
    query, key = rows.of(query).to(dtype), key.to(dtype)
    scores = scores_of(query, key, scale=call.scale, soft_cap=call.soft_cap)
    if visibility.bias is None:
        return scores
    return scores + rows.of(_of_heads(visibility.bias, heads)[..., : key.shape[2]]).to(dtype)


@full_precision()
def _products(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Products of matrices ``[text head row x]`` and ``[text head x column]``.

    On a CPU text by text where the texts and heads of the right factor are not one after the other
    in memory: torch would copy it whole.
    """
    if len(right) == 1 or right.device.type != "cpu":
        return left @ right
    if right.is_contiguous() or right.transpose(-1, -2).is_contiguous():
        return left @ right
    if torch.is_grad_enabled():
        return torch.stack([rows @ columns for rows, columns in zip(left, right, strict=True)])
    # each written where it belongs
    products = left.new_empty(*left.shape[:-1], right.shape[-1])
    for rows, columns, into in zip(left, right, products, strict=True):
        torch.bmm(rows, columns, out=into)
    return products


def _of_heads(tensor: torch.Tensor, heads: torch.Tensor | None) -> torch.Tensor:
    """The chosen heads of ``[text head query key]``; one may stand for all."""
    return tensor if heads is None or tensor.shape[1] == 1 else tensor[:, heads]


def _without_dead_rows(weights: torch.Tensor, visible: torch.Tensor | None) -> torch.Tensor:
    if visible is None:
        return weights
    alive = visible.any(-1, keepdim=True)
    return weights if alive.all() else weights * alive


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
