"""Watching a model through torch's own operators, for models that compute attention themselves.

A product of two activations is remembered on its result, passed on by whatever is done to it,
becomes weights in a softmax, and a call when these are multiplied with the values.
``scaled_dot_product_attention`` gives its operands away. It does not matter what the model's parts
are called, nor which library they come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from headscope.capturing.calls.call import Call
from headscope.capturing.calls.layout import layout_of, split
from headscope.capturing.observers import observers
from headscope.capturing.seam import OPERANDS, Edit, alike, edit_of, level
from headscope.capturing.watching._einsum import attention_axes, exchanged, product_axes
from headscope.capturing.watching._flex import is_flex, seen_in_flex
from headscope.capturing.watching._multi_head import seen_in_multi_head
from headscope.capturing.watching._operands import operands_of_multi_head, with_operands
from headscope.capturing.watching._score_trace import (
    OVER,
    TIMES,
    AddedScores,
    Product,
    ScoreTrace,
    passed_on,
    queries_and_keys,
    remember,
    trace_of,
    visible_in,
)
from headscope.capturing.watching.modes import WatchMode, looking_away
from headscope.capturing.watching.tape import Tape
from headscope.capturing.watching.torch_functions import (
    EINSUM,
    FUSED,
    SUMS_OF_PRODUCTS,
    original_of,
)
from headscope.errors import CaptureError

PRODUCTS: set[Any] = {
    torch.matmul,
    torch.Tensor.matmul,
    torch.Tensor.__matmul__,
    torch.bmm,
    torch.Tensor.bmm,
}
SOFTMAXES: set[Any] = {torch.softmax, torch.Tensor.softmax, functional.softmax}
HOLD_OPERANDS: set[Any] = PRODUCTS | SUMS_OF_PRODUCTS | {FUSED, EINSUM}
BEGINS: set[Any] = HOLD_OPERANDS | SOFTMAXES | {functional.multi_head_attention_forward}
"""Functions that attention begins with, beside that of ``flex_attention``."""


class OperatorWatch(WatchMode):
    """Reports every attention that a model computes with torch's operators while the block is open.

    Args:
        tape: knows the model's modules, and which of them is running.
        tell: is called with each `Call`; None if calls are not reported and attention is only
            changed.
        batch: number of texts, which some models fold into the heads.
        function: as that of a `PassReader`.

    ``made`` counts the products of activations of each module, by its id; ``unread`` names those
    that multiply a softmax with values in a form that is not known; while it is ``idle`` no
    attention is seen, and while it ``is_before`` nothing but what attention begins with.
    """

    def __init__(
        self,
        tape: Tape,
        tell: Callable[[Call], None] | None,
        batch: int,
        function: Callable[[Any, tuple, dict, Callable], Any] | None = None,
    ) -> None:
        super().__init__()
        self._tape, self._tell, self._function = tape, tell, function
        self.batch: int = batch
        self._outer: OperatorWatch | None = None
        self._level = 0
        self.idle: bool = False
        self.is_before: bool = False
        self._beside: list[AddedScores] = []
        self.made: Counter[int] = Counter()
        self.unread: dict[str, None] = {}

    def __enter__(self) -> OperatorWatch:
        self._outer, self._level = observers().operators, level()
        super().__enter__()
        return self

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one torch function as it is, or as a session changes it, then note what it did."""
        func, options = original_of(func), kwargs or {}
        # Another level is a run of our own inside the pass, such as a check, which is nobody's
        # attention.
        if level() != self._level:
            return func(*args, **options)
        if self.idle:
            return self._told(func, args, options, _plainly)
        if self.is_before:
            if func not in BEGINS and not is_flex(func):
                return self._told(func, args, options, _plainly)
            self.is_before = False
        # These compute scores and weights in one function, so that queries, keys and values must be
        # changed before it runs.
        if (func in HOLD_OPERANDS or is_flex(func)) and (edit := self._edit()) is not None:
            with looking_away():
                args, options = with_operands(edit, (func, args, options), self._split)
        result = self._told(func, args, options, self._run)
        if observers().away:
            return result
        if func is functional.multi_head_attention_forward:
            return self._multi_head(args, options, result)
        if is_flex(func):
            return self._flex(args, result)
        # Attention on tensors of fewer axes has no room for queries, keys and a batch or heads.
        if isinstance(result, torch.Tensor) and result.ndim >= 3:
            return self._look(func, args, options, result)
        return result

    def _told(self, func: Callable, args: tuple, options: dict, run: Callable) -> Any:
        """The function's own result; whoever is told of functions runs it."""
        if self._function is None or observers().away:
            return run(func, args, options)
        return self._function(func, args, options, run)

    def _run(self, func: Callable, args: tuple, options: dict) -> Any:
        """The function's own result; a watch further out that would change it too does not see
        it.
        """
        if self._outer is None or not (observers().away or self._tape.innermost() is not None):
            return func(*args, **options)
        with looking_away():
            return func(*args, **options)

    def _edit(self) -> Edit | None:
        return None if observers().away else edit_of(self._tape.innermost(), "operators")

    def _look(
        self, func: Callable, args: tuple, options: dict, result: torch.Tensor
    ) -> torch.Tensor:
        if func is FUSED:
            return self._fused(args, options, result)
        if func in PRODUCTS:
            return self._product(args[0], args[1], result)
        if func in SUMS_OF_PRODUCTS:
            self._sum_of_products(args, options, result)
        elif func is EINSUM:
            return self._einsum(args, result)
        elif func in SOFTMAXES:
            self._softmax(args, options, result)
        elif trace_of(result) is None:
            trace = passed_on(func, args, result)
            if trace is not None:
                remember(result, trace)
        elif func in TIMES | OVER:  # in place: the result is the tensor itself
            remember(result, passed_on(func, args, result) or ScoreTrace())
        return result

    def _softmax(self, args: tuple, options: dict, result: torch.Tensor) -> None:
        scores = args[0] if args else options["input"]
        trace = trace_of(scores)
        if trace is not None and not trace.is_weights:
            axis = options.get("dim", args[1] if len(args) > 1 else -1)
            remember(result, trace.softmax(scores, -1 if axis is None else axis))

    def _product(self, left: Any, right: Any, result: torch.Tensor) -> torch.Tensor:
        trace, other = trace_of(left), trace_of(right)
        if trace is not None and trace.is_weights:
            return self._weighted(trace, (left, right, result))
        if (
            other is not None and other.is_weights and other.key_axis == -2
        ):  # (weights @ values) turned
            turned = [tensor.transpose(-1, -2) for tensor in (right, left, result)]
            new = self._weighted(other, (turned[0], turned[1], turned[2]), exchanged=True)
            return result if new is turned[2] else alike(new.transpose(-1, -2), result)
        if _is_activation(left) and _is_activation(right):
            query, key = self._split(left), self._split(right)
            # An unreadable product is remembered too, without factors: its softmax is then known to
            # be weights, and the module is refused and not silently passed over.
            known = () if query is None or key is None else (Product(query, key.transpose(-1, -2)),)
            remember(result, ScoreTrace(known, sizes=((result.shape[-2], result.shape[-1]),)))
            self.made[id(self._tape.innermost())] += 1
        return result

    def _weighted(
        self,
        trace: ScoreTrace,
        tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
        *,
        exchanged: bool = False,
    ) -> torch.Tensor:
        """Report weights times values, given with what they make, the axes of queries, keys and
        features last.
        """
        weights, value, context = map(self._split, tensors)
        if weights is None or value is None or context is None:
            return self._unread(tensors[2])
        layout = layout_of(tensors[0], self.batch)
        layout.exchanged = exchanged or any(product.exchanged for product in trace.products)

        def scores_as_weights(scores: torch.Tensor) -> torch.Tensor | None:
            return self._split(scores.transpose(-1, -2) if trace.axis == -2 else scores)

        is_over_queries = (
            not exchanged and trace.key_axis == -2
        )  # what each key gives, as in slot attention
        known = (
            {"odd": _odd(trace, weights)}
            if is_over_queries
            else self._known(trace, weights, scores_as_weights)
        )
        context = context.transpose(1, 2)
        changed = self._report(
            weights=weights, value=value, context=context, layout=layout, **known
        )
        if changed is None:
            return tensors[2]
        return alike(changed.context.transpose(1, 2).reshape(tensors[2].shape), tensors[2])

    def _unread(self, context: torch.Tensor) -> torch.Tensor:
        """Note that the running module multiplied weights with values in a form that is not
        known.
        """
        module = self._tape.innermost()
        if module is not None:
            self.unread[self._tape.name_of(module)] = None
        return context

    def _known(self, trace: ScoreTrace, weights: torch.Tensor, split: Callable) -> dict[str, Any]:
        """What is known of how these weights came about, as arguments of a `Call`."""
        known: dict[str, Any] = {}
        with looking_away():
            if self._tell is not None:
                known = queries_and_keys(trace, weights, split, self._beside)
            if (
                known.get("mask") is None
                and edit_of(self._tape.innermost(), "operators") is not None
            ):
                known["mask"] = visible_in(trace, weights, split)
        return known | {"products": len(trace.products), "odd": _odd(trace, weights)}

    def _sum_of_products(self, args: tuple, options: dict, result: torch.Tensor) -> None:
        factors = [*args[1:3], *(options[name] for name in ("batch1", "batch2") if name in options)]
        if len(factors) != 2 or not all(map(_is_activation, factors)):
            return
        query, key = map(self._split, factors)
        known = ()
        if query is not None and key is not None:
            known = (Product(query, key.transpose(-1, -2), float(options.get("alpha", 1.0))),)
        remember(result, ScoreTrace(known, sizes=((result.shape[-2], result.shape[-1]),)))

    def _einsum(self, args: tuple, result: torch.Tensor) -> torch.Tensor:
        equation, *operands = args
        operands = (
            operands[0]
            if len(operands) == 1 and isinstance(operands[0], list | tuple)
            else operands
        )
        if len(operands) != 2 or not isinstance(equation, str):
            return result
        traces = [trace_of(tensor) for tensor in operands]
        for trace, factors, form in (
            (traces[0], operands, equation),
            (traces[1], operands[::-1], exchanged(equation)),
        ):
            if trace is not None and trace.is_weights:
                return self._weighted_einsum(
                    trace, form, (*factors, result), exchanged=form is not equation
                )
        if all(map(_is_activation, operands)):
            remember(result, self._scores_of_einsum(equation, operands))
        return result

    def _scores_of_einsum(self, equation: str, operands: Sequence[torch.Tensor]) -> ScoreTrace:
        axes = product_axes(equation, [tensor.ndim for tensor in operands])
        if axes is None:
            return ScoreTrace()
        laid_out = [reading.read(tensor) for reading, tensor in zip(axes, operands, strict=False)]
        query, key = map(self._split, laid_out)
        if query is None or key is None:
            return ScoreTrace()
        order = axes[2].order
        if set(order[-2:]) != {
            len(order) - 1,
            len(order) - 2,
        }:  # neither queries nor keys need be on the last axes
            return ScoreTrace((Product(query, key, turned=None),))
        is_turned, size = order[-2] > order[-1], (query.shape[2], key.shape[2])
        return ScoreTrace(
            (Product(query, key, turned=is_turned),), sizes=(size[::-1] if is_turned else size,)
        )

    def _weighted_einsum(
        self,
        trace: ScoreTrace,
        equation: str,
        tensors: tuple[torch.Tensor, ...],
        *,
        exchanged: bool,
    ) -> torch.Tensor:
        """As `_weighted`, of an einsum whose first operand are the weights."""
        axes = attention_axes(equation, [tensor.ndim for tensor in tensors[:2]])
        if axes is None:
            return self._unread(tensors[2])
        of_weights, _, of_context = axes
        laid_out = [reading.read(tensor) for reading, tensor in zip(axes, tensors, strict=True)]
        weights, value = map(self._split, laid_out[:2])
        context = laid_out[2] if laid_out[2].ndim == 4 else self._split(laid_out[2])
        if weights is None or value is None or context is None:
            return self._unread(tensors[2])
        is_folded = laid_out[2].ndim == 3  # [batch head query feature] still
        context = context.transpose(1, 2) if is_folded else context
        layout = layout_of(laid_out[0], self.batch)
        layout.exchanged = exchanged or any(product.exchanged for product in trace.products)
        known = self._known(trace, weights, lambda scores: self._split(of_weights.read(scores)))
        changed = self._report(
            weights=weights, value=value, context=context, layout=layout, **known
        )
        if changed is None:
            return tensors[2]
        new = (
            changed.context.transpose(1, 2).reshape(laid_out[2].shape)
            if is_folded
            else changed.context
        )
        return alike(of_context.written(new), tensors[2])

    def _fused(self, args: tuple, options: dict, result: torch.Tensor) -> torch.Tensor:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")
        given = dict(zip(names, args, strict=False)) | options
        mask, scale = given.get("attn_mask"), given.get("scale")
        tensors = [given[name] for name in OPERANDS]
        query, key, value, context = map(self._split, (*tensors, result))
        is_wide = mask is not None and mask.ndim > max(4, result.ndim)
        if query is None or key is None or value is None or context is None or is_wide:
            module = self._tape.innermost()
            if module is None or self._tell is None:
                return result
            raise CaptureError(
                f"{self._tape.name_of(module)} computes attention on "
                f"{list(tensors[0].shape)}, expected [batch head query feature]; "
                "attention within windows or blocks of its own cannot be captured yet"
            )
        changed = self._report(
            query=query,
            key=key,
            value=value,
            mask=self._mask_of(mask, result),
            causal=bool(given.get("is_causal", False)),
            scale=query.shape[-1] ** -0.5 if scale is None else float(scale),
            context=context.transpose(1, 2),
            layout=layout_of(result, self.batch),
        )
        if changed is None:
            return result
        return alike(changed.context.transpose(1, 2).reshape(result.shape), result)

    def _mask_of(self, mask: torch.Tensor | None, result: torch.Tensor) -> torch.Tensor | None:
        """A mask of ``scaled_dot_product_attention``, broadcast to ``[batch head query key]``."""
        if mask is None:
            return None
        if result.ndim == mask.ndim == 3 and mask.shape[0] == result.shape[0]:
            return self._split(mask)
        # not a view where none is needed: layers that share their mask are known by the tensor
        return mask if mask.ndim == 4 else mask[(None,) * (4 - mask.ndim)]

    def _flex(self, args: tuple, result: tuple) -> tuple:
        module = self._tape.innermost()
        if module is None or (self._tell is None and self._edit() is None):
            return result
        with looking_away():
            seen = seen_in_flex(args, self._tape.name_of(module))
        layout = layout_of(result[0], self.batch)
        changed = self._report(**seen, context=result[0].transpose(1, 2), layout=layout)
        return (
            result
            if changed is None
            else (alike(changed.context.transpose(1, 2), result[0]), *result[1:])
        )

    def _multi_head(self, args: tuple, options: dict, result: tuple) -> tuple:
        edit = self._edit()
        if self._tell is None and edit is None:
            return result
        with looking_away():
            seen = seen_in_multi_head(args, options, result[0])
            weight, shift = seen.pop("weight"), seen.pop("shift")
            projection = self._tape.owner_of(weight)
            seen |= {} if edit is None else operands_of_multi_head(edit, seen)

        def projected(call: Call) -> torch.Tensor:
            return functional.linear(call.context.flatten(2).to(weight.dtype), weight, shift)

        name = "" if projection is None else self._tape.name_of(projection)
        changed = self._report(
            projection=projection, projection_name=name, projected=projected, **seen
        )
        if changed is None or changed.output is None:
            return result
        output = changed.output.transpose(0, 1).reshape(result[0].shape)
        return (alike(output, result[0]), *result[1:])

    def _split(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """``[batch head ...]`` of what may be ``[batch * head ...]``."""
        return split(tensor, self.batch)

    def _report(
        self,
        *,
        cross: bool = False,
        projected: Callable[[Call], torch.Tensor] | None = None,
        **seen: Any,
    ) -> Call | None:
        """Report a call; returned is how a session changed it, or None where none did."""
        module = self._tape.innermost()
        edit = edit_of(module, "operators")
        if module is None or (edit is None and self._tell is None):
            return None
        with looking_away():
            name = self._tape.name_of(module)
            call = Call(module=module, name=name, route="operators", cross=cross, **seen)
            call.cross = cross or self._tape.is_cross(module, *call.size[2:])
            if edit is not None:
                call = edit.changed(call, with_weights=self._tell is not None)
                if projected is not None:
                    call.output = projected(call)
            if self._tell is not None:
                self._tell(call)
        return None if edit is None else call


def _plainly(func: Callable, args: tuple, options: dict) -> Any:
    return func(*args, **options)


def _odd(trace: ScoreTrace, weights: torch.Tensor) -> str:
    """Why weights are none of what they are taken to come from; empty where they fit."""
    if trace.fits(weights):
        return ""
    sizes = " or ".join(f"{queries} x {keys}" for queries, keys in trace.sizes)
    return (
        f"multiplies a softmax of {weights.shape[-2]} x {weights.shape[-1]} with other states, "
        f"but the product that its scores come from is {sizes}; attention in pieces, or linear "
        "attention, cannot be captured"
    )


def _is_activation(tensor: Any) -> bool:
    return (
        isinstance(tensor, torch.Tensor)
        and tensor.ndim >= 3
        and not isinstance(tensor, torch.nn.Parameter)
    )
