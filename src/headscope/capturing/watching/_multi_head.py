"""What torch's own multi-head attention computes inside, from its arguments."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.nn import functional

forward: Any = functional.multi_head_attention_forward


def seen_in_multi_head(args: tuple, options: dict, output: torch.Tensor) -> dict[str, Any]:
    """What one call of ``torch.nn.functional.multi_head_attention_forward`` computed.

    It hands over projected results only; so it is run once more for its weights, and queries, keys
    and values are projected again with the weights that it was given.

    Args:
        args: of the call.
        options: of the call.
        output: what it returned, ``[query batch feature]``, or ``[query feature]`` without a batch.

    Returns:
        Arguments of a `Call`, and ``weight`` and ``shift``, matrix and bias of the output
        projection.
    """
    given: dict[str, Any] = inspect.signature(forward).bind(*args, **options).arguments
    again = given | {"need_weights": True, "average_attn_weights": False}
    weights = forward(**again)[1]
    batched = given["query"].ndim == 3
    weights = weights if batched else weights[None]
    sides = [given[name] if batched else given[name][:, None] for name in ("query", "key", "value")]
    query, key, value = (
        functional.linear(side, matrix, bias)
        .unflatten(-1, (given["num_heads"], -1))
        .permute(1, 2, 0, 3)
        for side, matrix, bias in zip(sides, *_projections(given), strict=True)
    )
    return {
        "query": query,
        "key": key,
        "value": value,
        "scale": query.shape[-1] ** -0.5,
        "weights": weights,
        "mask": _mask(given, weights),
        "context": (weights @ value).transpose(1, 2),
        "output": (output if batched else output[:, None]).transpose(0, 1),
        "weight": given["out_proj_weight"],
        "shift": given["out_proj_bias"],
        "cross": given["key"] is not given["query"],
    }


def _projections(given: dict[str, Any]) -> tuple[list, list]:
    if given.get("use_separate_proj_weight"):
        matrices = [given[f"{name}_proj_weight"] for name in "qkv"]
    else:
        matrices = given["in_proj_weight"].chunk(3)
    bias = given["in_proj_bias"]
    return list(matrices), [None] * 3 if bias is None else list(bias.chunk(3))


def _mask(given: dict[str, Any], weights: torch.Tensor) -> torch.Tensor | None:
    """Both masks in one, to be added to the scores, ``[batch head query key]`` where axes may
    be 1.
    """
    batch, heads, queries, keys = weights.shape
    whole, padding = given.get("attn_mask"), given.get("key_padding_mask")
    added = None
    if whole is not None:
        shape = (1, 1, queries, keys) if whole.ndim == 2 else (batch, heads, queries, keys)
        added = _added(whole, weights.dtype).reshape(shape)
    if padding is not None:
        hidden = _added(padding, weights.dtype).reshape(batch, 1, 1, keys)
        added = hidden if added is None else added + hidden
    return None if added is None else added.clamp(min=torch.finfo(weights.dtype).min)


def _added(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """What is added to the scores; a boolean mask is True where a query may not attend."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros_like(mask, dtype=dtype).masked_fill(mask, torch.finfo(dtype).min)
