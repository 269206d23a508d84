"""What is seen in a pass over a short text, and worked on when the pass is over.

Between two layers of a model our own code and numbers are not in the processor's cache, and a step
takes two or three times as long as right after one like it. The tensors of a short text are small
enough to be held, so that a pass need only note what it saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from headscope.capturing.seam import unseen

NUMBERS_OF_CALL = 2**20
"""How many numbers the tensors of a call may have: 4 MiB in single precision."""
NUMBERS_HELD = 2**24
"""How many those of all calls of a pass may have."""


class OverwrittenError(Exception):
    """The model wrote over tensors after its attention had used them."""


class DeferredWork:
    """Work that waits, in the order in which it was seen.

    A pass whose tensors are too many, or do not tell whether they were written to (those of
    inference mode), waits no longer: what waits is done at once, and all that follows.

    Args:
        finish: is called when what waited is done.
        is_open: whether anything is to wait at all.

    Attributes:
        is_open: whether what is added waits.
        is_running: whether what waited is being done.
    """

    def __init__(self, finish: Callable[[], None] = lambda: None, *, is_open: bool = True) -> None:
        self._finish = finish
        self.is_open: bool = is_open
        self.is_running: bool = False
        self._waiting: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._used: list[tuple[torch.Tensor, int]] = []
        self._numbers = 0

    def add(self, act: Callable[..., Any], *given: Any, used: Iterable[Any] = ()) -> None:
        """Do something later, or now where nothing waits.

        Args:
            act: what is to be done.
            *given: its arguments.
            used: what the model must not write over until then; what is no tensor is passed over.
        """
        if self.is_open and self._may_hold(used):
            self._waiting.append((act, given))
            return
        self.work()
        act(*given)

    def work(self) -> None:
        """Do all that waits; from now on nothing does.

        Raises:
            OverwrittenError: where the model wrote over what was used.
        """
        if not self.is_open:
            return
        self.is_open, self.is_running = False, True
        if any(tensor._version != version for tensor, version in self._used):
            raise OverwrittenError("tensors of attention were changed after use")
        for act, given in self._waiting:
            act(*given)
        self._waiting, self._used = [], []
        self.is_running = False
        self._finish()

    def _may_hold(self, used: Iterable[Any]) -> bool:
        """Whether these may be held, too; they are, and it is noted how often they were written
        to.
        """
        numbers = 0
        with unseen():
            for tensor in used:
                if not isinstance(tensor, torch.Tensor):
                    continue
                if tensor.is_inference():
                    return False
                self._used.append((tensor, tensor._version))
                numbers += tensor.numel()
        self._numbers += numbers
        return numbers <= NUMBERS_OF_CALL and self._numbers <= NUMBERS_HELD


AT_ONCE = DeferredWork(is_open=False)
"""Where nothing waits."""
