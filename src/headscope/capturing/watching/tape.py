"""The tape of a pass: which modules are running, and what those that matter took and gave.

What is read off it (output projections, queries and keys before positions, router scores) is found
by functions that are given uses of modules and nothing else.
"""

from __future__ import annotations

import inspect
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from headscope.capturing.observers import hook_after, hook_before
from headscope.capturing.seam import unseen
from headscope.capturing.walk import (
    ATTENTION_NAME,
    ModelModules,
    arguments_of,
    block_of,
    has_weight,
    is_affine,
    may_attend,
    names_of,
)
from headscope.capturing.watching._score_trace import storage_of
from headscope.errors import CaptureError

SECOND_SOURCE = ("encoder_hidden_states", "key_value_states", "kv_states", "memory")
CROSS_NAME = re.compile(r"cross|encoder_attn|enc_?dec", re.IGNORECASE)
USES_REMEMBERED = 8


class ModuleUse(NamedTuple):
    """One use of a module; its tensors are the model's own.

    Args:
        module: which was used.
        given: the first tensor that it was given; None where that is not wanted.
        output: what it gave; None where that is not wanted.
    """

    module: nn.Module
    given: Any = None  # of torch.Tensor | None; each reader knows which uses it is given
    output: Any = None


class ModuleUses:
    """Keeps what modules are given and give while the block is open, in order.

    Args:
        modules: these.
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        self._modules = modules
        self.uses: list[ModuleUse] = []
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> ModuleUses:
        # What hooks of others make of an output (steering) is not what was computed.
        self._handles = [hook_after(each, self._used, first=True) for each in self._modules]
        return self

    def __exit__(self, *_: object) -> None:
        while self._handles:
            self._handles.pop().remove()

    def _used(
        self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any], output: Any
    ) -> None:
        self.uses.append(ModuleUse(module, first_tensor(args, options), output))


class Tape:
    """Follows the modules of a model, by the thread that opened the block, while it is open.

    Args:
        modules: of the model.
        used: is called with each use of a matrix that may be an output projection, with what its
            ``forward`` returned; None where only running modules are followed.
        attention_only: whether only the model itself and modules that call themselves attention are
            followed, until `follow_all`.

    ``uses`` are the last ones of matrices and norms that may have made queries and keys, the
    earliest first, with what the model goes on with; of norms of such outputs with what was given.
    ``ran`` are the followed modules that have begun.
    """

    def __init__(
        self,
        modules: ModelModules,
        used: Callable[[ModuleUse], None] | None = None,
        *,
        attention_only: bool = False,
    ) -> None:
        self._modules, self._used = modules, used
        running = list(filter(may_attend, modules.all))
        self._sized = _by_id(filter(_is_attention, running))
        followed = [*self._sized.values(), modules.model] if attention_only else running
        self._followed = _by_id(followed)
        self._makers = _by_id([] if used is None else filter(has_weight, modules.all))
        self._norms = {number for number, each in self._makers.items() if each.weight.ndim == 1}
        matrices = _by_id(filter(is_affine, self._makers.values()))
        # What hooks of others make of the output of a matrix (steering) is not what it computed.
        self._hooked = {number: own for number, own in matrices.items() if own._forward_hooks}
        self._matrices = {number: own for number, own in matrices.items() if not own._forward_hooks}
        self._lengths: dict[int, tuple[int, int]] = {}
        self._running: list[nn.Module] = []
        self.ran: dict[nn.Module, None] = {}
        self._with_parts: set[int] = set()
        self.uses: deque[ModuleUse] = deque(maxlen=USES_REMEMBERED)
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> Tape:
        for module in self._hooked.values():
            self._handles.append(hook_after(module, self._gave, first=True))
        for module in self._followed.values():
            self._follow(module)
        for module in self._sized.values():
            self._handles.append(hook_before(module, self._begins_attention))
        for module in self._makers.values():
            self._handles.append(hook_after(module, self._made))
        return self

    def __exit__(self, *_: object) -> None:
        while self._handles:
            self._handles.pop().remove()
        self._running.clear()
        self.uses.clear()

    def __contains__(self, module: nn.Module) -> bool:
        return id(module) in self._modules.names

    def name_of(self, module: nn.Module) -> str:
        """The module's first name in the model."""
        return self._modules.names[id(module)]

    def owner_of(self, weight: torch.Tensor) -> nn.Module | None:
        """The module of the model that this matrix is the weight of."""
        for module in self._modules.all:
            if getattr(module, "weight", None) is weight:
                return module
        return None

    def is_cross(self, module: nn.Module, queries: int, keys: int) -> bool:
        """Whether the module attends to another sequence: it was given one, or its name shows it.

        Not where the tokens of both are queries and keys alike: that is joint attention (Stable
        Diffusion 3).
        """
        own, second = self._lengths.get(id(module), (0, 0))
        if own and second and queries == keys == own + second:
            return False
        return bool(second) or bool(CROSS_NAME.search(self.name_of(module)))

    def innermost(self) -> nn.Module | None:
        """The innermost module running that has parameters or parts: not a bare softmax or
        dropout.
        """
        for module in reversed(self._running):
            if id(module) in self._with_parts:
                return module
            parts = chain(module.children(), module.parameters(recurse=False))
            if next(parts, None) is not None:
                self._with_parts.add(id(module))
                return module
        return None

    def follow_all(self) -> None:
        """From now on follow all modules, where only some were."""
        for module in filter(may_attend, self._modules.all):
            if id(module) not in self._followed:
                self._followed[id(module)] = module
                self._follow(module)

    def _follow(self, module: nn.Module) -> None:
        self._handles.append(hook_before(module, self._start))
        self._handles.append(hook_after(module, self._stop, always=True))

    def _start(self, module: nn.Module, *_: object) -> None:
        self._running.append(module)
        self.ran[module] = None

    def _stop(self, module: nn.Module, *_: object) -> None:
        while self._running and self._running.pop() is not module:
            pass

    def _begins_attention(
        self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        """A module that calls itself attention begins."""
        self._lengths[id(module)] = _lengths(module, args, options)

    def _gave(
        self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any], output: Any
    ) -> None:
        """What a matrix itself gave."""
        if self._used is not None and isinstance(output, torch.Tensor):
            self._used(ModuleUse(module, first_tensor(args, options), output))

    def _made(
        self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any], output: Any
    ) -> None:
        """A matrix or a norm gave what may be queries or keys; a matrix may be a projection."""
        if id(module) in self._matrices:
            self._gave(module, args, options, output)
        in_attention = any(id(each) in self._sized for each in self._running)
        if not isinstance(output, torch.Tensor) or not in_attention:
            return
        given = first_tensor(args, options) if id(module) in self._norms else None
        if given is not None:
            with unseen():  # what no use before has given would stay in memory in vain
                made = [storage_of(use.output) for use in self.uses]
                given = given if storage_of(given) in made else None
        self.uses.append(ModuleUse(module, given, output))


def _is_attention(module: nn.Module) -> bool:
    """Whether a module calls itself attention."""
    return bool(ATTENTION_NAME.search(type(module).__name__))


def _by_id(modules: Iterable[nn.Module]) -> dict[int, nn.Module]:
    return {id(module): module for module in modules}


def first_tensor(args: tuple[Any, ...], options: dict[str, Any]) -> torch.Tensor | None:
    """The first tensor of features among the arguments of a module."""
    # Each question to a tensor would pass all modes by otherwise.
    with unseen():
        for given in (*args, *options.values()):
            if isinstance(given, torch.Tensor) and given.is_floating_point() and given.ndim >= 2:
                return given
    return None


def _lengths(module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, int]:
    """How many tokens of its own a module was given, and how many of a second sequence; 0 for both
    where there is no second one.
    """
    named = arguments_of(module)
    given = dict(zip(named, args, strict=False)) | options
    second = 0
    for name in SECOND_SOURCE:
        second = second or _length(given.get(name))
    if not second:
        return 0, 0  # then nobody asks for its own
    for name in (*named, *given):
        own = 0 if name in SECOND_SOURCE else _length(given.get(name))
        if own:
            return own, second
    return 0, second


def _length(given: Any) -> int:
    """How many tokens states have; 0 of what is none."""
    return given.shape[-2] if isinstance(given, torch.Tensor) and given.ndim > 1 else 0


ROUTERS = ("router_logits", "encoder_router_logits", "decoder_router_logits")


def check_routers(model: nn.Module) -> None:
    """Raise where a model cannot return router scores.

    Raises:
        CaptureError: naming the model.
    """
    parameters = inspect.signature(model.forward).parameters
    if not {"output_router_logits", "kwargs"} & set(parameters):
        raise _offers_none(model)


def router_scores(
    uses: Sequence[ModuleUse], outputs: Any, model: nn.Module, batch: int
) -> dict[str, list[np.ndarray]]:
    """The router scores that a model returned, ``[example][token expert]``, by the name of the
    module that gave them.

    Args:
        uses: of the modules that may have given them.
        outputs: of the model.
        model: whose they are.
        batch: number of examples.

    Raises:
        CaptureError: where none of these was returned.
    """
    names, scores = names_of(model), {}
    returned = {id(each) for name in ROUTERS for each in getattr(outputs, name, None) or ()}
    for use in uses:
        for part in use.output if isinstance(use.output, tuple) else (use.output,):
            if id(part) in returned:
                returned.remove(id(part))  # the innermost module is meant, which ends first
                own = part.detach().float().reshape(batch, -1, part.shape[-1])
                scores[names[id(use.module)]] = list(own.cpu().numpy())
    if not scores:
        raise _offers_none(model)
    return scores


def routers_of(
    model: nn.Module, path: str, scores: Mapping[str, np.ndarray]
) -> dict[int, np.ndarray]:
    """The router scores of the blocks of a list, by the number of the block.

    Args:
        model: whose routers they are.
        path: of the list.
        scores: by the name of the router's module.
    """
    of_blocks = {}
    for name, own in scores.items():
        block = block_of(model, name)
        if block is not None and block[0] == path:
            of_blocks[block[1]] = own
    return of_blocks


def _offers_none(model: nn.Module) -> CaptureError:
    return CaptureError(
        f"{type(model).__name__} offers no router scores; capture without routers=True (--routers)"
    )
