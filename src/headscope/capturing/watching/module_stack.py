"""Which module of a model is running, and whether it was given states of another sequence."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from headscope.capturing.hooks import hook_after, hook_before
from headscope.capturing.walk import arguments_of
from headscope.capturing.watching.watch_plan import ATTENTION_NAME, ModelModules, WatchedModules

SECOND_SOURCE = ("encoder_hidden_states", "key_value_states", "kv_states", "memory")
CROSS_NAME = re.compile(r"cross|encoder_attn|enc_?dec", re.IGNORECASE)


class ModuleStack:
    """Follows the calls of a model's modules, by the thread that opened the block, while it is
    open.

    Args:
        watched: the modules that are followed.
        attention_only: whether only the model itself and modules that call themselves attention are
            followed, until `follow_all`.
    """

    def __init__(self, watched: WatchedModules, *, attention_only: bool = False) -> None:
        self._watched = watched
        self._followed: dict[int, nn.Module] = {
            id(module): module
            for module in watched.running
            if not attention_only or _may_attend(module, watched.modules.model)
        }
        self._names = watched.modules.names
        self._lengths: dict[int, tuple[int, int]] = {}
        self._running: list[nn.Module] = []
        self._exit = ExitStack()

    def __enter__(self) -> ModuleStack:
        with ExitStack() as undo:
            for module in self._followed.values():
                self._follow(module, undo)
            for module in self._watched.given:
                if ATTENTION_NAME.search(type(module).__name__):
                    undo.callback(hook_before(module, self._note_lengths).remove)
            self._exit = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()
        self._running.clear()

    def __contains__(self, module: nn.Module) -> bool:
        return id(module) in self._names

    def name_of(self, module: nn.Module) -> str:
        """The module's first name in the model."""
        return self._names[id(module)]

    def owner_of(self, weight: torch.Tensor) -> nn.Module | None:
        """The module of the model that this matrix is the weight of."""
        for module in self._watched.modules.all:
            if getattr(module, "weight", None) is weight:
                return module
        return None

    def is_cross(self, module: nn.Module, queries: int, keys: int) -> bool:
        """Whether the module attends to another sequence: it was given one, or its name shows it.

        Not where the tokens of both are queries and keys alike: that is joint attention (Stable
        Diffusion 3).
        """
        own, second = self._lengths.get(id(module), (0, 0))
        if own and second and queries == keys == own + second:
            return False
        return bool(second) or bool(CROSS_NAME.search(self.name_of(module)))

    @property
    def in_attention(self) -> bool:
        """Whether a module is running that calls itself attention, or is known to compute it."""
        if self._watched.is_planned:
            return bool(self._running)
        return any(ATTENTION_NAME.search(type(module).__name__) for module in self._running)

    def innermost(self) -> nn.Module | None:
        """The innermost module running that has parameters or parts: not a bare softmax or
        dropout.
        """
        for module in reversed(self._running):
            if (
                next(module.children(), None) is not None
                or next(module.parameters(recurse=False), None) is not None
            ):
                return module
        return None

    def follow_all(self) -> None:
        """From now on follow all modules, where only some were."""
        for module in self._watched.running:
            if id(module) not in self._followed:
                self._followed[id(module)] = module
                self._follow(module, self._exit)

    def _follow(self, module: nn.Module, undo: ExitStack) -> None:
        undo.callback(hook_before(module, self._begin).remove)
        undo.callback(hook_after(module, self._end, always=True).remove)

    def _begin(self, module: nn.Module, args: tuple, options: dict) -> None:
        self._running.append(module)
        if ATTENTION_NAME.search(type(module).__name__):
            self._note_lengths(module, args, options)

    def _note_lengths(self, module: nn.Module, args: tuple, options: dict) -> None:
        self._lengths[id(module)] = _lengths(module, args, options)

    def _end(self, module: nn.Module, *_: object) -> None:
        while self._running and self._running.pop() is not module:
            pass


def _may_attend(module: nn.Module, model: nn.Module) -> bool:
    return module is model or bool(ATTENTION_NAME.search(type(module).__name__))


def names_of(model: nn.Module) -> dict[int, str]:
    """First name of each module by its id, as if nothing had been compiled."""
    return ModelModules.of(model).names


def _lengths(module: nn.Module, args: tuple, options: dict) -> tuple[int, int]:
    """How many tokens of its own a module was given, and how many of a second sequence; 0 for both
    where there is no second one.
    """
    named = arguments_of(module)
    given = dict(zip(named, args, strict=False)) | options
    second = next(filter(None, (_length(given.get(name)) for name in SECOND_SOURCE)), 0)
    if not second:
        return 0, 0  # then nobody asks for its own
    for name in (*named, *given):
        own = 0 if name in SECOND_SOURCE else _length(given.get(name))
        if own:
            return own, second
    return 0, second


def _length(given: Any) -> int:
    """How many tokens states have; 0 of what is none."""
    return given.shape[-2] if isinstance(given, torch.Tensor) and given.ndim > 1 else 0
