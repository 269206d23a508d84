"""The chart of layers and heads: a coloured cell for each head, the numbers of layers on the left,
and those of heads below; and the bar of its colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, UInt8

from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT, Style

LARGEST_CELL = 7.0
"""Millimetres."""
BAR = 2.2
"""Height of the bar of colours in millimetres."""


def draw_head_map(
    sheet: Sheet,
    rgb: UInt8[np.ndarray, "layer head 3"],
    layers: list[int],
    *,
    at: tuple[float, float],
    cell: float,
    hidden: Bool[np.ndarray, "layer head"],
    names: Sequence[str] | None = None,
) -> None:
    """Draw the cells, their frame, and the numbers of layers and heads.

    Args:
        sheet: what is drawn on.
        rgb: the colour of each head.
        layers: numbers of the rows.
        at: x and y of the upper left corner of the cells.
        cell: millimetres of a cell.
        hidden: True where there is no head, or no number of it.
        names: of the columns; by default the numbers of heads.
    """
    style, (x, y), (rows, heads) = sheet.style, at, rgb.shape[:2]
    high, wide = rows * cell, heads * cell
    sheet.cells(rgb, at=at, size=(wide, high), hidden=hidden)
    sheet.rect(x, y, wide, high, edge=style.edge, line=0.35, layer=3)
    draw_layer_numbers(sheet, layers, at=at, cell=cell)
    named = range(heads) if names is None else names
    for column, name in some(list(named), cell, style):
        sheet.note(x + (column + 0.5) * cell, y + high + 0.7 * style.em, str(name), anchor="center")


def draw_middle_bar(
    sheet: Sheet,
    rgb: UInt8[np.ndarray, "1 shade 3"],
    words: tuple[str, str, str],
    *,
    at: tuple[float, float],
    width: float,
    middle: float,
) -> float:
    """Draw a bar of colours in which one number is marked; return the y of the words below.

    Args:
        sheet: what is drawn on.
        rgb: the colours.
        words: below the left end, the mark and the right end.
        at: x and y of the upper left corner.
        width: in millimetres.
        middle: where the mark is, as a part of the width.
    """
    style, (x, y) = sheet.style, at
    sheet.cells(rgb, at=at, size=(width, BAR))
    sheet.rect(x, y, width, BAR, edge=style.edge, line=0.35, layer=3)
    mark, below = x + middle * width, y + BAR + 0.85 * style.em
    sheet.line([mark, mark], [y - 0.6, y + BAR + 0.6], colour=style.ink, line=1.0)
    # Between the words of the ends.
    left, own, right = (sheet.width_of(word, style.small) for word in words)
    least, most = (end + 0.5 * style.em + own / 2 for end in (left, right))
    sheet.note(x, below, words[0])
    sheet.note(min(max(mark, x + least), x + width - most), below, words[1], anchor="center")
    sheet.note(x + width, below, words[2], anchor="right")
    return below


def draw_layer_numbers(
    sheet: Sheet, layers: list[int], *, at: tuple[float, float], cell: float
) -> None:
    """The numbers of layers on the left of what begins at this corner."""
    (x, y), style = at, sheet.style
    for row, layer in some(layers, cell, style):
        sheet.note(x - 0.4 * style.em, y + (row + 0.5) * cell, str(layer), anchor="right")


def some(numbers: Sequence[Any], cell: float, style: Style) -> list[tuple[int, Any]]:
    """The numbers that have room next to each other, each with its index."""
    every = max(1, int(np.ceil(1.3 * style.small * POINT / cell)))
    return list(enumerate(numbers))[::every]
