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
        kind: their kind: text, target, vision, audio, probe or channel, or of divided attention in
            a video time or space; empty in models of text alone.
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


def mask_of(call: Call, visibility: Visibility, sides: Sides, example: int) -> Mask | None:
    """The mask of one example; None where its real tokens all see each other.

    Raises:
        CaptureError: where heads differ in it.
    """
    if visibility.causal:
        mask = _causal(sides, example)
    elif visibility.visible is None:
        return None
    else:
        visible = visibility.visible
        whole = visible[example if len(visible) > 1 else 0].numpy()
        query, key = (side.places[example] for side in sides)
        dense = cut(np.broadcast_to(whole, (len(whole), *call.size[2:])), query, key)
        if len(dense) > 1 and not (dense == dense[:1]).all():
            raise CaptureError(
                f"{call.name}: each head has a mask of its own; such models cannot be captured yet"
            )
        mask = Mask.of(dense[0])
    return None if mask.is_full else mask


def _causal(sides: Sides, example: int) -> Mask:
    """Each query sees the keys up to its own position."""
    queries, keys = (side.positions[example].cpu().numpy() for side in sides)
    places = [side.places[example] for side in sides]
    from_first = all(isinstance(place, slice) and not place.start for place in places)
    if from_first and len(queries) == len(keys):
        return Mask.causal(len(queries), len(keys))
    return Mask.of(keys[None, :] <= queries[:, None])
