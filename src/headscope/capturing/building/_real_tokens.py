"""The real tokens of one example of a call: copies of their arrays, and their mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headscope.capturing.calls.call import Call, Visibility
from headscope.errors import CaptureError
from headscope.record import Mask

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


class Masks:
    """The masks of layers; each is read once, and layers with equal masks share one."""

    def __init__(self) -> None:
        self._read: dict[tuple, tuple[torch.Tensor | None, Mask | None]] = {}
        self._alike: dict[Mask, Mask] = {}

    def of(self, unpadded: RealTokens, visibility: Visibility) -> Mask | None:
        """The mask of one example; None where its real tokens all see each other."""
        source = unpadded.call.mask if unpadded.call.mask is not None else visibility.visible
        if source is None and not visibility.causal:
            return None
        key = (id(source), unpadded.example, visibility.causal, unpadded.call.size[2:])
        if key not in self._read:
            # The tensor is kept with its mask, so that no other tensor can get its id.
            self._read[key] = source, self._shared(self._found(unpadded, visibility))
        return self._read[key][1]

    def _found(self, unpadded: RealTokens, visibility: Visibility) -> Mask | None:
        queries, keys = unpadded.queries, unpadded.keys
        if (
            visibility.causal
            and queries.shape == keys.shape
            and len(queries)
            and _is_run(queries)
            and _is_run(keys)
        ):
            mask = Mask.causal(len(queries), len(keys))
        elif visibility.causal:
            mask = Mask.of((keys[None, :] <= queries[:, None]).cpu().numpy())
        elif visibility.visible is None:
            return None
        else:
            dense = unpadded.of_both(visibility.visible)
            if dense.shape[0] > 1 and not (dense == dense[:1]).all():
                raise CaptureError(
                    f"{unpadded.call.name}: each head has a mask of its own; such models cannot be "
                    "captured yet"
                )
            mask = Mask.of(dense[0].cpu().numpy())
        return None if mask.is_full else mask

    def _shared(self, mask: Mask | None) -> Mask | None:
        return None if mask is None else self._alike.setdefault(mask, mask)


def _is_run(positions: torch.Tensor) -> bool:
    return bool(positions[-1] - positions[0] == len(positions) - 1 and positions[0] == 0)
