"""What queries and keys were before positions were applied to them.

Turning keeps lengths: of the matrices and norms that ran in the attention module, the one whose
output has the lengths of the queries made them. So it does not matter what the model calls its
parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from headscope.capturing.calls.call import Call
from headscope.capturing.watching._score_trace import storage_of
from headscope.capturing.watching.tape import ModuleUse

TOKENS_COMPARED = 64
HEADS_COMPARED = 4
EXACT = {torch.float32, torch.float64}
ALIKE_WITHIN, ALIKE_WITHIN_HALF = 1e-4, 2e-2
"""Differences, relative to the largest length."""


class UnrotatedVectors(NamedTuple):
    """Queries or keys before positions, ``[batch head token feature]``.

    Args:
        vectors: these.
        modules: the one that made them, and, where that is a norm, the one whose output it took.
        way: which of the ways to read the outputs led to them.
    """

    vectors: torch.Tensor
    modules: tuple[nn.Module, ...]
    way: int


class BeforePositions(NamedTuple):
    """How queries and keys of a call were made.

    Args:
        queries: before positions; None where what made them is not known.
        keys: the same of keys.
        ways: of both, -1 where none is known.
        next_piece: where outputs ``[token ...]`` of all pieces are attended to piece by piece: the
            module, and the first token of the piece that it works on next; no module else.
    """

    queries: UnrotatedVectors | None = None
    keys: UnrotatedVectors | None = None
    ways: tuple[int, int] = (-1, -1)
    next_piece: tuple[nn.Module | None, int] = (None, 0)


NOTHING = BeforePositions()


def find_before(
    call: Call, uses: Sequence[ModuleUse], last: BeforePositions = NOTHING
) -> BeforePositions:
    """What queries and keys of a call were before positions.

    Args:
        call: with queries and keys.
        uses: of matrices and norms, the earliest first.
        last: what was found of the call before: most layers are made alike.
    """
    if call.query is None or call.key is None:
        return BeforePositions(ways=last.ways)
    module, start = last.next_piece
    start = start if module is call.module else 0
    recent = list(reversed(uses))
    queries = _made(call.query, recent, call, start, first=last.ways[0])
    keys = _made(call.key, recent, call, start, first=last.ways[1])
    start += call.size[2]
    has_more = any(_has_more(use, start) for use in recent)
    return BeforePositions(
        queries=queries,
        keys=keys,
        ways=(_way(queries), _way(keys)),
        next_piece=(call.module, start) if has_more else (None, 0),
    )


def with_before(call: Call, before: BeforePositions) -> None:
    """Note in a call how its queries and keys were made: by which norm, and from what."""
    if call.query is None or call.key is None:
        return
    sides = (before.queries, before.keys)
    call.makers = tuple(
        module for made in sides for module in ((None,) if made is None else made.modules)
    )
    if before.queries is not None:
        kind = type(before.queries.modules[0]).__name__
        call.norm = kind if "norm" in kind.lower() else ""
        call.query_before = before.queries.vectors
    if before.keys is not None:
        call.key_before = before.keys.vectors


def _way(made: UnrotatedVectors | None) -> int:
    return -1 if made is None else made.way


def _piece(output: torch.Tensor, start: int, tokens: int) -> torch.Tensor:
    """``[batch token ...]`` of the call that works on these tokens."""
    return output[None, start : start + tokens] if output.ndim == 2 else output


def _has_more(use: ModuleUse, start: int) -> bool:
    """Whether there are tokens from here on that no call has worked on."""
    return use.output is not None and use.output.ndim == 2 and len(use.output) > start


def _made(
    after: torch.Tensor, recent: list[ModuleUse], call: Call, start: int, *, first: int
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
    after: torch.Tensor, recent: list[ModuleUse], call: Call, start: int
) -> Iterator[tuple[torch.Tensor, tuple[nn.Module, ...]]]:
    """Each way in which outputs may hold the heads of ``after``, and the modules that gave them."""
    for use in recent:
        modules = _made_by(use, recent)
        if modules and use.output is not None and use.output.ndim >= 2:
            piece = _piece(use.output, start, after.shape[2])
            for heads in _heads_of(piece, after, call):
                yield heads, modules


def _made_by(use: ModuleUse, recent: list[ModuleUse]) -> tuple[nn.Module, ...]:
    """The module that gave an output and, of a norm, the one whose output it took.

    Nothing of a norm of what had been turned already.
    """
    if use.module.weight.ndim != 1:
        return (use.module,)
    if use.given is None:
        return ()
    for other in recent:
        if other.output is not None and storage_of(use.given) == storage_of(other.output):
            return use.module, other.module
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


def is_one(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether both are the same memory, read alike: nothing was done, and nothing need be
    compared.
    """
    if before.data_ptr() != after.data_ptr() or before.dtype != after.dtype:
        return False
    if before.shape != after.shape:
        return False
    strides = zip(before.shape, before.stride(), after.stride(), strict=True)
    return all(size == 1 or own == other for size, own, other in strides)
