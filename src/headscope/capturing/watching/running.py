"""Which modules are running, and what those that matter took and gave: output projections, queries
and keys before positions, and router scores are found from uses of modules and nothing else.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from headscope.capturing.observers import hook_after
from headscope.capturing.seam import unseen
from headscope.capturing.walk import (
    ATTENTION_NAME,
    ModelModules,
    arguments_of,
    block_of,
    may_attend,
)
from headscope.errors import CaptureError

SECOND_SOURCE = ("encoder_hidden_states", "key_value_states", "kv_states", "memory")
CROSS_NAME = re.compile(r"cross|encoder_attn|enc_?dec", re.IGNORECASE)


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


class RunningModules:
    """Tells which module of a model is running in this thread, from the Python stack.

    Args:
        modules: of the model.
    """

    def __init__(self, modules: ModelModules) -> None:
        self._modules = modules

    def __contains__(self, module: nn.Module) -> bool:
        return id(module) in self._modules.names

    def name_of(self, module: nn.Module) -> str:
        """The module's first name in the model."""
        return self._modules.names[id(module)]

    def owner_of(self, weight: torch.Tensor) -> nn.Module | None:
        """The module of the model that this matrix is the weight of."""
        every = self._modules.all
        return next((each for each in every if getattr(each, "weight", None) is weight), None)

    def innermost(self) -> nn.Module | None:
        """The innermost module running that may compute attention."""
        running = self._innermost()
        return None if running is None else running["self"]

    def given(self) -> torch.Tensor | None:
        """The states that the innermost module was given."""
        running = self._innermost()
        return None if running is None else first_tensor(running["args"], running["kwargs"])

    def _innermost(self) -> dict[str, Any] | None:
        for running in _calls():
            module = running["self"]
            if module in self and may_attend(module):
                return running
        return None

    def is_cross(self, module: nn.Module, queries: int, keys: int) -> bool:
        """Whether the module attends to another sequence: it was given one, or its name shows it.

        Not where the tokens of both are queries and keys alike: that is joint attention (Stable
        Diffusion 3).
        """
        own = second = 0
        if is_attention(module):
            running = next((each for each in _calls() if each["self"] is module), None)
            if running is not None:
                own, second = _lengths(module, running["args"], running["kwargs"])
        if own and second and queries == keys == own + second:
            return False
        return bool(second) or bool(CROSS_NAME.search(self.name_of(module)))


CALL: Any = nn.Module._call_impl.__code__


def _calls() -> Iterator[dict[str, Any]]:
    """The local names of each call of a module that is running, the innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is CALL:
            yield frame.f_locals
        frame = frame.f_back


def is_attention(module: nn.Module | None) -> bool:
    """Whether a module calls itself attention."""
    return bool(ATTENTION_NAME.search(type(module).__name__))


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
    names, scores = ModelModules.of(model).names, {}
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
