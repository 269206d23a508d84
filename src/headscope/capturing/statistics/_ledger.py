"""Tiles to statistics."""

from __future__ import annotations

import numpy as np
import torch

from headscope.capturing.statistics._plan import Marks
from headscope.capturing.statistics._tile import Measured, Tile
from headscope.record import OFFSETS, Statistics

COLUMNS = ("entropy", "largest", "first", "special", "same_token", "offsets", "segments")
"""What there is of every row, in the order in which a ledger holds it; the last two take several
columns.
"""
SINGLE = len(COLUMNS) - 2


class Ledger:
    """Statistics of one example, entered tile by tile.

    Args:
        marks: of the real tokens.
        rows: ``[row]``, the queries covered, counted among the real tokens.
        heads: number of heads.
        keys: number of real keys.
        top: how many of the largest weights of each row to name.
    """

    def __init__(
        self, marks: Marks, rows: torch.Tensor, *, heads: int, keys: int, top: int
    ) -> None:
        self._marks, self._rows, self._top = marks, rows, min(top, keys)
        texts = max(1, len(marks.segments))
        place = torch.zeros(0, device=rows.device)
        self._columns = place.new_zeros(SINGLE + len(OFFSETS) + texts, heads, len(rows))
        self._received = place.new_zeros(heads, keys)
        self._top_weights = place.new_zeros(heads, len(rows), self._top)
        self._top_keys = torch.full(
            (heads, len(rows), self._top), -1, dtype=torch.int32, device=rows.device
        )
        self._equal: tuple[tuple, torch.Tensor] | None = None
        self._offsets = torch.tensor(OFFSETS, device=rows.device)

    def enter(self, tile: Tile, measured: Measured, heads: slice, part: slice) -> None:
        """Enter some heads of some of the rows; the tile's spare memory is written over."""
        weights, marks = tile.weights, self._marks
        stop = tile.start + weights.shape[-1]
        found = self._columns[:, heads, part]
        found[0] = measured.entropy
        found[1] = measured.largest
        if tile.start == 0:
            found[2] = weights[..., 0]
        if marks.special is not None:
            found[3] = _product(weights, marks.special[tile.start : stop])
        offsets = self._around(tile, part)
        found[SINGLE : SINGLE + len(OFFSETS)] = offsets
        if marks.same is not None:
            found[4] = self._same(tile, part, marks.same)
            if marks.excludes_itself:
                found[4].sub_(offsets[OFFSETS.index(0)]).clamp_(min=0)
        for column, segment in zip(
            found[SINGLE + len(OFFSETS) :], marks.segments or (None,), strict=True
        ):
            column[:] = (
                weights.sum(-1)
                if segment is None
                else _product(weights, segment[tile.start : stop])
            )
        if tile.share is not None:
            found[1:] = tile.scaled(found[1:])
        share = torch.ones_like(measured.entropy) if tile.share is None else tile.share
        self._received[heads, tile.start : stop] += torch.bmm(share.unsqueeze(1), weights)[:, 0]
        if self._top:
            self._name_largest(tile, heads, part)

    def statistics(self, rows: np.ndarray | None, queries: int) -> Statistics:
        """What was entered.

        Args:
            rows: the queries covered; None for all of them.
            queries: number of all queries.
        """
        columns = self._columns.cpu().numpy()
        offsets, segments = (
            columns[SINGLE : SINGLE + len(OFFSETS)],
            columns[SINGLE + len(OFFSETS) :],
        )
        single = dict(zip(COLUMNS, columns[:SINGLE], strict=False))
        if self._marks.same is None:
            single["same_token"] = None
        return Statistics(
            **single,
            offsets=np.moveaxis(offsets, 0, -1),
            segments=np.moveaxis(segments, 0, -1),
            received=(self._received / max(1, len(self._rows))).cpu().numpy(),
            top_weights=self._top_weights.cpu().numpy() if self._top else None,
            top_keys=self._top_keys.cpu().numpy() if self._top else None,
            rows=rows,
            queries=queries,
        )

    def _around(self, tile: Tile, part: slice) -> torch.Tensor:
        """Weights at `OFFSETS` from the query, ``[offset head row]``."""
        keys = self._rows[part, None] + self._offsets - tile.start
        there = (keys >= 0) & (keys < tile.weights.shape[-1])
        found = tile.weights.gather(-1, keys.where(there, 0).expand(tile.weights.shape[0], -1, -1))
        return (found * there).permute(2, 0, 1)

    def _same(
        self, tile: Tile, part: slice, ids: tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        """Mass on the keys with the vocabulary number of the query, ``[head row]``; the same keys
        for all heads.
        """
        looking, keys = ids
        place = (part, tile.start, tile.weights.shape[-1])
        if self._equal is None or self._equal[0] != place:
            equal = looking[self._rows[part], None] == keys[tile.start : tile.start + place[2]]
            self._equal = place, equal.to(tile.weights.dtype)
        return torch.mul(tile.weights, self._equal[1], out=tile.spare).sum(-1)

    def _name_largest(self, tile: Tile, heads: slice, part: slice) -> None:
        largest, keys = tile.weights.topk(min(self._top, tile.weights.shape[-1]), dim=-1)
        largest = largest if tile.share is None else largest * tile.share.unsqueeze(-1)
        count = largest.shape[-1]
        self._top_weights[heads, part, :count] = largest.to(torch.float32)
        self._top_keys[heads, part, :count] = (
            (keys + tile.start).where(largest > 0, -1).to(torch.int32)
        )


def _product(weights: torch.Tensor, marked: torch.Tensor) -> torch.Tensor:
    """Mass on the marked keys, ``[head row]``."""
    return torch.mv(weights.flatten(0, 1), marked.to(weights.dtype)).view(weights.shape[:2])
