"""Weights from the tensors that a call handed over, and the check that they are the model's own."""

from __future__ import annotations

import torch

from headscope.capturing._call import Call

ROWS_AT_ONCE = 1024


def visible_and_bias(call: Call) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """What a query may look at, and what is added to its scores: None, or broadcast to ``[batch head query key]``."""
    visible, bias, mask = None, call.bias, call.mask
    _, _, queries, keys = call.size
    if mask is not None:
        mask = mask[..., :keys]
        if mask.dtype == torch.bool:
            visible = mask
        else:
            visible = mask > torch.finfo(mask.dtype).min / 2
            added = mask.where(visible, torch.zeros_like(mask))
            if added.any():
                bias = added if bias is None else bias + added
    elif call.causal:
        visible = torch.ones(queries, keys, dtype=torch.bool, device=call.context.device).tril()[None, None]
    elif call.query is None and call.weights is not None:
        visible = _seen_in(call.weights)
    if visible is not None and visible.all():
        visible = None
    return visible, bias


def _seen_in(weights: torch.Tensor) -> torch.Tensor | None:
    """The mask behind weights: causal where everything to the right is exactly zero for every head and text."""
    if weights.triu(1).any():
        return None
    return torch.ones_like(weights[:1, :1], dtype=torch.bool).tril()


def weights_of(call: Call, visible: torch.Tensor | None, bias: torch.Tensor | None) -> torch.Tensor:
    """Weights ``[batch head query key]`` in float32 or better: the model's own where it gave them, else recomputed.

    A model in half precision rounds its weights; for it they are recomputed in float32 from its queries and keys.
    """
    if call.weights is not None and (call.query is None or call.weights.dtype in (torch.float32, torch.float64)):
        return _without_dead_rows(call.weights.to(torch.promote_types(call.weights.dtype, torch.float32)), visible)
    if call.query is None or call.key is None:
        raise ValueError(f"{call.name}: neither weights nor queries and keys were seen")
    dtype = torch.promote_types(call.query.dtype, torch.float32)
    query, key = call.query.to(dtype), _for_each_head(call.key, call.query.shape[1]).to(dtype)
    scores = query @ key.transpose(-1, -2) * call.scale
    if call.soft_cap is not None:
        scores = call.soft_cap * torch.tanh(scores / call.soft_cap)
    if bias is not None:
        scores = scores + bias.to(dtype)
    if visible is not None:
        scores = scores.where(visible, torch.finfo(dtype).min)
    if call.sinks is None:
        return _without_dead_rows(scores.softmax(-1), visible)
    sinks = call.sinks.to(dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    return _without_dead_rows(torch.cat([scores, sinks], -1).softmax(-1)[..., :-1], visible)


def difference(call: Call, weights: torch.Tensor, example: int, kept: torch.Tensor) -> tuple[float, float]:
    """How far the layer output recomputed from weights and values is from the model's own, and how large that is.

    Args:
        call: with its projection, if one was found; without one the context itself is compared.
        weights: ``[batch head query key]``.
        example: which of the batch.
        kept: positions of the queries that are real tokens.

    Returns:
        The largest absolute difference, and the largest absolute value of the model's own output.
    """
    values = _for_each_head(call.value, weights.shape[1])[example].to(weights.dtype)
    worst = largest = 0.0
    for rows in kept.split(ROWS_AT_ONCE):
        ours = (weights[example, :, rows] @ values).transpose(0, 1)  # [query head feature]
        theirs = call.context[example, rows]
        if call.projection is not None and call.output is not None:
            # forward, not a call: hooks that the user put on the module must not run again
            ours = call.projection.forward(ours.flatten(1).to(call.context.dtype))
            theirs = call.output.reshape(*call.context.shape[:2], -1)[example, rows]
        worst = max(worst, (ours.to(theirs.dtype) - theirs).abs().max().item())
        largest = max(largest, theirs.abs().max().item())
    return worst, largest


def _for_each_head(shared: torch.Tensor, heads: int) -> torch.Tensor:
    return shared if shared.shape[1] == heads else shared.repeat_interleave(heads // shared.shape[1], dim=1)


def _without_dead_rows(weights: torch.Tensor, visible: torch.Tensor | None) -> torch.Tensor:
    """Rows that may look at nothing are undefined (uniform in eager, zero in sdpa); here they are zero."""
    if visible is None:
        return weights
    alive = visible.any(-1, keepdim=True)
    return weights if alive.all() else weights * alive
