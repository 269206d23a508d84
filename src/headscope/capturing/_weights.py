"""Weights from the tensors that a call handed over, and the check that they are the model's own."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headscope.capturing._call import Call

ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Sight:
    """What the queries of a call may look at, and what is added to their scores.

    Args:
        visible: True where a query may look, broadcast to ``[batch head query key]``; None for everywhere.
        causal: whether instead each query sees the keys up to its own place, counted from the first.
        bias: added to the scores, broadcast likewise.
    """

    visible: torch.Tensor | None = None
    causal: bool = False
    bias: torch.Tensor | None = None

    def visible_rows(self, call: Call, example: int, rows: torch.Tensor) -> torch.Tensor | None:
        """``[head query key]`` of these queries of one example, where head may be 1; None for everything."""
        if self.causal:
            return torch.arange(call.size[3], device=rows.device) <= rows[None, :, None]
        return None if self.visible is None else _rows(self.visible, call, example, rows)

    def bias_rows(self, call: Call, example: int, rows: torch.Tensor) -> torch.Tensor | None:
        """``[head query key]`` of these queries of one example, where head may be 1."""
        return None if self.bias is None else _rows(self.bias, call, example, rows)


def sight_of(call: Call) -> Sight:
    """What a call's mask and bias mean."""
    visible, bias, mask = None, call.bias, call.mask
    if mask is not None:
        mask = mask[..., : call.size[3]]
        if mask.dtype == torch.bool:
            visible = mask
        else:
            visible = mask > torch.finfo(mask.dtype).min / 2
            added = mask.where(visible, torch.zeros_like(mask))
            if added.any():
                bias = added if bias is None else bias + added
    elif call.causal:
        return Sight(causal=True, bias=bias)
    elif call.query is None and call.weights is not None:
        return Sight(causal=not call.weights.triu(1).any(), bias=bias)
    return Sight(visible=None if visible is None or visible.all() else visible, bias=bias)


def has_own_weights(call: Call) -> bool:
    """Whether the weights that the model handed over are the ones to keep.

    Those of a model in half precision are rounded: where queries and keys were seen, they are recomputed.
    """
    return call.weights is not None and (call.query is None or call.weights.dtype in (torch.float32, torch.float64))


def weights_of(call: Call, sight: Sight, example: int, rows: torch.Tensor) -> torch.Tensor:
    """Weights ``[head query key]`` of some queries, in float32 or better: the model's own where it gave them.

    Otherwise they are recomputed from queries and keys.
    """
    if call.weights is not None and has_own_weights(call):
        own = call.weights[example][:, rows]
        visible = sight.visible_rows(call, example, rows)
        return _without_dead_rows(own.to(torch.promote_types(own.dtype, torch.float32)), visible)
    return recomputed(call, sight, example, rows)


def recomputed(call: Call, sight: Sight, example: int, rows: torch.Tensor) -> torch.Tensor:
    """Weights ``[head query key]`` of some queries, from queries and keys; in float32 or better."""
    visible = sight.visible_rows(call, example, rows)
    scores = scores_of(call, sight, example, rows)
    if visible is not None:
        scores = scores.where(visible, torch.finfo(scores.dtype).min)
    if call.sinks is None:
        return _without_dead_rows(scores.softmax(-1), visible)
    sinks = call.sinks.to(scores.dtype).reshape(-1, 1, 1).expand(*scores.shape[:2], 1)
    return _without_dead_rows(torch.cat([scores, sinks], -1).softmax(-1)[..., :-1], visible)


def scores_of(call: Call, sight: Sight, example: int, rows: torch.Tensor) -> torch.Tensor:
    """What goes into the softmax, ``[head query key]``, before anything is hidden."""
    if call.query is None or call.key is None:
        raise ValueError(f"{call.name}: neither weights nor queries and keys were seen")
    dtype = torch.promote_types(call.query.dtype, torch.float32)
    query, key = call.query[example][:, rows].to(dtype), call.key[example].to(dtype)
    shared = query.reshape(key.shape[0], -1, query.shape[-1]) @ key.transpose(-1, -2)
    scores = shared.reshape(query.shape[0], query.shape[1], key.shape[1]) * call.scale
    if call.soft_cap is not None:
        scores = call.soft_cap * torch.tanh(scores / call.soft_cap)
    bias = sight.bias_rows(call, example, rows)
    return scores if bias is None else scores + bias.to(dtype)


def difference(call: Call, weights: torch.Tensor, example: int, rows: torch.Tensor) -> tuple[float, float]:
    """How far the layer output recomputed from weights and values is from the model's own, and how large that is.

    Args:
        call: with its projection, if one was found; without one the context itself is compared.
        weights: ``[head query key]`` of these queries.
        example: which of the batch.
        rows: positions of the queries.

    Returns:
        The largest absolute difference, and the largest absolute value of the model's own output.
    """
    value = call.value[example].to(weights.dtype)
    worst = largest = 0.0
    for part, at in zip(weights.split(ROWS_AT_ONCE, dim=1), rows.split(ROWS_AT_ONCE), strict=True):
        shared = part.reshape(value.shape[0], -1, part.shape[-1]) @ value
        ours = shared.reshape(part.shape[0], part.shape[1], value.shape[-1]).transpose(0, 1)  # [query head feature]
        ours = ours if call.added is None else ours + call.added[example, at].to(ours.dtype)
        theirs = call.context[example, at]
        if call.projection is not None and call.output is not None:
            # forward, not a call: hooks that the user put on the module must not run again
            ours = call.projection.forward(ours.flatten(1).to(call.context.dtype))
            theirs = call.output.reshape(*call.context.shape[:2], -1)[example, at]
        worst = max(worst, (ours.to(theirs.dtype) - theirs).abs().max().item())
        largest = max(largest, theirs.abs().max().item())
    return worst, largest


def _rows(tensor: torch.Tensor, call: Call, example: int, rows: torch.Tensor) -> torch.Tensor:
    """``[batch head query key]``, where axes may be 1, to ``[head query key]`` of some queries, where head may be 1."""
    one = tensor[example if tensor.shape[0] > 1 else 0]
    return one.expand(one.shape[0], *call.size[2:])[:, rows]


def _without_dead_rows(weights: torch.Tensor, visible: torch.Tensor | None) -> torch.Tensor:
    """Rows that may look at nothing are undefined (uniform in eager, zero in sdpa); here they are zero."""
    if visible is None:
        return weights
    alive = visible.any(-1, keepdim=True)
    return weights if alive.all() else weights * alive
