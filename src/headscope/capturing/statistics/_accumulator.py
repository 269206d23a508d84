"""Tiles to statistics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from headscope.capturing.calls._tile import RowMeasures, Tile, entropy_of
from headscope.capturing.statistics._places import TilePlaces, on_marked
from headscope.capturing.statistics._plan import TokenMarks
from headscope.record import OFFSETS, Statistics
from headscope.record.vouched import limits_of, vouched_statistics

COLUMNS = ("entropy", "largest", "special", "same_token", "first", "offsets", "segments")
"""What there is of every row, in the order in which an accumulator holds it; the last two take
several columns. All but the first are linear in the weights. Behind them is the sum of what the
weights are to be divided by.
"""
SINGLE = len(COLUMNS) - 2
OFFSET_COLUMNS = slice(SINGLE, SINGLE + len(OFFSETS))
PLACED = slice(COLUMNS.index("first"), OFFSET_COLUMNS.stop)
"""Columns of single weights, in the order of `TilePlaces`."""
ENTROPY, LARGEST, SPECIAL, SAME = range(PLACED.start)
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
        self._marks, self._rows = marks, rows
        self._lengths, self._top = tuple(lengths), min(top, keys)
        like = torch.zeros(0, device=rows.device)
        # What follows from these is worked out once, of all rows: tiles are hundreds, and each
        # operation on the rows of one costs a call.
        columns = SINGLE + len(OFFSETS) + max(1, len(marks.segments)) + 1
        self._columns = like.new_zeros(columns, texts, heads, len(rows))
        self._columns[LARGEST] = 1
        self._left = like.new_ones(texts, heads, len(rows))
        self._received = like.new_zeros(texts, heads, keys)
        self._top_weights = like.new_zeros(texts, heads, len(rows), self._top)
        self._top_keys = torch.full_like(self._top_weights, -1, dtype=torch.int32)
        self._real = _real_rows(lengths, len(rows)).to(rows.device)
        self._is_padded = any(count < len(rows) for count, _ in lengths)

    def enter(
        self,
        tile: Tile,
        measured: RowMeasures,
        held: tuple[slice, slice, slice],
        *,
        is_cut: bool,
    ) -> None:
        """Enter a tile, whose spare memory is written over.

        Args:
            tile: weights of some heads of some rows of some texts.
            measured: what is known of its rows.
            held: which texts, heads and rows it holds.
            is_cut: whether padding was cut off since its rows were measured.
        """
        weights, marks, (texts, heads, part) = tile.weights, self._marks, held
        keys = slice(tile.start, tile.start + weights.shape[-1])
        columns = self._columns[:, texts, heads, part]
        columns[ENTROPY] = measured.products
        total = weights.sum(-1) if measured.total is None or is_cut else measured.total
        columns[-1] = 1 if measured.total is None else measured.total
        if measured.largest is not None:
            columns[LARGEST] = measured.largest
        if measured.left is not None:
            self._left[texts, heads, part] = measured.left
        places = self._places_in(held, keys)
        places.read(weights, tile.spare, columns[PLACED], columns[SPECIAL : SAME + 1])
        if marks.segments:
            for column, segment in enumerate(marks.segments, OFFSET_COLUMNS.stop):
                columns[column] = on_marked(weights, segment[texts, keys])
        else:
            columns[OFFSET_COLUMNS.stop] = total
        self._receive(tile, held, keys)
        if self._top:
            self._name_largest(tile, held)

    def _receive(self, tile: Tile, held: tuple[slice, slice, slice], keys: slice) -> None:
        """Add what the keys of a tile receive, of all rows together."""
        weights, (texts, heads, part) = tile.weights, held
        # A product with what rows count, since a weighted copy of the tile would double its memory.
        counted = tile.share
        if counted is None or self._is_padded:
            counted = self._real[texts, None, part].to(weights.dtype).expand(weights.shape[:3])
            counted = counted if tile.share is None else counted * tile.share
        received = torch.bmm(counted.flatten(0, 1).unsqueeze(1), weights.flatten(0, 1))
        self._received[texts, heads, keys].add_(received.view(*weights.shape[:2], -1))

    def statistics(self, rows: np.ndarray | None, queries: int) -> list[Statistics]:
        """What was entered, for each text.

        Args:
            rows: the queries covered; None for all of them.
            queries: number of all queries where only some are covered.
        """
        finished = *self._finished(), self._top_weights, self._top_keys
        whole = [part.cpu().numpy() for part in finished]
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
                    offsets=offsets.transpose(1, 2, 0),
                    segments=segments.transpose(1, 2, 0),
                    received=whole[1][text, :, :keys].copy(),
                    top_weights=top_weights,
                    top_keys=top_keys,
                    rows=rows,
                    queries=count if rows is None else queries,
                )
            )
        return statistics

    def _finished(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The columns of all rows, of weights that are multiplied by their share; and what keys
        receive in the mean over the rows.
        """
        columns, total = self._columns[:-1], self._columns[-1]
        # Rows of which no tile was entered lie on padding.
        left = self._left.where(total > 0, 0)
        total = total.where(total > 0, 1)
        if self._marks.same is not None and self._marks.excludes_itself:
            # Both terms are sums in single precision, so that their difference may fall below 0.
            itself = columns[OFFSET_COLUMNS][OFFSETS.index(0)]
            columns[SAME].sub_(itself).clamp_(min=0)
        columns[ENTROPY] = entropy_of(columns[ENTROPY], total, left)
        columns[ENTROPY + 1 :].mul_(left / total)
        counts = self._real.sum(1).clamp_(min=1)
        return columns, self._received.div_(counts[:, None, None])

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

    def _places_in(self, held: tuple[slice, slice, slice], keys: slice) -> TilePlaces:
        """The places of a tile that holds these texts, heads, rows and keys."""
        texts, heads, part = held
        limits = tuple((each.start, each.stop) for each in (texts, part, keys))
        known = *limits, heads.stop - heads.start, len(self._rows), self._lengths
        places = self._marks.known_places.get(known)
        if places is None:
            places = self._marks.places(
                texts,
                self._rows[part],
                keys,
                real=self._real[texts, part] > 0,
                heads=heads.stop - heads.start,
            )
            self._marks.remember(known, places)
        return places

    def _name_largest(self, tile: Tile, held: tuple[slice, slice, slice]) -> None:
        largest, keys = tile.weights.topk(min(self._top, tile.weights.shape[-1]), dim=-1)
        largest = largest if tile.share is None else largest * tile.share.unsqueeze(-1)
        count = largest.shape[-1]
        self._top_weights[(*held, slice(count))] = largest.to(torch.float32)
        self._top_keys[(*held, slice(count))] = (
            (keys + tile.start).where(largest > 0, -1).to(torch.int32)
        )


def _real_rows(lengths: Sequence[tuple[int, int]], rows: int) -> torch.Tensor:
    """``[text row]``: 1.0 for the rows of each text that are real."""
    counts = torch.tensor([count for count, _ in lengths])
    return (torch.arange(rows) < counts[:, None]).to(torch.float32)
