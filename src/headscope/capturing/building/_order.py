"""Proof that the first axis of a batch's tensors is that of the texts, by running one text
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from headscope.capturing.building._checks import TOLERANCE
from headscope.capturing.building._real_tokens import ROWS_CHECKED
from headscope.capturing.calls.attention import QueryRows, weights_of
from headscope.capturing.calls.call import Call
from headscope.capturing.calls.visibility import visibility_of
from headscope.capturing.device import allowed_apart
from headscope.capturing.watching._watch import Watch
from headscope.errors import CaptureError


@dataclass(frozen=True, eq=False)
class OrderSample:
    """Some rows of the first text's weights, from a call of several texts.

    Args:
        name: name of the module.
        use: number of earlier calls of the module in the same pass.
        weights: ``[head query key]`` of some queries.
        within: how far those of the text alone may be from them.
    """

    name: str
    use: int
    weights: torch.Tensor
    within: float

    def fits(self, weights: torch.Tensor) -> bool:
        """Whether these are the weights of the text alone."""
        return weights.shape == self.weights.shape and bool(
            (weights - self.weights).abs().max() <= self.within
        )


def sample_of(call: Call, use: int) -> OrderSample:
    """A sample of a call."""
    return OrderSample(call.name, use, _weights(call), allowed_apart(call.context, TOLERANCE))


def check_order(
    model: nn.Module, samples: Sequence[OrderSample], count: int, act: Callable[[], Any] | None
) -> None:
    """Raise where the first text has other weights in a batch than alone.

    Args:
        model: the model that made the calls.
        samples: samples of calls whose projection did not prove the order of texts and heads.
        count: number of texts.
        act: runs the model on the first text alone; None where that is impossible.

    Raises:
        CaptureError: naming the first such module.
    """
    if not samples:
        return
    if act is None:
        raise not_proved(samples[0].name, count)
    alone: dict[tuple[str, int], torch.Tensor] = {}
    made: dict[str, int] = {}

    def take(call: Call) -> None:
        use = made.get(call.name, 0)
        made[call.name] = use + 1
        if any(sample.name == call.name and sample.use == use for sample in samples):
            alone[call.name, use] = _weights(call)

    with Watch(model, 1, take):
        act()
    for sample in samples:
        weights = alone.get((sample.name, sample.use))
        if weights is None or not sample.fits(weights):
            raise not_proved(sample.name, count)


def not_proved(name: str, count: int) -> CaptureError:
    """The error where nothing proves the order of texts and heads."""
    remedy = "; capture one text at a time" if count > 1 else ""
    return CaptureError(
        f"{name} holds texts and heads in axes of which nothing shows which is which (no output "
        "projection takes its result, and a text alone gives other weights, or cannot be run "
        f"alone){remedy}"
    )


def _weights(call: Call) -> torch.Tensor:
    queries = call.size[2]
    rows = QueryRows.spread(
        [torch.arange(queries, device=call.context.device)], queries, ROWS_CHECKED
    )
    return weights_of(call, visibility_of(call), rows)[0]
