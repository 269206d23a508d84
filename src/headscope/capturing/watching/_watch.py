"""Watching a model by every route at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, nullcontext

from torch import nn

from headscope.capturing.calls.call import Call
from headscope.capturing.hooks import hook_after, hook_before
from headscope.capturing.watching._projection import ProjectionWatch
from headscope.capturing.watching._unrotated import UnrotatedWatch
from headscope.capturing.watching.interface import InterfaceWatch
from headscope.capturing.watching.module_stack import ModuleStack
from headscope.capturing.watching.operators import OperatorWatch
from headscope.capturing.watching.softmaxes import counted
from headscope.capturing.watching.watch_plan import (
    AttentionSite,
    ModelModules,
    WatchedModules,
    site_of,
)


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
        watched: the modules at which it is watched; None for all. Where they are given, softmaxes
            are counted.
    """

    def __init__(
        self,
        model: nn.Module,
        batch: int,
        take: Callable[[Call], None],
        join: Callable[[Call], Call | None] = lambda call: call,
        *,
        watched: WatchedModules | None = None,
    ) -> None:
        self.count = self.softmaxes = 0
        self._counting = nullcontext() if watched is None else counted(self)
        watched = WatchedModules.of(ModelModules.of(model)) if watched is None else watched
        self._take, self._join, self._watched = take, join, watched
        self._module_stack, self._projections = (
            ModuleStack(watched),
            ProjectionWatch(watched, self._done),
        )
        self._before = UnrotatedWatch(watched, self._module_stack)
        self._operators = OperatorWatch(self._module_stack, self._note, batch)
        self._interface = InterfaceWatch(
            self._module_stack, self._note, inside=self._operators.looking_away
        )
        self._sites: dict[int, AttentionSite] = {}
        self._is_plain = True
        self._inside: list[nn.Module] = []
        self._expected = Counter(self._watched.operator_calls)
        self._exit = ExitStack()

    def __enter__(self) -> Watch:
        with ExitStack() as undo:
            for part in (self._module_stack, self._before, self._projections, self._interface):
                undo.enter_context(part)
            if self._watched.operators is None:
                undo.enter_context(self._operators)
            else:
                undo.callback(self._close)
                for module in self._watched.operators:
                    undo.callback(hook_before(module, self._begin).remove)
                    undo.callback(hook_after(module, self._end, always=True).remove)
            undo.enter_context(self._counting)
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

    @property
    def sites(self) -> tuple[AttentionSite, ...]:
        """Where attention was seen, in the order of the pass; empty if a plan cannot describe all
        of it.
        """
        if self.unread or not self._is_plain:
            return ()
        return tuple(self._sites[number] for number in sorted(self._sites))

    def softmax(self) -> None:
        """The model takes a softmax."""
        self.softmaxes += not self._operators.is_away

    def settle(self) -> None:
        """A pass is over: pass on the calls that nothing took further, before another pass changes
        their tensors.
        """
        self._projections.give_up()

    def _note(self, call: Call) -> None:
        call.number = self.count
        self.count += 1
        made = self._operators.made.pop(id(call.module), 0)
        if self._inside:
            self._expected[id(call.module)] -= 1
            self._operators.idle = self._are_seen()
        call.products = call.products if call.route == "operators" else made
        with self._operators.looking_away():
            self._before.describe(call)
            whole = self._join(call)
        if whole is not call:
            self._is_plain = False
        if whole is None:
            return
        if whole.projection is None:
            self._projections.expect(whole)
        else:
            self._done(whole)

    def _done(self, call: Call) -> None:
        layout = call.layout
        if layout.open or layout.one_by_one:
            self._is_plain = False
        self._sites[call.number] = site_of(self._watched.modules, call)
        with self._operators.looking_away():
            self._take(call)

    def _begin(self, module: nn.Module, *_: object) -> None:
        """A module begins that computes attention with torch's operators."""
        self._inside.append(module)
        if len(self._inside) == 1:
            self._operators.is_before = True
            self._operators.__enter__()
        self._operators.idle = False

    def _end(self, *_: object) -> None:
        self._inside.pop()
        if not self._inside:
            self._operators.__exit__(None, None, None)
        self._operators.idle = self._are_seen()

    def _are_seen(self) -> bool:
        """Whether all calls were seen that the plan has in the modules that are running: what else
        they do is none of attention, or takes a softmax, which is counted.
        """
        return all(self._expected[id(module)] <= 0 for module in self._inside)

    def _close(self) -> None:
        """The pass ended where it should not have, within such a module."""
        if self._inside:
            self._inside.clear()
            self._operators.__exit__(None, None, None)
