"""The real tokens of one example of a call, and copies of their arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headscope.capturing.calls.call import Call
from headscope.errors import CaptureError

ROWS_CHECKED = 16
"""Number of rows of each head that are recomputed to check a layer."""


@dataclass(frozen=True)
class RealTokens:
    """The real tokens of one example of a call: positions of queries and of keys."""

    call: Call
    example: int
    queries: torch.Tensor
    keys: torch.Tensor

    def of_queries(self, tensor: torch.Tensor) -> torch.Tensor:
        """``[batch head query feature]`` to ``[head query feature]``."""
        return _picked(tensor[self.example], self.queries)

    def of_keys(self, tensor: torch.Tensor) -> torch.Tensor:
        """``[batch kv_head key feature]`` to ``[kv_head key feature]``."""
        return _picked(tensor[self.example], self.keys)

    def of_both(self, tensor: torch.Tensor) -> torch.Tensor:
        """``[batch head query key]``, where axes may be 1, to ``[head query key]``, where head may
        be 1.
        """
        example = self.example if tensor.shape[0] > 1 else 0
        whole = tensor[example].expand(tensor.shape[1], *self.call.size[2:])
        return self.of_whole(whole)

    def of_whole(self, whole: torch.Tensor) -> torch.Tensor:
        """``[head query key]`` of the example, without its padding."""
        rows = _picked(whole, self.queries)
        return rows if len(self.keys) == rows.shape[2] else rows[:, :, self.keys]


def padding_of(call: Call, positions: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """``[text key]``, True for the padding of a call; None without any.

    Args:
        call: the call.
        positions: of the real keys of each text.
    """
    if all(real.numel() == call.size[3] for real in positions):
        return None
    padding = torch.ones(call.size[0], call.size[3], dtype=torch.bool)
    for row, real in zip(padding, positions, strict=True):
        row[real.cpu()] = False
    return padding.to(call.context.device)


def stored(tensor: torch.Tensor, dtype: np.dtype) -> np.ndarray:
    """A copy as an array, in the precision that is kept.

    Raises:
        CaptureError: where a value is too large for it.
    """
    array = plain(tensor)
    if array.dtype == dtype:
        return array
    largest = float(np.abs(array).max(initial=0))
    if largest > float(np.finfo(dtype).max):
        raise CaptureError(
            f"A value of {largest:.3g} does not fit in float16; capture with precision='float32'"
        )
    return array.astype(dtype)


def plain(tensor: torch.Tensor) -> np.ndarray:
    """A copy as an array in single precision."""
    return (
        tensor.detach()
        .to("cpu", torch.float32, copy=True, memory_format=torch.contiguous_format)
        .numpy()
    )


def _picked(tensor: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """``[head position feature]`` at these positions."""
    return tensor if len(positions) == tensor.shape[1] else tensor[:, positions]
