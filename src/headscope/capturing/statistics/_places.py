"""Weights at known places of a tile: on the first key, near the query, on special tokens, and on
keys of its token.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from headscope.record import OFFSETS

MOST_SINGLE = 1 / 12
"""Of the pairs of a tile: where more of them are of equal tokens, or of special ones, all its
weights times the marks of these take less time than single ones.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class TokensOfTile:
    """What is known of the tokens of a tile.

    Args:
        keys: which it has.
        real: ``[text row]``, False for rows that are padding.
        special: ``[text key]``, 1.0 for special tokens; None where there are none.
        same: vocabulary numbers ``[text row]`` of its queries and ``[text key]`` of its keys; None
            where tokens have none.
    """

    keys: slice
    real: torch.Tensor
    special: torch.Tensor | None
    same: tuple[torch.Tensor, torch.Tensor] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class TilePlaces:
    """Which weights of a tile ``[text head row key]`` are looked at singly, as its indices.

    Args:
        size: of the tile.
        at: ``[single]``, for each of ``[column text head row]`` the weight on the first key, and
            at each of `OFFSETS`; then ``[pair]``, those of special tokens and of equal ones.
        there: ``[column 1 1 row]``, 0.0 where the tile has no such key.
        to: ``[pair]``, to which of the sums ``[2 text head row]`` each belongs: over special tokens
            or over equal ones.
        special: ``[text key]``, 1.0 for special tokens, which are too many to be looked at singly;
            None where they are not.
        equal: ``[text 1 row key]``, 1.0 where tokens are equal, likewise.
    """

    size: tuple[int, int, int, int]
    at: torch.Tensor
    there: torch.Tensor
    to: torch.Tensor
    special: torch.Tensor | None
    equal: torch.Tensor | None

    @property
    def numbers(self) -> int:
        """How many numbers it holds."""
        return len(self.at) + len(self.to) + (0 if self.equal is None else self.equal.numel())

    def read(
        self, weights: torch.Tensor, spare: torch.Tensor, single: torch.Tensor, sums: torch.Tensor
    ) -> None:
        """Read the weights of a tile off.

        Args:
            weights: ``[text head row key]``.
            spare: of the same shape, to be written to.
            single: ``[column text head row]``, takes the weights at the first key and `OFFSETS`.
            sums: ``[2 text head row]``, takes the sums over special tokens and over equal ones.
        """
        rows = self.size[:-1]
        read = weights.reshape(-1).index_select(0, self.at)
        singles = len(read) - len(self.to)
        torch.mul(read[:singles].view(-1, *rows), self.there, out=single)
        if len(self.to):
            added = read.new_zeros(2 * math.prod(rows)).index_add_(0, self.to, read[singles:])
            sums.copy_(added.view(2, *rows))
        if self.special is not None:
            sums[0] = on_marked(weights, self.special)
        if self.equal is not None:
            sums[1] = torch.mul(weights, self.equal, out=spare).sum(-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class SinglePlaces:
    """Where a tile has the first key and those at each of `OFFSETS`, whatever its tokens are.

    Args:
        at: ``[column text head row]``, the index of the weight in the tile; 0 where it has none.
        there: ``[column 1 1 row]``, 0.0 where it has none.
    """

    at: torch.Tensor
    there: torch.Tensor

    @classmethod
    def of(cls, positions: torch.Tensor, keys: slice, texts: int, heads: int) -> SinglePlaces:
        """Those of a tile of so many texts and heads, of queries at some positions ``[row]``."""
        rows, count, device = len(positions), keys.stop - keys.start, positions.device
        offsets = torch.tensor((*OFFSETS,), device=device)[:, None]
        key = torch.cat([positions.new_zeros(1, rows), positions + offsets]) - keys.start
        is_there = ((key >= 0) & (key < count))[:, None, None]
        # rows one after the other, each from its first key on
        starts = count * torch.arange(texts * heads * rows, device=device).view(texts, heads, rows)
        at = starts + key[:, None, None].where(is_there, 0)
        return cls(at=at.where(is_there, 0), there=is_there.to(torch.float32))


def places_of(tokens: TokensOfTile, single: SinglePlaces) -> TilePlaces:
    """The places of a tile."""
    (texts, rows), count = tokens.real.shape, tokens.keys.stop - tokens.keys.start
    heads = single.at.shape[2]
    marks = tokens.real.new_zeros(2, texts, rows, count)
    if tokens.special is not None:
        marks[0] = tokens.special[:, None] > 0
    if tokens.same is not None:
        looking, own = tokens.same
        torch.eq(looking[:, :, None], own[:, None], out=marks[1])
    # Padding would be equal to all other padding.
    marks &= tokens.real[:, :, None]
    most = MOST_SINGLE * texts * rows * count
    are_many = [number > most for number in marks.flatten(1).sum(1).tolist()]
    equal = marks[1].unsqueeze(1).to(torch.float32) if are_many[1] else None
    marks[are_many] = False
    column, text, row, key = marks.nonzero(as_tuple=True)
    head = torch.arange(heads, device=row.device)[:, None]
    row = (text * heads + head) * rows + row
    return TilePlaces(
        size=(texts, heads, rows, count),
        # half the memory of what torch would take by itself
        at=torch.cat([single.at.flatten(), (row * count + key).flatten()]).to(torch.int32),
        there=single.there,
        to=(column * (texts * heads * rows) + row).flatten().to(torch.int32),
        special=tokens.special if are_many[0] else None,
        equal=equal,
    )


def on_marked(weights: torch.Tensor, marks: torch.Tensor) -> torch.Tensor:
    """``[text head row]``: the sum of weights ``[text head row key]`` at keys ``[text key]`` that
    are marked.
    """
    # One product for each mark: torch takes three times as long for two marks as for one.
    sums = torch.bmm(weights.flatten(1, 2), marks.unsqueeze(-1).to(weights.dtype))
    return sums.view(weights.shape[:3])
