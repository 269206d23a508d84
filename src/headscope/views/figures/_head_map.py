"""A map of layers and heads: a coloured cell for each head, the numbers of layers on the left, and
those of heads below.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, UInt8

from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT, Style

LARGEST_CELL = 7.0
"""Millimetres."""


def draw_head_map(
    sheet: Sheet,
    rgb: UInt8[np.ndarray, "layer head 3"],
    layers: list[int],
    *,
    at: tuple[float, float],
    cell: float,
    hidden: Bool[np.ndarray, "layer head"],
) -> None:
    """Draw the cells, their frame, and the numbers of layers and heads.

    Args:
        sheet: what is drawn on.
        rgb: the colour of each head.
        layers: numbers of the rows.
        at: x and y of the upper left corner of the cells.
        cell: millimetres of a cell.
        hidden: True where there is no head, or no number of it.
    """
    style, (x, y), (rows, heads) = sheet.style, at, rgb.shape[:2]
    high, wide = rows * cell, heads * cell
    sheet.cells(rgb, at=at, size=(wide, high), hidden=hidden)
    sheet.rect(x, y, wide, high, edge=style.edge, line=0.35, layer=3)
    draw_layer_numbers(sheet, layers, at=at, cell=cell)
    for column, head in some(list(range(heads)), cell, style):
        sheet.note(x + (column + 0.5) * cell, y + high + 0.7 * style.em, str(head), anchor="center")


def draw_layer_numbers(
    sheet: Sheet, layers: list[int], *, at: tuple[float, float], cell: float
) -> None:
    """The numbers of layers on the left of what begins at this corner."""
    (x, y), style = at, sheet.style
    for row, layer in some(layers, cell, style):
        sheet.note(x - 0.4 * style.em, y + (row + 0.5) * cell, str(layer), anchor="right")


def some(numbers: list[int], cell: float, style: Style) -> list[tuple[int, int]]:
    """The numbers that have room next to each other, each with its index."""
    every = max(1, int(np.ceil(1.3 * style.small * POINT / cell)))
    return list(enumerate(numbers))[::every]
