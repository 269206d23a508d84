"""Finding the output projection of each attention call by watching the numbers, not the names.

The first module with a weight matrix whose input holds the numbers of a call's context is its output projection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from headscope.capturing._call import Call
from headscope.capturing._trail import names_of

REMEMBERED = 8
"""How many calls may wait for their projection at once; more would be compared, and held in memory, in vain."""


class ProjectionWatch:
    """Looks at the input of every affine module while the block is open.

    Args:
        model: whose modules they are.
        done: is called with each call that was expected, once its projection was seen or is given up.
    """

    def __init__(self, model: nn.Module, done: Callable[[Call], None]) -> None:
        self._done = done
        self._modules = [module for module in model.modules() if is_affine(module)]
        self._names = names_of(model)
        self._waiting: list[Call] = []
        self._hooks: list = []

    def __enter__(self) -> ProjectionWatch:
        self._hooks = [module.register_forward_hook(self._look) for module in self._modules]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._waiting.clear()

    def give_up(self) -> None:
        """No more modules will come: the calls that still wait have no projection."""
        while self._waiting:
            self._done(self._waiting.pop())

    def expect(self, call: Call) -> None:
        """From now on, look for the module that takes this call's context."""
        self._waiting.insert(0, call)
        if len(self._waiting) > REMEMBERED:
            self._done(self._waiting.pop())

    def _look(self, module: nn.Module, args: tuple, output: Any) -> None:
        given = args[0] if args else None
        if not isinstance(given, torch.Tensor) or not isinstance(output, torch.Tensor):
            return
        for call in self._waiting:
            if _same_numbers(given, call.context):
                call.projection, call.projection_name, call.output = module, self._names[id(module)], output
                self._waiting.remove(call)
                self._done(call)
                return


def is_affine(module: nn.Module) -> bool:
    """Whether a module multiplies with a matrix."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, torch.Tensor) and weight.ndim == 2 and not isinstance(module, nn.Embedding)


def _same_numbers(given: torch.Tensor, context: torch.Tensor) -> bool:
    """Whether the input is the context ``[batch query head feature]`` with its heads side by side."""
    if given.numel() != context.numel() or given.shape[-1] != context.shape[-2] * context.shape[-1]:
        return False
    flat = context.reshape(given.shape)
    return given.data_ptr() == flat.data_ptr() or torch.equal(given, flat)
