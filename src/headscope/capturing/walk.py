"""What every pass needs to know of a model, quickly: torch's own walk over modules takes as long as
the attention of a short text.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from torch import nn

_in_pass: ContextVar[dict[Hashable, Any] | None] = ContextVar("headscope_in_pass", default=None)


@contextmanager
def one_pass(*, anew: bool = False) -> Generator[None]:
    """For the length of a pass, in which no model gets other modules and no weights change, find
    out once what follows from these. A block within another is the same pass, unless ``anew``.
    """
    if not anew and _in_pass.get() is not None:
        yield
        return
    token = _in_pass.set({})
    try:
        yield
    finally:
        _in_pass.reset(token)


def once_a_pass(what: Hashable, make: Callable[[], Any]) -> Any:
    """What follows from modules or weights; made once where a pass is open, else anew.

    Args:
        what: distinguishes it from all else.
        make: makes it.
    """
    known = _in_pass.get()
    if known is None:
        return make()
    if what not in known:
        known[what] = make()
    return known[what]


def named_modules_of(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """All modules, each once with its first name, in the order of ``model.named_modules()``."""
    return once_a_pass(("walked", model), lambda: _named_modules_of(model))


def _named_modules_of(model: nn.Module) -> list[tuple[str, nn.Module]]:
    modules = [("", model)]
    _walk(model, "", modules, {id(model)})
    return modules


def _walk(
    module: nn.Module, path: str, modules: list[tuple[str, nn.Module]], seen: set[int]
) -> None:
    """Add the parts of a module, whose path ends with a dot, to those that were seen."""
    for own, child in module._modules.items():
        if child is None or id(child) in seen:
            continue
        seen.add(id(child))
        name = path + own
        modules.append((name, child))
        if child._modules:  # most have none
            _walk(child, f"{name}.", modules, seen)


def modules_of(model: nn.Module) -> list[nn.Module]:
    """All modules, each once, in the order of ``model.modules()``."""
    return [module for _, module in named_modules_of(model)]


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
