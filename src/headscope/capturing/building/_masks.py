"""Masks of the real tokens of a call, in the form of records."""

from __future__ import annotations

import torch

from headscope.capturing.building._real_tokens import RealTokens
from headscope.capturing.calls.visibility import Visibility
from headscope.errors import CaptureError
from headscope.record import Mask


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
