"""Tiles to statistics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from headscope.capturing.calls._tile import RowMeasures, Tile, entropy_of
from headscope.capturing.statistics._plan import TokenMarks
from headscope.record import OFFSETS, Statistics
from headscope.record.vouched import limits_of, vouched_statistics

COLUMNS = ("entropy", "largest", "first", "special", "same_token", "offsets", "segments")
"""What there is of every row, in the order in which an accumulator holds it; the last two take
several columns. All but the first are linear in the weights.
"""
SINGLE = len(COLUMNS) - 2
OFFSET_COLUMNS = slice(SINGLE, SINGLE + len(OFFSETS))
ROUNDING = 1e-4
"""How far sums of single precision may exceed their limit here: less than `Statistics` allows."""


class Accumulator:
    """Statistics of some texts, entered tile by tile.

    Args:
        marks: of their tokens.
        rows: ``[row]``, the queries covered, counted as the tokens of the marks are.
        lengths: for each text how many of the rows, and of the keys, are real tokens: the first.
        heads: number of heads.
        keys: number of keys, padding included where it is computed too.
        top: how many of the largest weights of each row to name.
    """

    def __init__(
        self,
        marks: TokenMarks,
        rows: torch.Tensor,
        lengths: Sequence[tuple[int, int]],
        *,
        heads: int,
        keys: int,
        top: int,
    ) -> None:
        texts = len(lengths)
        self._marks, self._rows, self._lengths, self._top = marks, rows, lengths, min(top, keys)
        like = torch.zeros(0, device=rows.device)
        columns = SINGLE + len(OFFSETS) + max(1, len(marks.segments))
        self._columns = like.new_zeros(columns, texts, heads, len(rows))
        # What follows from these is worked out once, of all rows: tiles are hundreds, and each
        # operation on the rows of one costs a call.
        self._total = like.new_ones(texts, heads, len(rows))
        self._left = like.new_zeros(texts, heads, len(rows))
        self._received = like.new_zeros(texts, heads, keys)
        self._top_weights = like.new_zeros(texts, heads, len(rows), self._top)
        self._top_keys = torch.full_like(self._top_weights, -1, dtype=torch.int32)
        self._real = _mean_over(lengths, len(rows)).to(rows.device)
        self._equal: tuple[tuple, torch.Tensor | None] = (), None
        self._near: tuple[tuple, torch.Tensor, torch.Tensor] | None = None
        self._offsets = torch.tensor(OFFSETS, device=rows.device)

    def enter(self, tile: Tile, measured: RowMeasures, held: tuple[slice, slice, slice]) -> None:
        """Enter a tile, whose spare memory is written over.

        Args:
            tile: weights of some heads of some rows of some texts.
            measured: what is known of its rows.
            held: which texts, heads and rows it holds.
        """
        weights, marks, (texts, heads, part) = tile.weights, self._marks, held
        keys = slice(tile.start, tile.start + weights.shape[-1])
        rows = texts, heads, part
        self._left[rows] = 1 if measured.left is None else measured.left
        if measured.total is not None:
            self._total[rows] = measured.total
        columns = self._columns[:, texts, heads, part]
        columns[0] = measured.products
        columns[1] = 1 if measured.largest is None else measured.largest
        if tile.start == 0:
            columns[2] = weights[..., 0]
        if marks.special is not None:
            columns[3] = _on_marked(weights, marks.special[texts, keys])
        equal = self._equal_in(texts, part, keys)
        if equal is not None:
            columns[4] = torch.mul(weights, equal, out=tile.spare).sum(-1)
        columns[OFFSET_COLUMNS] = self._at_offsets(tile, part)
        if marks.segments:
            for column, segment in enumerate(marks.segments, OFFSET_COLUMNS.stop):
                columns[column] = _on_marked(weights, segment[texts, keys])
        else:
            columns[-1] = weights.sum(-1)
        self._receive(tile, held, keys)
        if self._top:
            self._name_largest(tile, held)

    def _receive(self, tile: Tile, held: tuple[slice, slice, slice], keys: slice) -> None:
        """Add what the keys of a tile receive."""
        weights, (texts, heads, part) = tile.weights, held
        # A product with the vector of means, since a weighted copy of the tile would double its
        # memory.
        means = self._real[texts, None, part].to(weights.dtype)
        means = means.expand(weights.shape[:3]) if tile.share is None else means * tile.share
        received = torch.bmm(means.flatten(0, 1).unsqueeze(1), weights.flatten(0, 1))
        self._received[texts, heads, keys].add_(received.view(*weights.shape[:2], -1))

    def statistics(self, rows: np.ndarray | None, queries: int) -> list[Statistics]:
        """What was entered, for each text.

        Args:
            rows: the queries covered; None for all of them.
            queries: number of all queries where only some are covered.
        """
        whole = [
            part.cpu().numpy()
            for part in (self._finished(), self._received, self._top_weights, self._top_keys)
        ]
        statistics = []
        make = vouched_statistics if self._are_within_limits(*whole) else Statistics
        for text, (count, keys) in enumerate(self._lengths):
            # copies, so that a record does not keep the others of its batch in memory
            columns = whole[0][:, text, :, :count].copy()
            offsets, segments = columns[OFFSET_COLUMNS], columns[OFFSET_COLUMNS.stop :]
            if not self._is_pair(text):
                segments = segments[:1]
            single = dict(zip(COLUMNS, columns[:SINGLE], strict=False))
            if self._marks.same is None:
                single["same_token"] = None
            top_weights = top_keys = None
            if self._top:
                top_weights, top_keys = (
                    part[text, :, :count, :keys].copy() for part in (whole[2], whole[3])
                )
            statistics.append(
                make(
                    **single,
                    offsets=np.moveaxis(offsets, 0, -1),
                    segments=np.moveaxis(segments, 0, -1),
                    received=whole[1][text, :, :keys].copy(),
                    top_weights=top_weights,
                    top_keys=top_keys,
                    rows=rows,
                    queries=count if rows is None else queries,
                )
            )
        return statistics

    def _finished(self) -> torch.Tensor:
        """The columns of all rows, of weights that are multiplied by their share."""
        columns = self._columns
        if self._marks.same is not None and self._marks.excludes_itself:
            # Both terms are sums in single precision, so that their difference may fall below 0.
            itself = columns[OFFSET_COLUMNS][OFFSETS.index(0)]
            columns[4].sub_(itself).clamp_(min=0)
        columns[0] = entropy_of(columns[0], self._total, self._left)
        columns[1:].mul_(self._left / self._total)
        return columns

    def _are_within_limits(
        self,
        columns: np.ndarray,
        received: np.ndarray,
        top_weights: np.ndarray,
        top_keys: np.ndarray,
    ) -> bool:
        """Whether the numbers of all texts are such as `Statistics` demands of those of each."""
        # text first, as the longer ones may have more
        parts = {"entropy": columns[0], "largest": np.moveaxis(columns[1:], 1, 0)}
        parts |= {"received": received, "top_weights": top_weights, "top_keys": top_keys}
        for name, part in parts.items():
            if not part.size:
                continue
            axes = tuple(range(1, part.ndim))
            limits = np.array([limits_of(name, keys) for _, keys in self._lengths])
            is_least = part.min(axes) >= limits[:, 0]
            # false of NaN, too
            if not (is_least & (part.max(axes) <= limits[:, 1] + ROUNDING)).all():
                return False
        return True

    def _is_pair(self, text: int) -> bool:
        """Whether a text is a pair."""
        if not self._marks.segments:
            return False
        keys = self._lengths[text][1]
        return bool(self._marks.segments[1][text, :keys].any())

    def _at_offsets(self, tile: Tile, part: slice) -> torch.Tensor:
        """Weights at `OFFSETS` from the query, ``[offset text head row]``."""
        known = part, tile.start, tile.weights.shape[-1]
        # Most tiles of a call hold the same rows and keys of other heads or texts.
        if self._near is None or self._near[0] != known:
            keys = self._rows[part, None] + self._offsets - tile.start
            there = (keys >= 0) & (keys < tile.weights.shape[-1])
            # gather wants an index for every entry: what lies outside the tile reads key 0, and
            # counts 0.
            self._near = known, keys.where(there, 0), there.to(tile.weights.dtype)
        _, keys, there = self._near
        near = tile.weights.gather(-1, keys.expand(*tile.weights.shape[:2], -1, -1))
        return near.mul_(there).permute(3, 0, 1, 2)

    def _equal_in(self, texts: slice, part: slice, keys: slice) -> torch.Tensor | None:
        """Where keys have the number of the query, the same for all heads of a tile."""
        tile = texts, part, keys
        # A tile of rows comes once for each group of heads, and all of them share these marks.
        if self._equal[0] != tile:
            self._equal = tile, self._marks.equal(texts, self._rows[part], keys)
        return self._equal[1]

    def _name_largest(self, tile: Tile, held: tuple[slice, slice, slice]) -> None:
        largest, keys = tile.weights.topk(min(self._top, tile.weights.shape[-1]), dim=-1)
        largest = largest if tile.share is None else largest * tile.share.unsqueeze(-1)
        count = largest.shape[-1]
        self._top_weights[(*held, slice(count))] = largest.to(torch.float32)
        self._top_keys[(*held, slice(count))] = (
            (keys + tile.start).where(largest > 0, -1).to(torch.int32)
        )


def _on_marked(weights: torch.Tensor, marks: torch.Tensor) -> torch.Tensor:
    """``[text head row]``: the sum of the weights at keys ``[text key]`` that are marked."""
    # One product for each mark: torch takes three times as long for two marks as for one.
    sums = torch.bmm(weights.flatten(1, 2), marks.to(weights.dtype).unsqueeze(-1))
    return sums.view(weights.shape[:3])


def _mean_over(lengths: Sequence[tuple[int, int]], rows: int) -> torch.Tensor:
    """``[text row]``: what rows are multiplied by in a mean over those of each text that are
    real.
    """
    means = torch.zeros(len(lengths), rows)
    for row, (count, _) in zip(means, lengths, strict=True):
        row[:count] = 1 / max(1, count)
    return means
