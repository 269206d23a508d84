"""Where a model computes, also where its weights are kept elsewhere meanwhile (accelerate's
offload).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


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
