"""What queries and keys were before positions were applied to them.

Turning keeps lengths: of the matrices and norms that ran in the attention module, the one whose output has the
lengths of the queries made them. So it does not matter what the model calls its parts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from headscope.capturing._call import Call
from headscope.capturing._trail import Trail
from headscope.record import Rotary
from headscope.record._rotary import rotary_between

REMEMBERED = 8
TOKENS_COMPARED = 64
HEADS_COMPARED = 4
ALIKE_WITHIN = 1e-4


@dataclass(frozen=True, eq=False)
class Made:
    """Queries or keys before positions, ``[head token feature]``, and the module that made them."""

    vectors: torch.Tensor
    module: nn.Module


class BeforeWatch:
    """Remembers what the matrices and norms of attention modules gave while the block is open.

    Args:
        model: whose modules they are.
        trail: knows which module is running.
    """

    def __init__(self, model: nn.Module, trail: Trail) -> None:
        self._modules = [module for module in model.modules() if _has_weight(module)]
        self._trail = trail
        self._recent: deque[tuple[nn.Module, torch.Tensor]] = deque(maxlen=REMEMBERED)
        self._hooks: list = []

    def __enter__(self) -> BeforeWatch:
        self._hooks = [module.register_forward_hook(self._note) for module in self._modules]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._recent.clear()

    def describe(self, call: Call) -> None:
        """Note how a call's queries and keys were made: by which norm, and turned by which rotation."""
        recent = list(reversed(self._recent))
        self._recent.clear()
        if call.query is None or call.key is None or call.query.shape[2] != call.key.shape[2] or call.cross:
            return
        queries, keys = (_made(sided, recent, call) for sided in (call.query, call.key))
        if queries is None:
            return
        kind = type(queries.module).__name__
        call.norm = kind if "norm" in kind.lower() else ""
        if keys is not None:
            call.rotary = _rotary(queries, keys, call)

    def _note(self, module: nn.Module, _: tuple, output: Any) -> None:
        if isinstance(output, torch.Tensor) and output.ndim >= 3 and self._trail.in_attention:
            self._recent.append((module, output))


def _made(after: torch.Tensor, recent: list[tuple[nn.Module, torch.Tensor]], call: Call) -> Made | None:
    """What made ``[batch head token feature]``, by the lengths of the first tokens of the first text."""
    kept = after[0, :HEADS_COMPARED, :TOKENS_COMPARED].float()
    lengths = kept.norm(dim=-1)
    for module, output in recent:
        for heads in _heads_of(output, after, call):
            found = heads[:HEADS_COMPARED, :TOKENS_COMPARED].float()
            own = found.norm(dim=-1)
            factor = lengths.sum() / own.sum()  # some models scale their queries in between
            if (own * factor - lengths).abs().max() <= ALIKE_WITHIN * lengths.max():
                return Made(found * factor, module)
    return None


def _heads_of(output: torch.Tensor, after: torch.Tensor, call: Call) -> Iterator[torch.Tensor]:
    """``[head token feature]`` of the first text, in each way in which an output may hold the heads of ``after``."""
    _, heads, tokens, size = after.shape
    if output.shape == after.shape:
        yield output[0]
        return
    flat = output[0].reshape(output.shape[1], -1) if output.shape[:2] == (after.shape[0], tokens) else None
    if flat is None or flat.shape[1] < heads * size:
        return
    shared = 1 if call.key is None else call.key.shape[1]
    every = 0 if call.query is None else call.query.shape[1]
    if flat.shape[1] == heads * size:
        yield flat.unflatten(1, (heads, size)).transpose(0, 1)
    elif flat.shape[1] == (every + 2 * shared) * size:  # queries, keys and values in one, one after the other
        for begin in (0, every):
            yield flat[:, begin * size : (begin + heads) * size].unflatten(1, (heads, size)).transpose(0, 1)
        grouped = flat.unflatten(1, (shared, every // shared + 2, size))  # or for each group of heads
        yield grouped[:, :, :-2].flatten(1, 2).transpose(0, 1)[:heads]
        yield grouped[:, :, -2].transpose(0, 1)[:heads]


def _rotary(queries: Made, keys: Made, call: Call) -> Rotary | None:
    found = [_between(made.vectors, after) for made, after in ((queries, call.query), (keys, call.key))]
    first, second = found
    alike = first is not None and second is not None and (first.style, first.start) == (second.style, second.start)
    return first if alike else None


def _between(before: torch.Tensor, after: torch.Tensor | None) -> Rotary | None:
    if after is None:
        return None
    compared = after[0, : before.shape[0], : before.shape[1]]
    return rotary_between(before.float().cpu().numpy(), compared.float().cpu().numpy())


def _has_weight(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return isinstance(weight, torch.Tensor) and weight.ndim in (1, 2) and not isinstance(module, nn.Embedding)
