"""Watching a model through torch's own operators, for models that compute attention themselves.

A product of two activations is remembered on its result, passed on by whatever is done to it, becomes weights in a
softmax, and a call when these are multiplied with the values. ``scaled_dot_product_attention`` gives its operands
away. It does not matter what the model's parts are called, nor which library they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from headscope.capturing._call import Call
from headscope.capturing._einsum import attention_axes
from headscope.capturing._trail import Trail

PRODUCTS = {
    torch.matmul,
    torch.Tensor.matmul,
    torch.Tensor.__matmul__,
    torch.bmm,
    torch.Tensor.bmm,
}
SUMS_OF_PRODUCTS = {torch.baddbmm, torch.Tensor.baddbmm}
SOFTMAXES = {torch.softmax, torch.Tensor.softmax, functional.softmax}
MARK = "_headscope_attention"
SCORES, WEIGHTS = "scores", "weights"


class OperatorWatch(TorchFunctionMode):
    """Tells of every attention that a model computes with torch's operators while the block is open.

    Args:
        trail: knows the model's modules, and which of them is running.
        tell: is called with each `Call`.
        batch: number of texts, which some models fold into the heads.
    """

    def __init__(self, trail: Trail, tell: Callable[[Call], None], batch: int) -> None:
        super().__init__()
        self._trail, self._tell, self._batch = trail, tell, batch
        self._away = 0

    @contextmanager
    def looking_away(self) -> Generator[None]:
        """See nothing inside: what happens there is told by somebody else."""
        self._away += 1
        try:
            yield
        finally:
            self._away -= 1

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Run one torch function as it is, then note what it did."""
        options = kwargs or {}
        result = func(*args, **options)
        if self._away or not isinstance(result, torch.Tensor) or result.ndim < 3:
            return result
        if func is functional.scaled_dot_product_attention:
            self._fused(args, options, result)
        elif func in PRODUCTS:
            self._product(args[0], args[1], result)
        elif func in SUMS_OF_PRODUCTS:
            self._sum_of_products(args, options, result)
        elif func is torch.einsum:
            self._einsum(args, result)
        elif func in SOFTMAXES:
            if getattr(args[0], MARK, None) == SCORES:
                setattr(result, MARK, WEIGHTS)
        else:
            _pass_on(args, result)
        return result

    def _product(self, left: Any, right: Any, result: torch.Tensor) -> None:
        if getattr(left, MARK, None) == WEIGHTS:
            weights, value, context = (self._split(tensor) for tensor in (left, right, result))
            if weights is not None and value is not None and context is not None:
                self._report(weights=weights, value=value, context=context.transpose(1, 2))
        elif _is_activation(left) and _is_activation(right):
            setattr(result, MARK, SCORES)

    def _sum_of_products(self, args: tuple, options: dict, result: torch.Tensor) -> None:
        factors = [*args[1:3], *(options[name] for name in ("batch1", "batch2") if name in options)]
        if len(factors) == 2 and all(map(_is_activation, factors)):
            setattr(result, MARK, SCORES)

    def _einsum(self, args: tuple, result: torch.Tensor) -> None:
        equation, *operands = args
        operands = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
        if len(operands) != 2:
            return
        if getattr(operands[0], MARK, None) == WEIGHTS:
            axes = attention_axes(equation)
            if axes is not None:
                weights, value = (tensor.permute(order) for tensor, order in zip(operands, axes[:2], strict=True))
                self._report(weights=weights, value=value, context=result.permute(axes[2]))
        elif all(map(_is_activation, operands)):
            setattr(result, MARK, SCORES)

    def _fused(self, args: tuple, options: dict, result: torch.Tensor) -> None:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")
        given = dict(zip(names, args, strict=False)) | options
        query, mask, scale = given["query"], given.get("attn_mask"), given.get("scale")
        if query.ndim != 4 or (mask is not None and mask.ndim > 4):
            return
        if mask is not None:
            mask = mask[(None,) * (4 - mask.ndim)]
        self._report(
            query=query,
            key=given["key"],
            value=given["value"],
            mask=mask,
            causal=bool(given.get("is_causal", False)),
            scale=query.shape[-1] ** -0.5 if scale is None else float(scale),
            context=result.transpose(1, 2),
        )

    def _split(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """``[batch head ...]`` of what may be ``[batch * head ...]``."""
        if tensor.ndim == 4:
            return tensor
        if tensor.ndim != 3 or tensor.shape[0] % self._batch:
            return None
        return tensor.unflatten(0, (self._batch, -1))

    def _report(self, **seen: Any) -> None:
        module = self._trail.innermost()
        if module is not None:
            with self.looking_away():
                name, cross = self._trail.name_of(module), self._trail.is_cross(module)
                self._tell(Call(module=module, name=name, route="operators", cross=cross, **seen))


def _is_activation(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.ndim >= 3 and not isinstance(tensor, torch.nn.Parameter)


def _pass_on(args: tuple, result: torch.Tensor) -> None:
    """What was done to scores gives scores, what was done to weights gives weights."""
    if getattr(result, MARK, None) is not None:
        return
    for given in args:
        first = given[0] if isinstance(given, list | tuple) and given else given
        mark = getattr(first, MARK, None) if isinstance(first, torch.Tensor) else None
        if mark is not None:
            setattr(result, MARK, mark)
            return
