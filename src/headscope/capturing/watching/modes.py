"""Torch function modes that can look away, or are taken off for a while."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from torch.overrides import TorchFunctionMode, _get_current_function_mode


class AwayMode(TorchFunctionMode):
    """A mode with blocks in which it observes nothing.

    Attributes:
        away: how many of these blocks are open.
    """

    away = 0

    def further_out(self) -> AwayMode | None:
        """A mode around this one, which looks away with it."""
        return None

    def looking_away(self) -> LookingAway:
        """Observe nothing inside: what happens there is reported elsewhere."""
        return LookingAway(self)

    @property
    def is_away(self) -> bool:
        """Whether observing is switched off now."""
        return self.away > 0


class LookingAway:
    """A block in which a mode, and those further out, observe nothing; they are taken off as far as
    they are the innermost, so that no function need pass them by.

    A class and no generator: it is opened several times for every layer.
    """

    __slots__ = ("_modes", "_off")

    def __init__(self, mode: AwayMode) -> None:
        self._modes = [mode]
        self._off: list[AwayMode] = []
        while (outer := self._modes[-1].further_out()) is not None:
            self._modes.append(outer)

    def __enter__(self) -> None:
        for mode in self._modes:
            mode.away += 1
        innermost = _get_current_function_mode()
        while isinstance(innermost, AwayMode):
            TorchFunctionMode.__exit__(innermost, None, None, None)
            self._off.append(innermost)
            innermost = _get_current_function_mode()

    def __exit__(self, *_: object) -> None:
        while self._off:
            TorchFunctionMode.__enter__(self._off.pop())
        for mode in self._modes:
            mode.away -= 1


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
