"""Tokens from marks: patches with their places, frames with their times, words, and learned
tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headscope.capturing.media._sound import times_of
from headscope.capturing.media.origins import AUDIO, VISION, Origins
from headscope.record import Tokens

UNKNOWN = "[?]"
TOKEN_NAME = re.compile(r"_?(tokens?|embeddings?|embeds?|param)$")


def _tuple_or_none(values: Iterable[Any] | None) -> tuple | None:
    return None if values is None else tuple(values)


@dataclass(frozen=True)
class Marked:
    """What marks say about positions that stand for no text; None where there is nothing to say.

    Args:
        grids: rows and columns of each picture.
        places: row and column of each patch.
        pictures: which of the grids.
        times: of each frame.
        labels: what to call them.
    """

    grids: tuple[tuple[int, int], ...]
    places: tuple[tuple[int, int] | None, ...] | None
    pictures: tuple[int | None, ...] | None
    times: tuple[tuple[float, float] | None, ...] | None
    labels: tuple[str | None, ...]

    @property
    def fields(self) -> dict[str, Any]:
        """Arguments of `Tokens`."""
        return {
            "grids": self.grids,
            "places": self.places,
            "pictures": self.pictures,
            "times": self.times,
        }


def tokens_from_marks(marks: np.ndarray, origins: Origins, texts: Tokens | None) -> Tokens:
    """Tokens of positions with these marks.

    Args:
        marks: of every position.
        origins: what the marks are the numbers of.
        texts: the tokens of the text among them, padding included; None where there is none.
    """
    places = _read(marks, origins)
    worded = _is_worded(marks, origins)
    if (
        texts is not None
        and len(texts) == len(marks)
        and (origins.column[marks - 1] == np.arange(len(marks)))[worded].all()
    ):
        labels = tuple(own or label for own, label in zip(places.labels, texts.labels, strict=True))
        plain = tuple(
            special and own is None
            for own, special in zip(places.labels, texts.special, strict=True)
        )
        return replace(texts, labels=labels, special=plain, **places.fields)
    names = _learned(marks, origins)
    pieces, labels, special = [], [], []
    for position, (mark, own) in enumerate(zip(marks, places.labels, strict=True)):
        at = int(origins.column[mark - 1])
        if texts is not None and worded[position]:
            piece, label, mask = texts.pieces[at], texts.labels[at], texts.special[at]
        else:
            piece = label = own or names[position]
            mask = own is None
        pieces.append(piece)
        labels.append(label)
        special.append(mask)
    return Tokens(
        pieces=tuple(pieces), labels=tuple(labels), special=tuple(special), **places.fields
    )


def _is_worded(marks: np.ndarray, origins: Origins) -> np.ndarray:
    return (marks > 0) & ~origins.spots(marks, VISION) & ~origins.spots(marks, AUDIO)


def _read(marks: np.ndarray, origins: Origins) -> Marked:
    seen, heard = origins.spots(marks, VISION), origins.spots(marks, AUDIO)
    rows, columns = origins.row[marks - 1], origins.column[marks - 1]
    if heard.any() and min(len(np.unique(side[heard])) for side in (rows, columns)) > 1:
        seen, heard = heard, np.zeros_like(heard)  # patches of a spectrogram
    labels: list[str | None] = [None] * len(marks)
    times = None
    if heard.any():
        times, said = times_of(np.where(heard, rows + columns, -1), origins.seconds)
        labels = list(said)
    places, pictures, grids = None, None, []
    if seen.any():
        places, pictures = [None] * len(marks), [None] * len(marks)
        items = np.where(seen, origins.item[marks - 1], -1)
        for number, item in enumerate(np.unique(items[items >= 0])):
            at = np.flatnonzero(items == item)
            (heights, row), (widths, column) = (
                np.unique(side[at], return_inverse=True) for side in (rows, columns)
            )
            grids.append((len(heights), len(widths)))
            for position, place in zip(
                at, zip(row.tolist(), column.tolist(), strict=True), strict=True
            ):
                places[position], pictures[position] = place, number
        for position, (place, picture) in enumerate(zip(places, pictures, strict=True)):
            if place is not None:
                which = f"p{picture} " if len(grids) > 1 else ""
                labels[position] = f"{which}r{place[0]}c{place[1]}"
    return Marked(
        tuple(grids),
        _tuple_or_none(places),
        _tuple_or_none(pictures),
        times,
        tuple(labels),
    )


def _learned(marks: np.ndarray, origins: Origins) -> list[str]:
    """A name for every position that is a parameter, such as ``[CLS]``; those of one parameter are
    counted.
    """
    names = []
    for mark in marks:
        full = origins.names[-mark - 1] if mark < 0 else ""
        last = full.rpartition(".")[2]
        names.append((TOKEN_NAME.sub("", last) or last).upper())
    counts, seen = Counter(names), Counter()
    for position, name in enumerate(names):
        seen[name] += 1
        number = f" {seen[name]}" if counts[name] > 1 else ""
        names[position] = f"[{name}{number}]" if name else UNKNOWN
    return names
