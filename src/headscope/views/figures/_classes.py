"""Kovaleva's classes of maps as stacked bars: of each layer, or of each of several sets of
texts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headscope.errors import FigureError
from headscope.patterns import CLASSES, Heads
from headscope.views.figures._palette import head_greys, parse_hex, text_on
from headscope.views.figures._sheet import Sheet

COLOURS = ("#8d9bb0", "#2f6fd6", "#86b8ea", "#4f9d4a", "#dcd6c8")
"""Colours in the order of the classes. The class that Kovaleva et al. call vertical is slate, like
the kind that the viewer calls resting.
"""
BAR, GAP = 4.6, 1.5
"""Height of a bar, and of the gap between two, in millimetres."""
BEFORE_ALL = 1.6
"""Additional gap before the bar of all layers together, in millimetres."""


def bars_of(heads: Heads, others: Mapping[str, Heads] | None) -> dict[str, dict[str, float]]:
    """The share of each class in each bar, by the bar's name: the layers and all of them, or every
    set of texts.

    Raises:
        FigureError: where another set is not a result of `headscope.heads`.
    """
    whole = {name: float(np.mean(shares)) for name, shares in heads.classes.items()}
    if others is None:
        layers = {f"layer {layer}": shares for layer, shares in heads.classes_of_layers().items()}
        return layers | {"all": whole}
    for name, other in others.items():
        if not isinstance(other, Heads):
            raise FigureError(
                f"classes has a {type(other).__name__} for {name!r}; give what headscope.heads "
                "found"
            )
    bars = {heads.tally.model or "this": whole}
    for name, each in others.items():
        bars[str(name)] = {of: float(np.mean(shares)) for of, shares in each.classes.items()}
    return bars


def draw_classes(sheet: Sheet, bars: Mapping[str, Mapping[str, float]], y: float) -> float:
    """Draw one bar for each name, from 0 to 100 %, each part with its number, and the legend; give
    the next y.
    """
    style = sheet.style
    colours = COLOURS if style.colour else head_greys(len(CLASSES), dark=style.dark)
    side = min(0.4 * sheet.width, max(sheet.width_of(name) for name in bars)) + 0.8 * style.em
    room = sheet.width - side
    y = _legend(sheet, colours, side, y) + 0.6 * style.em
    for name, shares in bars.items():
        if name == "all":
            y += BEFORE_ALL
        sheet.text(side - 0.6 * style.em, y + BAR / 2, sheet.fitted(name, side), anchor="right")
        x = side
        for number, of in enumerate(CLASSES):
            width = room * shares[of]
            sheet.rect(x, y, width, BAR, fill=colours[number], edge=style.paper, line=0.6)
            words = f"{100 * shares[of]:.0f}"
            # A part that is too narrow for its number stays without one.
            if width > sheet.width_of(words, style.small) + 0.8 * style.em:
                ink = text_on(parse_hex(colours[number]))
                sheet.text(
                    x + width / 2, y + BAR / 2, words, size=style.small, colour=ink, anchor="center"
                )
            x += width
        y += BAR + GAP
    return y + 0.4 * style.em


def _legend(
    sheet: Sheet, colours: Mapping[int, str] | list[str] | tuple[str, ...], x: float, y: float
) -> float:
    """A square and a name for each class, on as many lines as they need."""
    style, left = sheet.style, x
    square = 0.9 * style.em
    for number, name in enumerate(CLASSES):
        width = square + 0.5 * style.em + sheet.width_of(name, style.small) + 1.4 * style.em
        if x + width > sheet.width + 1.4 * style.em:
            x, y = left, y + 1.5 * style.em
        sheet.rect(x, y, square, square, fill=colours[number], edge=style.edge, line=0.3)
        sheet.note(x + square + 0.5 * style.em, y + square / 2, name)
        x += width
    return y + square + 0.6 * style.em
