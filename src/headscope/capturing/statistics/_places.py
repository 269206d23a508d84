"""Weights at known places of a tile: on the first key, near the query, on special tokens, and on
keys of its token.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from headscope.record import OFFSETS

MOST_EQUAL = 1 / 16
"""Of the pairs of a tile: where more of them are of equal tokens, all its weights times the marks
of these take less time than single ones.
"""
MOST_SPECIAL = 8
"""Special tokens of a text, likewise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TokensOfTile:
    """What is known of the tokens of a tile.

    Args:
        positions: ``[row]`` of its queries, counted as keys are.
        keys: which it has.
        real: ``[text row]``, False for rows that are padding.
        special: ``[text key]``, 1.0 for special tokens; None where there are none.
        same: vocabulary numbers ``[text row]`` of its queries and ``[text key]`` of its keys; None
            where tokens have none.
    """

    positions: torch.Tensor
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


def places_of(tokens: TokensOfTile, heads: int) -> TilePlaces:
    """The places of a tile of so many heads."""
    texts, rows = tokens.real.shape
    count, device = tokens.keys.stop - tokens.keys.start, tokens.real.device
    offsets = torch.tensor((*OFFSETS,), device=device)[:, None]
    first = tokens.positions.new_zeros(1, rows)
    key = torch.cat([first, tokens.positions + offsets]) - tokens.keys.start
    is_there = (key >= 0) & (key < count)
    # What lies outside the tile reads key 0, and counts 0.
    starts = count * torch.arange(texts * heads * rows, device=device).view(texts, heads, rows)
    single = starts + key.where(is_there, 0)[:, None, None]
    special, equal = _special_pairs(tokens), _equal_pairs(tokens)
    none = first.new_zeros(4, 0)
    pairs = [none if each is None else each for each in (special, equal)]
    column, text, row, key = torch.cat(pairs, 1)
    head = torch.arange(heads, device=device)[:, None]
    row = (text * heads + head) * rows + row
    marks = None
    if equal is None and tokens.same is not None:
        looking, own = tokens.same
        marks = (looking[:, None, :, None] == own[:, None, None]).to(torch.float32)
    return TilePlaces(
        size=(texts, heads, rows, count),
        # half the memory of what torch would take by itself
        at=torch.cat([single.flatten(), (row * count + key).flatten()]).to(torch.int32),
        there=is_there[:, None, None].to(torch.float32),
        to=(column * (texts * heads * rows) + row).flatten().to(torch.int32),
        special=tokens.special if special is None else None,
        equal=marks,
    )


def on_marked(weights: torch.Tensor, marks: torch.Tensor) -> torch.Tensor:
    """``[text head row]``: the sum of weights ``[text head row key]`` at keys ``[text key]`` that
    are marked.
    """
    # One product for each mark: torch takes three times as long for two marks as for one.
    sums = torch.bmm(weights.flatten(1, 2), marks.unsqueeze(-1).to(weights.dtype))
    return sums.view(weights.shape[:3])


def _special_pairs(tokens: TokensOfTile) -> torch.Tensor | None:
    """``[4 pair]``: column 0, text, row and key of all rows and special tokens; None where there
    are more than `MOST_SPECIAL` of these.
    """
    texts, rows = tokens.real.shape
    at = tokens.real.new_zeros(2, 0, dtype=torch.int64)
    if tokens.special is not None:
        at = tokens.special.nonzero().T
    if at.shape[1] > MOST_SPECIAL * texts:
        return None
    row = torch.arange(rows, device=at.device).repeat(at.shape[1])
    text, key = at.repeat_interleave(rows, 1)
    return torch.stack([torch.zeros_like(row), text, row, key])


def _equal_pairs(tokens: TokensOfTile) -> torch.Tensor | None:
    """``[4 pair]``: column 1, text, row and key of pairs of equal tokens; None where these are more
    than `MOST_EQUAL`, or have no numbers.
    """
    if tokens.same is None:
        return None
    looking, (ranked, order) = tokens.same[0].contiguous(), tokens.same[1].sort(1)
    first = torch.searchsorted(ranked, looking)
    # Padding would be equal to all other padding.
    counts = (torch.searchsorted(ranked, looking, right=True) - first) * tokens.real
    counts, first, rows = counts.flatten(), first.flatten(), looking.shape[1]
    total = int(counts.sum())
    if total > MOST_EQUAL * len(counts) * ranked.shape[1]:
        return None
    device = looking.device
    owner = torch.arange(len(counts), device=device).repeat_interleave(counts)
    # the first, second, ... of the keys that are equal to each row
    number = torch.arange(total, device=device) - (counts.cumsum(0) - counts)[owner]
    text, key = owner // rows, first[owner] + number
    return torch.stack([torch.ones_like(text), text, owner % rows, order[text, key]])
