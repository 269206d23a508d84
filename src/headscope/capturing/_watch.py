"""Watching a model by every route at once."""

from __future__ import annotations

from contextlib import ExitStack

from torch import nn

from headscope.capturing._call import Call
from headscope.capturing._interface import InterfaceWatch
from headscope.capturing._operators import OperatorWatch
from headscope.capturing._projection import ProjectionWatch
from headscope.capturing._trail import Trail


class Watch:
    """Collects the attention calls of a model while the block is open, in the order in which they are made.

    Args:
        model: a transformers model, on any device, in any implementation, or any other torch model.
        batch: number of texts it will be given.
    """

    def __init__(self, model: nn.Module, batch: int) -> None:
        self.calls: list[Call] = []
        self._trail, self._projections = Trail(model), ProjectionWatch(model)
        self._operators = OperatorWatch(self._trail, self._note, batch)
        self._interface = InterfaceWatch(self._trail, self._note, inside=self._operators.looking_away)
        self._exit = ExitStack()

    def __enter__(self) -> Watch:
        with ExitStack() as undo:
            for part in (self._trail, self._projections, self._interface, self._operators):
                undo.enter_context(part)
            self._exit = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def _note(self, call: Call) -> None:
        self.calls.append(call)
        self._projections.expect(call)
