"""Which keys the queries of a call may attend to, read from its mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from headscope.capturing.calls.call import Call, some_of

HIDDEN = -1e30
"""Added to the scores of hidden keys: finite, so that 0 times it is 0, and far below any score."""


@dataclass(frozen=True)
class Visibility:
    """Which keys the queries of a call may attend to, and what is added to their scores.

    Args:
        visible: True where a query may attend, broadcast to ``[batch head query key]``; None for
            everywhere.
        causal: whether instead each query attends to the keys up to its own position, counted from
            the first.
        bias: added to the scores, broadcast likewise.
    """

    visible: torch.Tensor | None = None
    causal: bool = False
    bias: torch.Tensor | None = None

    @cached_property
    def alive(self) -> torch.Tensor | None:
        """``[text head query 1]``, where text and head may be 1: False for queries that may attend
        to nothing; None where all may attend to something.
        """
        if self.visible is None:
            return None
        alive = _any_of(self.visible, -1).unsqueeze(-1) > 0
        return None if bool(alive.all()) else alive

    def of_text(self, example: int) -> Visibility:
        """Of one text, with a batch of one."""
        return self.of_texts([example])

    def of_texts(self, examples: Sequence[int]) -> Visibility:
        """Of some texts, one after the other."""
        return replace(
            self, visible=_of_texts(self.visible, examples), bias=_of_texts(self.bias, examples)
        )


def visibility_of(call: Call) -> Visibility:
    """What a call's mask and bias mean."""
    if call.mask is not None:
        mask = call.mask[..., : call.size[3]]
        hidden, bias = _read(mask, call.bias)
        if not _any(hidden):
            return Visibility(bias=bias)
        return Visibility(visible=mask if mask.dtype == torch.bool else ~hidden, bias=bias)
    causal = call.causal
    if not causal and call.query is None and call.weights is not None:
        # Given weights alone, the triangle above the diagonal is the only evidence: exact zeros
        # there.
        causal = not call.weights.triu(1).any()
    return Visibility(causal=bool(causal), bias=call.bias)


def _read(
    mask: torch.Tensor, bias: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Where a mask, or a part of one, hides; and the bias with what the mask adds elsewhere.

    A mask of numbers hides where it is below half of the least number of its precision; what it
    holds elsewhere, such as ALiBi's slopes, is added to the scores.
    """
    if mask.dtype == torch.bool:
        return mask.logical_not(), bias
    # Half: libraries add masks to each other or to a bias, which moves the least number a little.
    hidden = mask <= torch.finfo(mask.dtype).min / 2
    # What hides must not be added as well: the least number plus a score would overflow to -inf.
    added = mask.masked_fill(hidden, 0)
    if not bool(added.count_nonzero()):
        return hidden, bias
    return hidden, added if bias is None else bias + added


def _any(marked: torch.Tensor) -> bool:
    return bool(_any_of(marked, tuple(range(marked.ndim))))


def _any_of(marked: torch.Tensor, axes: int | tuple[int, ...]) -> torch.Tensor:
    """Where anything is marked along the axes: as bytes, forty times faster than ``Tensor.any`` on
    a CPU.
    """
    return marked.view(torch.uint8).amax(axes)


def state_of(tensor: torch.Tensor | None) -> tuple[int, int]:
    """Identifies a tensor and its version: the version changes when torch writes to it in place
    (not in inference mode).
    """
    if tensor is None or tensor.is_inference():
        return id(tensor), 0
    return id(tensor), tensor._version


def _of_texts(tensor: torch.Tensor | None, examples: Sequence[int]) -> torch.Tensor | None:
    return tensor if tensor is None or len(tensor) == 1 else some_of(tensor, examples)
