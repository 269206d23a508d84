"""What queries and keys were before positions were applied to them.

Turning keeps lengths: of the matrices and norms that ran in the attention module, the one whose
output has the lengths of the queries made them. So it does not matter what the model calls its
parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from headscope.capturing.calls.call import Call
from headscope.capturing.watching._score_trace import storage_of
from headscope.capturing.watching.running import ModuleUse

TOKENS_COMPARED = 64
HEADS_COMPARED = 4
EXACT = {torch.float32, torch.float64}
ALIKE_WITHIN, ALIKE_WITHIN_HALF = 1e-4, 2e-2
"""Differences, relative to the largest length."""


class UnrotatedVectors(NamedTuple):
    """Queries or keys before positions, ``[batch head token feature]``.

    Args:
        vectors: these; those after positions themselves where nothing was done to them.
        modules: the one that made them, and, where that is a norm, the one whose output it took.
    """

    vectors: torch.Tensor
    modules: tuple[nn.Module, ...]


NextPiece = tuple[nn.Module | None, int]
"""Where outputs ``[token ...]`` of all pieces are attended to piece by piece: the module, and the
first token of the piece that it works on next; no module else.
"""


def note_before(call: Call, uses: Sequence[ModuleUse], piece: NextPiece) -> NextPiece:
    """Note in a call what its queries and keys were before positions, and which norm they went
    through.

    Args:
        call: any call; nothing is noted of one without queries and keys.
        uses: of matrices and norms, the earliest first.
        piece: as it was returned for the call before.
    """
    if call.query is None or call.key is None:
        return None, 0
    start = piece[1] if piece[0] is call.module else 0
    recent = list(reversed(uses))
    queries, keys = (_made(each, recent, call, start) for each in (call.query, call.key))
    if queries is not None:
        kind = type(queries.modules[0]).__name__
        call.norm, call.query_before = kind if "norm" in kind.lower() else "", queries.vectors
    if keys is not None:
        call.key_before = keys.vectors
    start += call.size[2]
    return (call.module, start) if any(_has_more(use, start) for use in recent) else (None, 0)


def _piece(output: torch.Tensor, start: int, tokens: int) -> torch.Tensor:
    """``[batch token ...]`` of the call that works on these tokens."""
    return output[None, start : start + tokens] if output.ndim == 2 else output


def _has_more(use: ModuleUse, start: int) -> bool:
    """Whether there are tokens from here on that no call has worked on."""
    return use.output is not None and use.output.ndim == 2 and len(use.output) > start


def _made(
    after: torch.Tensor, recent: list[ModuleUse], call: Call, start: int
) -> UnrotatedVectors | None:
    """What made ``[batch head token feature]``: the same memory, or else the same lengths.

    Of the lengths those of the first tokens of the first text are compared.

    Args:
        after: queries or keys after positions.
        recent: what matrices and norms gave, the latest first.
        call: whose they are.
        start: the first token of the call, of pieces that are attended to one by one.
    """
    ways: list[UnrotatedVectors] = []
    for use in recent:
        for made in _ways(use, recent, after, call, start=start):
            if is_one(made.vectors, after):
                return made._replace(vectors=after)
            ways.append(made)
    lengths = _lengths(after) if ways else np.empty(0)
    for made in ways:
        factor = _factor(made.vectors, after, lengths)
        if factor is not None:
            return made if factor == 1 else made._replace(vectors=made.vectors * factor)
    return None


def _ways(
    use: ModuleUse, recent: list[ModuleUse], after: torch.Tensor, call: Call, *, start: int
) -> Iterator[UnrotatedVectors]:
    """Each way in which an output may hold the heads of ``after``."""
    modules = _made_by(use, recent)
    if modules and use.output is not None and use.output.ndim >= 2:
        output = _piece(use.output, start, after.shape[2])
        # With as many heads as tokens the shape does not tell which come first; what a norm took of
        # a matrix lies there token by token.
        if (
            use.given is not None
            and output.shape == after.shape
            and after.shape[1] == after.shape[2]
        ):
            by_token = use.given.ndim == 4 and use.given.stride(1) > use.given.stride(2)
            output = output.transpose(1, 2) if by_token else output
        for heads in _heads_of(output, after, call):
            yield UnrotatedVectors(heads, modules)


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
    """Lengths ``[head token]`` of a few."""
    few = slice(0, 1), slice(HEADS_COMPARED), slice(TOKENS_COMPARED)
    some = vectors[few][0].detach().float().cpu().numpy()
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
