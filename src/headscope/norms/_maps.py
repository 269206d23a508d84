"""One map for each layer, from a record or an array."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.record import Record, Stack, warn_changed

Quantity = Literal["weights", "attention", "residual", "output", "alti", "globenc"]
RESIDUAL_INSIDE = ("residual", "output", "alti", "globenc")
"""Quantities whose diagonal holds the residual already."""


def steps_of(
    source: Any, quantity: Quantity, residual: bool | None, stack: str | None = None
) -> Float[np.ndarray, "layer query key"]:
    """What each layer passes on, rows summing to 1: ``A + I`` or ``A``, divided by the sums of
    rows.

    Args:
        source: a record with one stack, a stack, or an array ``[layer query key]``.
        quantity: of a record: the mean of the weights over heads, or a map of its contributions.
        residual: whether I is added; None for where the quantity does not hold it.
        stack: name of a stack of the record; None where it has one alone.

    Raises:
        RecordError: where there is no map for each layer, or queries and keys are different tokens.
    """
    if quantity not in get_args(Quantity):
        raise RecordError(
            f"There is no quantity {quantity!r}; there are {', '.join(get_args(Quantity))}"
        )
    if isinstance(source, Record | Stack):
        own = _stack_of(source, stack)
        warn_changed("attention through layers", [Record(stacks={own.name: own}).changed])
        maps = maps_of(own, quantity)
    else:
        maps = np.asarray(source)
    if maps.ndim != 3 or maps.shape[1] != maps.shape[2]:
        raise RecordError(
            f"Expected maps [layer query key] with the same tokens on both sides, not {maps.shape}"
        )
    maps = np.array(maps, np.float64)
    if not np.isfinite(maps).all() or maps.min(initial=0.0) < 0:
        raise RecordError("Maps must be finite and not negative")
    residual = quantity not in RESIDUAL_INSIDE if residual is None else residual
    if residual:
        # Norms have no sum of their own; rows are made to sum to 1, so that I weighs as much.
        if quantity == "attention":
            maps = _even(maps)
        maps = maps + np.eye(maps.shape[1])
    return _even(maps)


def _even(maps: np.ndarray) -> np.ndarray:
    """Rows divided by their sums; a row of nothing stays one."""
    sums = maps.sum(axis=-1, keepdims=True)
    return np.divide(maps, sums, out=np.zeros_like(maps), where=sums > 0)


def _stack_of(source: Record | Stack, name: str | None) -> Stack:
    if isinstance(source, Stack):
        return source
    if name is not None:
        return source[name]
    if len(source.stacks) > 1:
        listed = ", ".join(map(repr, source.stacks))
        raise RecordError(f"This record has the stacks {listed}; give one with stack=")
    return next(iter(source.stacks.values()))


def maps_of(stack: Stack, quantity: Quantity) -> np.ndarray:
    """A map of each layer, for results that name themselves what was changed of the model."""
    if stack.query != stack.key:
        raise RecordError(
            f"Stack {stack.name!r} looks at other tokens; what flows through it cannot be "
            "followed back"
        )
    numbers = [layer.layer for layer in stack]
    if numbers != list(range(len(numbers))):
        gaps = sorted(set(range(numbers[-1])) - set(numbers))
        raise RecordError(
            f"Stack {stack.name!r} has no attention in layers {gaps}; nothing is known of what "
            "flows there"
        )
    if quantity == "weights":
        return np.stack([layer.weights_of().mean(axis=0, dtype=np.float64) for layer in stack])
    return np.stack([np.asarray(layer.contributions_of(quantity), np.float64) for layer in stack])
