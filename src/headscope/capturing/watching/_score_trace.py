"""What is known of a tensor on its way from a product of queries and keys to the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch

ATTRIBUTE = "_headscope_trace"
TIMES = {
    torch.mul,
    torch.Tensor.mul,
    torch.Tensor.__mul__,
    torch.Tensor.__rmul__,
    torch.Tensor.mul_,
}
OVER = {torch.div, torch.Tensor.div, torch.Tensor.__truediv__, torch.Tensor.div_, torch.true_divide}
SHIFTS = {
    "linear",
    "bilinear",
    "addmm",
    "embedding",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
}
CONVOLUTIONS = {"conv1d", "conv2d", "conv3d"}
NORMS = {
    "layer_norm",
    "rms_norm",
    "group_norm",
    "batch_norm",
    "instance_norm",
    "local_response_norm",
    "normalize",
}
ENDS = SHIFTS | CONVOLUTIONS | NORMS
"""Functions whose result is something new: what is known of their arguments ends there."""
PRODUCTS_REMEMBERED = 4
BESIDE_REMEMBERED = 2
"""Of layers that differ in what they add, such as in a window, most models have two kinds."""
NEGLIGIBLE = {torch.float64: 1e-9, torch.float32: 1e-5}
NEGLIGIBLE_HALF = 2e-2
HIDES = -5000.0
"""Scores below, that weigh nothing, are hidden ones of models that do not use the lowest number
there is (-1e4).
"""


@dataclass(frozen=True, eq=False)
class Product:
    """Queries times keys, the result having been multiplied with ``scale`` since.

    Args:
        query: ``[batch head query feature]``.
        key: ``[batch kv_head key feature]``.
        scale: product of the numbers that the result was multiplied with.
        turned: whether the result has the axes ``[... key query]`` by now; None where these are not
            its last ones.
        exchanged: whether the factor that came first in the product are the keys.
    """

    query: torch.Tensor
    key: torch.Tensor
    scale: float = 1.0
    turned: bool | None = False
    exchanged: bool = False

    def done(self, factor: float, *, turned: bool) -> Product:
        """After the result was multiplied with a number, or its last two axes were exchanged."""
        exchanged = self.turned if self.turned is None else self.turned != turned
        return replace(self, scale=self.scale * factor, turned=exchanged)

    def keys_on(self, axis: int) -> Product:
        """With the roles of queries and keys such that the keys lie on an axis of the result, -1 or
        -2.
        """
        if self.turned is None or (axis == -2) == self.turned:
            return self
        return replace(self, query=self.key, key=self.query, turned=False, exchanged=True)


@dataclass(frozen=True, eq=False)
class ScoreTrace:
    """Scores, or the weights that a softmax made of them.

    Args:
        products: that went into the scores, the first being the one that the others were added to.
        scores: what went into the softmax; None as long as there was none.
        sizes: numbers of queries and keys of each product; empty where one was of a form that is
            not understood.
        axis: the axis of the softmax, -1 or -2; other axes are not followed.
        turned: whether the weights were turned since the softmax.
    """

    products: tuple[Product, ...] = ()
    scores: torch.Tensor | None = None
    sizes: tuple[tuple[int, int], ...] = ()
    axis: int = -1
    turned: bool = False

    @property
    def is_weights(self) -> bool:
        """Whether a softmax was taken."""
        return self.scores is not None

    @property
    def key_axis(self) -> int:
        """The axis of the weights, -1 or -2, along which they sum to 1."""
        return -3 - self.axis if self.turned else self.axis

    def softmax(self, scores: torch.Tensor, axis: int) -> ScoreTrace:
        """What is known of the weights that a softmax along an axis makes of these scores.

        The axis of the softmax is that of the keys, whichever of both factors came first in the
        product.
        """
        axis = axis - scores.ndim if axis >= 0 else axis
        if axis not in (-1, -2):
            return ScoreTrace(self.products, scores, self.sizes)
        products = tuple(product.keys_on(axis) for product in self.products)
        sizes = self.sizes if axis == -1 else tuple(size[::-1] for size in self.sizes)
        return ScoreTrace(products, scores, sizes, axis)

    def fits(self, weights: torch.Tensor) -> bool:
        """Whether weights ``[... query key]`` have the size of a product that they are taken to
        come from.
        """
        rows, columns = weights.shape[-2:]
        sizes = (*self.sizes, *(size[::-1] for size in self.sizes if self.turned))
        return not sizes or (rows, columns) in sizes


def trace_of(tensor: Any) -> ScoreTrace | None:
    """What is known of a tensor."""
    return getattr(tensor, ATTRIBUTE, None) if isinstance(tensor, torch.Tensor) else None


def remember(tensor: torch.Tensor, trace: ScoreTrace) -> None:
    """Let this be known of a tensor."""
    setattr(tensor, ATTRIBUTE, trace)


def passed_on(func: Any, args: tuple, result: torch.Tensor) -> ScoreTrace | None:
    """What is known of the result of a function: what was done to scores gives scores, weights stay
    weights.

    Projections, convolutions and norms end it, but where they mix heads.
    """
    flat: list[Any] = []
    for given in args:
        flat += given if isinstance(given, list | tuple) else (given,)
    traced = [tensor for tensor in flat if trace_of(tensor) is not None]
    if not traced:
        return None
    first, traces = traced[0], [trace for trace in map(trace_of, traced) if trace is not None]
    if _ends(func, args, result, traces[0]):
        return None
    is_turned = _is_turned(first, result)
    if traces[0].is_weights:
        return replace(traces[0], turned=not traces[0].turned) if is_turned else traces[0]
    factor = _factor(func, args)
    products: list[Product] = []
    # A dictionary keeps each size once, in the order in which they came.
    sizes: dict[tuple[int, int], None] = {}
    for trace in traces:
        for product in trace.products:
            products.append(product.done(factor, turned=is_turned))
        for size in trace.sizes:
            sizes[size[::-1] if is_turned else size] = None
    return ScoreTrace(tuple(products[:PRODUCTS_REMEMBERED]), sizes=tuple(sizes))


def _ends(func: Any, args: tuple, result: torch.Tensor, trace: ScoreTrace) -> bool:
    """Whether nothing is known of the result: it was projected, convolved or normalised, and not
    over heads alone.
    """
    name = getattr(func, "__name__", "")
    if name not in ENDS:
        return False
    given = args[0]
    if not isinstance(given, torch.Tensor) or trace_of(given) is not trace:
        return True
    if trace.is_weights:
        # Heads mixed after the softmax are reported where they are multiplied with values.
        return given.shape != result.shape
    if name == "linear" and given.ndim == 4:
        return given.shape != result.shape or tuple(given.shape[1:3]) not in trace.sizes
    if name in CONVOLUTIONS:
        is_local = args[1].shape[2:].numel() == 1
        return not is_local or tuple(result.shape[2:]) not in trace.sizes
    return True


def _is_turned(given: torch.Tensor, result: torch.Tensor) -> bool:
    """Whether a function exchanged the last two axes, by how both lie in memory."""
    if given.ndim != result.ndim or given.ndim < 2 or storage_of(given) != storage_of(result):
        return False
    before, after = (
        (*zip(tensor.shape, tensor.stride(), strict=True),)[-2:] for tensor in (given, result)
    )
    return before != after and before == after[::-1]


def storage_of(tensor: torch.Tensor) -> int:
    """Where in memory the numbers of a tensor and of its views are."""
    return tensor.untyped_storage().data_ptr()


def _factor(func: Any, args: tuple) -> float:
    if len(args) < 2 or func not in TIMES | OVER:
        return 1.0
    other = args[1] if trace_of(args[0]) is not None else args[0]
    if isinstance(other, torch.Tensor):
        if other.numel() != 1:
            return 1.0
        other = other.item()
    if not isinstance(other, int | float):
        return 1.0
    return 1 / other if func in OVER else float(other)


@dataclass(frozen=True, eq=False)
class AddedScores:
    """What goes into the scores of a layer besides the product of its queries and keys.

    Args:
        added: to the scaled product, broadcast to ``[batch head query key]``: bias and mask in one.
        mask: of a `Call`.
        bias: of a `Call`.
    """

    added: torch.Tensor
    mask: torch.Tensor | None
    bias: torch.Tensor | None

    def leads(self, product: torch.Tensor, scores: torch.Tensor) -> bool:
        """Whether it leads from a scaled product to these scores, every one of them."""
        sizes = zip(self.added.shape, scores.shape, strict=True)
        fits = all(own in (1, size) for own, size in sizes)
        if not fits or self.added.dtype != scores.dtype:
            return False
        low, high = torch.stack(torch.aminmax((product + self.added).sub_(scores))).tolist()
        within = NEGLIGIBLE.get(scores.dtype, NEGLIGIBLE_HALF)
        return -within <= low and high <= within


def queries_and_keys(
    trace: ScoreTrace, weights: torch.Tensor, split: Any, known: list[AddedScores]
) -> dict[str, Any]:
    """Queries, keys, scale, mask and bias from which the scores follow, as arguments of a `Call`;
    {} if they do not.

    Whatever was done to the product besides multiplying it with a number (ALiBi, relative
    positions, a soft cap) is left as bias: scores minus scaled product. So the scores are exact for
    every chain of operations.

    Args:
        trace: of the weights.
        weights: ``[batch head query key]``.
        split: gives a tensor its four axes, or None.
        known: what other layers added, which is tried first; what this one adds is put to it.
    """
    scores = None if trace.scores is None else split(trace.scores)
    if scores is None or scores.shape != weights.shape:
        return {}
    for product in trace.products:
        query, key = product.query, product.key
        heads, kv_heads = weights.shape[1], key.shape[1]
        fits = (
            query.shape[:3] == weights.shape[:3]
            and key.shape[2] == weights.shape[3]
            and not heads % kv_heads
        )
        if not fits or key.shape[0] != weights.shape[0]:
            continue
        operands = _explained(product, scores, weights, known)
        if operands:
            return operands
    return {}


def visible_in(trace: ScoreTrace, weights: torch.Tensor, split: Any) -> torch.Tensor | None:
    """True where a query may look, broadcast to the weights ``[batch head query key]``; None for
    everywhere.
    """
    scores = None if trace.scores is None else split(trace.scores)
    if scores is None or scores.shape != weights.shape:
        return None
    visible = _visible(scores, weights)
    return None if visible.all() else _alike(visible)


def _visible(scores: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return (scores > torch.finfo(scores.dtype).min / 2) & ~((scores <= HIDES) & (weights == 0))


def _explained(
    product: Product, scores: torch.Tensor, weights: torch.Tensor, known: list[AddedScores]
) -> dict[str, Any]:
    query, key = product.query, product.key
    # Heads that share their keys are one product with more rows.
    shared = query.reshape(len(query), key.shape[1], -1, query.shape[-1])
    raw = (shared @ key.transpose(-1, -2)).view(*query.shape[:3], -1)
    raw = raw.mul_(product.scale)
    beside = next((each for each in known if each.leads(raw, scores)), None)
    if beside is None:
        beside = _beside(raw, scores, weights)
        if beside is None:
            return {}
        known[:] = [beside, *known][:BESIDE_REMEMBERED]
    operands = {"query": query, "key": key, "scale": product.scale}
    return operands | {"mask": beside.mask, "bias": beside.bias}


def _beside(raw: torch.Tensor, scores: torch.Tensor, weights: torch.Tensor) -> AddedScores | None:
    """What must be added to a scaled product to make these scores; None where they are no
    numbers.
    """
    added, visible = scores - raw, _visible(scores, weights)
    left = added.where(visible, torch.zeros_like(added))
    largest = scores.where(visible, torch.zeros_like(scores)).abs().max().item()
    if not math.isfinite(largest):
        return None
    allowed = NEGLIGIBLE.get(scores.dtype, NEGLIGIBLE_HALF) * max(1.0, largest)
    mask = None if visible.all() else _alike(visible)
    if left.abs().max().item() <= allowed:
        return AddedScores(_alike(added.masked_fill(visible, 0)), mask, None)
    return AddedScores(added, mask, _alike(left))


def _alike(tensor: torch.Tensor) -> torch.Tensor:
    """Without the batch and the head axis where all entries of it are the same."""
    for axis in (0, 1):
        first = tensor.narrow(axis, 0, 1)
        if (tensor == first).all():
            tensor = first
    return tensor
