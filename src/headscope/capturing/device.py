"""Where and how a model computes: its device, its precision, and what threads take turns at."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from traceback import walk_tb
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from headscope.capturing.observers import SharedPatch
from headscope.capturing.walk import modules_of
from headscope.errors import CaptureError

AUTOCAST = ("cpu", "cuda", "mps", "xpu")
"""Devices on which torch may be told to compute in a lower precision."""
FLOAT32: dict[str, Any] = {"cpu": torch.backends.mkldnn, "cuda": torch.backends.cuda}
"""By device, who knows what becomes of float32 in products."""
LOWER = {"high": "tf32", "medium": "bf16"}
"""What it may become, by the name that this had before torch 2.9."""
HALF_WITHIN = 3e-2
"""How far the results of products in half precision may be apart, relative to the largest."""
IS_OLD = not hasattr(torch.backends.cuda.matmul, "fp32_precision")


def device_of(model: Any) -> torch.device:
    """Where a model takes its inputs: the device of its first weights, or where these are brought
    for a pass.

    accelerate's ``cpu_offload``, ``disk_offload`` and ``device_map="auto"`` leave weights on
    ``meta`` between passes; their hooks know where each module is run.
    """
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    if device.type != "meta":
        return device
    # A hook may be several in one, of which only some know where the module is run.
    for module in model.modules():
        hook = getattr(module, "_hf_hook", None)
        for each in getattr(hook, "hooks", (hook,)):
            execution = getattr(each, "execution_device", None)
            if execution is not None:
                return torch.device(execution)
    return device


def on_cpu(
    tensor: torch.Tensor, dtype: torch.dtype = torch.float32, *, copy: bool = True
) -> torch.Tensor:
    """A tensor in the CPU's memory, contiguous, whose memory is its own unless without ``copy``.

    From a graphics card it goes to pages that torch holds on to and uses again: fresh ones take
    several times as long.
    """
    tensor = tensor.detach()
    if tensor.is_cuda:
        return torch.empty(tensor.shape, dtype=dtype, pin_memory=True).copy_(tensor)
    return tensor.to("cpu", dtype, copy=copy, memory_format=torch.contiguous_format)


@contextmanager
def in_memory(module: nn.Module) -> Generator[None]:
    """The module's own weights where it computes, for as long as the block is open, wherever they
    are kept.
    """
    if getattr(module, "_hf_hook", None) is None:
        yield
        return
    from accelerate.utils import align_module_device

    with align_module_device(module):
        yield


@contextmanager
def full_precision() -> Generator[None]:
    """Products in the precision of their numbers while the block is open, whatever the caller has
    set: without autocast, and of float32 without TF32 or bfloat16.
    """
    with ExitStack() as undo:
        for kind in AUTOCAST:
            if torch.is_autocast_enabled(kind):
                undo.enter_context(torch.autocast(kind, enabled=False))
        undo.enter_context(_WHOLE_FLOAT32.applied())
        yield


def allowed_apart(numbers: torch.Tensor, exact: float, half: float = HALF_WITHIN) -> float:
    """How far results of a model's products may be apart, relative to the largest, in the precision
    in which its device multiplies.

    Args:
        numbers: some of the results.
        exact: the limit in single precision or better.
        half: that in half precision, which has at least the 7 bits of bfloat16; TF32 has 10.
    """
    if numbers.dtype == torch.float64:
        return exact
    kind = numbers.device.type
    told = _caller.get(kind) or _lower().get(kind, "")
    lower = {"bf16": half, "tf32": max(exact, half / 8)}
    return lower.get(told, exact) if numbers.dtype == torch.float32 else half


def _lower() -> dict[str, str]:
    """The devices on which float32 is not itself, and what it is there."""
    if IS_OLD:
        told = dict.fromkeys(FLOAT32, LOWER.get(torch.get_float32_matmul_precision(), ""))
    else:
        told = {kind: backend.matmul.fp32_precision for kind, backend in FLOAT32.items()}
    return {kind: each for kind, each in told.items() if each in LOWER.values()}


def _tell(products: dict[str, str], name: str) -> None:
    """Set what becomes of float32, by device, or by the name that it had before torch 2.9."""
    if IS_OLD:
        torch.set_float32_matmul_precision(name)
        return
    for kind, told in products.items():
        matmul = FLOAT32[kind].matmul
        matmul.fp32_precision = "none"  # what is set for all operators
        if matmul.fp32_precision != told:
            matmul.fp32_precision = told


def _keep_float32() -> Callable[[], None]:
    """Compute with float32 itself on all devices; returned is what undoes it."""
    before, name = _lower(), torch.get_float32_matmul_precision() if IS_OLD else ""
    _caller.update(before)
    _tell(dict.fromkeys(before, "ieee"), "highest")

    def undo() -> None:
        _tell(before, name)
        _caller.clear()

    return undo


_caller: dict[str, str] = {}
"""What the caller has set, while it is not in force."""
_WHOLE_FLOAT32 = SharedPatch(_keep_float32)


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


def _run_unscripted() -> Callable[[], None]:
    scripted: Any = torch.jit.ScriptFunction
    call = scripted.__call__

    def as_written(self: Any, *args: Any, **options: Any) -> Any:
        written = getattr(self, "_torchdynamo_inline", None)
        return call(self, *args, **options) if written is None else written(*args, **options)

    def undo() -> None:
        scripted.__call__ = call

    scripted.__call__ = as_written
    return undo


_UNSCRIPTED = SharedPatch(_run_unscripted)


def unscripted() -> AbstractContextManager[None]:
    """Run functions of TorchScript as they are written, in all threads, while any such block is
    open.
    """
    return _UNSCRIPTED.applied()


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
