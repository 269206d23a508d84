"""One call of a model's attention function, as it was seen."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn


@dataclass(eq=False)
class Call:
    """What went into and came out of one attention call.

    Args:
        module: the attention module that called.
        name: its name in the model.
        cross: whether keys come from other tokens than queries.
        query: ``[batch head query feature]``, after positions.
        key: ``[batch kv_head key feature]``, after positions and cache.
        value: ``[batch kv_head key feature]``.
        mask: None, boolean (True = may look) or float (added to the scores), broadcast to ``[batch head query key]``.
        scale: what scores are multiplied by.
        causal: whether, without a mask, the implementation hides the keys to the right.
        soft_cap: see `headscope.record.Layer`.
        bias: position bias, broadcast to ``[batch head query key]``.
        sinks: ``[head]``.
        context: ``[batch query head feature]``, what the heads hand on.
        weights: ``[batch head query key]`` where the model computed them itself (eager).
        projection: the module that takes the context, once it was seen, and what came out of it.
    """

    module: nn.Module
    name: str
    cross: bool
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None
    scale: float
    causal: bool
    soft_cap: float | None
    bias: torch.Tensor | None
    sinks: torch.Tensor | None
    context: torch.Tensor
    weights: torch.Tensor | None
    projection: nn.Module | None = None
    projection_name: str = ""
    output: torch.Tensor | None = None
