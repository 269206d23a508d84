"""The chart of lines: numbers over layers, or over other numbers, with their intervals as bands,
and the names at the right ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.views.figures._axis import Axis, apart, draw_level_grid, write_below
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT

DOT = 0.9
BAND = 0.2
"""Opacity of a band."""
MOST_NUMBERS = 13
"""Number of layers up to which each has its number; of more layers, only some."""


@dataclass(frozen=True, eq=False)
class Line:
    """One line: its name (may be empty), its colour, and a number and interval for each layer."""

    name: str
    colour: str
    values: Float[np.ndarray, " layer"]
    ends: Float[np.ndarray, "layer 2"]


@dataclass(frozen=True)
class Box:
    """A rectangle on the sheet: its left and upper edge, width and height in millimetres."""

    x: float
    y: float
    width: float
    height: float


def draw_layer_lines(
    sheet: Sheet,
    lines: Sequence[Line],
    layers: Sequence[float],
    box: Box,
    *,
    ends: tuple[float, float],
    written: Callable[[float], str],
    below: Mapping[float, str] | None = None,
) -> float:
    """Draw the lines; the numbers of the layers stand below. Give the next y.

    Args:
        sheet: what is drawn on.
        lines: the lines; the first is drawn last, over the others.
        layers: numbers of the layers, or others that the lines are over.
        box: rectangle of axes and lines, without numbers and names.
        ends: the numbers at its lower and its upper edge.
        written: how numbers are written on the left.
        below: what is written below which of the numbers; the axis then begins at 0. By default
            the numbers of layers, or some of them.
    """
    style, bottom = sheet.style, box.y + box.height
    heights = Axis(bottom, box.y, *ends)
    # A single layer still needs an axis of some length.
    across = Axis(box.x + 0.8, box.x + box.width, layers[0], max(layers[-1], layers[0] + 1))
    if below is not None:
        across = Axis(box.x, box.x + box.width, 0.0, layers[-1])
    draw_level_grid(sheet, heights, (box.x, box.x + box.width), written)
    every = 1 if len(layers) <= MOST_NUMBERS else len(layers) // 8
    known = {layer: str(layer) for layer in list(layers)[::every]} if below is None else below
    words = {across.at(layer): written for layer, written in known.items()}
    write_below(sheet, words, bottom + 0.9 * style.em)
    heights_of: dict[str, float] = {}
    for line in reversed(lines):
        xs = [across.at(layer) for layer in layers]
        _draw_line(sheet, line, xs, heights)
        if line.name and not np.isnan(line.values[-1]):
            heights_of[line.name] = heights.at(line.values[-1])
    colours = {line.name: line.colour for line in lines}
    _draw_names(sheet, heights_of, colours, box)
    return bottom + 1.9 * style.em


def _draw_line(sheet: Sheet, line: Line, xs: Sequence[float], heights: Axis) -> None:
    ends = np.clip(line.ends, heights.low, heights.high)
    known = np.flatnonzero(~np.isnan(ends).any(axis=1))
    upper = [(xs[column], heights.at(ends[column, 1])) for column in known]
    lower = [(xs[column], heights.at(ends[column, 0])) for column in known[::-1]]
    if len(known) > 1:
        sheet.polygon([*upper, *lower], fill=line.colour, opacity=BAND, layer=1)
    drawn = np.flatnonzero(~np.isnan(line.values))
    ys = [heights.at(line.values[column]) for column in drawn]
    sheet.line([xs[column] for column in drawn], ys, colour=line.colour, line=1.2)
    for column, y in zip(drawn, ys, strict=True):
        sheet.dot(xs[column], y, DOT, fill=line.colour)


def _draw_names(
    sheet: Sheet, heights_of: Mapping[str, float], colours: Mapping[str, str], box: Box
) -> None:
    style = sheet.style
    least = 1.25 * style.small * POINT
    x = box.x + box.width + 0.8 * style.em
    for name, y in apart(heights_of, least, box.y + box.height).items():
        sheet.text(x, y, name, size=style.small, colour=colours[name])
