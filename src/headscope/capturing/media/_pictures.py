"""Tokens from marks: patches with their places, frames with their times, spans of time series,
words, and learned tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headscope.capturing.media.given import PADDED, times_of
from headscope.capturing.media.input_positions import (
    AUDIO,
    KINDS,
    OBJECT,
    SERIES,
    VISION,
    InputPositions,
)
from headscope.record import Tokens

UNKNOWN = "some positions cannot be followed back to one element of the input each"
PARTLY = "the patches of a picture are not all there, so that their places are not known"
TOKEN_NAME = re.compile(r"_?(tokens?|embeddings?|embeds?|param)$")
Place = tuple[int, int]
"""Row and column."""


def tokens_from_marks(
    marks: np.ndarray, input_positions: InputPositions, texts: Tokens | None, *, whole: bool = True
) -> Tokens:
    """Tokens of positions with these marks.

    Args:
        marks: of every position.
        input_positions: what the marks are the numbers of.
        texts: the tokens of the text among them, padding included; None where there is none.
        whole: whether the patches are those of whole pictures, see `are_whole`.
    """
    if _are_chosen(marks, input_positions):
        return Tokens(pieces=tuple(f"{OBJECT} {number}" for number in range(len(marks))))
    meanings, fields = _read(marks, input_positions, whole=whole)
    worded = marks > 0
    for kind in (VISION, AUDIO, SERIES):
        worded &= ~input_positions.come_from(marks, kind)
    if texts is not None and len(texts) == len(marks) and _in_order(marks, worded, input_positions):
        return _within_text(texts, meanings, fields)
    names = _learned(marks, input_positions)
    pieces, labels, special = [], [], []
    for position, (mark, own) in enumerate(zip(marks, meanings, strict=True)):
        at = int(input_positions.column[mark - 1])
        if texts is not None and worded[position]:
            piece, label, mask = texts.pieces[at], texts.labels[at], texts.special[at]
        else:
            piece = label = own or names[position] or str(position)
            is_named = own is not None or label.startswith(OBJECT)
            mask = not is_named or label.endswith(PADDED)
            if label == str(position):
                mask, fields["numbered"] = False, UNKNOWN if whole else PARTLY
        pieces.append(piece)
        labels.append(label)
        special.append(mask)
    return Tokens(pieces=tuple(pieces), labels=tuple(labels), special=tuple(special), **fields)


def _are_chosen(marks: np.ndarray, input_positions: InputPositions) -> bool:
    """Whether a detector chose these patches to begin its objects with: they fill no grid, or stand
    in another order.
    """
    if len(marks) not in input_positions.objects:
        return False
    sides = (input_positions.row[marks - 1], input_positions.column[marks - 1])
    are_all = np.prod([len(np.unique(side)) for side in sides]) == len(marks)
    is_grid = are_all and bool((np.diff(marks) > 0).all())
    return bool(input_positions.come_from(marks, VISION).all()) and not is_grid


def _in_order(marks: np.ndarray, worded: np.ndarray, input_positions: InputPositions) -> bool:
    """Whether each position that is a word has the place of that word in the text."""
    in_order = input_positions.column[marks - 1] == np.arange(len(marks))
    return bool(in_order[worded].all())


def _within_text(
    texts: Tokens, meanings: Sequence[str | None], fields: Mapping[str, Any]
) -> Tokens:
    """The tokens of a text, where patches took the places of tokens that stood for them."""
    labels, special = [], []
    for own, label, mask in zip(meanings, texts.labels, texts.special, strict=True):
        labels.append(own or label)
        # The tokenizer calls <image> special, but the patch that took its place is content.
        special.append(mask and own is None)
    return replace(texts, labels=tuple(labels), special=tuple(special), **fields)


def _read(
    marks: np.ndarray, input_positions: InputPositions, *, whole: bool
) -> tuple[list[str | None], dict[str, Any]]:
    """What marks say about positions that stand for no text: what to call each, None where there is
    nothing to say, and arguments of `Tokens`.
    """
    if SERIES in input_positions.kinds:
        return _read_series(marks, input_positions)
    seen, heard = input_positions.come_from(marks, VISION), input_positions.come_from(marks, AUDIO)
    rows, columns = input_positions.row[marks - 1], input_positions.column[marks - 1]
    is_filled = np.zeros(len(marks), bool)
    if heard.any() and min(len(np.unique(side[heard])) for side in (rows, columns)) > 1:
        # Positions that differ in time and in pitch are patches of a spectrogram, cut as a picture.
        seen, heard = heard, np.zeros_like(heard)
        step, end = input_positions.seconds or (0.0, np.inf)
        # The first patch begins with the sound; rows are columns of features, one after the other.
        is_filled = (rows - rows[seen].min()) * step >= end - 1e-6
    labels: list[str | None] = [None] * len(marks)
    fields: dict[str, Any] = {}
    if heard.any():
        # One of the two is the same for all frames, so the sum tells them apart and orders them.
        middles = np.where(heard, rows + columns, -1)
        fields["times"], labels = times_of(middles, input_positions.seconds)
    if seen.any() and whole:
        items = np.where(seen, input_positions.item[marks - 1], -1)
        fields |= _patches(items, rows, columns)
        if VISION in input_positions.kinds:
            fields["frames"] = _frames_of(np.unique(items[seen]), input_positions)
        names = _grid_names(len(fields["grids"]), fields.get("frames", ()))
        pairs = zip(fields["places"], fields["pictures"], strict=True)
        for position, (place, picture) in enumerate(pairs):
            if place is not None:
                behind = PADDED if is_filled[position] else ""
                labels[position] = f"{names[picture]}r{place[0]}c{place[1]}{behind}"
    return labels, fields


def _read_series(
    marks: np.ndarray, input_positions: InputPositions
) -> tuple[list[str | None], dict[str, Any]]:
    """Channels are rows of a grid, and patches its columns; names are spans of steps."""
    at = np.flatnonzero(input_positions.come_from(marks, SERIES))
    channels = input_positions.row[marks[at] - 1].tolist()
    # The mark of a patch is that of the first of its steps.
    starts = input_positions.column[marks[at] - 1].tolist()
    several = len(set(input_positions.row.tolist())) > 1
    columns = sorted(set(starts))
    labels: list[str | None] = [None] * len(marks)
    places: list[Place | None] = [None] * len(marks)
    times: list[tuple[float, float] | None] = [None] * len(marks)
    for position, channel, start in zip(at.tolist(), channels, starts, strict=True):
        stop = start + input_positions.span
        labels[position] = f"c{channel} " * several + f"t{start}-{stop - 1}"
        places[position] = (channel, columns.index(start))
        times[position] = (float(start), float(stop))
    grid = (max(channels, default=0) + 1, len(columns))
    return labels, {"grids": (grid,), "places": tuple(places), "times": tuple(times)}


def _frames_of(
    items: np.ndarray, input_positions: InputPositions
) -> tuple[tuple[int, int] | None, ...]:
    """For each of these pictures the first and last frame of a video that its patches reach over;
    empty where none is a frame.
    """
    frames: list[tuple[int, int] | None] = []
    for item in items:
        clip = input_positions.clips[item]
        if clip is None:
            frames.append(None)
            continue
        tube = input_positions.tube
        number = int(item) - input_positions.clips.index(clip)
        # A processor that packs patches counts tubes, and others count frames.
        first = number * tube if input_positions.whole else number // tube * tube
        last = first + tube - 1
        numbers = input_positions.frame_numbers
        frames.append((numbers[first], numbers[last]) if last < len(numbers) else (first, last))
    return tuple(frames) if any(frame is not None for frame in frames) else ()


def _grid_names(count: int, frames: Iterable[tuple[int, int] | None]) -> list[str]:
    """What stands before the row and column of the patches of each grid."""
    names = [f"p{number} " for number in range(count)] if count > 1 else [""]
    for number, frame in enumerate(frames):
        if frame is not None:
            first, last = frame
            names[number] = f"f{first} " if first == last else f"f{first}-{last} "
    return names


def _patches(items: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> dict[str, tuple]:
    """Row and column of each patch, the picture it is of, and rows and columns of each picture, as
    arguments of `Tokens`.

    Args:
        items: number of the picture of each position, -1 where there is no patch.
        rows: of pixels, or of patches where a processor packed these.
        columns: likewise.
    """
    places: list[Place | None] = [None] * len(items)
    pictures: list[int | None] = [None] * len(items)
    grids = []
    for number, item in enumerate(np.unique(items[items >= 0])):
        at = np.flatnonzero(items == item)
        # The size of the patches is not known: a patch is the n-th of those that were seen.
        heights, row = np.unique(rows[at], return_inverse=True)
        widths, column = np.unique(columns[at], return_inverse=True)
        grids.append((len(heights), len(widths)))
        for position, *place in zip(at, row.tolist(), column.tolist(), strict=True):
            places[position], pictures[position] = (place[0], place[1]), number
    return {"places": tuple(places), "pictures": tuple(pictures), "grids": tuple(grids)}


def are_whole(marks: np.ndarray, input_positions: InputPositions) -> bool:
    """Whether the rows and columns of patches lie evenly over each picture: where patches were left
    out, nothing shows how many rows and columns there were.

    Args:
        marks: of all positions, padding included.
        input_positions: what the marks are the numbers of.
    """
    seen = marks[input_positions.come_from(marks, VISION)] - 1
    if input_positions.whole or not len(seen):
        return True
    sides = input_positions.row, input_positions.column
    every = np.flatnonzero(input_positions.kind == KINDS.index(VISION))
    for item in np.unique(input_positions.item[seen]):
        at, own = (each[input_positions.item[each] == item] for each in (seen, every))
        lines = [(np.unique(side[at]), int(side[own].max()) + 1) for side in sides]
        # One position may stand for all places.
        if len(at) > 1 and not _are_even(lines):
            return False
    return True


def _are_even(lines: Sequence[tuple[np.ndarray, int]]) -> bool:
    """Whether these middles of rows, and of columns, lie evenly over so many pixels each, with no
    room for one more before or after them.
    """
    steps = [int(line[1] - line[0]) for line, _ in lines if len(line) > 1]
    for line, size in lines:
        # A picture one patch high or wide is cut by squares.
        step = int(line[1] - line[0]) if len(line) > 1 else max([size // 2 + 1, *steps])
        is_even = bool((np.diff(line) == step).all())
        if not is_even or line[0] >= step or line[-1] + step + step // 2 < size:
            return False
    return True


def _learned(marks: np.ndarray, input_positions: InputPositions) -> list[str]:
    """A name for every position that is a parameter, such as ``[CLS]``; those of one parameter are
    counted, and queries of objects are ``object 0``, ``object 1`` ...
    """
    names = []
    for mark in marks:
        # A table of queries is the weight of a module, whose name tells what it is.
        full = input_positions.names[-mark - 1].removesuffix(".weight") if mark < 0 else ""
        last = full.rpartition(".")[2]
        names.append(last if last == OBJECT else (TOKEN_NAME.sub("", last) or last).upper())
    counts, seen = Counter(names), Counter()
    for position, name in enumerate(names):
        number = f" {seen[name] + 1}" if counts[name] > 1 else ""
        own = f"[{name}{number}]" if name else ""
        names[position] = f"{OBJECT} {seen[name]}" if name == OBJECT else own
        seen[name] += 1
    return names
