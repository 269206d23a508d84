"""Attention computed by torch's ``flex_attention``: its block mask made dense, and what its
``score_mod`` does.

Source: Dong et al. 2024, Flex Attention, section 3. What a fused kernel computes follows from
queries, keys, a function of each score (``score_mod``) and one that decides which scores count
(``mask_mod``), with a list of the blocks that hold any of these. Both functions are evaluated here
for every score, as torch itself does where nothing is compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from headscope.errors import CaptureError

MODULE = "torch.nn.attention.flex_attention"


def is_flex(func: Any) -> bool:
    """Whether a function of torch is the operator behind ``flex_attention``."""
    return getattr(func, "__name__", "") == "flex_attention" and isinstance(
        func, torch._ops.HigherOrderOperator
    )


def is_block_mask(mask: Any) -> bool:
    """Whether this is a mask of ``flex_attention``."""
    return MODULE in sys.modules and isinstance(mask, sys.modules[MODULE].BlockMask)


def dense_mask(block_mask: tuple, device: torch.device, name: str) -> torch.Tensor:
    """True where a query may look, ``[batch head query key]``, where batch and head may be 1.

    Args:
        block_mask: what ``BlockMask.as_tuple()`` gives.
        device: of the mask.
        name: of the module that computes attention.

    Raises:
        CaptureError: where the list of blocks hides other scores than the function does, so that a
            compiled kernel computes something else than torch does uncompiled.
    """
    from torch.nn.attention.flex_attention import create_mask

    queries, keys, number, at, full_number, full_at = block_mask[:6]
    rows, columns = block_mask[-3:-1]
    batch, heads = number.shape[:2]
    mask = create_mask(block_mask[-1], batch, heads, queries, keys, device=str(device))
    full = (
        None
        if full_number is None
        else _in_blocks(full_number, full_at, (rows, columns), mask.shape)
    )
    listed = _in_blocks(number, at, (rows, columns), mask.shape)
    listed = listed if full is None else listed | full
    if bool((mask & ~listed).any()) or (full is not None and bool((full & ~mask).any())):
        raise CaptureError(
            f"{name} uses a BlockMask whose list of blocks hides other positions than its "
            "mask_mod does, so that it computes something else compiled than uncompiled, as it "
            "is captured; give it the mask_mod of its blocks"
        )
    return mask


def seen_in_flex(args: tuple, name: str) -> dict[str, Any]:
    """Queries, keys, values, scale, mask and bias of one use of the operator, as arguments of a
    `Call`.

    Whatever ``score_mod`` does is left as bias: its scores minus those that went into it.

    Args:
        args: of the operator.
        name: of the module that computes attention.

    Raises:
        CaptureError: where it makes scores that are no numbers, or torch has no way to evaluate it.
    """
    query, key, value, score_mod, block_mask, scale, options, *buffers = args
    mask = dense_mask(block_mask, query.device, name)
    shared = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    before, after = _scores(name)(
        query, shared, value, score_mod, block_mask, scale, options, *buffers
    )
    visible = ~after.isneginf()
    bias = (after - before).masked_fill(~visible, 0)
    if not bool(bias.isfinite().all()):
        raise CaptureError(
            f"{name} has a score_mod that makes infinite scores or no numbers of some; it is "
            "refused"
        )
    if torch.equal(mask.expand(visible.shape), visible):
        visible = mask  # smaller, where heads share it
    return {
        "query": query,
        "key": key,
        "value": value,
        "scale": float(scale),
        "mask": None if bool(visible.all()) else visible,
        "bias": bias if bool(bias.any()) else None,
    }


def _in_blocks(
    number: torch.Tensor, at: torch.Tensor, block: tuple[int, int], shape: torch.Size
) -> torch.Tensor:
    """True for positions ``[batch head query key]`` in the blocks that are listed for each row of
    blocks.
    """
    listed = torch.arange(at.shape[-1], device=at.device) < number[..., None]
    columns = at.shape[-1]
    # what stands behind the blocks that count goes into one more column, which is cut off
    blocks = torch.zeros(*at.shape[:-1], columns + 1, dtype=torch.bool, device=at.device)
    blocks = blocks.scatter(-1, torch.where(listed, at, columns).long(), value=True)[..., :columns]
    row, column = (
        torch.arange(size, device=at.device) // length
        for size, length in zip(shape[-2:], block, strict=True)
    )
    return blocks[:, :, row][:, :, :, column]


def _scores(name: str) -> Callable:
    """Torch's own evaluation of scores before and after ``score_mod``, which its operator uses
    uncompiled.
    """
    module = sys.modules["torch._higher_order_ops.flex_attention"]
    inner = getattr(module, "_math_attention_inner", None)
    if inner is None:
        raise CaptureError(
            f"{name} calls flex_attention, whose scores torch {torch.__version__} does not give "
            "away; use scaled_dot_product_attention, or model.set_attn_implementation('sdpa')"
        )
    return inner
