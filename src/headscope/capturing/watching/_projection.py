"""Finding the output projection of each attention call by watching the numbers, not the names.

The first module with a weight matrix whose input holds the numbers of a call's context is its
output projection. That input also proves in which order the call's tensors hold batch and heads,
and shows which calls are the heads of one layer that were computed one by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from torch import nn

from headscope.capturing.calls.call import Call, with_heads_first
from headscope.capturing.walk import ModelModules, block_of
from headscope.capturing.watching.running import ModuleUse
from headscope.errors import CaptureError

REMEMBERED = 8
"""How many calls may wait for their projection at once; more would be compared, and held in memory,
in vain.
"""
HEADS_REMEMBERED = 64
"""How many calls of one head each may wait: they may be heads of one layer."""


class ProjectedCalls(NamedTuple):
    """The calls that a matrix was given.

    Args:
        calls: whose contexts lie side by side in the input, in the order in which they were made:
            one, or the heads of one layer.
        order: whether batch and heads of the call were read in the right order, have to be
            exchanged, or either, since the numbers are the same.
    """

    calls: Sequence[Call]
    order: Literal["right", "exchanged", "either"]


def find_projected(use: ModuleUse, waiting: Sequence[Call]) -> ProjectedCalls | None:
    """The calls whose output projection this use of a matrix is; None where it is of none.

    Args:
        use: of a matrix, with its input.
        waiting: calls whose projection was not seen yet, the latest first.

    Raises:
        CaptureError: where heads are folded into the queries of a call.
    """
    if use.given is None:
        return None
    for call in waiting:
        order = _order_in(use.given, call)
        if order is not None:
            return ProjectedCalls([call], order)
        if call.layout.open:
            # Beside what else the matrix takes (ConvBERT), or queries first (FSMT), it shows the
            # order, too.
            beside = use.given[..., : call.context.shape[2] * call.context.shape[3]]
            queries_first = beside.transpose(0, max(0, beside.ndim - 2)).contiguous()
            _settle(call, _order_in(beside, call) or _order_in(queries_first, call))
        _refuse_folded(use.given, call)
    for count in range(2, len(waiting) + 1):
        heads = waiting[:count][::-1]
        if not are_heads_of_one(heads):
            break
        context = torch.cat([call.context for call in heads], dim=2)
        if _same_numbers(use.given, context):
            return ProjectedCalls(heads, "right")
    return None


def with_projection(
    projected: ProjectedCalls, use: ModuleUse, model: nn.Module, names: Mapping[int, str]
) -> Call:
    """The one call of all heads, in the order that was proved, with its projection; one of channels
    has none that takes its rows.
    """
    call = projected.calls[0]
    if call.of_channels:
        return call
    if len(projected.calls) > 1:
        call = put_together(projected.calls, model)
    elif call.layout.open:
        _settle(call, projected.order)
    call.projection, call.projection_name = use.module, names[id(use.module)]
    call.output = use.output
    return call


def _settle(call: Call, order: Literal["right", "exchanged", "either"] | None) -> None:
    """Read batch and heads in the order that was found, if one was."""
    if order == "exchanged":
        _exchange(call)
    if order in ("right", "exchanged"):  # numbers such as zeros prove nothing
        call.layout.open = ""


def _has_channels_turned(given: torch.Tensor, call: Call) -> bool:
    """Whether a matrix takes what a call calls features as tokens, and its queries as features:
    channels attended to channels (cross-covariance attention, as in XCiT and DaViT).
    """
    batch, queries, heads, tokens = call.context.shape
    if given.shape != (batch, tokens, heads * queries):
        return False
    return torch.equal(given, call.context.permute(0, 3, 2, 1).reshape(given.shape))


def _refuse_folded(given: torch.Tensor, call: Call) -> None:
    """Raise where an input is a context of one head whose rows are those of several heads."""
    queries, heads, features = call.context.shape[1:]
    folded = given.shape[-1] // features
    if heads > 1 or folded < 2 or queries % folded or given.numel() != call.context.numel():
        return
    unfolded = call.context.reshape(len(call.context), folded, -1, features).transpose(1, 2)
    if torch.equal(given, unfolded.reshape(given.shape)):
        raise CaptureError(
            f"{call.name} computes {folded} heads as rows of one (multi-query attention), which "
            "cannot be taken apart yet; give keys and values to each head"
        )


def too_many(waiting: Sequence[Call]) -> bool:
    """Whether the earliest of the calls that wait is to be given up."""
    several = sum(call.size[1] > 1 for call in waiting)
    return several > REMEMBERED or len(waiting) > HEADS_REMEMBERED


def _order_in(given: torch.Tensor, call: Call) -> Literal["right", "exchanged", "either"] | None:
    """In which order batch and heads of a call's context are in an input; None where it is not."""
    fits, layout = _same_numbers(given, call.context), call.layout
    call.of_channels = not fits and _has_channels_turned(given, call)
    if layout.open:
        exchanged = with_heads_first(call.context.transpose(1, 2), layout).transpose(1, 2)
        if _same_numbers(given, exchanged):
            return "either" if fits else "exchanged"
    return "right" if fits or call.of_channels else None


def _exchange(call: Call) -> None:
    """Read a call's tensors as if the heads came before the batch."""
    layout, (batch, heads, queries, keys) = call.layout, call.size

    def read(tensor: torch.Tensor | None, *, is_between: bool = False) -> torch.Tensor | None:
        if tensor is None:
            return None
        if is_between and layout.open == "folded":  # masks and biases may have axes of length 1
            tensor = tensor.expand(batch, heads, queries, keys)
        return with_heads_first(tensor, layout)

    call.query, call.key, call.weights = map(read, (call.query, call.key, call.weights))
    call.value = with_heads_first(call.value, layout)
    call.mask, call.bias = (read(tensor, is_between=True) for tensor in (call.mask, call.bias))
    call.context = with_heads_first(call.context.transpose(1, 2), layout).transpose(1, 2)
    call.query_before = call.key_before = None  # was looked for in the other order
    call.norm, layout.heads_first = "", layout.open


def _same_numbers(given: torch.Tensor, context: torch.Tensor) -> bool:
    """Whether the input is the context ``[batch query head feature]`` with its heads side by
    side.
    """
    if given.numel() != context.numel() or given.shape[-1] != context.shape[-2] * context.shape[-1]:
        return False
    flat = context.reshape(given.shape)
    return given.data_ptr() == flat.data_ptr() or torch.equal(given, flat)


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
    # Heads in a list, which stands in the module that is meant.
    if any(call.name != name for call in calls):
        name = _path(first).rpartition(".")[0]
        module = model.get_submodule(name)
    own = ModelModules.of(model).names[id(module)]
    seen = all(call.query is not None and call.key is not None for call in calls)
    keys = [one.key.repeat_interleave(_shared(one), dim=1) for one in calls if one.key is not None]
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
