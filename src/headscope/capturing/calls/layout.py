"""In which order a model's tensors hold texts and heads.

Torch's operators do not say what the axes in front of their products are. Most models put the batch
first, ``[batch head ...]`` or folded ``[batch * head ...]``; others put the heads first. Both
readings have the same shape where both axes are as long, or are folded into one. Which of them
holds is proved by the input of the output projection (watching/_projection.py), or else by running
one text alone (building/_order.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch


@dataclass(eq=False)
class Layout:
    """How a call's tensors were read, and whether that is known to be right; changed once it is
    proved.

    Args:
        open: how else the first axes may have to be read: ``"folded"`` into one with the heads
            first, or ``"axes"`` that are to be exchanged; empty where there is one reading, or it
            was proved.
        heads_first: how the heads were found to stand before the batch, in one axis with it or in
            their own; empty where they do not.
        exchanged: whether keys came before queries in their product, or values before weights.
        one_by_one: whether the model computed the heads one by one.
    """

    open: Literal["", "folded", "axes"] = ""
    heads_first: Literal["", "folded", "axes"] = ""
    exchanged: bool = False
    one_by_one: bool = False


def split(tensor: torch.Tensor, batch: int) -> torch.Tensor | None:
    """``[batch head ...]`` of what may be ``[batch * head ...]``, as if the batch came first; None
    for other forms.
    """
    if tensor.ndim == 4:
        return tensor
    if tensor.ndim != 3 or tensor.shape[0] % batch:
        return None
    return tensor.unsqueeze(0) if batch == 1 else tensor.unflatten(0, (batch, -1))


def layout_of(weights: torch.Tensor, batch: int) -> Layout:
    """How a tensor ``[batch head query ...]`` or ``[batch * head query ...]`` may have to be read
    otherwise.
    """
    if weights.ndim == 3:
        return Layout("folded" if weights.shape[0] > batch > 1 else "")
    return Layout("axes" if weights.shape[1] == batch and weights.shape[0] > 1 else "")


def with_heads_first(tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
    """``[batch head ...]`` read again, as if the heads came first."""
    if layout.open == "axes":
        return tensor.transpose(0, 1)
    return tensor.flatten(0, 1).unflatten(0, (-1, tensor.shape[0])).transpose(0, 1)
