"""Finding the output projection of each attention call by watching the numbers, not the names.

The first module with a weight matrix whose input holds the numbers of a call's context is its
output projection. That input also proves in which order the call's tensors hold batch and heads,
and shows which calls are the heads of one layer that were computed one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from headscope.capturing.calls.call import Call
from headscope.capturing.calls.layout import with_heads_first
from headscope.capturing.hooks import hook_after
from headscope.capturing.watching._joined_heads import are_heads_of_one, put_together
from headscope.capturing.watching.watch_plan import WatchedModules

REMEMBERED = 8
"""How many calls may wait for their projection at once; more would be compared, and held in memory,
in vain.
"""
HEADS_REMEMBERED = 64
"""How many calls of one head each may wait: they may be heads of one layer."""


class MatrixUse(NamedTuple):
    """One use of a matrix.

    Args:
        module: which holds it.
        given: what went in.
        output: what came out.
        name: of the module, if it is needed.
    """

    module: nn.Module
    given: torch.Tensor
    output: torch.Tensor
    name: str = ""


class ProjectionWatch:
    """Looks at the input of every affine module while the block is open.

    Args:
        watched: the modules that may be among them.
        done: is called with each call that was expected, once its projection was seen or is given
            up.
    """

    def __init__(self, watched: WatchedModules, done: Callable[[Call], None]) -> None:
        self._done, self._model = done, watched.modules.model
        self._modules, self._names = watched.matrices, watched.modules.names
        self._waiting: list[Call] = []
        self._hooks: list = []

    def __enter__(self) -> ProjectionWatch:
        # before the user's own hooks, which may add to what the matrix gave (steering)
        self._hooks = [hook_after(module, self._look, first=True) for module in self._modules]
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
        several = sum(waiting.size[1] > 1 for waiting in self._waiting)
        if several > REMEMBERED or len(self._waiting) > HEADS_REMEMBERED:
            self._done(self._waiting.pop())

    def _look(self, module: nn.Module, args: tuple, _: dict, output: Any) -> None:
        given = args[0] if args else None
        if not isinstance(given, torch.Tensor) or not isinstance(output, torch.Tensor):
            return
        for call in self._waiting:
            if _is_given(given, call):
                self._waiting.remove(call)
                self._hand_on(call, module, output)
                return
        heads = self._heads_in(given)
        if heads:
            self._waiting = self._waiting[len(heads) :]
            self._hand_on(put_together(heads, self._model), module, output)

    def _hand_on(self, call: Call, module: nn.Module, output: torch.Tensor) -> None:
        call.projection, call.projection_name, call.output = module, self._names[id(module)], output
        self._done(call)

    def _heads_in(self, given: torch.Tensor) -> list[Call]:
        """The latest calls, first to last, whose contexts side by side are what a module was given;
        none for others.
        """
        for count in range(2, len(self._waiting) + 1):
            heads = self._waiting[:count][::-1]
            if not are_heads_of_one(heads):
                break
            context = torch.cat([call.context for call in heads], dim=2)
            if _same_numbers(given, context):
                return heads
        return []


def is_affine(module: nn.Module) -> bool:
    """Whether a module multiplies with a matrix."""
    weight = getattr(module, "weight", None)
    return (
        isinstance(weight, torch.Tensor)
        and weight.ndim == 2
        and not isinstance(module, nn.Embedding)
    )


def _is_given(given: torch.Tensor, call: Call) -> bool:
    """Whether the input is a call's context; batch and heads are exchanged in the call where that
    proves it.
    """
    fits = _same_numbers(given, call.context)
    layout = call.layout
    if not layout.open:
        return fits
    exchanged = with_heads_first(call.context.transpose(1, 2), layout).transpose(1, 2)
    fits_exchanged = _same_numbers(given, exchanged)
    if fits_exchanged and not fits:
        _exchange(call)
    if fits != fits_exchanged:  # numbers that are the same either way, such as zeros, prove nothing
        layout.open = ""
    return fits or fits_exchanged


def _exchange(call: Call) -> None:
    """Read a call's tensors as if the heads came before the batch."""
    layout, (batch, heads, queries, keys) = call.layout, call.size

    def read(tensor: torch.Tensor | None, *, is_between: bool = False) -> torch.Tensor | None:
        if tensor is None:
            return None
        if is_between and layout.open == "folded":  # masks and biases may have axes of length 1
            tensor = tensor.expand(batch, heads, queries, keys)
        return with_heads_first(tensor, layout)

    call.query, call.key, call.weights = map(read, (call.query, call.key, call.weights))
    call.value = with_heads_first(call.value, layout)
    call.mask, call.bias = (read(tensor, is_between=True) for tensor in (call.mask, call.bias))
    call.context = with_heads_first(call.context.transpose(1, 2), layout).transpose(1, 2)
    call.query_before = call.key_before = None  # was looked for in the other order
    call.norm, layout.heads_first = "", layout.open


def _same_numbers(given: torch.Tensor, context: torch.Tensor) -> bool:
    """Whether the input is the context ``[batch query head feature]`` with its heads side by
    side.
    """
    if given.numel() != context.numel() or given.shape[-1] != context.shape[-2] * context.shape[-1]:
        return False
    flat = context.reshape(given.shape)
    return given.data_ptr() == flat.data_ptr() or torch.equal(given, flat)
