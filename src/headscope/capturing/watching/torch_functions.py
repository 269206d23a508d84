"""Functions of torch that others are put in place of, for the length of a pass.

Every softmax that a thread computes is counted, so that unexpected attention does not go unnoticed.
A pass that is watched at a few modules sees no function of torch outside of them. Whatever computes
attention there takes a softmax, or calls a kernel that takes one; as many must come as in the pass
that was watched everywhere.

Products of matrices are handed to whoever asks for them: attention begins with one, and a mode that
is opened only then need not be passed by all that comes before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any

import torch
from torch.nn import functional

from headscope.capturing.observers import SharedPatch, observers

OPERATORS = "torch._higher_order_ops.flex_attention"
FUSED: Any = functional.scaled_dot_product_attention
"""As torch knows it; under its name a model may find the function that counts."""
EINSUM: Any = torch.einsum
"""As torch knows it, too."""
HOLDERS = (
    (torch, "softmax"),
    (torch.Tensor, "softmax"),
    (functional, "scaled_dot_product_attention"),
    (torch, "_native_multi_head_attention"),
    (torch, "_transformer_encoder_layer_fwd"),
)
"""Where a model finds what takes a softmax; ``functional.softmax`` calls the method of tensors."""
PRODUCT_HOLDERS = (
    (torch, "matmul"),
    (torch, "bmm"),
    (torch, "baddbmm"),
    (torch, "einsum"),
    (torch.Tensor, "matmul"),
    (torch.Tensor, "__matmul__"),
    (torch.Tensor, "bmm"),
    (torch.Tensor, "baddbmm"),
)
"""Where it finds products of matrices."""
_originals: dict[Any, Callable] = {}


def original_of(func: Any) -> Any:
    """A function of torch as it is when nobody counts: modes are handed the one in its place."""
    return _originals.get(func, func)


def _count_softmaxes() -> Callable[[], None]:
    """Put functions that count in place of those of torch; returned is what undoes it."""
    holders = list(HOLDERS)
    if OPERATORS in sys.modules:
        holders.append((sys.modules[OPERATORS].FlexAttentionHOP, "__call__"))
    return _all_replaced([held for held in holders if hasattr(*held)], _counting)


def _hand_products_on() -> Callable[[], None]:
    """Put functions that ask who runs them in place of products; returned is what undoes it."""
    return _all_replaced(PRODUCT_HOLDERS, _handed_on)


PATCHES = {"counter": SharedPatch(_count_softmaxes), "product": SharedPatch(_hand_products_on)}
"""What must be open for each of these `Observers` to be called."""


@cache
def _counting(original: Callable) -> Callable:
    """A softmax that is counted."""

    @wraps(original)
    def counting(*args: Any, **options: Any) -> Any:
        now = observers()
        if now.counter is not None and not now.away:
            now.counter()
        return original(*args, **options)

    return counting


@cache
def _handed_on(original: Callable) -> Callable:
    """A product that somebody else may run."""

    @wraps(original)
    def handed(*args: Any, **options: Any) -> Any:
        now = observers()
        if now.product is None or now.away:
            return original(*args, **options)
        return now.product(original, args, options)

    return handed


def _all_replaced(
    holders: Sequence[tuple[Any, str]], made: Callable[[Callable], Callable]
) -> Callable[[], None]:
    """Put what is made of functions in their place; returned is what undoes it."""
    undone = [_replaced(holder, name, made) for holder, name in holders]

    def undo() -> None:
        while undone:
            undone.pop()()

    return undo


def _replaced(holder: Any, name: str, made: Callable[[Callable], Callable]) -> Callable[[], None]:
    """Put what is made of one function of torch in its place; returned is what undoes it."""
    original, is_own = getattr(holder, name), name in vars(holder)
    replacement = made(original)
    _originals[replacement] = original  # for good: both are made once

    def undo() -> None:
        if is_own:
            setattr(holder, name, original)
        else:  # it is inherited
            delattr(holder, name)

    setattr(holder, name, replacement)
    return undo
