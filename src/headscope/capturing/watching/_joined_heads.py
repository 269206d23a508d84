"""Heads that a model computes one by one, joined into the layer that they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from headscope.capturing.calls.call import Call
from headscope.capturing.walk import block_of
from headscope.capturing.watching.model_modules import names_of
from headscope.errors import CaptureError


def are_heads_of_one(calls: Sequence[Call]) -> bool:
    """Whether calls may be heads of one layer: of one module, or of modules side by side in a list,
    and alike.

    Args:
        calls: in the order in which they were made.
    """
    first = calls[0]
    return all(_path(call) == _path(first) and _form(call) == _form(first) for call in calls)


def put_together(calls: Sequence[Call], model: nn.Module) -> Call:
    """One call of all heads, in the order in which they were computed.

    Args:
        calls: with `are_heads_of_one`.
        model: whose calls they are.
    """
    first = calls[0]
    module, name = first.module, first.name
    if any(
        call.name != name for call in calls
    ):  # heads in a list, which stands in the module that is meant
        name = _path(first).rpartition(".")[0]
        module = model.get_submodule(name)
    own = names_of(model)[id(module)]
    seen = all(call.query is not None and call.key is not None for call in calls)
    keys = [
        call.key.repeat_interleave(_shared(call), dim=1) for call in calls if call.key is not None
    ]
    whole = replace(
        first,
        module=module,
        name=own,
        block=block_of(model, own),
        value=torch.cat(
            [call.value.repeat_interleave(_shared(call), dim=1) for call in calls], dim=1
        ),
        context=torch.cat([call.context for call in calls], dim=2),
        query=_side_by_side([_scaled_as(first, call) for call in calls]) if seen else None,
        key=torch.cat(keys, dim=1) if seen else None,
        weights=_side_by_side([call.weights for call in calls]),
        mask=_between([(call, call.mask) for call in calls]),
        bias=_between([(call, call.bias) for call in calls]) if seen else None,
        query_before=None,
        key_before=None,
    )
    whole.layout.one_by_one = True
    return whole


@dataclass(frozen=True)
class CallSummary:
    """What is remembered of a call.

    Args:
        name: of its module.
        cross: whether it is cross-attention.
        size: batch, heads, queries and keys.
        projection: name of the output projection; empty where none was seen.
        block: of the call.
    """

    name: str
    cross: bool
    size: tuple[int, int, int, int]
    projection: str = ""
    block: tuple[str, int] | None = None


def check_joined(calls: Sequence[CallSummary]) -> None:
    """Raise where calls of one pass may be parts of one layer, and nothing shows how they belong
    together.

    Args:
        calls: of one pass, in their order.

    Raises:
        CaptureError: with the name of the block or module.
    """
    alone = [call for call in calls if not call.projection]
    sizes: dict[tuple[str, bool], set[tuple[int, ...]]] = {}
    for call in alone:
        sizes.setdefault((call.name, call.cross), set()).add(call.size)
    for (name, _), several in sizes.items():
        if len(several) > 1:
            raise CaptureError(
                f"{name} computes attention in pieces of {len(several)} sizes that cannot be put "
                "together"
            )
    heads = Counter((call.block or call.name, call.cross) for call in alone if call.size[1] == 1)
    for (block, _), count in heads.items():
        if count > 1:
            name = block if isinstance(block, str) else ".".join(filter(None, map(str, block)))
            raise CaptureError(
                f"{name or 'the model'} computes {count} attentions of one head each, and no "
                "matrix was seen that takes them side by side: whether they are the heads of one "
                "layer or layers of one head cannot be distinguished, and they are refused"
            )


def _path(call: Call) -> str:
    """Of the module, or of the list that it stands in."""
    return re.sub(r"\.?\d+$", "", call.name)


def _form(call: Call) -> tuple:
    batch, _, queries, keys = call.size
    shapes = [
        None if tensor is None else tensor.shape[-1]
        for tensor in (call.value, call.query, call.key)
    ]
    known = call.weights is None, call.soft_cap, call.causal, call.sinks is None, call.added is None
    return (batch, queries, keys, call.cross, call.route, *shapes, *known)


def _shared(call: Call) -> int:
    """How many heads share keys and values."""
    return call.size[1] // call.value.shape[1]


def _scaled_as(first: Call, call: Call) -> torch.Tensor | None:
    """Queries from which the scores follow with the scale of the first call."""
    if call.query is None or call.scale == first.scale:
        return call.query
    return call.query * (call.scale / first.scale)


def _side_by_side(tensors: Sequence[torch.Tensor | None]) -> torch.Tensor | None:
    seen = [tensor for tensor in tensors if tensor is not None]
    return torch.cat(seen, dim=1) if len(seen) == len(tensors) else None


def _between(tensors: Sequence[tuple[Call, torch.Tensor | None]]) -> torch.Tensor | None:
    """Masks or biases as one; that of all where they are the same."""
    seen = [tensor for _, tensor in tensors if tensor is not None]
    if not seen:
        return None
    if len(seen) == len(tensors) and all(
        tensor is seen[0] or _is_same(tensor, seen[0]) for tensor in seen
    ):
        return seen[0]
    return torch.cat([_expanded(call, tensor, seen[0]) for call, tensor in tensors], dim=1)


def _is_same(tensor: torch.Tensor, first: torch.Tensor) -> bool:
    return tensor.shape[1] == 1 and tensor.shape == first.shape and torch.equal(tensor, first)


def _expanded(call: Call, tensor: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
    """``[batch head query key]``; where there is none, everything is seen and nothing added."""
    if tensor is None:
        nothing = 1 if like.dtype == torch.bool else 0
        return torch.full(call.size, nothing, dtype=like.dtype, device=like.device)
    return tensor.expand(call.size)
