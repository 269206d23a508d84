"""A call reduced to some of its heads."""

from __future__ import annotations

from dataclasses import replace

import torch

from headscope.capturing.calls.call import Call
from headscope.record import HeldHeads


def held_heads(call: Call, numbers: tuple[int, ...]) -> HeldHeads | None:
    """The description of the heads that a layer holds; None where it holds all."""
    heads = call.size[1]
    return None if len(numbers) == heads else HeldHeads(numbers, heads, call.value.shape[1])


def call_of_heads(call: Call, held: HeldHeads) -> Call:
    """The call as if the model had no other heads.

    It holds key/value heads once where the heads share them evenly, else once for each head.
    """
    heads, shared = list(held.numbers), _shared(held)
    per_head = {
        name: _picked(getattr(call, name), heads) for name in ("query", "query_before", "weights")
    }
    per_kv_head = {
        name: _picked(getattr(call, name), shared) for name in ("key", "key_before", "value")
    }
    for name in ("mask", "bias"):
        tensor = getattr(call, name)
        # An axis of one head is the same for all heads, and stays as it is.
        per_head[name] = tensor if tensor is None or tensor.shape[1] == 1 else tensor[:, heads]
    return replace(
        call,
        **per_head,
        **per_kv_head,
        context=call.context[:, :, heads],
        sinks=None if call.sinks is None else call.sinks.reshape(-1)[heads],
        added=None if call.added is None else call.added[:, :, heads],
    )


def _shared(held: HeldHeads) -> list[int]:
    """Numbers of the key/value heads that go with the heads held."""
    of_each_head = [number * held.kv_heads // held.heads for number in held.numbers]
    once = list(held.kv_numbers)
    many = len(of_each_head) // len(once)
    # Code that reads the call repeats every key/value head equally often. That is right for some
    # choices of heads only: not for two heads of one group and one of another.
    is_even = of_each_head == [number for number in once for _ in range(many)]
    return once if is_even else of_each_head


def _picked(tensor: torch.Tensor | None, heads: list[int]) -> torch.Tensor | None:
    return None if tensor is None else tensor[:, heads]


def each_once(tensor: torch.Tensor, held: HeldHeads | None) -> torch.Tensor:
    """``[kv_head key feature]`` of the key/value heads that are held, each once: see
    `call_of_heads`.
    """
    if held is None or len(tensor) == len(held.kv_numbers):
        return tensor
    shared = [number * held.kv_heads // held.heads for number in held.numbers]
    return tensor[[shared.index(number) for number in held.kv_numbers]]
