"""Watching a model by every route at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from torch import nn

from headscope.capturing.calls.call import Call
from headscope.capturing.watching._before import BeforeWatch
from headscope.capturing.watching._projection import ProjectionWatch
from headscope.capturing.watching.interface import InterfaceWatch
from headscope.capturing.watching.operators import OperatorWatch
from headscope.capturing.watching.trail import Trail


class Watch:
    """Hands on the attention calls of a model while the block is open, each as soon as its
    projection was seen.

    Args:
        model: a transformers model, on any device, in any implementation, or any other torch model.
        batch: number of texts it will be given.
        take: is called with each `Call`, numbered in the order in which they were made; a call that
            nothing takes further comes some calls later, at the latest when the block is left.
        join: is called with each call before its projection is looked for, and returns what to look
            for instead: a call joined of several, or None while more of these are to come.
    """

    def __init__(
        self,
        model: nn.Module,
        batch: int,
        take: Callable[[Call], None],
        join: Callable[[Call], Call | None] = lambda call: call,
    ) -> None:
        self.count = 0
        self._take, self._join = take, join
        self._trail, self._projections = Trail(model), ProjectionWatch(model, self._done)
        self._before = BeforeWatch(model, self._trail)
        self._operators = OperatorWatch(self._trail, self._note, batch)
        self._interface = InterfaceWatch(
            self._trail, self._note, inside=self._operators.looking_away
        )
        self._exit = ExitStack()

    def __enter__(self) -> Watch:
        with ExitStack() as undo:
            for part in (
                self._trail,
                self._before,
                self._projections,
                self._interface,
                self._operators,
            ):
                undo.enter_context(part)
            self._exit = undo.pop_all()
        return self

    def __exit__(self, error: object, *_: object) -> None:
        with self._exit:
            if error is None:
                self.settle()

    @property
    def unread(self) -> list[str]:
        """Names of modules that computed some attention in a form that is not known."""
        return list(self._operators.unread)

    def settle(self) -> None:
        """A pass is over: hand on the calls that nothing took further, before another pass changes
        their tensors.
        """
        self._projections.give_up()

    def _note(self, call: Call) -> None:
        call.number = self.count
        self.count += 1
        made = self._operators.made.pop(id(call.module), 0)
        call.products = call.products if call.route == "operators" else made
        with self._operators.looking_away():
            self._before.describe(call)
            whole = self._join(call)
        if whole is None:
            return
        if whole.projection is None:
            self._projections.expect(whole)
        else:
            self._done(whole)

    def _done(self, call: Call) -> None:
        with self._operators.looking_away():
            self._take(call)
