"""What a few rows of a call may look at."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headscope.capturing._call import Call

HIDDEN = -1e30
"""Added to the scores of hidden keys: finite, so that 0 times it is 0, and far below any score."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sight:
    """What a few rows of one example may look at.

    Args:
        start: first key that any of the rows may look at.
        stop: one past the last.
        added: ``[1 row key]`` or ``[head row key]``, added to the scores of the keys from ``added_from`` on: bias, and
            `HIDDEN` where a row may not look. None where nothing is.
        added_from: the first key that something is added to.
        alive: ``[1 row]`` or ``[head row]``, False for rows that may look at nothing; None where all may.
    """

    start: int
    stop: int
    added: torch.Tensor | None = None
    added_from: int = 0
    alive: torch.Tensor | None = None


def sight_of(call: Call, example: int, rows: torch.Tensor, dtype: torch.dtype) -> Sight:
    """What these rows of one example may look at, and what is added to their scores.

    Args:
        call: with a mask, a causal flag, a bias, or none of them.
        example: which of the batch.
        rows: positions of the queries, rising.
        dtype: of what is added.
    """
    keys = call.size[3]
    bias = None if call.bias is None else _tile_of(call.bias, example, rows, keys).to(dtype)
    if call.mask is None and call.causal:
        stop = min(keys, int(rows[-1]) + 1)
        since = 0 if bias is not None else min(stop, int(rows[0]) + 1)
        hidden = torch.arange(since, stop, device=rows.device) > rows[:, None]
        return _sight(hidden[None], bias, start=0, stop=stop)
    if call.mask is None:
        return Sight(start=0, stop=keys, added=bias)
    mask = _tile_of(call.mask, example, rows, keys)
    hidden = mask.logical_not() if mask.dtype == torch.bool else mask <= torch.finfo(mask.dtype).min / 2
    if mask.dtype != torch.bool:
        added = mask.masked_fill(hidden, 0).to(dtype)
        if bool(added.count_nonzero()):
            bias = added if bias is None else bias + added
    seen = (_any(~hidden, (0, 1)) > 0).nonzero()[:, 0]
    start, stop = (int(seen[0]), int(seen[-1]) + 1) if len(seen) else (0, 1)
    alive = _any(~hidden[..., start:stop], -1) > 0
    return _sight(
        hidden[..., start:stop],
        None if bias is None else bias[..., start:stop],
        start=start,
        stop=stop,
        alive=None if bool(alive.all()) else alive,
    )


def _sight(
    hidden: torch.Tensor, bias: torch.Tensor | None, *, start: int, stop: int, alive: torch.Tensor | None = None
) -> Sight:
    """A sight from the last keys before ``stop`` that are hidden, ``[head row key]``, and a bias for all its keys."""
    since = stop - hidden.shape[-1]
    if bias is not None:
        added = bias[..., : stop - start] + _written(hidden, bias.dtype)
        return Sight(start=start, stop=stop, added=added, added_from=start, alive=alive)
    partly = _any(hidden, (0, 1)).nonzero()[:, 0]
    if not len(partly):
        return Sight(start=start, stop=stop)
    hidden, since = hidden[..., int(partly[0]) : int(partly[-1]) + 1], since + int(partly[0])
    return Sight(start=start, stop=stop, added=_written(hidden), added_from=since, alive=alive)


def _written(hidden: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return hidden.to(dtype).mul_(HIDDEN)


def _any(marked: torch.Tensor, axes: int | tuple[int, ...]) -> torch.Tensor:
    """Where anything is marked along the axes: as bytes, forty times faster than ``Tensor.any`` on a CPU."""
    return marked.view(torch.uint8).amax(axes)


def _tile_of(tensor: torch.Tensor, example: int, rows: torch.Tensor, keys: int) -> torch.Tensor:
    """Some rows ``[head row key]`` of one example of what is broadcast to ``[batch head query key]``; head may be 1."""
    whole = tensor[example if tensor.shape[0] > 1 else 0]
    part = whole[:, rows] if whole.shape[1] > 1 else whole.expand(-1, len(rows), -1)
    return part[..., :keys].expand(-1, -1, keys)
