"""A call of which some heads alone are kept."""

from __future__ import annotations

from dataclasses import replace

import torch

from headscope.capturing.calls.call import Call
from headscope.record import HeldHeads


def held_heads(call: Call, numbers: tuple[int, ...]) -> HeldHeads | None:
    """What a layer says of the heads that it holds; None where these are all."""
    heads = call.size[1]
    return None if len(numbers) == heads else HeldHeads(numbers, heads, call.value.shape[1])


def call_of_heads(call: Call, held: HeldHeads) -> Call:
    """The call as if the model had no other heads.

    Key/value heads stand in it once where the heads share them evenly, else once for each head.
    """
    heads, shared = (
        list(held.numbers),
        [number * held.kv_heads // held.heads for number in held.numbers],
    )
    once = list(held.kv_numbers)
    of_each = len(heads) // len(once)
    if len(heads) % len(once) == 0 and shared == [
        number for number in once for _ in range(of_each)
    ]:
        shared = once
    per_head = {
        name: _picked(getattr(call, name), heads) for name in ("query", "query_before", "weights")
    }
    per_kv_head = {
        name: _picked(getattr(call, name), shared) for name in ("key", "key_before", "value")
    }
    for name in ("mask", "bias"):
        tensor = getattr(call, name)
        per_head[name] = tensor if tensor is None or tensor.shape[1] == 1 else tensor[:, heads]
    return replace(
        call,
        **per_head,
        **per_kv_head,
        context=call.context[:, :, heads],
        sinks=None if call.sinks is None else call.sinks.reshape(-1)[heads],
        added=None if call.added is None else call.added[:, :, heads],
    )


def _picked(tensor: torch.Tensor | None, heads: list[int]) -> torch.Tensor | None:
    return None if tensor is None else tensor[:, heads]
