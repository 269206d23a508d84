"""Queries, keys and values as a session wants them, put in place of those that a function of torch
was given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from headscope.capturing.calls.call import Call
from headscope.capturing.seam import OPERANDS, Edit
from headscope.capturing.watching._einsum import AxisOrder, attention_axes, product_axes
from headscope.capturing.watching._flex import is_flex
from headscope.capturing.watching._score_trace import trace_of
from headscope.capturing.watching.torch_functions import EINSUM, FUSED, SUMS_OF_PRODUCTS

Split = Callable[[torch.Tensor], torch.Tensor | None]


def with_operands(
    edit: Edit, act: tuple[Callable, tuple, dict], split: Split
) -> tuple[tuple, dict]:
    """The arguments of a product with its queries, keys or values changed.

    Args:
        edit: what is to be changed.
        act: a function of torch, its arguments and options.
        split: gives a tensor its four axes, or None.
    """
    func, args, options = act
    if not edit.of(*OPERANDS):
        return args, options
    if func is FUSED or is_flex(func):
        return _fused(edit, args, options)
    if func is EINSUM:
        return _einsum(edit, args, split), options
    if func in SUMS_OF_PRODUCTS:
        given = dict(zip(("input", "batch1", "batch2"), args, strict=False)) | options
        left, right = _factors(edit, (given["batch1"], given["batch2"]), split)
        rest = {
            name: value
            for name, value in options.items()
            if name not in ("input", "batch1", "batch2")
        }
        return (given["input"], left, right), rest
    return (*_factors(edit, args[:2], split), *args[2:]), options


def _factors(edit: Edit, factors: tuple, split: Split) -> tuple:
    """Queries and turned keys, or weights and values, changed."""
    left, right = factors
    if not all(
        isinstance(tensor, torch.Tensor) and tensor.ndim >= 3 for tensor in factors
    ) or _is_weights(right):
        return factors
    trace = trace_of(left)
    if trace is None:
        right = _of(edit, "key", right, lambda tensor: _turned(split(tensor)), turned=True)
        return _of(edit, "query", left, split), right
    return (left, _of(edit, "value", right, split)) if trace.is_weights else factors


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


def _einsum(edit: Edit, args: tuple, split: Split) -> tuple:
    equation, *operands = args
    held = len(operands) == 1 and isinstance(operands[0], list | tuple)
    factors = operands[0] if held else operands
    if len(factors) != 2 or _is_weights(factors[1]):
        return args
    left, right = factors
    trace = trace_of(left)
    sizes = [tensor.ndim for tensor in (left, right)]
    if trace is not None and trace.is_weights:
        axes = attention_axes(equation, sizes)
        right = right if axes is None else _permuted(edit, "value", (right, axes[1]), split)
    elif (axes := product_axes(equation, sizes)) is not None:
        left = _permuted(edit, "query", (left, axes[0]), split)
        right = _permuted(edit, "key", (right, axes[1]), split)
    return (equation, [left, right]) if held else (equation, left, right)


def _permuted(
    edit: Edit, name: Any, read: tuple[torch.Tensor, AxisOrder], split: Split
) -> torch.Tensor:
    """An operand of an einsum changed, in the layout in which it was given."""
    tensor, reading = read
    laid_out = reading.read(tensor)
    old = split(laid_out)
    if old is None:
        return tensor
    new = edit.operand(name, old, _shown(old, old, old))
    return tensor if new is old else reading.written(new.reshape(laid_out.shape))


def _of(
    edit: Edit, name: Any, tensor: torch.Tensor, split: Split, *, turned: bool = False
) -> torch.Tensor:
    """The operand changed, in the layout in which it was given."""
    old = split(tensor)
    if old is None or not edit.of(name):
        return tensor
    new = edit.operand(name, old, _shown(old, old, old))
    if new is old:
        return tensor
    return (_turned(new) if turned else new).reshape(tensor.shape)


def _is_weights(tensor: torch.Tensor) -> bool:
    trace = trace_of(tensor)
    return trace is not None and trace.is_weights


def _turned(tensor: torch.Tensor | None) -> Any:
    return None if tensor is None else tensor.transpose(-1, -2)


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
