"""Who observes and changes what a thread runs: one record, which every watch and session asks;
modes of torch's functions that are taken off for a while; and hooks on a model's modules.

Hooks belong to the model: whoever runs it calls them, in every thread. What one thread watches or
changes must not reach another, so a hook here does nothing outside the thread that put it there.

torch notes next to the table of hooks which of them want keyword arguments. A pass that is under
way while a hook comes or goes reads the two at different moments and may call it in the other form;
a hook here takes both.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import get_ident
from typing import Any, NamedTuple

from torch import nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode
from torch.utils.hooks import RemovableHandle


class Observers(NamedTuple):
    """What is open in a thread.

    Args:
        sessions: those that change layers, the outermost first.
        level: how many blocks of `headscope.capturing.seam.intact` are open.
        interface: the innermost watch of transformers' interface.
        operators: the innermost watch of torch's operators that is there to change attention.
        away: whether nobody is to look now: what runs is our own, or is reported elsewhere.
    """

    sessions: tuple[Any, ...] = ()
    level: int = 0
    interface: Any = None
    operators: Any = None
    away: bool = False


_observers: ContextVar[Observers] = ContextVar("headscope_observers", default=Observers())  # noqa: B039 - a tuple does not change


def observers() -> Observers:
    """Those of this thread now."""
    return _observers.get()


@contextmanager
def observing(**changes: Any) -> Generator[None]:
    """Some of the observers replaced while the block is open."""
    token = _observers.set(_observers.get()._replace(**changes))
    try:
        yield
    finally:
        _observers.reset(token)


class SharedPatch:
    """Functions of a library that are replaced as long as any thread needs it.

    Args:
        make: replaces them, and returns what undoes it.
    """

    def __init__(self, make: Callable[[], Callable[[], None]]) -> None:
        self._make = make
        self._undo: Callable[[], None] = lambda: None
        self._lock, self._open = threading.Lock(), 0

    @contextmanager
    def applied(self) -> Generator[None]:
        """They are replaced while the block is open."""
        with self._lock:
            if not self._open:
                self._undo = self._make()
            self._open += 1
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1
                if not self._open:
                    self._undo()


class WatchMode(TorchFunctionMode):
    """A mode that sees nothing while nobody is to look."""


class looking_away:
    """Observe nothing inside: what happens there is our own, or is reported elsewhere. The
    innermost modes are taken off, as far as they watch, so that no function need pass them by.
    """

    __slots__ = ("_off", "_token")  # no generator: it is opened several times for every layer

    def __enter__(self) -> None:
        self._off: list[WatchMode] = []
        innermost = _get_current_function_mode()
        while isinstance(innermost, WatchMode):
            TorchFunctionMode.__exit__(innermost, None, None, None)
            self._off.append(innermost)
            innermost = _get_current_function_mode()
        now = _observers.get()
        self._token = _observers.set(now if now.away else Observers._make((*now[:-1], True)))

    def __exit__(self, *_: object) -> None:
        _observers.reset(self._token)
        for mode in reversed(self._off):
            TorchFunctionMode.__enter__(mode)


@contextmanager
def mode_off(mode: TorchFunctionMode) -> Generator[None]:
    """Take a mode off while the block is open, where it is the innermost one."""
    is_innermost = _get_current_function_mode() is mode
    if is_innermost:
        TorchFunctionMode.__exit__(mode, None, None, None)
    try:
        yield
    finally:
        if is_innermost:
            TorchFunctionMode.__enter__(mode)


Before = Callable[[nn.Module, tuple, dict], Any]
After = Callable[[nn.Module, tuple, dict, Any], Any]


def hook_before(module: nn.Module, act: Before) -> RemovableHandle:
    """Call ``act(module, args, options)`` before every pass of a module that this thread runs."""
    return module.register_forward_pre_hook(partial(_before, act, get_ident()), with_kwargs=True)


def hook_after(
    module: nn.Module, act: After, *, always: bool = False, first: bool = False
) -> RemovableHandle:
    """Call ``act(module, args, options, output)`` after every pass of a module that this thread
    runs.

    Args:
        module: which.
        act: what to call; what it returns, if anything, takes the place of the output.
        always: also where the pass ended with an error.
        first: before all other hooks, which may change the output: with what ``forward`` itself
            returned.
    """
    hook = partial(_after, act, get_ident())
    return module.register_forward_hook(hook, with_kwargs=True, always_call=always, prepend=first)


def swapped(
    args: tuple[Any, ...], options: dict[str, Any], one: Any, other: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a module with one of them in the place of another; for `hook_before`."""
    named = {name: other if each is one else each for name, each in options.items()}
    return tuple(other if each is one else each for each in args), named


# Not functions within functions: there is a hook for every module of a model and every capture, and
# under test each function is prepared anew for the checks of its types, which took nine tenths of
# the time.
def _before(  # noqa: PLR0917
    act: Before, thread: int, /, module: nn.Module, args: tuple, options: dict | None = None
) -> Any:
    if get_ident() != thread:
        return None
    return act(module, args, {} if options is None else options)


def _after(act: After, thread: int, module: nn.Module, args: tuple, *more: Any) -> Any:
    if get_ident() != thread:
        return None
    # Without keyword arguments where the hook is called in the shorter form.
    *options, output = more
    return act(module, args, options[0] if options else {}, output)
