"""Which keys the queries of a call may attend to, read from its mask: for the whole call, or for a
few of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from headscope.capturing.calls.call import Call, some_of

HIDDEN = -1e30
"""Added to the scores of hidden keys: finite, so that 0 times it is 0, and far below any score."""


@dataclass(frozen=True)
class Visibility:
    """Which keys the queries of a call may attend to, and what is added to their scores.

    Args:
        visible: True where a query may attend, broadcast to ``[batch head query key]``; None for
            everywhere.
        causal: whether instead each query attends to the keys up to its own position, counted from
            the first.
        bias: added to the scores, broadcast likewise.
    """

    visible: torch.Tensor | None = None
    causal: bool = False
    bias: torch.Tensor | None = None

    def of_text(self, example: int) -> Visibility:
        """Of one text, with a batch of one."""
        return self.of_texts([example])

    def of_texts(self, examples: Sequence[int]) -> Visibility:
        """Of some texts, one after the other."""
        return replace(
            self, visible=_of_texts(self.visible, examples), bias=_of_texts(self.bias, examples)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RowVisibility:
    """Which keys a few rows of some texts may attend to, cut to the range of these keys.

    Args:
        start: first key that any of the rows may attend to.
        stop: one past the last.
        added: ``[text head row key]``, where text and head may be 1, added to the scores of the
            keys from ``added_from`` on: bias, and `HIDDEN` for masked keys, the least of all, so
            that scores can be counted in other units. None where nothing is.
        added_from: the first key that something is added to.
        alive: ``[text head row]`` likewise, False for rows in which every key is masked; None where
            all may.
    """

    start: int
    stop: int
    added: torch.Tensor | None = None
    added_from: int = 0
    alive: torch.Tensor | None = None


def visibility_of(call: Call) -> Visibility:
    """What a call's mask and bias mean."""
    if call.mask is not None:
        mask = call.mask[..., : call.size[3]]
        hidden, bias = _read(mask, call.bias)
        if not _any(hidden):
            return Visibility(bias=bias)
        return Visibility(visible=mask if mask.dtype == torch.bool else ~hidden, bias=bias)
    causal = call.causal
    if not causal and call.query is None and call.weights is not None:
        # Given weights alone, the triangle above the diagonal is the only evidence: exact zeros
        # there.
        causal = not call.weights.triu(1).any()
    return Visibility(causal=bool(causal), bias=call.bias)


def row_visibility_of(
    call: Call, texts: slice, rows: torch.Tensor | slice, dtype: torch.dtype
) -> RowVisibility:
    """Which keys these rows of some texts may attend to, and what is added to their scores; the
    rest of the mask is not read.

    Args:
        call: with a mask, a causal flag, a bias, or none of them.
        texts: which of the batch.
        rows: positions of the queries, rising, or a run of them.
        dtype: of what is added.
    """
    keys = call.size[3]
    bias = None if call.bias is None else _rows_of(call.bias, texts, rows, keys).to(dtype)
    if call.mask is None and call.causal:
        if isinstance(rows, slice):
            rows = torch.arange(rows.start, rows.stop, device=call.context.device)
        stop = min(keys, int(rows[-1]) + 1)
        # Every row of the tile sees the keys before its first query; only those after are marked.
        since = 0 if bias is not None else min(stop, int(rows[0]) + 1)
        hidden = torch.arange(since, stop, device=rows.device) > rows[:, None]
        return _narrowed(hidden[None, None], bias, start=0, stop=stop)
    if call.mask is None:
        added = None if bias is None else bias.clamp(min=HIDDEN)
        return RowVisibility(start=0, stop=keys, added=added)
    hidden, bias = _read(_rows_of(call.mask, texts, rows, keys), bias, dtype)
    # Keys that no row of the tile sees, as outside a sliding window, are not computed.
    seen = (_any_of(~hidden, (0, 1, 2)) > 0).nonzero()[:, 0]
    start, stop = (int(seen[0]), int(seen[-1]) + 1) if len(seen) else (0, 1)
    hidden = hidden[..., start:stop]
    bias = None if bias is None else bias[..., start:stop]
    alive = _any_of(~hidden, -1) > 0
    all_alive = bool(alive.all())
    return _narrowed(hidden, bias, start=start, stop=stop, alive=None if all_alive else alive)


def _read(
    mask: torch.Tensor, bias: torch.Tensor | None, dtype: torch.dtype | None = None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Where a mask, or a part of one, hides; and the bias with what the mask adds elsewhere.

    A mask of numbers hides where it is below half of the least number of its precision; what it
    holds elsewhere, such as ALiBi's slopes, is added to the scores.
    """
    if mask.dtype == torch.bool:
        return mask.logical_not(), bias
    # Half: libraries add masks to each other or to a bias, which moves the least number a little.
    hidden = mask <= torch.finfo(mask.dtype).min / 2
    # What hides must not be added as well: the least number plus a score would overflow to -inf.
    added = mask.masked_fill(hidden, 0)
    if not bool(added.count_nonzero()):
        return hidden, bias
    added = added if dtype is None else added.to(dtype)
    return hidden, added if bias is None else bias + added


def _narrowed(
    hidden: torch.Tensor,
    bias: torch.Tensor | None,
    *,
    start: int,
    stop: int,
    alive: torch.Tensor | None = None,
) -> RowVisibility:
    """Which keys rows may attend to, from the last keys before ``stop`` that are hidden, ``[text
    head row key]``, and a bias for all its keys.
    """
    since = stop - hidden.shape[-1]
    if bias is not None:
        added = (bias[..., : stop - start] + _written(hidden, bias.dtype)).clamp_(min=HIDDEN)
        return RowVisibility(start=start, stop=stop, added=added, added_from=start, alive=alive)
    partly = _any_of(hidden, (0, 1, 2)).nonzero()[:, 0]
    if not len(partly):
        return RowVisibility(start=start, stop=stop)
    hidden, since = hidden[..., int(partly[0]) : int(partly[-1]) + 1], since + int(partly[0])
    return RowVisibility(
        start=start, stop=stop, added=_written(hidden), added_from=since, alive=alive
    )


def _written(hidden: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return hidden.to(dtype).mul_(HIDDEN)


def _any(marked: torch.Tensor) -> bool:
    return bool(_any_of(marked, tuple(range(marked.ndim))))


def _any_of(marked: torch.Tensor, axes: int | tuple[int, ...]) -> torch.Tensor:
    """Where anything is marked along the axes: as bytes, forty times faster than ``Tensor.any`` on
    a CPU.
    """
    return marked.view(torch.uint8).amax(axes)


def _rows_of(
    tensor: torch.Tensor, texts: slice, rows: torch.Tensor | slice, keys: int
) -> torch.Tensor:
    """Some rows ``[text head row key]`` of what is broadcast to ``[batch head query key]``; text
    and head may be 1.
    """
    whole = tensor if len(tensor) == 1 else tensor[texts]
    if whole.shape[2] > 1:
        whole = whole[:, :, rows]
    else:
        count = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        whole = whole.expand(-1, -1, count, -1)
    return whole[..., :keys].expand(-1, -1, -1, keys)


def state_of(tensor: torch.Tensor | None) -> tuple[int, int]:
    """Identifies a tensor and its version: the version changes when torch writes to it in place
    (not in inference mode).
    """
    if tensor is None or tensor.is_inference():
        return id(tensor), 0
    return id(tensor), tensor._version


def _of_texts(tensor: torch.Tensor | None, examples: Sequence[int]) -> torch.Tensor | None:
    return tensor if tensor is None or len(tensor) == 1 else some_of(tensor, examples)
