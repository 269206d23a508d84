"""Statistics of every row of a call's weights, added up block by block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headscope.capturing.building.padding import SideTokens
from headscope.capturing.calls.attention import (
    QueryRows,
    WeightsBlock,
    blocks_of,
    check_lost,
    of_rows,
)
from headscope.capturing.calls.call import Call, Visibility
from headscope.capturing.device import full_precision, on_cpu
from headscope.capturing.keep import KeepChoice
from headscope.record import OFFSETS, Statistics

ENTROPY, LARGEST, TOTAL, SPECIAL, SECOND, SAME, FIRST = range(7)
ITSELF = FIRST + 1 + OFFSETS.index(0)
COLUMNS = FIRST + 1 + len(OFFSETS)
Places = tuple[torch.Tensor, ...]


def sampled(count: int, keeping: KeepChoice) -> np.ndarray | None:
    """Which of so many rows are covered, rising; None for all. Texts of the same length have the
    same rows sampled, in every layer.
    """
    if keeping.rows is None or keeping.rows >= count:
        return None
    return np.sort(np.random.default_rng([0, count]).choice(count, keeping.rows, replace=False))


@dataclass(frozen=True, eq=False)
class RowsOfText:
    """The rows of one text that are covered.

    Args:
        at: their positions ``[row]`` among all that the model worked on.
        numbers: the same among the real tokens.
        keys: positions of the real keys.
        queries: number of the real tokens.
        local: places of the rows among those that are computed.
    """

    at: np.ndarray
    numbers: np.ndarray
    keys: np.ndarray
    queries: int
    local: np.ndarray


class Marks:
    """What is known of the tokens of a call before it is computed; layers with the same tokens
    share it.

    Args:
        call: the call.
        sides: the tokens of its queries and keys.
        keeping: which rows are covered.
    """

    def __init__(self, call: Call, sides: tuple[SideTokens, ...], keeping: KeepChoice) -> None:
        device, (batch, _, queries, keys) = call.context.device, call.size
        query, key = sides
        lengths = [len(positions) for positions in query.positions]
        covered = [sampled(length, keeping) for length in lengths]
        is_sampled = any(some is not None for some in covered)
        self.texts: list[RowsOfText] = []
        for text, some in enumerate(covered):
            rows, columns = (side.positions[text].cpu().numpy() for side in sides)
            numbers = np.arange(lengths[text]) if some is None else some
            at = rows[numbers]
            local = np.arange(len(at)) if is_sampled else at
            self.texts.append(RowsOfText(at, numbers, columns, lengths[text], local))
        self.rows: torch.Tensor | None = None
        count = queries
        if is_sampled:
            count = max(len(of.at) for of in self.texts)
            at = [np.pad(of.at, (0, count - len(of.at)), "edge") for of in self.texts]
            self.rows = torch.from_numpy(np.stack(at)).to(device)
        first = np.full((batch, count, 1 + len(OFFSETS)), -1)
        counted, real = np.zeros((batch, count), np.float32), np.zeros((batch, keys), bool)
        self.is_cross: bool = query.tokens != key.tokens
        for text, of in enumerate(self.texts):
            counted[text, of.local], real[text, of.keys] = 1 / max(1, len(of.at)), True
            numbers = np.c_[np.zeros_like(of.numbers), of.numbers[:, None] + np.array([*OFFSETS])]
            inside = (numbers >= 0) & (numbers < len(of.keys))
            if len(of.keys):
                first[text, of.local] = np.where(inside, of.keys[np.where(inside, numbers, 0)], -1)
        self.is_padded: bool = not real.all()
        self.counted: torch.Tensor = torch.from_numpy(counted).to(device)
        self.real: torch.Tensor = torch.from_numpy(real).to(device)
        self.are_there: torch.Tensor = torch.from_numpy(first >= 0).to(device)
        self.places: torch.Tensor = torch.from_numpy(first.clip(0)).to(device)
        self.special: Places | None = _columns(_spread(key, "special", keys), device)
        segments = _spread(key, "segments", keys)
        self.segments: np.ndarray | None = segments
        self.second: Places | None = _columns(None if segments is None else segments == 1, device)
        looking, own = _spread(query, "ids", queries), _spread(key, "ids", keys)
        self.ids: Places = ()
        if looking is not None and own is not None:
            self._note_ids(looking, own, device)

    def _note_ids(self, looking: np.ndarray, own: np.ndarray, device: torch.device) -> None:
        """Note the tokens of the rows and of the keys; padding is like no token."""
        rows, keys = np.full(self.counted.shape, -1), np.full(own.shape, -2)
        for text, of in enumerate(self.texts):
            rows[text, of.local], keys[text, of.keys] = looking[text, of.at], own[text, of.keys]
        self.ids = torch.from_numpy(rows).to(device), torch.from_numpy(keys).to(device)


def _spread(side: SideTokens, name: str, size: int) -> np.ndarray | None:
    """``[text position]`` of one fact about the tokens, padding included; None where it is not
    known of all.
    """
    if any(getattr(tokens, name) is None for tokens in side.tokens):
        return None
    numbers = np.zeros((len(side.tokens), size), np.int64)
    for row, tokens, positions in zip(numbers, side.tokens, side.positions, strict=True):
        row[positions.cpu().numpy()] = getattr(tokens, name)
    return numbers


def _columns(marked: np.ndarray | None, device: torch.device) -> Places | None:
    """Which keys are marked in any text, and ``[text 1 1 key]`` 1.0 where they are; None where none
    is.
    """
    if marked is None or not marked.any():
        return None
    keys = np.flatnonzero(marked.any(0))
    marks = (marked[:, None, None, keys] > 0).astype(np.float32)
    return torch.from_numpy(keys).to(device), torch.from_numpy(marks).to(device)


@torch.no_grad()
@full_precision()
def statistics_of_call(
    call: Call, visibility: Visibility, marks: Marks, *, top: int = 0
) -> list[Statistics]:
    """The statistics of each text of a call.

    Args:
        call: with queries and keys, or with weights.
        visibility: which keys the queries may attend to.
        marks: of its tokens.
        top: how many of the largest weights of each row to name.

    Raises:
        CaptureError: where real tokens attend to padding, so that it cannot be cut off.
    """
    if marks.rows is not None:
        call, visibility = of_rows(call, visibility, QueryRows(marks.rows))
    statistics = RowStatistics(call, marks, top)
    for block in blocks_of(call, visibility, measured=True):
        statistics.enter(block)
    return statistics.of_texts()


class RowStatistics:
    """The statistics of a call, to which its blocks are entered one by one.

    Args:
        call: the call, of the rows that are covered.
        marks: of its tokens.
        top: how many of the largest weights of each row to name.
    """

    def __init__(self, call: Call, marks: Marks, top: int) -> None:
        batch, heads, rows, keys = call.size
        self._marks, self._name = marks, call.name
        of_top = batch, heads, rows, min(top, keys)
        self._shapes = ((1,), (COLUMNS, batch, heads, rows), (batch, heads, keys), of_top, of_top)
        # In one piece, which is read in one copy; the numbers of keys are exact as floats.
        self._whole = marks.counted.new_zeros(sum(map(math.prod, self._shapes)))
        parts = self._parts_of(self._whole)
        self._lost, self._columns, self._received, self._top, self._top_keys = parts
        if top:
            self._top_keys.fill_(-1)

    def _parts_of(self, whole: torch.Tensor) -> list[torch.Tensor]:
        parts = whole.split([math.prod(shape) for shape in self._shapes])
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def enter(self, block: WeightsBlock) -> None:
        """Enter a block."""
        weights, marks = block.weights, self._marks
        texts, heads, rows, keys = block.texts, block.heads, block.rows, weights.shape[-1]
        columns = self._columns[:, texts, heads, rows]
        for column, measure in zip(columns, block.measures, strict=False):
            column.copy_(measure)
        for column, marked in ((SPECIAL, marks.special), (SECOND, marks.second)):
            if marked is not None:
                inside = marked[0] < keys
                chosen = weights.index_select(-1, marked[0][inside])
                columns[column] = chosen.mul_(marked[1][texts][..., inside]).sum(-1)
        at, is_there = (each[texts, None, rows] for each in (marks.places, marks.are_there))
        if keys < marks.real.shape[1]:
            at, is_there = at.clamp(max=keys - 1), is_there & (at < keys)
        placed = weights.gather(-1, at.expand(-1, weights.shape[1], -1, -1)).mul_(is_there)
        columns[FIRST:] = placed.movedim(-1, 0)
        counted = marks.counted[texts, None, None, rows].to(weights.dtype)
        self._received[texts, heads, :keys] += (counted @ weights).squeeze(-2)
        if marks.ids:
            looking, own = marks.ids
            equal = looking[texts, None, rows, None] == own[texts, None, None, :keys]
            columns[SAME] = (weights * equal).sum(-1)  # a third of the time of where
            if not marks.is_cross:  # both are sums in single precision
                columns[SAME].sub_(columns[ITSELF]).clamp_(min=0)
        if marks.is_padded:
            padding = (~marks.real[texts, None, :keys, None]).to(weights.dtype)
            lost = (weights @ padding).squeeze(-1).mul_(counted.squeeze(-2) > 0)
            self._lost.clamp_(min=lost.amax())
        if self._top.shape[-1]:
            self._name_largest(block)

    def _name_largest(self, block: WeightsBlock) -> None:
        weights, at = block.weights, (block.texts, block.heads, block.rows)
        if self._marks.is_padded:
            real = self._marks.real[block.texts, None, None, : weights.shape[-1]]
            weights = weights * real
        largest, keys = weights.topk(min(self._top.shape[-1], weights.shape[-1]))
        self._top[at][..., : largest.shape[-1]] = largest
        self._top_keys[at][..., : largest.shape[-1]] = keys.where(largest > 0, -1)

    def of_texts(self) -> list[Statistics]:
        """The statistics of each text.

        Raises:
            CaptureError: where real tokens attend to padding, so that it cannot be cut off.
        """
        parts = [part.numpy() for part in self._parts_of(on_cpu(self._whole, copy=False))]
        lost, columns, received, top, top_keys = parts
        check_lost(float(lost[0]), self._name)
        top_keys = top_keys.astype(np.int64)
        return [
            self._of_text(of, columns[:, text], received[text], (top[text], top_keys[text]))
            for text, of in enumerate(self._marks.texts)
        ]

    def _of_text(
        self, of: RowsOfText, columns: np.ndarray, received: np.ndarray, top: Sequence[np.ndarray]
    ) -> Statistics:
        marks, text = self._marks, self._marks.texts.index(of)
        columns = columns[..., of.local]
        total, second = columns[TOTAL], columns[SECOND]
        is_pair = marks.segments is not None and (marks.segments[text, of.keys] == 1).any()
        segments = [total - second, second] if is_pair else [total]
        weights, keys = (part[:, of.local, : len(of.keys)] for part in top)
        numbers = np.full(received.shape[1] + 1, -1, np.int32)
        numbers[of.keys] = np.arange(len(of.keys), dtype=np.int32)
        return Statistics(
            entropy=columns[ENTROPY],
            offsets=np.moveaxis(columns[FIRST + 1 :], 0, -1),
            first=columns[FIRST],
            special=columns[SPECIAL],
            segments=np.stack(segments, -1),
            largest=columns[LARGEST],
            received=received[:, of.keys],
            same_token=columns[SAME] if marks.ids else None,
            top_weights=weights if weights.shape[-1] else None,
            top_keys=numbers[keys] if keys.shape[-1] else None,
            rows=of.numbers if len(of.numbers) < of.queries else None,
            queries=of.queries,
        )
