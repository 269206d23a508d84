"""Runs of a model that can be stopped on the way."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from threading import Event

from torch import nn

from headscope.capturing.hooks import hook_before
from headscope.capturing.walk import modules_of


class StoppedError(Exception):
    """A run was given up because a newer one is wanted, or nobody waits any more.

    None of `headscope.errors`: what catches those goes on in another way, and this must not.
    """


class TooLongError(Exception):
    """A run took longer than it may; none of `headscope.errors` for the same reason."""


class StopSignal:
    """Tells one run to stop. `stop` may be called from any thread, at any time.

    Args:
        seconds: that the run may take, from `start` on.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._event = Event()
        self._until = float("inf")

    def start(self) -> None:
        """The run begins now: it no longer waits for others."""
        self._until = time.monotonic() + self.seconds

    def stop(self) -> None:
        """Nobody wants the outcome any more."""
        self._event.set()

    def check(self) -> None:
        """Raise where the run is to stop.

        Raises:
            StoppedError: because it was asked to.
            TooLongError: because its time is over.
        """
        if self._event.is_set():
            raise StoppedError
        if time.monotonic() > self._until:
            raise TooLongError(
                f"The run took longer than {self.seconds:g} seconds and was stopped; give a "
                "shorter text, or allow more with --seconds"
            )


@contextmanager
def stoppable(model: nn.Module, signal: StopSignal) -> Generator[None]:
    """Let a signal stop the passes of a model that this thread runs: before each of its modules.

    The model is as it was afterwards. One operation that takes long stops at its end only.
    """

    def look(*_: object) -> None:
        signal.check()

    with ExitStack() as undo:
        for module in modules_of(model):
            undo.callback(hook_before(module, look).remove)
        yield
