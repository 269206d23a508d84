"""The real tokens of the queries and keys of a call: where they stand among all that the model
worked on, how padding is cut off, and the masks between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from headscope.capturing.calls.call import Call, Visibility
from headscope.errors import CaptureError
from headscope.record import Mask, Tokens

Place = slice | np.ndarray
"""Where the tokens of a text stand: a slice, which cuts out a view, where one follows the other."""


@dataclass(frozen=True)
class SideTokens:
    """The real tokens of one side of a call, for each example.

    Args:
        tokens: the tokens without padding.
        positions: their positions among all that the model worked on.
        kind: their kind: text, target, vision, audio or probe, or of divided attention in a video
            time or space; empty in models of text alone.
        fits: for each example, whether its patches are equal parts of its pictures.
    """

    tokens: tuple[Tokens, ...]
    positions: tuple[torch.Tensor, ...]
    kind: str = ""
    fits: tuple[bool, ...] = ()

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """The positions of each text, to cut arrays by."""
        places: dict[int, Place] = {}
        for positions in self.positions:
            if id(positions) not in places:
                at = positions.cpu().numpy()
                is_run = len(at) and at[-1] - at[0] == len(at) - 1
                places[id(positions)] = slice(int(at[0]), int(at[-1]) + 1) if is_run else at
        return tuple(places[id(positions)] for positions in self.positions)


Sides = tuple[SideTokens, SideTokens]
"""Of queries and of keys."""


def cut(array: np.ndarray, query: Place, key: Place) -> np.ndarray:
    """``[... query key]`` without padding."""
    return array[..., query, :][..., key]


def padding_of(size: int, side: SideTokens) -> torch.Tensor | None:
    """``[text position]``, True for the padding of a side of so many positions; None without
    any.
    """
    if all(real.numel() == size for real in side.positions):
        return None
    padding = torch.ones(len(side.positions), size, dtype=torch.bool)
    for row, real in zip(padding, side.places, strict=True):
        row[real] = False
    return padding.to(side.positions[0].device)


class Masks:
    """The masks of layers; each is read once, and layers with equal masks share one."""

    def __init__(self) -> None:
        self._read: dict[tuple, tuple[torch.Tensor | None, Mask | None]] = {}
        self._dense: dict[int, tuple[torch.Tensor, np.ndarray]] = {}
        self._alike: dict[Mask, Mask] = {}

    def of(self, call: Call, visibility: Visibility, sides: Sides, example: int) -> Mask | None:
        """The mask of one example; None where its real tokens all see each other."""
        source = call.mask if call.mask is not None else visibility.visible
        if source is None and not visibility.causal:
            return None
        text = 0 if source is None or len(source) == 1 else example
        key = (id(source), text, *(id(side.positions[example]) for side in sides))
        if key not in self._read:
            mask = self._found(call, visibility, sides, example)
            shared = None if mask is None else self._alike.setdefault(mask, mask)
            # The tensor is kept with its mask, so that no other tensor can get its id.
            self._read[key] = source, shared
        return self._read[key][1]

    def _found(self, call: Call, visibility: Visibility, sides: Sides, example: int) -> Mask | None:
        if visibility.causal:
            mask = _causal(sides, example)
        elif visibility.visible is None:
            return None
        else:
            whole = self._on_cpu(visibility.visible)
            dense = whole[example if len(whole) > 1 else 0]
            query, key = (side.places[example] for side in sides)
            dense = cut(np.broadcast_to(dense, (len(dense), *call.size[2:])), query, key)
            if len(dense) > 1 and not (dense == dense[:1]).all():
                raise CaptureError(
                    f"{call.name}: each head has a mask of its own; such models cannot be captured "
                    "yet"
                )
            mask = Mask.of(dense[0])
        return None if mask.is_full else mask

    def _on_cpu(self, visible: torch.Tensor) -> np.ndarray:
        if id(visible) not in self._dense:
            self._dense[id(visible)] = visible, visible.cpu().numpy()
        return self._dense[id(visible)][1]


def _causal(sides: Sides, example: int) -> Mask:
    """Each query sees the keys up to its own position."""
    queries, keys = (side.positions[example].cpu().numpy() for side in sides)
    places = [side.places[example] for side in sides]
    from_first = all(isinstance(place, slice) and not place.start for place in places)
    if from_first and len(queries) == len(keys):
        return Mask.causal(len(queries), len(keys))
    return Mask.of(keys[None, :] <= queries[:, None])
