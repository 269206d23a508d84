"""Every softmax that a thread computes is counted, so that unexpected attention does not go
unnoticed.

A pass that is watched at a few modules sees no function of torch outside of them. Whatever computes
attention there takes a softmax, or calls a kernel that takes one; as many must come as in the pass
that was watched everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch.nn import functional

from headscope.capturing.observers import SharedPatch, observers, observing

OPERATORS = "torch._higher_order_ops.flex_attention"
FUSED: Any = functional.scaled_dot_product_attention
"""As torch knows it; under its name a model may find the function that counts."""
HOLDERS = (
    (torch, "softmax"),
    (torch.Tensor, "softmax"),
    (functional, "scaled_dot_product_attention"),
    (torch, "_native_multi_head_attention"),
    (torch, "_transformer_encoder_layer_fwd"),
)
"""Where a model finds what takes a softmax; ``functional.softmax`` calls the method of tensors."""


_originals: dict[Any, Callable] = {}


def original_of(func: Any) -> Any:
    """A function of torch as it is when nobody counts: modes are handed the one that counts."""
    return _originals.get(func, func)


@contextmanager
def counted(by: Callable[[], None]) -> Generator[None]:
    """Call ``by`` with each softmax that this thread takes while the block is open."""
    with SOFTMAXES.applied(), observing(counter=by):
        yield


def _replace_all() -> Callable[[], None]:
    """Put functions that count in place of those of torch; returned is what undoes it."""
    holders = list(HOLDERS)
    if OPERATORS in sys.modules:
        holders.append((sys.modules[OPERATORS].FlexAttentionHOP, "__call__"))
    undone = [_replaced(holder, name) for holder, name in holders if hasattr(holder, name)]

    def undo() -> None:
        while undone:
            undone.pop()()

    return undo


SOFTMAXES = SharedPatch(_replace_all)


def _replaced(holder: Any, name: str) -> Callable[[], None]:
    """Put a function that counts in place of one of torch; returned is what undoes it."""
    original, is_own = getattr(holder, name), name in vars(holder)

    @wraps(original)
    def counting(*args: Any, **options: Any) -> Any:
        now = observers()
        if now.counter is not None and not now.away:
            now.counter()
        return original(*args, **options)

    _originals[counting] = original

    def undo() -> None:
        del _originals[counting]
        if is_own:
            setattr(holder, name, original)
        else:  # it is inherited
            delattr(holder, name)

    setattr(holder, name, counting)
    return undo
