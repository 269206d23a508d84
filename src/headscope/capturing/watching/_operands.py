"""Queries, keys and values as a session wants them, put in place of those that a function of torch
was given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from headscope.capturing.calls.call import Call
from headscope.capturing.seam import OPERANDS, Edit, Where
from headscope.capturing.watching._products import (
    FUSED,
    AxisOrder,
    attention_axes,
    product_axes,
    product_of,
    with_factors,
)
from headscope.capturing.watching._score_trace import ScoreTraces
from headscope.capturing.watching._whole_attention import is_flex

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
    if func is FUSED or is_flex(func):
        return _fused(edit, args, options)
    product = product_of(func, args, options)
    if product is None:
        return args, options
    left, right = traces.of(product.left), traces.of(product.right)
    names: tuple[Where | None, Where | None] = (None, None)
    axes, product = None, product.aligned()
    if right is not None and right.is_weights:
        pass
    elif left is None:
        names, axes = ("query", "key"), product_axes(product.equation, product.axes)
    elif left.is_weights and product.added is None:
        names, axes = (None, "value"), attention_axes(product.equation, product.axes)
    if axes is None:
        return args, options
    factors = [
        factor if name is None else _changed(edit, name, (factor, reading), split)
        for name, factor, reading in zip(names, product[:2], axes, strict=False)
    ]
    return with_factors(act, *factors)


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
    edit: Edit, name: Where, given: tuple[torch.Tensor, AxisOrder], split: Split
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
