"""What queries and keys were before positions were applied to them.

Turning keeps lengths: of the matrices and norms that ran in the attention module, the one whose
output has the lengths of the queries made them. So it does not matter what the model calls its
parts.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.capturing.calls.call import Call
from headscope.capturing.hooks import hook_after
from headscope.capturing.watching.module_stack import ModuleStack
from headscope.capturing.watching.watch_plan import WatchedModules

REMEMBERED = 8
TOKENS_COMPARED = 64
HEADS_COMPARED = 4
EXACT = {torch.float32, torch.float64}
ALIKE_WITHIN, ALIKE_WITHIN_HALF = 1e-4, 2e-2
"""Differences, relative to the largest length."""


@dataclass(frozen=True, eq=False)
class UnrotatedVectors:
    """Queries or keys before positions, ``[batch head token feature]``.

    Args:
        vectors: these.
        modules: the one that made them, and, where that is a norm, the one whose output it took.
        way: which of the ways to read the outputs led to them.
    """

    vectors: torch.Tensor
    modules: tuple[nn.Module, ...]
    way: int


@dataclass(frozen=True, eq=False)
class ModuleOutput:
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


class UnrotatedWatch:
    """Remembers what the matrices and norms of attention modules gave while the block is open.

    Args:
        watched: the modules that may be among them.
        module_stack: knows which module is running.
    """

    def __init__(self, watched: WatchedModules, module_stack: ModuleStack) -> None:
        self._modules, self._module_stack = watched.makers, module_stack
        self._is_planned = watched.is_planned
        self._recent: deque[ModuleOutput] = deque(maxlen=REMEMBERED)
        self._pieces: tuple[nn.Module | None, int] = (None, 0)
        self._ways: tuple[int, ...] = (-1, -1)
        self._hooks: list = []

    def __enter__(self) -> UnrotatedWatch:
        self._hooks = [hook_after(module, self._note) for module in self._modules]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._recent.clear()

    def describe(self, call: Call) -> None:
        """Note how queries and keys were made: by which norm, and what they were before
        positions.
        """
        module, start = self._pieces
        recent = list(reversed(self._recent))
        if call.query is None or call.key is None:
            self._recent.clear()
            return
        start = start if module is call.module else 0
        queries, keys = (
            _made(sided, recent, call, start, first=first)
            for sided, first in zip((call.query, call.key), self._ways, strict=True)
        )
        self._ways = tuple(-1 if made is None else made.way for made in (queries, keys))
        start += call.size[2]
        if any(output.has_more(start) for output in recent):
            self._pieces = call.module, start
        else:
            self._pieces = None, 0
            self._recent.clear()
        call.makers = tuple(
            module
            for made in (queries, keys)
            for module in ((None,) if made is None else made.modules)
        )
        if queries is not None:
            kind = type(queries.modules[0]).__name__
            call.norm = kind if "norm" in kind.lower() else ""
            call.query_before = queries.vectors
        if keys is not None:
            call.key_before = keys.vectors

    def _note(self, module: nn.Module, given: tuple, _: dict, output: Any) -> None:
        if not isinstance(output, torch.Tensor) or output.ndim < 2:
            return
        if self._is_planned or self._module_stack.in_attention:
            first = given[0] if given and isinstance(given[0], torch.Tensor) else None
            self._recent.append(
                ModuleOutput(module, output, None if first is None else _storage(first))
            )


def _made(
    after: torch.Tensor, recent: list[ModuleOutput], call: Call, start: int, *, first: int
) -> UnrotatedVectors | None:
    """What made ``[batch head token feature]``: the same memory, or the same lengths.

    Of the lengths those of the first tokens of the first text are compared.

    Args:
        after: queries or keys after positions.
        recent: what matrices and norms gave, the latest first.
        call: whose they are.
        start: the first token of the call, of pieces that are attended to one by one.
        first: which of the ways to read the outputs is tried first: that of the layer before.
    """
    # Most layers are made as the one before, so that the other ways need not be looked at.
    known = None
    if first >= 0:
        known = next(islice(_ways(after, recent, call, start), first, None), None)
    if known is not None:
        if is_one(known[0], after):
            return UnrotatedVectors(*known, first)
        factor = _factor(known[0], after, _lengths(after))
        if factor is not None:
            return _scaled(known, factor, first)
    ways = list(_ways(after, recent, call, start))
    for number, way in enumerate(ways):
        if is_one(way[0], after):
            return UnrotatedVectors(*way, number)
    if not ways:
        return None
    lengths = _lengths(after)
    for number, way in enumerate(ways):
        factor = _factor(way[0], after, lengths)
        if factor is not None:
            return _scaled(way, factor, number)
    return None


def _scaled(
    way: tuple[torch.Tensor, tuple[nn.Module, ...]], factor: float, number: int
) -> UnrotatedVectors:
    heads, modules = way
    return UnrotatedVectors(heads if factor == 1 else heads * factor, modules, number)


def _ways(
    after: torch.Tensor, recent: list[ModuleOutput], call: Call, start: int
) -> Iterator[tuple[torch.Tensor, tuple[nn.Module, ...]]]:
    """Each way in which outputs may hold the heads of ``after``, and the modules that gave them."""
    for output in recent:
        modules = _made_by(output, recent)
        if modules:
            piece = output.piece(start, after.shape[2])
            for heads in _heads_of(piece, after, call):
                yield heads, modules


def _made_by(output: ModuleOutput, recent: list[ModuleOutput]) -> tuple[nn.Module, ...]:
    """The module that gave an output and, of a norm, the one whose output it took.

    Nothing of a norm of what had been turned already.
    """
    if not output.is_of_norm:
        return (output.module,)
    for other in recent:
        if output.given == _storage(other.tensor):
            return output.module, other.module
    return ()


def _factor(heads: torch.Tensor, after: torch.Tensor, lengths: np.ndarray) -> float | None:
    """What vectors must be multiplied by to have these lengths; None where they are others."""
    exact = {after.dtype, heads.dtype} <= EXACT
    within = ALIKE_WITHIN if exact else ALIKE_WITHIN_HALF
    own = _lengths(heads)
    whole = float(own.sum())
    # Some models scale their queries in between.
    factor = float(lengths.sum()) / whole if whole else math.nan
    apart = float(np.abs(own * factor - lengths).max(initial=0))
    same = abs(factor - 1) <= within
    if not same and lengths.size == 1:
        return None  # one length is a multiple of any other, such as that of the values
    # Written so that NaN fails, too.
    if not apart <= within * float(lengths.max(initial=0)):
        return None
    return 1.0 if same else factor


def _lengths(vectors: torch.Tensor) -> np.ndarray:
    """Lengths ``[head token]`` of a few; small arrays are worked on faster outside of torch."""
    some = vectors[0, :HEADS_COMPARED, :TOKENS_COMPARED].detach().float().cpu().numpy()
    return np.sqrt(np.einsum("htf,htf->ht", some, some))


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
            if begin + heads > every + 2 * shared:
                continue  # these are no keys
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


def is_one(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether both are the same memory, read alike: nothing was done, and nothing need be
    compared.
    """
    if before.data_ptr() != after.data_ptr() or before.dtype != after.dtype:
        return False
    return (before.shape, before.stride()) == (after.shape, after.stride())
