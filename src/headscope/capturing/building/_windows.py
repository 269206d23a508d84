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
ALONG = dict.fromkeys(("query", "key", "value", "query_before", "key_before"), 2)
ALONG |= dict.fromkeys(("context", "added"), 1)
"""Tensors of a call with an entry for each position, and the axis of the positions."""


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
    parts = {}
    for name, axis in ALONG.items():
        seen = [piece for call in calls if (piece := getattr(call, name)) is not None]
        parts[name] = torch.cat(seen, dim=axis) if len(seen) == len(calls) else None
    # With only one of them, other code would assume that the scores can be recomputed.
    if parts["query"] is None or parts["key"] is None:
        parts["query"] = parts["key"] = None
    weights = [call.weights for call in calls if call.weights is not None]
    parts["weights"] = _diagonal(weights, 0.0) if len(weights) == len(calls) else None
    mask = _diagonal([_added(call) for call in calls], LOW)
    return replace(first, **parts, mask=mask, bias=None, causal=False)


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
    parts: dict[str, torch.Tensor | None] = {}
    for name, axis in ALONG.items():
        tensor = getattr(call, name)
        if tensor is not None:
            tensor = windows.along(tensor.transpose(axis, 2)).transpose(axis, 2)
        parts[name] = tensor
    if call.output is not None:
        flat = call.output.reshape(*call.context.shape[:2], -1)
        parts["output"] = windows.along(flat[:, None])[:, 0]
    if call.weights is not None:
        parts["weights"] = windows.between(call.weights, 0.0)
    mask = windows.between(_added(call), LOW)
    return replace(call, **parts, mask=mask, bias=None, causal=False)


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
    mask = torch.zeros(1, 1, *size, device=call.context.device)
    if call.mask is not None:
        mask = call.mask[..., : size[1]]
    if mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, LOW)
    if call.mask is None and call.causal:
        mask = mask.masked_fill(torch.ones(size, dtype=torch.bool, device=mask.device).triu(1), LOW)
    if call.bias is not None:
        mask = mask + call.bias
    return mask.float().clamp(min=LOW).expand(*mask.shape[:2], *size)
