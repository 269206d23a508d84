"""What several threads that work on one model take turns at."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from traceback import walk_tb
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from headscope.capturing.observers import SharedPatch
from headscope.capturing.walk import modules_of
from headscope.errors import CaptureError

# Held for moments. Reentrant, because a generator that is collected in between leaves its block,
# and asks for the lock in the same thread.
_table = threading.RLock()
_locks: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_random = threading.RLock()


@contextmanager
def one_at_a_time(model: nn.Module) -> Generator[None]:
    """Run a model in this thread alone, as far as headscope runs it; other threads wait until the
    block is left.

    A thread may open the block again inside. It is held for runs that end by themselves, and never
    while the user's own code decides how long: a ``with`` block of `watch` or `intervene` keeps
    nobody waiting.
    """
    with _table:
        lock = _locks.setdefault(model, threading.RLock())
    with lock:
        yield


@contextmanager
def same_random_numbers(
    *, seed: int | None = None, device: torch.device | None = None
) -> Generator[None]:
    """Leave the random numbers of the process as they were, whatever is drawn inside; other threads
    take turns.

    Inside `one_at_a_time`, never around it, so that no two threads wait for each other.

    Args:
        seed: to draw from inside; None to draw on.
        device: whose random numbers are meant besides those of the CPU.
    """
    away = device is not None and device.type not in ("cpu", "meta")
    on_device = {"devices": [device], "device_type": device.type} if away else {"devices": []}
    with _random, torch.random.fork_rng(**on_device):
        if seed is not None:
            torch.manual_seed(seed)
        yield


_resting: WeakKeyDictionary[nn.Module, tuple[bool, set[object]]] = WeakKeyDictionary()
"""The training flag of a module before the first of some blocks, and the blocks that are open."""


@contextmanager
def evaluating(model: nn.Module) -> Generator[None]:
    """Evaluation mode inside; when the last block over a module is left, its training flag is what
    it was.
    """
    block = object()
    with _table:
        # A module that is at rest already is noted only where another block may wake it.
        known = _resting or ()
        modules = [module for module in modules_of(model) if module.training or module in known]
        for module in modules:
            _resting.setdefault(module, (module.training, set()))[1].add(block)
    try:
        if modules:
            model.eval()
        yield
    finally:
        with _table:
            for module in modules:
                training, blocks = _resting[module]
                blocks.discard(block)
                if not blocks:
                    module.training = training
                    del _resting[module]


def _run_as_written() -> Callable[[], None]:
    stance: Any = torch.compiler.set_stance("force_eager")
    return lambda: stance.__exit__(None, None, None)


_STANCE = SharedPatch(_run_as_written)


def not_compiling() -> AbstractContextManager[None]:
    """Run what was compiled as it is written, in all threads, while any such block is open."""
    return _STANCE.applied()


def _forget_other_threads() -> None:
    """After a fork only this thread is left: what others held would never be given back."""
    global _table, _random
    _table, _random = threading.RLock(), threading.RLock()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


ALLOCATED = re.compile(r"allocate ([\d.,]+ (?:bytes|[KMGT]iB))")
"""Bytes in the messages of torch and NumPy."""


@contextmanager
def naming_memory() -> Generator[None]:
    """Say what to choose instead where there is too little memory.

    Raises:
        CaptureError: naming the tokens, and the bytes that were asked for.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        asked = ALLOCATED.search(str(error))
        # On a CPU torch has no class for it.
        if asked is None and not isinstance(error, MemoryError | torch.OutOfMemoryError):
            raise
        of = f", {asked[1]} more," if asked else ""
        raise CaptureError(
            f"There is too little memory{of} for {_tokens_of(error)}: give shorter texts "
            "(truncate=True cuts them) or fewer at once, keep less (heads=, keep='statistics' "
            "with rows=), load the model with dtype='bfloat16', or run it on device='cpu'"
        ) from error


def _tokens_of(error: BaseException) -> str:
    """The tokens that were given to whatever raised, as far as its frames know them."""
    for frame, _ in walk_tb(error.__traceback__):
        named = getattr(frame.f_locals.get("inputs"), "arguments", frame.f_locals)
        ids = named.get("input_ids")
        if isinstance(ids, torch.Tensor) and ids.ndim == 2:
            return f"{len(ids)} x {ids.shape[1]:,} tokens"
    return "this input"
