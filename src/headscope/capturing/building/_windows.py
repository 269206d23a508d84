"""Attention in windows or pieces, laid out anew over all positions of an example.

Models fold windows into the batch (Swin), or call once for each picture (Qwen2-VL). What such calls
computed is exactly attention over all positions of which only those of the same window are visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch.nn.functional import pad

from headscope.capturing.calls.call import Call
from headscope.errors import CaptureError

LOW = torch.finfo(torch.float32).min


def joined(calls: Sequence[Call]) -> Call:
    """The calls that one module made for one piece after the other as one call, in which no piece
    sees another.
    """
    first = calls[0]
    if len(calls) == 1:
        return first
    if any(call.size[0] != 1 or call.sinks is not None for call in calls):
        raise CaptureError(
            f"{first.name} attends to batches of pieces one by one; such models cannot be "
            "captured yet"
        )
    query, key = ([getattr(call, name) for call in calls] for name in ("query", "key"))
    seen = all(tensor is not None for tensor in (*query, *key))
    weights = [call.weights for call in calls if call.weights is not None]
    return replace(
        first,
        query=torch.cat(query, dim=2) if seen else None,
        key=torch.cat(key, dim=2) if seen else None,
        value=torch.cat([call.value for call in calls], dim=2),
        context=torch.cat([call.context for call in calls], dim=1),
        added=None if first.added is None else torch.cat([_given(call) for call in calls], dim=1),
        weights=_diagonal(weights, 0.0) if len(weights) == len(calls) else None,
        mask=_diagonal([_added(call) for call in calls], LOW),
        bias=None,
        causal=False,
        query_before=_end_to_end([call.query_before for call in calls]),
        key_before=_end_to_end([call.key_before for call in calls]),
    )


def laid_out(call: Call, places: Sequence[np.ndarray]) -> Call:
    """The call with one row of its batch for each example, its positions in the order wanted.

    Args:
        call: of self-attention.
        places: for each example the row and the position that are to stand at each place ``[place
            2]``.
    """
    if call.sinks is not None:
        raise CaptureError(
            f"{call.name} attends within windows and to sinks; such models cannot be captured yet"
        )
    longest = max(map(len, places))
    device = call.context.device

    def along(tensor: torch.Tensor) -> torch.Tensor:
        """``[window head position feature]`` to ``[example head place feature]``."""
        examples = []
        for place in places:
            row, position = torch.from_numpy(place.T).to(device)
            examples.append(
                pad(tensor[row, :, position].transpose(0, 1), (0, 0, 0, longest - len(place)))
            )
        return torch.stack(examples)

    def between(tensor: torch.Tensor, elsewhere: float) -> torch.Tensor:
        """``[window head position position]`` to ``[example head place place]``."""
        whole = torch.full(
            (len(places), tensor.shape[1], longest, longest), elsewhere, device=device
        )
        for example, place in enumerate(places):
            for row in np.unique(place[:, 0]):
                at = np.flatnonzero(place[:, 0] == row)
                to, position = (torch.from_numpy(part).to(device) for part in (at, place[at, 1]))
                one = tensor[row if tensor.shape[0] > 1 else 0].to(whole.dtype)
                whole[example, :, to[:, None], to] = one[:, position[:, None], position]
        return whole

    flat = None if call.output is None else call.output.reshape(*call.context.shape[:2], -1)
    return replace(
        call,
        query=None if call.query is None else along(call.query),
        key=None if call.key is None else along(call.key),
        value=along(call.value),
        context=along(call.context.transpose(1, 2)).transpose(1, 2),
        added=None if call.added is None else along(call.added.transpose(1, 2)).transpose(1, 2),
        output=None if flat is None else along(flat[:, None])[:, 0],
        weights=None if call.weights is None else between(call.weights, 0.0),
        mask=between(_added(call), LOW),
        bias=None,
        causal=False,
        query_before=None if call.query_before is None else along(call.query_before),
        key_before=None if call.key_before is None else along(call.key_before),
    )


def _end_to_end(pieces: Sequence[torch.Tensor | None]) -> torch.Tensor | None:
    seen = [piece for piece in pieces if piece is not None]
    return torch.cat(seen, dim=2) if len(seen) == len(pieces) else None


def _given(call: Call) -> torch.Tensor:
    return torch.zeros_like(call.context) if call.added is None else call.added


def _diagonal(blocks: Sequence[torch.Tensor], elsewhere: float) -> torch.Tensor:
    """Blocks ``[1 head position position]`` down the diagonal of one larger array."""
    sizes = [block.shape[-1] for block in blocks]
    shape = (1, max(block.shape[1] for block in blocks), sum(sizes), sum(sizes))
    whole = torch.full(shape, elsewhere, device=blocks[0].device)
    start = 0
    for block, size in zip(blocks, sizes, strict=True):
        whole[:, :, start : start + size, start : start + size] = block
        start += size
    return whole


def _added(call: Call) -> torch.Tensor:
    """What is added to the scores ``[window head position position]``, where window and head may be
    1.
    """
    size = call.size[2:]
    mask = (
        torch.zeros(1, 1, *size, device=call.context.device)
        if call.mask is None
        else call.mask[..., : size[1]]
    )
    if mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, LOW)
    if call.mask is None and call.causal:
        mask = mask.masked_fill(torch.ones(size, dtype=torch.bool, device=mask.device).triu(1), LOW)
    if call.bias is not None:
        mask = mask + call.bias
    return mask.float().clamp(min=LOW).expand(*mask.shape[:2], *size)
