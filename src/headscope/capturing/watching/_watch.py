"""Watching a model by every route at once."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from torch import nn

from headscope.capturing.calls.call import Call
from headscope.capturing.freed_memory import keep_freed_memory
from headscope.capturing.observers import observing
from headscope.capturing.walk import block_of
from headscope.capturing.watching._before_positions import BeforePositions, find_before, with_before
from headscope.capturing.watching._projection import find_projected, too_many, with_projection
from headscope.capturing.watching.interface import InterfaceWatch
from headscope.capturing.watching.modes import innermost_mode
from headscope.capturing.watching.operators import OperatorWatch, looking_away
from headscope.capturing.watching.tape import ModuleUse, PassReader, Tape
from headscope.capturing.watching.torch_functions import PATCHES
from headscope.capturing.watching.watch_plan import (
    AttentionSite,
    ModelModules,
    WatchedModules,
    site_of,
)


class Watch(PassReader):
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
        readers: are told more of the pass.
    """

    def __init__(
        self,
        model: nn.Module,
        batch: int,
        take: Callable[[Call], None],
        join: Callable[[Call], Call | None] = lambda call: call,
        *,
        watched: WatchedModules | None = None,
        readers: Sequence[PassReader] = (),
    ) -> None:
        self.count = self.softmaxes = 0
        self._told = self._told_of(watched)
        watched = WatchedModules.of(ModelModules.of(model)) if watched is None else watched
        self._take, self._join, self._watched = take, join, watched
        # Of modules that compute attention with torch's operators it is told itself.
        self.before = self.after = watched.operators or ()
        self._tape = Tape(watched, self._used, readers=(*readers, self))
        self._waiting: list[Call] = []
        self._before = BeforePositions()
        function = next((reader.function for reader in readers if reader.function), None)
        self._operators = OperatorWatch(self._tape, self._note, batch, function)
        # Whoever is told of all functions needs the mode also where no attention is looked for.
        self._is_always_open = function is not None or not watched.is_planned
        self._is_mode_open = self._is_always_open
        self._operators.idle = watched.is_planned
        self._interface = InterfaceWatch(self._tape, self._note, inside=looking_away)
        self._sites: dict[int, AttentionSite] = {}
        self._is_plain = True
        self._inside: list[nn.Module] = []
        self._outside: Any = None
        self._begun: set[int] = set()
        self._late: set[int] = set()
        self._expected = Counter(self._watched.operator_calls)
        self._exit = ExitStack()

    def _told_of(self, watched: WatchedModules | None) -> dict[str, Any]:
        """What is told of softmaxes and products of matrices, where somebody asks for a plan: then
        softmaxes are counted, and it must be known how attention begins on torch's operators.
        """
        if watched is None:
            return {}
        told: dict[str, Any] = {"counter": self._count_softmax}
        if not watched.is_planned or watched.operators:
            told["product"] = self._multiply
        return told

    def __enter__(self) -> Watch:
        keep_freed_memory()
        with ExitStack() as undo:
            undo.callback(self._waiting.clear)
            undo.enter_context(self._tape)
            undo.enter_context(self._interface)
            undo.callback(self._close)
            if self._is_always_open:
                undo.enter_context(self._operators)
            for name in self._told:
                undo.enter_context(PATCHES[name].applied())
            undo.enter_context(observing(away=False, **self._told))
            self._exit = undo.pop_all()
        return self

    def __exit__(self, error: object, *_: object) -> None:
        with self._exit:
            if error is None:
                self.settle()

    @property
    def left_out(self) -> list[str]:
        """Names of modules whose attention is not among the calls: they computed some in a form
        that is not known, or ran as others of their class did that made calls.
        """
        names, all_modules = self._watched.modules.names, self._watched.modules.all
        called = {all_modules[site.module] for site in self._sites.values()}
        kinds = {type(module) for module in called}
        left_out = list(self._operators.unread)
        for module in self._tape.ran:
            if type(module) not in kinds or module in called:
                continue
            own = names[id(module)]
            # Heads of one layer may be modules of their own, within the module of their layer.
            if not any(_is_within(own, names[id(one)]) for one in called):
                left_out.append(own)
        return list(dict.fromkeys(left_out))

    @property
    def sites(self) -> tuple[AttentionSite, ...]:
        """Where attention was seen, in the order of the pass; empty if a plan cannot describe all
        of it.
        """
        if self.left_out or not self._is_plain:
            return ()
        return tuple(self._sites[number] for number in sorted(self._sites))

    def _count_softmax(self) -> None:
        """The model is about to take a softmax."""
        self.softmaxes += 1
        self._begin()

    def settle(self) -> None:
        """A pass is over: pass on the calls that nothing took further, before another pass changes
        their tensors.
        """
        while self._waiting:
            self._done(self._waiting.pop())

    def _note(self, call: Call) -> None:
        """A call was made; whoever tells of it looks away."""
        call.number = self.count
        self.count += 1
        made = self._operators.made.pop(id(call.module), 0)
        if self._inside:
            self._expected[id(call.module)] -= 1
            self._operators.idle = self._are_seen()
        if call.route == "operators" and id(call.module) in self._begun:
            self._late.add(call.number)
        call.products = call.products if call.route == "operators" else made
        self._describe(call)
        whole = self._join(call)
        if whole is not call:
            self._is_plain = False
        if whole is None:
            return
        if whole.projection is not None:
            self._done(whole)
            return
        self._waiting.insert(0, whole)
        if too_many(self._waiting):
            self._done(self._waiting.pop())

    def _describe(self, call: Call) -> None:
        """Note where the module stands and how queries and keys were made, and let go of what made
        them.
        """
        call.block = block_of(self._watched.modules.model, call.name)
        uses = self._tape.uses
        before = find_before(call, uses, self._before)
        with_before(call, before)
        # Without the vectors, which the next call does not need.
        self._before = BeforePositions(ways=before.ways, next_piece=before.next_piece)
        if before.next_piece[0] is None:
            uses.clear()

    def _used(self, use: ModuleUse) -> None:
        """A matrix was used, which may be the projection of calls that wait."""
        projected = find_projected(use, self._waiting) if self._waiting else None
        if projected is not None:
            for call in projected.calls:
                self._waiting.remove(call)
            modules = self._watched.modules
            self._done(with_projection(projected, use, modules.model, modules.names))

    def _done(self, call: Call) -> None:
        layout = call.layout
        if layout.open or layout.one_by_one:
            self._is_plain = False
        is_late = call.number in self._late
        self._sites[call.number] = site_of(self._watched.modules, call, is_late=is_late)
        with looking_away():
            self._take(call)

    def begun(self, module: nn.Module, args: tuple, options: dict) -> None:
        """A module begins that computes attention with torch's operators."""
        self._inside.append(module)
        if len(self._inside) == 1:
            self._operators.is_before = True
            self._outside = innermost_mode()
        self._operators.idle = False
        if id(module) not in self._watched.late:
            self._open_mode()

    def ended(self, module: nn.Module, args: tuple, options: dict, output: Any) -> None:
        """Such a module has ended."""
        while self._inside and self._inside.pop() is not module:
            pass
        if not self._inside:
            self._close_mode()
        self._operators.idle = self._are_seen()

    def _multiply(self, function: Callable, args: tuple, options: dict) -> Any:
        """Run a product of matrices, which attention may begin or end with."""
        self._begin()
        result = function(*args, **options)
        if self._inside and self._operators.idle and innermost_mode() is self._operators:
            self._close_mode()
        return result

    def _begin(self) -> None:
        """Attention may begin with what is about to run. In a module that computes it with torch's
        operators these are watched from here on, until all calls were seen: no function before or
        after need pass the mode by.
        """
        # A mode of the model's own must not be left before ours.
        if self._inside and not self._operators.idle and innermost_mode() is self._outside:
            self._open_mode()
        if innermost_mode() is self._operators:
            self._begun.add(id(self._tape.innermost()))

    def _open_mode(self) -> None:
        if not self._is_mode_open:
            self._operators.__enter__()
            self._is_mode_open = True

    def _close_mode(self) -> None:
        if self._is_mode_open and not self._is_always_open:
            self._operators.__exit__(None, None, None)
            self._is_mode_open = False

    def _are_seen(self) -> bool:
        """Whether all calls were seen that the plan has in the modules that are running: what else
        they do is none of attention, or takes a softmax, which is counted.
        """
        return all(self._expected[id(module)] <= 0 for module in self._inside)

    def _close(self) -> None:
        """The pass ended where it should not have, within such a module."""
        self._inside.clear()
        self._close_mode()


def _is_within(name: str, other: str) -> bool:
    """Whether one of two modules is within the other, by their names."""
    parts, others = (each.split(".") if each else [] for each in (name, other))
    return all(map(operator.eq, parts, others))
