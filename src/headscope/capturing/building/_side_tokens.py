"""The real tokens of the queries or keys of a call, and those of a model whose arguments are not
known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from headscope.capturing.building.layers import group_of
from headscope.capturing.building.padding import SideTokens
from headscope.capturing.calls.call import Call, state_of
from headscope.errors import CaptureError
from headscope.record import Tokens

PADDING = "padding may be among them, since it was found for other positions alone"
"""Why a side is perhaps longer than its text."""


@dataclass
class WatchedTokens:
    """The sides of calls of a model whose arguments are not known: the user's tokens with so many
    positions, or numbers, without the positions that are hidden from every query.

    Args:
        given: the sequences of each example, the first of every example before the second.
        used: those of which there are positions.
    """

    given: tuple[Tokens, ...]
    used: set[Tokens] = field(default_factory=set)
    _masks: dict[tuple, tuple[torch.Tensor | None, np.ndarray]] = field(default_factory=dict)
    _known: dict[tuple[int, bytes, str], SideTokens] = field(default_factory=dict)
    _of_self: dict[tuple[str, int], SideTokens] = field(default_factory=dict)
    _is_padded: bool = False

    def of(self, call: Call) -> tuple[SideTokens, SideTokens]:
        batch, _, queries, keys = call.size
        seen = *state_of(call.mask), keys
        if seen not in self._masks:
            self._masks[seen] = call.mask, self._real(call)
        real = self._masks[seen][1]
        key = self._side(call, real)
        self._is_padded |= not real.all()
        block = group_of(call).path
        sequence = (block if block != call.name else block.rpartition(".")[0]), queries
        if queries == keys and not call.cross:
            self._of_self[sequence] = key
            return key, key
        # Which queries of cross-attention are padding was seen when they were keys themselves.
        query, more = self._of_self.get(sequence), PADDING * (self._is_padded and queries > 1)
        return query or self._side(call, np.ones((batch, queries), bool), more), key

    def _real(self, call: Call) -> np.ndarray:
        """``[batch position]``, True for keys that are not padding."""
        shape = call.size[0], call.size[3]
        if call.mask is None:
            return np.ones(shape, bool)
        real = looked_at(call, shape)
        if tuple(call.mask.shape[2:]) == (shape[1],) * 2 and not call.cross:
            _keep_last(real, call.mask)
        return real

    def _side(self, call: Call, real: np.ndarray, more: str = "") -> SideTokens:
        known = real.shape[1], real.tobytes(), more
        if known not in self._known:
            positions = positions_in(torch.from_numpy(real).to(call.context.device))
            reason = f"hs.watch(model, tokens) was given no tokens for {real.shape[1]} positions"
            numbers = numbers_at(positions, f"{reason}; {more}" if more else reason)
            tokens = tuple(
                self._named(self.given[row :: len(real)], row_real, numbers[row])
                for row, row_real in enumerate(real)
            )
            self._known[known] = SideTokens(tokens, positions)
        return self._known[known]

    def _named(self, given: tuple[Tokens, ...], real: np.ndarray, numbers: Tokens) -> Tokens:
        """The one of an example's sequences that has so many tokens, with padding or without."""
        fitting = {side for side in given if len(side) in (len(real), len(numbers))}
        if len(fitting) != 1:
            return numbers
        (whole,) = fitting
        self.used.add(whole)
        return whole if len(whole) == len(numbers) else whole.take(np.flatnonzero(real).tolist())


def _keep_last(real: np.ndarray, mask: torch.Tensor) -> None:
    """Count the last token as real where no token sees itself: nobody is there to see it.

    Args:
        real: ``[batch position]``, True for keys that a query sees.
        mask: of self-attention.
    """
    for row, seen in zip(real, _visible(mask).any(dim=1).expand(len(real), -1, -1), strict=True):
        # The first token may see itself, since it has nothing else.
        if not row.any() or bool(torch.triu(seen[1:], diagonal=1).any()):
            continue
        last = int(np.flatnonzero(row)[-1]) + 1
        if last < len(row) and not bool(seen[last + 1 :].any()):
            row[last] = True


def positions_in(mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Where each row of ``[batch position]`` is not zero.

    Raises:
        CaptureError: where a row is zero everywhere.
    """
    if bool(mask.all()):
        return (torch.arange(mask.shape[1], device=mask.device),) * len(mask)
    positions = tuple(row.nonzero()[:, 0] for row in mask)
    for number, where in enumerate(positions):
        if not len(where):
            raise CaptureError(
                f"The attention mask hides all {mask.shape[1]} positions of row {number} of the "
                "batch, so that nothing of it is read; leave the row out"
            )
    return positions


def numbers_at(positions: Sequence[torch.Tensor], reason: str) -> tuple[Tokens, ...]:
    """Numbered tokens for the positions of each example."""
    return tuple(
        Tokens(pieces=tuple(map(str, where.tolist())), numbered=reason) for where in positions
    )


def _visible(mask: torch.Tensor) -> torch.Tensor:
    low = 0.5 if mask.dtype == torch.bool else torch.finfo(mask.dtype).min / 2
    return mask > low


def looked_at(call: Call, shape: tuple[int, ...]) -> np.ndarray:
    """``[batch position]``, True for keys that any query may look at."""
    seen = call.weights if call.mask is None else _visible(call.mask)
    if seen is None or seen.shape[-1] < shape[1]:
        return np.ones(shape, bool)
    return (seen > 0).any(dim=2).any(dim=1)[:, : shape[1]].expand(*shape).cpu().numpy()
