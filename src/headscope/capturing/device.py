"""Where a model computes, also where its weights are kept elsewhere meanwhile (accelerate's
offload), and in which precision.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from headscope.capturing.observers import SharedPatch

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
