"""Weights from the tensors that a call handed over, and the check that they are the model's own."""

from __future__ import annotations

import torch

from headscope.capturing.calls.call import Call
from headscope.capturing.calls.sight import Sight

ROWS_AT_ONCE = 1024


def has_own_weights(call: Call) -> bool:
    """Whether the weights that the model handed over are the ones to keep.

    Those of a model in half precision are rounded: where queries and keys were seen, they are
    recomputed.
    """
    return call.weights is not None and (
        call.query is None or call.weights.dtype in (torch.float32, torch.float64)
    )


def weights_of(call: Call, sight: Sight, example: int, rows: torch.Tensor) -> torch.Tensor:
    """Weights ``[head query key]`` of some queries, in float32 or better: the model's own where it
    gave them.

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


def difference(
    call: Call, weights: torch.Tensor, example: int, rows: torch.Tensor
) -> tuple[float, float]:
    """How far the layer output recomputed from weights and values is from the model's own, and how
    large that is.

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
        ours = shared.reshape(part.shape[0], part.shape[1], value.shape[-1]).transpose(
            0, 1
        )  # [query head feature]
        ours = ours if call.added is None else ours + call.added[example, at].to(ours.dtype)
        theirs = call.context[example, at]
        if call.projection is not None and call.output is not None:
            # forward, not a call: hooks that the user put on the module must not run again
            ours = call.projection.forward(ours.flatten(1).to(call.context.dtype))
            theirs = call.output.reshape(*call.context.shape[:2], -1)[example, at]
        worst = max(worst, (ours.to(theirs.dtype) - theirs).abs().max().item())
        largest = max(largest, theirs.abs().max().item())
    return worst, largest


def _without_dead_rows(weights: torch.Tensor, visible: torch.Tensor | None) -> torch.Tensor:
    """Rows that may look at nothing are undefined (uniform in eager, zero in sdpa); here they are
    zero.
    """
    if visible is None:
        return weights
    alive = visible.any(-1, keepdim=True)
    return weights if alive.all() else weights * alive
