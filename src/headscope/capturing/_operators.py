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
from headscope.capturing._einsum import attention_axes, product_axes
from headscope.capturing._multi_head import seen_in_multi_head
from headscope.capturing._trace import OVER, TIMES, Product, Trace, passed_on, queries_and_keys, remember, trace_of
from headscope.capturing._trail import Trail
from headscope.errors import CaptureError

PRODUCTS = {
    torch.matmul,
    torch.Tensor.matmul,
    torch.Tensor.__matmul__,
    torch.bmm,
    torch.Tensor.bmm,
}
SUMS_OF_PRODUCTS = {torch.baddbmm, torch.Tensor.baddbmm}
SOFTMAXES = {torch.softmax, torch.Tensor.softmax, functional.softmax}


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
        if self._away:
            return result
        if func is functional.multi_head_attention_forward:
            self._multi_head(args, options, result[0])
        elif isinstance(result, torch.Tensor) and result.ndim >= 3:
            self._look(func, args, options, result)
        return result

    def _look(self, func: Callable, args: tuple, options: dict, result: torch.Tensor) -> None:
        if func is functional.scaled_dot_product_attention:
            self._fused(args, options, result)
        elif func in PRODUCTS:
            self._product(args[0], args[1], result)
        elif func in SUMS_OF_PRODUCTS:
            self._sum_of_products(args, options, result)
        elif func is torch.einsum:
            self._einsum(args, result)
        elif func in SOFTMAXES:
            self._softmax(args[0], result)
        elif trace_of(result) is None:
            trace = passed_on(func, args)
            if trace is not None:
                remember(result, trace)
        elif func in TIMES | OVER:  # in place: the result is the tensor itself
            remember(result, passed_on(func, args) or Trace())

    def _softmax(self, scores: torch.Tensor, result: torch.Tensor) -> None:
        trace = trace_of(scores)
        if trace is not None and not trace.is_weights:
            remember(result, Trace(trace.products, scores))

    def _product(self, left: Any, right: Any, result: torch.Tensor) -> None:
        trace = trace_of(left)
        if trace is not None and trace.is_weights:
            self._weighted(trace, (left, right, result))
        elif _is_activation(left) and _is_activation(right):
            query, key = self._split(left), self._split(right)
            known = () if query is None or key is None else (Product(query, key.transpose(-1, -2)),)
            remember(result, Trace(known))

    def _weighted(self, trace: Trace, tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
        weights, value, context = map(self._split, tensors)
        if weights is not None and value is not None and context is not None:
            with self.looking_away():
                known = queries_and_keys(trace, weights, self._split)
            self._report(weights=weights, value=value, context=context.transpose(1, 2), **known)

    def _sum_of_products(self, args: tuple, options: dict, result: torch.Tensor) -> None:
        factors = [*args[1:3], *(options[name] for name in ("batch1", "batch2") if name in options)]
        if len(factors) != 2 or not all(map(_is_activation, factors)):
            return
        query, key = map(self._split, factors)
        known = ()
        if query is not None and key is not None:
            known = (Product(query, key.transpose(-1, -2), float(options.get("alpha", 1.0))),)
        remember(result, Trace(known))

    def _einsum(self, args: tuple, result: torch.Tensor) -> None:
        equation, *operands = args
        operands = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
        if len(operands) != 2:
            return
        trace = trace_of(operands[0])
        if trace is not None and trace.is_weights:
            axes = attention_axes(equation)
            if axes is not None:
                order, of_value, of_context = axes
                weights = operands[0].permute(order)
                with self.looking_away():
                    known = queries_and_keys(trace, weights, lambda scores: scores.permute(order))
                value, context = operands[1].permute(of_value), result.permute(of_context)
                self._report(weights=weights, value=value, context=context, **known)
        elif all(map(_is_activation, operands)):
            axes = product_axes(equation)
            known = ()
            if axes is not None:
                known = (Product(operands[0].permute(axes[0]), operands[1].permute(axes[1])),)
            remember(result, Trace(known))

    def _fused(self, args: tuple, options: dict, result: torch.Tensor) -> None:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")
        given = dict(zip(names, args, strict=False)) | options
        query, mask, scale = given["query"], given.get("attn_mask"), given.get("scale")
        if query.ndim != 4 or (mask is not None and mask.ndim > 4):
            module = self._trail.innermost()
            if module is None:
                return
            raise CaptureError(
                f"{self._trail.name_of(module)} computes attention on {list(query.shape)}, where [batch head query "
                "feature] is wanted; attention within windows or blocks of its own cannot be captured yet"
            )
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

    def _multi_head(self, args: tuple, options: dict, output: torch.Tensor) -> None:
        with self.looking_away():
            seen = seen_in_multi_head(args, options, output)
            projection = self._trail.owner_of(seen.pop("weight"))
        name = "" if projection is None else self._trail.name_of(projection)
        self._report(projection=projection, projection_name=name, **seen)

    def _split(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """``[batch head ...]`` of what may be ``[batch * head ...]``."""
        if tensor.ndim == 4:
            return tensor
        if tensor.ndim != 3 or tensor.shape[0] % self._batch:
            return None
        return tensor.unflatten(0, (self._batch, -1))

    def _report(self, *, cross: bool = False, **seen: Any) -> None:
        module = self._trail.innermost()
        if module is not None:
            with self.looking_away():
                name = self._trail.name_of(module)
                cross = cross or self._trail.is_cross(module)
                self._tell(Call(module=module, name=name, route="operators", cross=cross, **seen))


def _is_activation(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.ndim >= 3 and not isinstance(tensor, torch.nn.Parameter)
