"""What torch computes as a whole: flex_attention, and its own multi-head attention."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from headscope.capturing.calls.call import Call
from headscope.capturing.seam import OPERANDS, Edit, Where
from headscope.capturing.watching import _products
from headscope.capturing.watching._score_trace import ScoreTraces
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
    full = None
    if full_number is not None:
        full = _in_blocks(full_number, full_at, (rows, columns), mask.shape)
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


Split = Callable[[torch.Tensor], torch.Tensor | None]


def with_operands(
    edit: Edit, act: tuple[Callable, tuple, dict], traces: ScoreTraces, split: Split
) -> tuple[tuple, dict]:
    """The arguments of a product with its queries, keys or values changed.

    Args:
        edit: what is to be changed.
        act: a function of torch, its arguments and options.
        traces: what is known of tensors.
        split: gives a tensor its four axes, or None.
    """
    func, args, options = act
    if not edit.of(*OPERANDS):
        return args, options
    if func is _products.FUSED or is_flex(func):
        return _fused(edit, args, options)
    product = _products.product_of(func, args, options)
    if product is None:
        return args, options
    left, right = traces.of(product.left), traces.of(product.right)
    names: tuple[Where | None, Where | None] = (None, None)
    axes, product = None, product.aligned()
    if right is not None and right.is_weights:
        pass
    elif left is None:
        names, axes = ("query", "key"), _products.product_axes(product.equation, product.axes)
    elif left.is_weights and product.added is None:
        names, axes = (None, "value"), _products.attention_axes(product.equation, product.axes)
    if axes is None:
        return args, options
    factors = [
        factor if name is None else _changed(edit, name, (factor, reading), split)
        for name, factor, reading in zip(names, product[:2], axes, strict=False)
    ]
    return _products.with_factors(act, *factors)


def operands_of_multi_head(edit: Edit, seen: dict[str, Any]) -> dict[str, Any]:
    """What `seen_in_multi_head` found with queries, keys and values changed, and what follows from
    them.
    """
    if not edit.of(*OPERANDS):
        return {}
    call = _shown(seen["query"], seen["key"], seen["value"])
    changed: dict[str, Any] = {name: edit.operand(name, seen[name], call) for name in OPERANDS}
    mask = seen["mask"]
    weights = changed["query"] @ changed["key"].transpose(-1, -2) * seen["scale"]
    weights = (weights if mask is None else weights + mask).softmax(-1)
    return changed | {"weights": weights, "context": (weights @ changed["value"]).transpose(1, 2)}


def _fused(edit: Edit, args: tuple, options: dict) -> tuple[tuple, dict]:
    given = dict(zip(OPERANDS, args, strict=False)) | options
    tensors = [given[name] for name in OPERANDS]
    if any(tensor.ndim != 4 for tensor in tensors):
        return args, options
    call = _shown(*tensors)
    new = {name: edit.operand(name, given[name], call) for name in OPERANDS}
    rest = {name: value for name, value in options.items() if name not in OPERANDS}
    return (*new.values(), *args[3:]), rest


def _changed(
    edit: Edit, name: Where, given: tuple[torch.Tensor, _products.AxisOrder], split: Split
) -> torch.Tensor:
    """A factor of a product changed, in the layout in which it was given."""
    factor, reading = given
    laid_out = reading.read(factor)
    old = split(laid_out)
    if old is None or not edit.of(name):
        return factor
    new = edit.operand(name, old, _shown(old, old, old))
    return factor if new is old else reading.written(new.reshape(laid_out.shape))


def _shown(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Call:
    """As much of a call as is needed to know its positions."""
    return Call(
        module=torch.nn.Identity(),
        name="",
        route="operators",
        cross=False,
        query=query,
        key=key,
        value=value,
        context=query.transpose(1, 2),
    )
