"""Which experts the tokens of mixture-of-experts layers were sent to, where a model tells."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.capturing._trail import names_of
from headscope.errors import CaptureError

RETURNED = {"router_logits": "", "encoder_router_logits": "encoder", "decoder_router_logits": "decoder"}


class RouterWatch:
    """Remembers what modules gave while the block is open, to tell whose output a model's router scores are."""

    def __init__(self, model: nn.Module) -> None:
        if not {"output_router_logits", "kwargs"} & set(inspect.signature(model.forward).parameters):
            raise _offers_none(model)
        self._model, self._names = model, names_of(model)
        self._given: dict[int, tuple[str, torch.Tensor]] = {}
        self._hooks: list = []

    def __enter__(self) -> RouterWatch:
        self._hooks = [module.register_forward_hook(self._note) for module in self._model.modules()]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def found(self, outputs: Any, batch: int) -> dict[str, list[np.ndarray]]:
        """Router scores ``[example][token expert]`` by the name of the router's module.

        Raises:
            CaptureError: where the model returned none.
        """
        scores = {
            self._given[id(tensor)][0]: tensor
            for name in RETURNED
            for tensor in getattr(outputs, name, None) or ()
            if isinstance(tensor, torch.Tensor) and id(tensor) in self._given
        }
        if not scores:
            raise _offers_none(self._model)
        return {
            name: [part.detach().float().cpu().numpy() for part in tensor.reshape(batch, -1, tensor.shape[-1])]
            for name, tensor in scores.items()
        }

    def _note(self, module: nn.Module, _: tuple, output: Any) -> None:
        for part in output if isinstance(output, tuple) else (output,):
            if isinstance(part, torch.Tensor) and part.ndim in (2, 3):
                # the tensor is kept beside the name, so that no other can take its id; the innermost module is meant
                self._given.setdefault(id(part), (self._names[id(module)], part))


def _offers_none(model: nn.Module) -> CaptureError:
    return CaptureError(f"{type(model).__name__} offers no router scores; capture without routers=True")


def block_of(name: str) -> tuple[str, int] | None:
    """Path of the list that a module's block stands in, and the number of the block: its first number."""
    match = re.match(r"(.*?)(?:^|\.)(\d+)(?:\.|$)", name)
    return None if match is None else (match[1], int(match[2]))
