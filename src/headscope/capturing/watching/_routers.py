"""Which experts the tokens of mixture-of-experts layers were sent to, if a model returns it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from headscope.capturing.walk import block_of, names_of
from headscope.capturing.watching.tape import ModuleUse
from headscope.errors import CaptureError

RETURNED = ("router_logits", "encoder_router_logits", "decoder_router_logits")


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
    returned = {id(each) for name in RETURNED for each in getattr(outputs, name, None) or ()}
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
