"""Which module of a model is running, and whether it was handed states of another sequence."""

from __future__ import annotations

import inspect
import re
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

SECOND_SOURCE = ("encoder_hidden_states", "key_value_states", "kv_states", "memory")
CROSS_NAME = re.compile(r"cross|encoder_attn|enc_?dec", re.IGNORECASE)
ATTENTION_NAME = re.compile(r"attention|attn", re.IGNORECASE)


class Trail:
    """Follows the calls of a model's modules while the block is open."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._names = names_of(model)
        self._second_source: dict[int, bool] = {}
        self._running: list[nn.Module] = []
        self._exit = ExitStack()

    def __enter__(self) -> Trail:
        with ExitStack() as undo:
            for module in self._model.modules():
                undo.callback(module.register_forward_pre_hook(self._begin, with_kwargs=True).remove)
                undo.callback(module.register_forward_hook(self._end, always_call=True).remove)
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
        return next((module for module in self._model.modules() if getattr(module, "weight", None) is weight), None)

    def is_cross(self, module: nn.Module) -> bool:
        """Whether the module attends to another sequence: it was handed one, or its name says so."""
        return self._second_source.get(id(module), False) or bool(CROSS_NAME.search(self.name_of(module)))

    @property
    def in_attention(self) -> bool:
        """Whether a module is running that calls itself attention."""
        return any(ATTENTION_NAME.search(type(module).__name__) for module in self._running)

    def innermost(self) -> nn.Module | None:
        """The innermost module running that has parameters or parts: not a bare softmax or dropout."""
        for module in reversed(self._running):
            if next(module.children(), None) is not None or next(module.parameters(recurse=False), None) is not None:
                return module
        return None

    def _begin(self, module: nn.Module, args: tuple, options: dict) -> None:
        self._running.append(module)
        if ATTENTION_NAME.search(type(module).__name__):
            self._second_source[id(module)] = _has_second_source(module, args, options)

    def _end(self, module: nn.Module, *_: object) -> None:
        while self._running and self._running.pop() is not module:
            pass


def names_of(model: nn.Module) -> dict[int, str]:
    """First name of each module by its id, as if nothing had been compiled."""
    named = reversed(list(model.named_modules(remove_duplicate=False)))
    return {id(module): ".".join(part for part in name.split(".") if part != "_orig_mod") for name, module in named}


def _has_second_source(module: nn.Module, args: tuple, options: dict) -> bool:
    try:
        given: dict[str, Any] = inspect.signature(module.forward).bind_partial(*args, **options).arguments
    except TypeError:
        given = options
    given = given | given.get("kwargs", {})
    return any(isinstance(given.get(name), torch.Tensor) for name in SECOND_SOURCE)
