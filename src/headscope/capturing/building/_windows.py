"""Attention in windows or pieces, rearranged over all positions of an example.

Models fold windows into the batch (Swin), or call once for each picture (Qwen2-VL). Such calls
compute attention over all positions, where only positions of the same window are visible.
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
    """The calls that a module made for one piece after the other, as one call in which no piece
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
    known = [call.weights for call in calls if call.weights is not None]
    weights = _diagonal(known, 0.0) if len(known) == len(calls) else None
    masks = [_added(call) for call in calls]
    added = None
    if first.added is not None:
        added = torch.cat([_given(call) for call in calls], dim=1)
    query = _end_to_end([call.query for call in calls])
    key = _end_to_end([call.key for call in calls])
    # With only one of them, other code would assume that the scores can be recomputed.
    if query is None or key is None:
        query, key = None, None
    value = torch.cat([call.value for call in calls], dim=2)
    context = torch.cat([call.context for call in calls], dim=1)
    return replace(
        first,
        query=query,
        key=key,
        value=value,
        context=context,
        added=added,
        weights=weights,
        mask=_diagonal(masks, LOW),
        bias=None,
        causal=False,
        query_before=_end_to_end([call.query_before for call in calls]),
        key_before=_end_to_end([call.key_before for call in calls]),
    )


def laid_out(call: Call, layouts: Sequence[np.ndarray]) -> Call:
    """The call with one row of its batch for each example, and its positions in the given order.

    Args:
        call: a call of self-attention.
        layouts: for each example ``[place 2]``: row and position of the token for each place.
    """
    if call.sinks is not None:
        raise CaptureError(
            f"{call.name} attends within windows and to sinks; such models cannot be captured yet"
        )
    windows = _Windows(layouts, call.context.device)
    weights, output, added = call.weights, call.output, call.added
    if weights is not None:
        weights = windows.between(weights, 0.0)
    # In these two, heads come after positions, or there are none.
    if output is not None:
        flat = output.reshape(*call.context.shape[:2], -1)
        output = windows.along(flat[:, None])[:, 0]
    if added is not None:
        added = windows.along(added.transpose(1, 2)).transpose(1, 2)
    return replace(
        call,
        query=windows.along_if_seen(call.query),
        key=windows.along_if_seen(call.key),
        value=windows.along(call.value),
        context=windows.along(call.context.transpose(1, 2)).transpose(1, 2),
        added=added,
        output=output,
        weights=weights,
        mask=windows.between(_added(call), LOW),
        bias=None,
        causal=False,
        query_before=windows.along_if_seen(call.query_before),
        key_before=windows.along_if_seen(call.key_before),
    )


class _Windows:
    """Moves tensors from windows to whole examples.

    Args:
        layouts: for each example ``[slot 2]``: row and position of the token for each slot.
        device: device of the tensors.
    """

    def __init__(self, layouts: Sequence[np.ndarray], device: torch.device) -> None:
        self._layouts = layouts
        self.device = device
        self.longest = max(map(len, layouts))

    def along(self, tensor: torch.Tensor) -> torch.Tensor:
        """``[window head position feature]`` to ``[example head slot feature]``."""
        examples = []
        for layout in self._layouts:
            row, position = torch.from_numpy(layout.T).to(self.device)
            example = tensor[row, :, position].transpose(0, 1)
            examples.append(pad(example, (0, 0, 0, self.longest - len(layout))))
        return torch.stack(examples)

    def along_if_seen(self, tensor: torch.Tensor | None) -> torch.Tensor | None:
        """The same for a tensor that was not seen in all models."""
        return None if tensor is None else self.along(tensor)

    def between(self, tensor: torch.Tensor, elsewhere: float) -> torch.Tensor:
        """``[window head position position]`` to ``[example head slot slot]``."""
        shape = (len(self._layouts), tensor.shape[1], self.longest, self.longest)
        whole = torch.full(shape, elsewhere, device=self.device)
        for example, layout in enumerate(self._layouts):
            for row in np.unique(layout[:, 0]):
                at = np.flatnonzero(layout[:, 0] == row)
                to = torch.from_numpy(at).to(self.device)
                position = torch.from_numpy(layout[at, 1]).to(self.device)
                one = tensor[row if tensor.shape[0] > 1 else 0].to(whole.dtype)
                whole[example, :, to[:, None], to] = one[:, position[:, None], position]
        return whole


def _end_to_end(pieces: Sequence[torch.Tensor | None]) -> torch.Tensor | None:
    seen = [piece for piece in pieces if piece is not None]
    return torch.cat(seen, dim=2) if len(seen) == len(pieces) else None


def _given(call: Call) -> torch.Tensor:
    return torch.zeros_like(call.context) if call.added is None else call.added


def _diagonal(blocks: Sequence[torch.Tensor], elsewhere: float) -> torch.Tensor:
    """Blocks ``[1 head position position]`` along the diagonal of one larger array."""
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
