"""Who observes and changes what a thread runs: one record, which every watch and session asks; and
modes of torch's functions that are taken off for a while.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, NamedTuple

from torch.overrides import TorchFunctionMode, _get_current_function_mode


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


def look_away() -> Token[Observers]:
    """From now on nobody is to look, until `look_again` is given what this returns."""
    now = _observers.get()
    return _observers.set(now if now.away else Observers._make((*now[:-1], True)))


def look_again(token: Token[Observers]) -> None:
    """Whoever looked before looks again."""
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


def innermost_mode() -> TorchFunctionMode | None:
    """The mode that the next function of torch passes by first; None where there is none."""
    return _get_current_function_mode()


class WatchMode(TorchFunctionMode):
    """A mode that sees nothing while nobody is to look."""


class looking_away:
    """Observe nothing inside: what happens there is our own, or is reported elsewhere. The
    innermost modes are taken off, as far as they watch, so that no function need pass them by.
    """

    __slots__ = ("_off", "_token")  # no generator: it is opened several times for every layer

    def __enter__(self) -> None:
        self._off: list[WatchMode] = []
        innermost = innermost_mode()
        while isinstance(innermost, WatchMode):
            TorchFunctionMode.__exit__(innermost, None, None, None)
            self._off.append(innermost)
            innermost = innermost_mode()
        self._token = look_away()

    def __exit__(self, *_: object) -> None:
        look_again(self._token)
        for mode in reversed(self._off):
            TorchFunctionMode.__enter__(mode)


@contextmanager
def mode_off(mode: TorchFunctionMode) -> Generator[None]:
    """Take a mode off while the block is open, where it is the innermost one."""
    is_innermost = innermost_mode() is mode
    if is_innermost:
        TorchFunctionMode.__exit__(mode, None, None, None)
    try:
        yield
    finally:
        if is_innermost:
            TorchFunctionMode.__enter__(mode)
