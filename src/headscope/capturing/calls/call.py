"""One attention call of a model, as it was observed, in which order its tensors hold texts and
heads, and which keys its queries may attend to.

Torch's operators do not say what the axes in front of their products are. Most models put the batch
first, ``[batch head ...]`` or folded ``[batch * head ...]``; others put the heads first. Both
readings have the same shape where both axes are as long, or are folded into one. Which of them
holds is proved by the input of the output projection (watching/_projection.py). Where nothing
proves it, a batch is refused, and its texts are captured one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import nn


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


@dataclass(eq=False, kw_only=True)
class Call:
    """The inputs and outputs of one attention call.

    Either queries and keys were seen, or the weights themselves.

    Args:
        module: the attention module that called.
        name: its name in the model.
        route: how the call was seen.
        cross: whether keys come from other tokens than queries.
        query: ``[batch head query feature]``, after positions.
        key: ``[batch kv_head key feature]``, after positions and cache.
        value: ``[batch kv_head key feature]``.
        mask: None, boolean (True = may attend) or float (added to the scores), broadcast to
            ``[batch head query key]``.
        scale: what scores are multiplied by.
        causal: whether, without a mask, the implementation hides the keys to the right.
        soft_cap: see `headscope.record.Layer`.
        bias: position bias, broadcast to ``[batch head query key]``.
        sinks: ``[head]``.
        context: ``[batch query head feature]``, the outputs of the heads, before the output
            projection.
        weights: ``[batch head query key]`` where the model computed them itself.
        projection: the module that takes the context, once it was seen, and what came out of it.
        number: of the call, counted from the beginning of the pass.
        block: path of the list of blocks that the module stands in, and the number of its block.
        norm: the class of the norm that queries went through, if any.
        query_before: ``query`` before positions, where the module that made it was seen.
        key_before: the same of ``key``.
        products: how many products of activations went into the scores, where these were seen.
        changes: descriptions of the interventions on the call.
        added: ``[batch query head feature]``, what was added to weights times values.
        odd: why these are no weights of all queries over all keys; empty where they may be.
        of_channels: whether channels attend to channels, so that they are its queries and keys.
        layout: which axes were read as batch and heads, and which other readings are possible.
    """

    module: nn.Module
    name: str
    route: Literal["interface", "operators", "outputs"]
    cross: bool
    value: torch.Tensor
    context: torch.Tensor
    query: torch.Tensor | None = None
    key: torch.Tensor | None = None
    weights: torch.Tensor | None = None
    mask: torch.Tensor | None = None
    scale: float = 1.0
    causal: bool = False
    soft_cap: float | None = None
    bias: torch.Tensor | None = None
    sinks: torch.Tensor | None = None
    projection: nn.Module | None = None
    projection_name: str = ""
    output: torch.Tensor | None = None
    number: int = 0
    block: tuple[str, int] | None = None
    norm: str = ""
    query_before: torch.Tensor | None = None
    key_before: torch.Tensor | None = None
    products: int = 0
    changes: tuple[
        Any, ...
    ] = ()  # of str; beartype would draw one at random, which Hypothesis forbids in strategies
    added: torch.Tensor | None = None
    odd: str = ""
    of_channels: bool = False
    layout: Layout = field(default_factory=Layout)

    @property
    def size(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys."""
        batch, queries, heads, _ = self.context.shape
        return batch, heads, queries, self.value.shape[-2]


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
        alive: ``[text head query 1]``, where text and head may be 1: False for queries that may
            attend to nothing; None where all may attend to something.
    """

    visible: torch.Tensor | None = None
    causal: bool = False
    bias: torch.Tensor | None = None
    alive: torch.Tensor | None = None


def visibility_of(call: Call) -> Visibility:
    """What a call's mask and bias mean."""
    if call.mask is not None:
        mask = call.mask[..., : call.size[3]]
        hidden, bias = _read(mask, call.bias)
        if not bool(hidden.any()):
            return Visibility(bias=bias)
        visible = mask if mask.dtype == torch.bool else ~hidden
        alive = visible.any(-1, keepdim=True)
        return Visibility(visible, bias=bias, alive=None if bool(alive.all()) else alive)
    causal = call.causal
    if not causal and call.query is None and call.weights is not None:
        # Given weights alone, the triangle above the diagonal is the only evidence: exact zeros
        # there.
        causal = not call.weights.triu(1).any()
    return Visibility(causal=bool(causal), bias=call.bias)


def of_heads(call: Call, visibility: Visibility, heads: Sequence[int]) -> tuple[Call, Visibility]:
    """The call as if the model had no other heads than these.

    It holds key/value heads once where the heads share them evenly, else once for each head.
    """
    every, shared = list(heads), [head * call.value.shape[1] // call.size[1] for head in heads]
    once = list(dict.fromkeys(shared))
    many = len(shared) // len(once)
    # Code that reads the call repeats every key/value head equally often. That is right for some
    # choices of heads only: not for two heads of one group and one of another.
    if shared == [number for number in once for _ in range(many)]:
        shared = once

    def some(tensor: torch.Tensor | None, numbers: list[int]) -> torch.Tensor | None:
        # An axis of one head is the same for all heads, and stays as it is.
        return tensor if tensor is None or tensor.shape[1] == 1 else tensor[:, numbers]

    of_each = ("query", "query_before", "weights", "mask", "bias")
    parts = {name: some(getattr(call, name), every) for name in of_each}
    parts |= {name: some(getattr(call, name), shared) for name in ("key", "key_before", "value")}
    fewer = replace(
        call,
        **parts,
        context=call.context[:, :, every],
        sinks=None if call.sinks is None else call.sinks.reshape(-1)[every],
        added=None if call.added is None else call.added[:, :, every],
    )
    seen = (visibility.visible, visibility.bias, visibility.alive)
    visible, bias, alive = (some(part, every) for part in seen)
    return fewer, replace(visibility, visible=visible, bias=bias, alive=alive)


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


def state_of(tensor: torch.Tensor | None) -> tuple[int, int]:
    """Identifies a tensor and its version: the version changes when torch writes to it in place
    (not in inference mode).
    """
    if tensor is None or tensor.is_inference():
        return id(tensor), 0
    return id(tensor), tensor._version
