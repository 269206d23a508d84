"""Watching a model by every route at once."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from headscope.capturing.calls.call import Call
from headscope.capturing.observers import hook_after, hook_before, observing
from headscope.capturing.seam import unseen
from headscope.capturing.walk import ModelModules, block_of, has_weight, is_affine
from headscope.capturing.watching._before_positions import NextPiece, note_before
from headscope.capturing.watching._projection import find_projected, too_many, with_projection
from headscope.capturing.watching._score_trace import storage_of
from headscope.capturing.watching.interface import InterfaceWatch
from headscope.capturing.watching.operators import OperatorWatch, looking_away
from headscope.capturing.watching.running import (
    ModuleUse,
    RunningModules,
    first_tensor,
    is_attention,
)

USES_REMEMBERED = 8


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
        self._modules = ModelModules.of(model)
        running = RunningModules(self._modules)
        self._waiting: list[Call] = []
        self._piece: NextPiece = None, 0
        self._operators = OperatorWatch(running, self._note, batch)
        self._interface = InterfaceWatch(running, self._note, inside=looking_away)
        self._called: dict[nn.Module, None] = {}
        self._ran: dict[nn.Module, None] = {}
        self._kinds: set[type[nn.Module]] = set()
        self._uses: deque[ModuleUse] = deque(maxlen=USES_REMEMBERED)
        self._handles: list[RemovableHandle] = []
        self._exit = ExitStack()

    def __enter__(self) -> Watch:
        with ExitStack() as undo:
            undo.callback(self._waiting.clear)
            undo.callback(self._uses.clear)
            undo.callback(self._unhook)
            self._hook()
            undo.enter_context(self._interface)
            undo.enter_context(self._operators)
            undo.enter_context(observing(away=False))
            self._exit = undo.pop_all()
        return self

    def __exit__(self, error: object, *_: object) -> None:
        with self._exit:
            while self._waiting and error is None:
                self._done(self._waiting.pop())

    @property
    def left_out(self) -> list[str]:
        """Names of modules whose attention is not among the calls: they computed some in a form
        that is not known, or ran as others of their class did that made calls.
        """
        names, called = self._modules.names, self._called
        kinds = {type(module) for module in called}
        left_out = []
        for name, chained in self._operators.unread.items():
            block = f"{name}." if chained and name.rpartition(".")[2].isdecimal() else None
            # A block may mix its streams by products, around the attention in it.
            if block and any(names[id(one)].startswith(block) for one in called):
                continue
            # Adapters, such as OFT of peft, multiply their parameters with each other first.
            if not (chained and self._is_in_adapter(name)):
                left_out.append(name)
        seen = {names[id(module)] for module in called}
        # One array is a log of what runs; attention takes queries, keys and values, or scores.
        for name, count in self._operators.handed.items():
            if count > 1 and name not in seen:
                left_out.append(name)
        for module in self._ran:
            if type(module) not in kinds or module in called:
                continue
            own = names[id(module)]
            # Heads of one layer may be modules of their own, within the module of their layer.
            if not any(_is_within(own, names[id(one)]) for one in called):
                left_out.append(own)
        return list(dict.fromkeys(left_out))

    def _is_in_adapter(self, name: str) -> bool:
        """Whether a module is, or is part of, what wraps a matrix."""
        for module in self._modules.all:
            matrix = getattr(module, "base_layer", None)
            if isinstance(matrix, nn.Module) and is_affine(matrix):
                own = self._modules.names[id(module)]
                if f"{name}.".startswith(f"{own}."):
                    return True
        return False

    def _hook(self) -> None:
        """Hook all matrices, and the norms in attention."""
        inside = None
        for module in self._modules.all:
            name = self._modules.names[id(module)]
            if inside is None or not f"{name}.".startswith(inside):
                inside = f"{name}." if is_attention(module) else None
            if is_attention(module):
                self._follow(type(module))
            if not has_weight(module):
                continue
            if is_affine(module):
                # What hooks of others make of its output (steering) is not what it computed.
                self._handles.append(hook_after(module, self._gave, first=True))
            if inside is not None:
                self._handles.append(hook_after(module, self._made))

    def _unhook(self) -> None:
        while self._handles:
            self._handles.pop().remove()

    def _follow(self, kind: type[nn.Module]) -> None:
        """From now on note which modules of a class run."""
        if kind not in self._kinds:
            self._kinds.add(kind)
            same = (module for module in self._modules.all if type(module) is kind)
            self._handles += [hook_before(module, self._begun) for module in same]

    def _begun(self, module: nn.Module, *_: object) -> None:
        self._ran[module] = None

    def _made(self, module: nn.Module, args: tuple, options: dict, output: Any) -> None:
        """A matrix or a norm in attention gave what may be queries or keys."""
        if not isinstance(output, torch.Tensor):
            return
        given = first_tensor(args, options) if module.weight.ndim == 1 else None
        if given is not None:
            with unseen():  # what no use before has given would stay in memory in vain
                made = [storage_of(use.output) for use in self._uses]
                given = given if storage_of(given) in made else None
        self._uses.append(ModuleUse(module, given, output))

    def _note(self, call: Call) -> None:
        """A call was made; whoever tells of it looks away."""
        call.number = self.count
        self.count += 1
        made = self._operators.made.pop(id(call.module), 0)
        call.products = call.products if call.route == "operators" else made
        self._describe(call)
        whole = self._join(call)
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
        call.block = block_of(self._modules.model, call.name)
        self._follow(type(call.module))
        self._piece = note_before(call, self._uses, self._piece)
        if self._piece[0] is None:
            self._uses.clear()

    def _gave(self, module: nn.Module, args: tuple, options: dict, output: Any) -> None:
        """A matrix was used, which may be the projection of calls that wait."""
        if not self._waiting or not isinstance(output, torch.Tensor):
            return
        use = ModuleUse(module, first_tensor(args, options), output)
        projected = find_projected(use, self._waiting)
        if projected is not None:
            for call in projected.calls:
                self._waiting.remove(call)
            self._done(with_projection(projected, use, self._modules.model, self._modules.names))

    def _done(self, call: Call) -> None:
        self._called[call.module] = None
        with looking_away():
            self._take(call)


def _is_within(name: str, other: str) -> bool:
    """Whether one of two modules is within the other, by their names."""
    parts, others = (each.split(".") if each else [] for each in (name, other))
    return all(map(operator.eq, parts, others))
