"""What is known of a tensor on its way from a product of queries and keys to the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch

ATTRIBUTE = "_headscope_trace"
TIMES = {torch.mul, torch.Tensor.mul, torch.Tensor.__mul__, torch.Tensor.__rmul__, torch.Tensor.mul_}
OVER = {torch.div, torch.Tensor.div, torch.Tensor.__truediv__, torch.Tensor.div_, torch.true_divide}
PRODUCTS_REMEMBERED = 4
NEGLIGIBLE = {torch.float64: 1e-9, torch.float32: 1e-5}
NEGLIGIBLE_HALF = 2e-2
HIDES = -5000.0
"""Scores below, that weigh nothing, are hidden ones of models that do not use the lowest number there is (-1e4)."""


@dataclass(frozen=True, eq=False)
class Product:
    """Queries times keys, the result having been multiplied with ``scale`` since.

    Args:
        query: ``[batch head query feature]``.
        key: ``[batch kv_head key feature]``.
        scale: product of the numbers that the result was multiplied with.
    """

    query: torch.Tensor
    key: torch.Tensor
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Trace:
    """Scores, or the weights that a softmax made of them.

    Args:
        products: that went into the scores, the first being the one that the others were added to.
        scores: what went into the softmax; None as long as there was none.
    """

    products: tuple[Product, ...] = ()
    scores: torch.Tensor | None = None

    @property
    def is_weights(self) -> bool:
        """Whether a softmax was taken."""
        return self.scores is not None


def trace_of(tensor: Any) -> Trace | None:
    """What is known of a tensor."""
    return getattr(tensor, ATTRIBUTE, None) if isinstance(tensor, torch.Tensor) else None


def remember(tensor: torch.Tensor, trace: Trace) -> None:
    """Let this be known of a tensor."""
    setattr(tensor, ATTRIBUTE, trace)


def passed_on(func: Any, args: tuple) -> Trace | None:
    """What is known of the result of a function: what was done to scores gives scores, weights stay weights."""
    flat = [part for given in args for part in (given if isinstance(given, list | tuple) else (given,))]
    found = [trace for trace in map(trace_of, flat) if trace is not None]
    if not found:
        return None
    if found[0].is_weights:
        return found[0]
    products = tuple(product for trace in found for product in trace.products)[:PRODUCTS_REMEMBERED]
    factor = _factor(func, args)
    return Trace(tuple(replace(product, scale=product.scale * factor) for product in products))


def _factor(func: Any, args: tuple) -> float:
    if len(args) < 2 or func not in TIMES | OVER:
        return 1.0
    other = args[1] if trace_of(args[0]) is not None else args[0]
    if isinstance(other, torch.Tensor):
        if other.numel() != 1:
            return 1.0
        other = other.item()
    return 1.0 if not isinstance(other, int | float) else 1 / other if func in OVER else float(other)


def queries_and_keys(trace: Trace, weights: torch.Tensor, split: Any) -> dict[str, Any]:
    """Queries, keys, scale, mask and bias from which the scores follow, as arguments of a `Call`; {} if they do not.

    Whatever was done to the product beside multiplying it with a number (ALiBi, relative positions, a soft cap) is
    left as bias: scores minus scaled product. So the scores are exact for every chain of operations.

    Args:
        trace: of the weights.
        weights: ``[batch head query key]``.
        split: gives a tensor its four axes, or None.
    """
    scores = None if trace.scores is None else split(trace.scores)
    if scores is None or scores.shape != weights.shape:
        return {}
    for product in trace.products:
        query, key = product.query, product.key
        heads, kv_heads = weights.shape[1], key.shape[1]
        fits = query.shape[:3] == weights.shape[:3] and key.shape[2] == weights.shape[3] and not heads % kv_heads
        if not fits or key.shape[0] != weights.shape[0]:
            continue
        found = _explained(product, scores, weights)
        if found:
            return found
    return {}


def visible_in(trace: Trace, weights: torch.Tensor, split: Any) -> torch.Tensor | None:
    """True where a query may look, broadcast to the weights ``[batch head query key]``; None for everywhere."""
    scores = None if trace.scores is None else split(trace.scores)
    if scores is None or scores.shape != weights.shape:
        return None
    visible = _visible(scores, weights)
    return None if visible.all() else _alike(visible)


def _visible(scores: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return (scores > torch.finfo(scores.dtype).min / 2) & ~((scores <= HIDES) & (weights == 0))


def _explained(product: Product, scores: torch.Tensor, weights: torch.Tensor) -> dict[str, Any]:
    query, key = product.query, product.key
    raw = query.unflatten(1, (key.shape[1], -1)) @ key.unsqueeze(2).transpose(-1, -2)
    left = scores - raw.flatten(1, 2) * product.scale
    visible = _visible(scores, weights)
    left = left.where(visible, torch.zeros_like(left))
    largest = scores.where(visible, torch.zeros_like(scores)).abs().max().item()
    if not math.isfinite(largest):
        return {}
    negligible = left.abs().max().item() <= NEGLIGIBLE.get(scores.dtype, NEGLIGIBLE_HALF) * max(1.0, largest)
    return {
        "query": query,
        "key": key,
        "scale": product.scale,
        "mask": None if visible.all() else _alike(visible),
        "bias": None if negligible else _alike(left),
    }


def _alike(tensor: torch.Tensor) -> torch.Tensor:
    """Without the batch and the head axis where all entries of it are the same."""
    for axis in (0, 1):
        first = tensor.narrow(axis, 0, 1)
        if (tensor == first).all():
            tensor = first
    return tensor
