"""Watching a model through torch's own operators, for models that compute attention themselves.

A product of two activations is remembered on its result, passed on by whatever is done to it,
becomes weights in a softmax, and a call when these are multiplied with the values.
``scaled_dot_product_attention`` gives its operands away. It does not matter what the model's parts
are called, nor which library they come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import Parameter, functional

from headscope.capturing.calls.call import Call, layout_of, split
from headscope.capturing.observers import WatchMode, looking_away, observers
from headscope.capturing.seam import OPERANDS, Edit, alike, edit_of, level, sessions, unseen
from headscope.capturing.watching import _products, _whole_attention
from headscope.capturing.watching._added_scores import (
    AddedScores,
    ScoresAndWeights,
    queries_and_keys,
    visible_in,
)
from headscope.capturing.watching._score_trace import Product, ScoreTrace, ScoreTraces, addition
from headscope.capturing.watching.running import RunningModules, is_attention
from headscope.errors import CaptureError

SOFTMAXES: set[Any] = {torch.softmax, torch.Tensor.softmax, functional.softmax}
HOLD_OPERANDS: set[Any] = _products.PRODUCTS | {_products.FUSED}
TO_NUMPY: set[Any] = {torch.Tensor.numpy, torch.Tensor.__array__}
HIDDEN: set[Any] = SOFTMAXES | {_products.FUSED}
WHOLE: set[Any] = {functional.multi_head_attention_forward, functional.grid_sample}
BEGINNINGS: set[Any] = HOLD_OPERANDS | SOFTMAXES | TO_NUMPY | WHOLE
"""Functions that attention begins with."""


class OperatorWatch(WatchMode):
    """Reports every attention that a model computes with torch's operators while the block is open.

    Args:
        running: knows the model's modules, and which of them is running.
        tell: is called with each `Call`; None if calls are not reported and attention is only
            changed.
        batch: number of texts, which some models fold into the heads.

    ``made`` counts the products of activations of each module, by its id; ``unread`` names those
    whose attention is in a form that is not known: they multiply a softmax with values in another
    way or without an axis for texts, or one over tokens that is of no product of activations, or a
    product of activations once more without a softmax, sample places of their own (deformable
    attention), or go on within ``torch.vmap``; ``handed`` counts the arrays that each gave to
    NumPy, a product twice; while it is ``idle`` no attention is seen.
    """

    def __init__(
        self, running: RunningModules, tell: Callable[[Call], None] | None, batch: int
    ) -> None:
        super().__init__()
        self._running, self._tell = running, tell
        self.batch: int = batch
        self._outer: OperatorWatch | None = None
        self._level = 0
        self.idle: bool = False
        self._traces = ScoreTraces()
        self._alone = ScoreTraces()  # of softmaxes of what is no product
        self._added: list[AddedScores] = []
        self.made: Counter[int] = Counter()
        self.unread: dict[str, bool] = {}
        self.handed: Counter[str] = Counter()

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
        options, flex = kwargs or {}, _whole_attention.is_flex(func)
        is_known = flex or func in BEGINNINGS or self._traces.among(args) or self._alone.among(args)
        if self._outer is None and not is_known:
            return func(*args, **options)
        now = observers()
        # Another level is a run of our own inside the pass, such as a check, which is nobody's
        # attention.
        if now.level != self._level or self.idle:
            return func(*args, **options)
        # These compute scores and weights in one function, so that queries, keys and values must be
        # changed before it runs.
        if now.sessions and (flex or func in HOLD_OPERANDS):
            args, options = self._edited(func, args, options)
        result = self._run(func, args, options)
        if now.away:
            return result
        if func is functional.multi_head_attention_forward:
            return self._multi_head(args, options, result)
        if flex:
            return self._flex(args, result)
        if func in TO_NUMPY:
            self._hand_over(args[0], result)
        elif func in HIDDEN and torch._C._functorch.is_batchedtensor(result):
            self._unread()
        elif isinstance(result, torch.Tensor) and result.ndim >= 2:
            return self._look(func, args, options, result)
        return result

    def _hand_over(self, tensor: torch.Tensor, array: Any) -> None:
        """Note what the running module gives to NumPy, where it may go on with its attention."""
        is_score = self._traces.of(tensor) is not None
        module = self._running.innermost()
        if module is not None and array.dtype.kind == "f" and (is_score or array.ndim >= 3):
            self.handed[self._running.name_of(module)] += 1 + is_score

    def _run(self, func: Callable, args: tuple, options: dict) -> Any:
        """The function's own result; a watch further out that would change it too does not see
        it.
        """
        if self._outer is None or not (observers().away or self._running.innermost() is not None):
            return func(*args, **options)
        with looking_away():
            return func(*args, **options)

    def _edit(self) -> Edit | None:
        return None if observers().away else edit_of(self._running.innermost(), "operators")

    def _edited(self, func: Callable, args: tuple, options: dict) -> tuple[tuple, dict]:
        edit = self._edit()
        if edit is None:
            return args, options
        with looking_away():
            return _whole_attention.with_operands(
                edit, (func, args, options), self._traces, self._split
            )

    def _look(
        self, func: Callable, args: tuple, options: dict, result: torch.Tensor
    ) -> torch.Tensor:
        if func is _products.FUSED:
            return self._fused(args, options, result)
        if func in _products.PRODUCTS:
            product = _products.product_of(func, args, options)
            return result if product is None else self._product(product, result)
        if func in SOFTMAXES:
            self._softmax(args, options, result)
        elif func is functional.grid_sample and is_attention(self._running.innermost()):
            self._unread()
        else:
            self._traces.pass_on(func, args, options, result)
            self._alone.pass_on(func, args, options, result)
        return result

    def _softmax(self, args: tuple, options: dict, result: torch.Tensor) -> None:
        scores = args[0] if args else options["input"]
        trace = self._traces.of(scores)
        if trace is None or not trace.is_weights:
            axis = options.get("dim", args[1] if len(args) > 1 else -1)
            traces = self._alone if trace is None else self._traces
            trace = trace or ScoreTrace()
            traces.remember(result, trace.softmax(scores, -1 if axis is None else axis))

    def _product(self, product: _products.MatrixProduct, result: torch.Tensor) -> torch.Tensor:
        left, right = self._traces.of(product.left), self._traces.of(product.right)
        # A factor of two axes beside one of more is a matrix.
        are_alike = min(product.axes) > 2 or max(product.axes) == 2
        are_activations = are_alike and all(map(_is_activation, product[:2]))
        are_seen = any(trace is not None and trace.is_weights for trace in (left, right))
        # Weights without an axis for texts are not taken apart.
        is_flat = are_seen and result.ndim == 2
        if are_activations and (is_flat or (not are_seen and self._weighs_tokens(product, result))):
            self._unread()
        if result.ndim == 2:
            if are_activations and not is_flat:
                self._traces.remember(result, ScoreTrace())
            return result
        is_matmul, is_sum = product.equation is _products.MATMUL, product.added is not None
        product = product.aligned()
        for trace, is_exchanged in ((left, False), (right, True)):
            if is_sum or trace is None or not trace.is_weights:
                continue
            # (weights @ values) turned is one; a matmul with weights over the queries is none.
            if is_exchanged and is_matmul and trace.key_axis == -1:
                continue
            factors = product.exchanged() if is_exchanged else product
            return self._weighted(trace, factors, result, exchanged=is_exchanged)
        if are_activations:
            scores = self._scores_of(product, result)
            before = [trace is not None and trace.adds_up for trace in (left, right)]
            # A sum over heads has one row; the parameters of experts may be laid out otherwise.
            rows = product.left.shape[-2] if before[1] else product.right.shape[-1]
            of_parameters = any(isinstance(each._base, Parameter) for each in product[:2])
            if sum(before) == 1 and rows > 1 and not of_parameters:
                scores = scores._replace(unread=self._unread(chained=True))
            self._traces.remember(result, scores)
            if is_matmul and not is_sum:
                self.made[id(self._running.innermost())] += 1
        return result

    def _weighs_tokens(self, product: _products.MatrixProduct, result: torch.Tensor) -> bool:
        """Whether one factor is a softmax over tokens, of what is no product of activations; that
        of a router is over experts, and mixes for each token what they make of it alone.
        """
        for weights, values in (product[:2], product[1::-1]):
            trace, given = self._alone.of(weights), self._running.given()
            # What was multiplied with weights of fewer axes, as states with a gate, is none.
            if trace is None or trace.scores is None or trace.scores.numel() != weights.numel():
                continue
            keys = weights.shape[trace.key_axis]
            if given is None:
                return True
            is_used_once = result.numel() * keys == values.numel()
            is_routed = is_used_once and result.numel() >= given.numel()
            if given.ndim < 4 and given.shape[-2] == keys and not is_routed:
                return True
        return False

    def _scores_of(self, product: _products.MatrixProduct, result: torch.Tensor) -> ScoreTrace:
        """What is known of a product of two activations.

        One that is not understood is remembered too, without factors: its softmax is then known to
        be weights, and the module is refused and not silently passed over.
        """
        size = (result.shape[-2], result.shape[-1])
        unread = ScoreTrace(adds_up=True)
        if product.equation is _products.MATMUL:
            unread = ScoreTrace(sizes=(size,), adds_up=product.left.shape[-1] > 1)
        axes = _products.product_axes(product.equation, product.axes)
        if axes is None:
            return unread
        of_query, of_key, of_scores = axes
        query = self._split(of_query.read(product.left))
        key = self._split(of_key.read(product.right))
        if query is None or key is None:
            return unread
        # Neither queries nor keys need be on the last axes.
        is_turned = of_scores.is_turned
        known = (Product(query, key, product.scale, is_turned),)
        trace = unread._replace(products=known, sizes=() if is_turned is None else (size,))
        first = (product.equation, product.axes)
        if product.added is None:
            return trace._replace(steps=(first,))
        added, factor = product.added
        second = addition(added, factor)
        return trace if second is None else trace._replace(steps=(first, second), added=(added,))

    def _weighted(
        self,
        trace: ScoreTrace,
        product: _products.MatrixProduct,
        result: torch.Tensor,
        *,
        exchanged: bool = False,
    ) -> torch.Tensor:
        """Report weights times values, the weights being the first factor."""
        axes = _products.attention_axes(product.equation, product.axes)
        if axes is None:
            self._unread()
            return result
        of_weights, of_values, of_context = axes
        read, laid_out = of_weights.read(product.left), of_context.read(result)
        weights, context = self._split(read), self._split(laid_out)
        value = self._split(of_values.read(product.right))
        if weights is None or value is None or context is None:
            self._unread()
            return result
        is_folded = laid_out.ndim == 3  # [batch * head query feature]
        context = context.transpose(1, 2) if is_folded else context
        layout = layout_of(read, self.batch)
        layout.exchanged = exchanged or any(each.exchanged for each in trace.products)
        if trace.unread is not None:
            self.unread.pop(trace.unread, None)
        known: dict[str, Any] = {"odd": _odd(trace, weights)}
        # What each key gives, as in slot attention, follows from no queries and keys.
        if exchanged or product.equation is not _products.MATMUL or trace.key_axis != -2:
            form = (product.equation, trace.axis, trace.turned)
            known |= self._known(trace, of_weights, weights, form)
        changed = self._report(
            weights=weights, value=value, context=context, layout=layout, **known
        )
        if changed is None:
            return result
        new = changed.context.transpose(1, 2) if is_folded else changed.context
        return alike(of_context.written(new.reshape(laid_out.shape)), result)

    def _unread(self, *, chained: bool = False) -> str | None:
        """Note, and return, the name of the running module, whose attention is in a form that is
        not known: a softmax, or two products one after the other.
        """
        module = self._running.innermost()
        if module is None:
            return None
        name = self._running.name_of(module)
        self.unread[name] = chained and self.unread.get(name, True)
        return name

    def _known(
        self,
        trace: ScoreTrace,
        of_weights: _products.AxisOrder,
        weights: torch.Tensor,
        form: tuple[Any, ...],
    ) -> dict[str, Any]:
        """What is known of how these weights came about, as arguments of a `Call`."""
        known: dict[str, Any] = {"products": len(trace.products)}
        scores = trace.scores
        if scores is None:
            return known
        with looking_away(), unseen():
            turned = scores.transpose(-1, -2) if trace.turned else scores
            scores = self._split(of_weights.read(turned))
            if scores is None or scores.shape != weights.shape:
                return known
            steps = None if trace.steps is None else (*form, *trace.steps)
            softmax = ScoresAndWeights(scores, weights, steps, trace.added)
            if self._tell is not None:
                known |= queries_and_keys(trace.products, softmax, self._added)
            is_edited = sessions() and edit_of(self._running.innermost(), "operators") is not None
            if is_edited and known.get("mask") is None:
                known["mask"] = visible_in(softmax)
        return known

    def _fused(self, args: tuple, options: dict, result: torch.Tensor) -> torch.Tensor:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")
        given = dict(zip(names, args, strict=False)) | options
        mask, scale = given.get("attn_mask"), given.get("scale")
        tensors = [given[name] for name in OPERANDS]
        if result.ndim == 2:
            self._unread()
            return result
        query, key, value, context = map(self._split, (*tensors, result))
        is_wide = mask is not None and mask.ndim > max(4, result.ndim)
        if query is None or key is None or value is None or context is None or is_wide:
            module = self._running.innermost()
            if module is None or self._tell is None:
                return result
            raise CaptureError(
                f"{self._running.name_of(module)} computes attention on "
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
        module = self._running.innermost()
        if module is None or (self._tell is None and self._edit() is None):
            return result
        with looking_away():
            seen = _whole_attention.seen_in_flex(args, self._running.name_of(module))
        layout = layout_of(result[0], self.batch)
        changed = self._report(**seen, context=result[0].transpose(1, 2), layout=layout)
        if changed is None:
            return result
        return (alike(changed.context.transpose(1, 2), result[0]), *result[1:])

    def _multi_head(self, args: tuple, options: dict, result: tuple) -> tuple:
        edit = self._edit()
        if self._tell is None and edit is None:
            return result
        with looking_away():
            seen = _whole_attention.seen_in_multi_head(args, options, result[0])
            weight, shift = seen.pop("weight"), seen.pop("shift")
            projection = self._running.owner_of(weight)
            seen |= {} if edit is None else _whole_attention.operands_of_multi_head(edit, seen)

        def projected(call: Call) -> torch.Tensor:
            return functional.linear(call.context.flatten(2).to(weight.dtype), weight, shift)

        name = "" if projection is None else self._running.name_of(projection)
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
        module = self._running.innermost()
        edit = edit_of(module, "operators")
        if module is None or (edit is None and self._tell is None):
            return None
        with looking_away():
            name = self._running.name_of(module)
            call = Call(module=module, name=name, route="operators", cross=cross, **seen)
            call.cross = cross or self._running.is_cross(module, *call.size[2:])
            if edit is not None:
                call = edit.changed(call, with_weights=self._tell is not None)
                if projected is not None:
                    call.output = projected(call)
            if self._tell is not None:
                self._tell(call)
        return None if edit is None else call


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
    if not isinstance(tensor, torch.Tensor) or tensor.ndim < 2 or isinstance(tensor, Parameter):
        return False
    return tensor.ndim > 2 or not isinstance(tensor._base, Parameter)
