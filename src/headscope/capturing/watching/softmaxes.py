"""Every softmax that a thread computes is counted, so that unexpected attention does not go
unnoticed.

A pass that is watched at a few modules sees no function of torch outside of them. Whatever computes
attention there takes a softmax, or calls a kernel that takes one; as many must come as in the pass
that was watched everywhere.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Protocol, runtime_checkable

import torch
from torch.nn import functional

from headscope.capturing.observers import observers, observing

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


@runtime_checkable
class SoftmaxCounter(Protocol):
    """What counts softmaxes."""

    def softmax(self) -> None:
        """A softmax is computed."""
        ...


_lock = threading.Lock()
_open = 0
_undo: list[Callable[[], None]] = []
_originals: dict[Any, Callable] = {}


def original_of(func: Any) -> Any:
    """A function of torch as it is when nobody counts: modes are handed the one that counts."""
    return _originals.get(func, func)


@contextmanager
def counted(by: SoftmaxCounter) -> Generator[None]:
    """Count the softmaxes that this thread takes while the block is open."""
    _install()
    try:
        with observing(counter=by):
            yield
    finally:
        _uninstall()


def _install() -> None:
    global _open  # noqa: PLW0603 - counts the open blocks of all threads
    with _lock:
        if _open == 0:
            holders = list(HOLDERS)
            if OPERATORS in sys.modules:
                holders.append((sys.modules[OPERATORS].FlexAttentionHOP, "__call__"))
            _undo[:] = [
                _replaced(holder, name) for holder, name in holders if hasattr(holder, name)
            ]
        _open += 1


def _uninstall() -> None:
    global _open  # noqa: PLW0603
    with _lock:
        _open -= 1
        if _open == 0:
            while _undo:
                _undo.pop()()


def _replaced(holder: Any, name: str) -> Callable[[], None]:
    """Put a function that counts in place of one of torch; returned is what undoes it."""
    original, is_own = getattr(holder, name), name in vars(holder)

    @wraps(original)
    def counting(*args: Any, **options: Any) -> Any:
        now = observers()
        if now.counter is not None and not now.away:
            now.counter.softmax()
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
