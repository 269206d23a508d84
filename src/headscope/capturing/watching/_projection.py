"""Finding the output projection of each attention call by watching the numbers, not the names.

The first module with a weight matrix whose input holds the numbers of a call's context is its
output projection. That input also proves in which order the call's tensors hold batch and heads,
and shows which calls are the heads of one layer that were computed one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from torch import nn

from headscope.capturing.calls.call import Call, with_heads_first
from headscope.capturing.watching._joined_heads import are_heads_of_one, put_together
from headscope.capturing.watching.tape import ModuleUse
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
    """The one call of all heads, in the order that was proved, with its projection."""
    call = projected.calls[0]
    if len(projected.calls) > 1:
        call = put_together(projected.calls, model)
    elif call.layout.open:
        if projected.order == "exchanged":
            _exchange(call)
        if projected.order != "either":  # numbers such as zeros prove nothing
            call.layout.open = ""
    call.projection, call.projection_name = use.module, names[id(use.module)]
    call.output = use.output
    return call


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
    if not layout.open:
        return "right" if fits else None
    exchanged = with_heads_first(call.context.transpose(1, 2), layout).transpose(1, 2)
    if _same_numbers(given, exchanged):
        return "either" if fits else "exchanged"
    return "right" if fits else None


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
