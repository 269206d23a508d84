"""Which experts the tokens of mixture-of-experts layers were sent to, if a model returns it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.capturing.walk import block_of
from headscope.capturing.watching.tape import ModuleUse
from headscope.errors import CaptureError

RETURNED = {
    "router_logits": "",
    "encoder_router_logits": "encoder",
    "decoder_router_logits": "decoder",
}


Router = tuple[nn.Module, int, torch.Tensor]
"""A module, the part of its output that is router scores, and these, ``[... expert]``."""


def check_routers(model: nn.Module) -> None:
    """Raise where a model cannot return router scores.

    Raises:
        CaptureError: naming the model.
    """
    parameters = inspect.signature(model.forward).parameters
    if not {"output_router_logits", "kwargs"} & set(parameters):
        raise _offers_none(model)


def find_routers(uses: Sequence[ModuleUse], outputs: Any, model: nn.Module) -> list[Router | None]:
    """The router scores that a model returned, each with the module that gave it; None for one
    that no module gave.

    Args:
        uses: of the modules that may have given them.
        outputs: of the model.
        model: whose they are.

    Raises:
        CaptureError: where none of these was returned.
    """
    given: dict[int, Router] = {}
    for use in uses:
        for number, part in enumerate(_parts(use)):
            if isinstance(part, torch.Tensor):  # the innermost module is meant, which ends first
                given.setdefault(id(part), (use.module, number, part))
    returned = [tensor for name in RETURNED for tensor in getattr(outputs, name, None) or ()]
    routers = [given.get(id(tensor)) for tensor in returned]
    if not any(routers):
        raise _offers_none(model)
    return routers


def scores_of(
    routers: Sequence[Router | None], names: Mapping[int, str], batch: int
) -> dict[str, list[np.ndarray]]:
    """Router scores ``[example][token expert]`` by the name of the router's module."""
    return {
        names[id(module)]: list(_scores(scores, batch))
        for module, _, scores in filter(None, routers)
    }


def scores_of_steps(
    routers: Sequence[Router | None], uses: Sequence[ModuleUse], names: Mapping[int, str]
) -> dict[str, np.ndarray]:
    """Router scores ``[token expert]`` of all passes over one text, one after the other, by the
    name of the router's module.

    In a generation a model cannot return them: their balance loss needs a mask of their own length.

    Args:
        routers: as one pass showed them.
        uses: of these modules in all passes.
        names: of the model's modules, by id.
    """
    parts = {id(module): part for module, part, _ in filter(None, routers)}
    steps: dict[str, list[np.ndarray]] = {}
    for use in uses:
        scores = _scores(_parts(use)[parts[id(use.module)]], 1)[0]
        steps.setdefault(names[id(use.module)], []).append(scores)
    return {name: np.concatenate(scores) for name, scores in steps.items()}


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


def _parts(use: ModuleUse) -> tuple[Any, ...]:
    return use.output if isinstance(use.output, tuple) else (use.output,)


def _scores(tensor: torch.Tensor, batch: int) -> np.ndarray:
    return tensor.detach().float().reshape(batch, -1, tensor.shape[-1]).cpu().numpy()


def _offers_none(model: nn.Module) -> CaptureError:
    return CaptureError(
        f"{type(model).__name__} offers no router scores; capture without routers=True (--routers)"
    )
