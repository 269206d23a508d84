"""What every pass needs to know of a model, quickly: torch's own walk over modules takes as long as
the attention of a short text.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from torch import nn

_walked: ContextVar[dict[int, list[tuple[str, nn.Module]]] | None] = ContextVar(
    "headscope_walked", default=None
)


@contextmanager
def walked_once() -> Generator[None]:
    """For the length of a pass, in which no model gets other modules, walk over each once."""
    token = _walked.set({})
    try:
        yield
    finally:
        _walked.reset(token)


def named_modules_of(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """All modules, each once with its first name, in the order of ``model.named_modules()``."""
    known = _walked.get()
    if known is None:
        return _named_modules_of(model)
    if id(model) not in known:
        known[id(model)] = _named_modules_of(model)
    return known[id(model)]


def _named_modules_of(model: nn.Module) -> list[tuple[str, nn.Module]]:
    modules, seen, ahead = [], set(), [("", model)]
    while ahead:
        name, module = ahead.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        modules.append((name, module))
        if not module._modules:
            continue  # as most of them
        # The stack gives back what was put on it last, so that the first child must be put last.
        children = list(module._modules.items())
        for own, child in reversed(children):
            if child is not None:
                ahead.append((f"{name}.{own}" if name else own, child))
    return modules


def modules_of(model: nn.Module) -> list[nn.Module]:
    """All modules, each once, in the order of ``model.modules()``."""
    walked = (_walked.get() or {}).get(id(model))
    if walked is not None:
        return [module for _, module in walked]
    # Without the names, which take half of the time.
    modules, seen, ahead = [], set(), [model]
    while ahead:
        module = ahead.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        modules.append(module)
        if not module._modules:
            continue  # as most of them
        ahead += [child for child in reversed(module._modules.values()) if child is not None]
    return modules


def arguments_of(model: nn.Module | type[nn.Module]) -> tuple[str, ...]:
    """Names of the arguments of a module's forward, or of a class of modules."""
    if isinstance(model, type):
        return _named(model.forward)[1:]
    # A wrapper may have put a forward of its own on the instance, as accelerate does, which takes
    # no self.
    own = vars(model).get("forward")
    return _named(type(model).forward)[1:] if own is None else _named(own)


@lru_cache(maxsize=256)
def _named(forward: Callable) -> tuple[str, ...]:
    """Names of a function's arguments; none if it has no signature."""
    try:
        return tuple(inspect.signature(forward).parameters)
    except (TypeError, ValueError):
        return ()
