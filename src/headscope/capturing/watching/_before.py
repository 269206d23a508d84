"""What queries and keys were before positions were applied to them.

Turning keeps lengths: of the matrices and norms that ran in the attention module, the one whose
output has the lengths of the queries made them. So it does not matter what the model calls its
parts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from headscope.capturing.calls.call import Call
from headscope.capturing.hooks import hook_after
from headscope.capturing.watching.trail import Trail

REMEMBERED = 8
TOKENS_COMPARED = 64
HEADS_COMPARED = 4
EXACT = {torch.float32, torch.float64}
ALIKE_WITHIN, ALIKE_WITHIN_HALF = 1e-4, 2e-2
"""Differences, relative to the largest length."""


@dataclass(frozen=True, eq=False)
class Made:
    """Queries or keys before positions, ``[batch head token feature]``, and the module that made
    them.
    """

    vectors: torch.Tensor
    module: nn.Module


@dataclass(frozen=True, eq=False)
class Output:
    """What a module gave: ``[batch token ...]``, or ``[token ...]`` of pieces that are attended to
    one by one.

    Args:
        module: which gave it.
        tensor: the output.
        given: where in memory its input is.
    """

    module: nn.Module
    tensor: torch.Tensor
    given: int | None

    @property
    def is_of_norm(self) -> bool:
        """Whether it is what a norm gave."""
        return isinstance(self.module.weight, torch.Tensor) and self.module.weight.ndim == 1

    def piece(self, start: int, tokens: int) -> torch.Tensor:
        """``[batch token ...]`` of the call that works on these tokens."""
        return self.tensor[None, start : start + tokens] if self.tensor.ndim == 2 else self.tensor

    def has_more(self, start: int) -> bool:
        """Whether there are tokens from here on that no call has worked on."""
        return self.tensor.ndim == 2 and len(self.tensor) > start


class BeforeWatch:
    """Remembers what the matrices and norms of attention modules gave while the block is open.

    Args:
        model: whose modules they are.
        trail: knows which module is running.
    """

    def __init__(self, model: nn.Module, trail: Trail) -> None:
        self._modules = [module for module in model.modules() if _has_weight(module)]
        self._trail = trail
        self._recent: deque[Output] = deque(maxlen=REMEMBERED)
        self._pieces: tuple[nn.Module | None, int] = (None, 0)
        self._hooks: list = []

    def __enter__(self) -> BeforeWatch:
        self._hooks = [hook_after(module, self._note) for module in self._modules]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._recent.clear()

    def describe(self, call: Call) -> None:
        """Note how a call's queries and keys were made: by which norm, and what they were before
        positions.
        """
        module, start = self._pieces
        recent = list(reversed(self._recent))
        if call.query is None or call.key is None:
            self._recent.clear()
            return
        start = start if module is call.module else 0
        queries, keys = (_made(sided, recent, call, start) for sided in (call.query, call.key))
        start += call.size[2]
        if any(output.has_more(start) for output in recent):
            self._pieces = call.module, start
        else:
            self._pieces = None, 0
            self._recent.clear()
        if queries is not None:
            kind = type(queries.module).__name__
            call.norm = kind if "norm" in kind.lower() else ""
            call.query_before = queries.vectors
        if keys is not None:
            call.key_before = keys.vectors

    def _note(self, module: nn.Module, given: tuple, _: dict, output: Any) -> None:
        if isinstance(output, torch.Tensor) and output.ndim >= 2 and self._trail.in_attention:
            first = given[0] if given and isinstance(given[0], torch.Tensor) else None
            self._recent.append(Output(module, output, None if first is None else _storage(first)))


def _made(after: torch.Tensor, recent: list[Output], call: Call, start: int) -> Made | None:
    """What made ``[batch head token feature]``, by the lengths of the first tokens of the first
    text.
    """
    lengths = _lengths(after)
    for output in recent:
        exact = {after.dtype, output.tensor.dtype} <= EXACT
        within = ALIKE_WITHIN if exact else ALIKE_WITHIN_HALF
        if output.is_of_norm and not any(
            output.given == _storage(other.tensor) for other in recent
        ):
            continue  # a norm of what had been turned already
        for heads in _heads_of(output.piece(start, after.shape[2]), after, call):
            own = _lengths(heads)
            factor = lengths.sum() / own.sum()  # some models scale their queries in between
            same = abs(float(factor) - 1) <= within
            if not same and lengths.numel() == 1:
                continue  # one length is a multiple of any other, such as that of the values
            if (own * factor - lengths).abs().max() <= within * lengths.max():
                return Made(heads if same else heads * factor.to(heads.dtype), output.module)
    return None


def _lengths(vectors: torch.Tensor) -> torch.Tensor:
    return vectors[0, :HEADS_COMPARED, :TOKENS_COMPARED].float().norm(dim=-1)


def _heads_of(output: torch.Tensor, after: torch.Tensor, call: Call) -> Iterator[torch.Tensor]:
    """``[batch head token feature]``, in each way in which an output may hold the heads of
    ``after``.
    """
    batch, heads, tokens, size = after.shape
    if output.shape == after.shape:
        yield output
        return
    flat = output.flatten(2) if output.shape[:2] == (batch, tokens) else None
    if flat is None or flat.shape[2] < heads * size:
        return
    shared = 1 if call.key is None else call.key.shape[1]
    every = 0 if call.query is None else call.query.shape[1]
    if flat.shape[2] == heads * size:
        yield flat.unflatten(2, (heads, size)).transpose(1, 2)
    elif call.cross and flat.shape[2] == 2 * shared * size:  # keys and values in one
        yield flat[..., : heads * size].unflatten(2, (heads, size)).transpose(1, 2)
    elif (
        flat.shape[2] == (every + 2 * shared) * size
    ):  # queries, keys and values in one, one after the other
        for begin in (0, every):
            yield (
                flat[..., begin * size : (begin + heads) * size]
                .unflatten(2, (heads, size))
                .transpose(1, 2)
            )
        grouped = flat.unflatten(
            2, (shared, every // shared + 2, size)
        )  # or for each group of heads
        yield grouped[..., :-2, :].flatten(2, 3).transpose(1, 2)[:, :heads]
        yield grouped[..., -2, :].transpose(1, 2)[:, :heads]


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _has_weight(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return (
        isinstance(weight, torch.Tensor)
        and weight.ndim in (1, 2)
        and not isinstance(module, nn.Embedding)
    )
