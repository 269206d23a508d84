"""Torch function modes that are taken off for a while."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from torch.overrides import TorchFunctionMode, _get_current_function_mode

from headscope.capturing.observers import look_again, look_away


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
