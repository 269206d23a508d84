"""Which experts the tokens of mixture-of-experts layers were sent to, if a model returns it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.capturing.hooks import hook_after
from headscope.capturing.watching.watch_plan import names_of
from headscope.errors import CaptureError

BLOCK = re.compile(r"(.*?)(?:^|\.)(\d+)(?:\.|$)")
RETURNED = {
    "router_logits": "",
    "encoder_router_logits": "encoder",
    "decoder_router_logits": "decoder",
}


class RouterWatch:
    """Remembers what modules returned while the block is open, to find the module whose output a
    model's router scores are.
    """

    def __init__(self, model: nn.Module) -> None:
        if not {"output_router_logits", "kwargs"} & set(
            inspect.signature(model.forward).parameters
        ):
            raise _offers_none(model)
        self._model, self._names = model, names_of(model)
        self._given: dict[int, tuple[str, int, torch.Tensor]] = {}
        self._hooks: list = []

    def __enter__(self) -> RouterWatch:
        self._hooks = [hook_after(module, self._note) for module in self._model.modules()]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def scores(self, outputs: Any, batch: int) -> dict[str, list[np.ndarray]]:
        """Router scores ``[example][token expert]`` by the name of the router's module.

        Raises:
            CaptureError: where the model returned none.
        """
        return {name: list(_scores(tensor, batch)) for name, _, tensor in self._returned(outputs)}

    def parts(self, outputs: Any) -> dict[str, int]:
        """Which part of the output of which module the router scores are.

        Raises:
            CaptureError: where the model returned none.
        """
        return {name: part for name, part, _ in self._returned(outputs)}

    def _returned(self, outputs: Any) -> list[tuple[str, int, torch.Tensor]]:
        returned = [tensor for name in RETURNED for tensor in getattr(outputs, name, None) or ()]
        noted = [self._given[id(tensor)] for tensor in returned if id(tensor) in self._given]
        if not noted:
            raise _offers_none(self._model)
        return noted

    def _note(self, module: nn.Module, _: tuple, __: dict, output: Any) -> None:
        for number, part in enumerate(output if isinstance(output, tuple) else (output,)):
            if isinstance(part, torch.Tensor) and part.ndim in (2, 3):
                # the tensor is kept with the name, so that no other can take its id; the
                # innermost module is meant
                self._given.setdefault(id(part), (self._names[id(module)], number, part))


class RouterSteps:
    """Keeps what routers gave in every pass over one text while the block is open.

    In a generation a model cannot return its router scores: their balance loss needs a mask
    of their own length.

    Args:
        model: whose routers these are.
        parts: of the scores among the outputs of modules, as `RouterWatch.parts` found them.
    """

    def __init__(self, model: nn.Module, parts: Mapping[str, int]) -> None:
        self._model, self._parts = model, parts
        self._steps: dict[str, list[np.ndarray]] = {name: [] for name in parts}
        self._hooks: list = []

    def __enter__(self) -> RouterSteps:
        names = names_of(self._model)
        modules = {names[id(module)]: module for module in self._model.modules()}
        self._hooks = [
            hook_after(modules[name], self._noting(name, part))
            for name, part in self._parts.items()
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    @property
    def scores(self) -> dict[str, np.ndarray]:
        """Router scores ``[token expert]`` of all passes, one after the other, by the name of the
        router's module.
        """
        return {name: np.concatenate(steps) for name, steps in self._steps.items() if steps}

    def _noting(self, name: str, part: int) -> Any:
        def note(_: nn.Module, __: tuple, ___: dict, output: Any) -> None:
            self._steps[name].append(
                _scores(output[part] if isinstance(output, tuple) else output, 1)[0]
            )

        return note


def routers_of(path: str, scores: Mapping[str, np.ndarray]) -> dict[int, np.ndarray]:
    """The router scores of the blocks of a list, by the number of the block.

    Args:
        path: of the list.
        scores: by the name of the router's module.
    """
    blocks = {block_of(name): own for name, own in scores.items()}
    return {
        block[1]: own for block, own in blocks.items() if block is not None and block[0] == path
    }


def _scores(tensor: torch.Tensor, batch: int) -> np.ndarray:
    return tensor.detach().float().reshape(batch, -1, tensor.shape[-1]).cpu().numpy()


def _offers_none(model: nn.Module) -> CaptureError:
    return CaptureError(
        f"{type(model).__name__} offers no router scores; capture without routers=True (--routers)"
    )


def block_of(name: str) -> tuple[str, int] | None:
    """Path of the list that a module's block stands in, and the number of the block: its first
    number.
    """
    match = BLOCK.match(name)
    return None if match is None else (match[1], int(match[2]))
