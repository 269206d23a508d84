"""Figure of an ablation: maps of the score without each head, and bars of whole layers."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from headscope.results import draws
from headscope.views.figures._figure import Figure
from headscope.views.figures._head_map import (
    LARGEST_CELL,
    draw_head_map,
    draw_layer_numbers,
    draw_middle_bar,
)
from headscope.views.figures._palette import text_on
from headscope.views.figures._result import FigureWords, ResultOptions, draw_result
from headscope.views.figures._scale import Scale
from headscope.views.figures._sheet import Sheet

MAP = 0.6
"""Share of the width that the map of heads takes; the bars of layers get the rest."""


@draws("ablation")
def ablation_figure(ablation: Any, **options: Unpack[ResultOptions]) -> Figure:
    """Layers and heads, coloured by the score without each of them, and a bar for each layer
    without all of its heads.

    Paper is the score of the intact model, which is marked on the colour bar. Dots mark changes
    that are significant after correction for the number of heads (of layers); whiskers are
    bootstrap intervals over examples.

    Source: Kovaleva et al. 2019, figure 8 (heads and layers with the score of the intact model).

    Args:
        ablation: an `Ablation`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: an unknown option, or matplotlib is missing.

    Example:
        >>> ablation_figure(ablate(model, task)).save("ablation.pdf")
    """
    _, layers, heads = zip(*ablation.cells, strict=True)
    drawn = FigureWords(
        kind="ablation",
        title=f"{ablation.model or 'A model'}: {ablation.metric} without each head",
        note=f"{ablation.task}, {ablation.examples:,} examples; disabled: {ablation.by}",
        model=ablation.model,
        layers=layers,
        heads=[head for head in heads if head >= 0],
        texts=[ablation.task, str(ablation.examples)],
    )
    return draw_result(drawn, options, lambda sheet, y: _draw(sheet, ablation, y))


def _draw(sheet: Sheet, ablation: Any, y: float) -> tuple[float, list[str]]:
    """Maps and bars of every stack; return the next y and the notes."""
    for stack in ablation.stacks:
        y = _stack(sheet, ablation, stack, y)
    notes = [
        "rows are layers, columns are heads, both from 0",
        f"a dot: the change is significant (paired sign-flip test, {ablation.correction} over "
        f"all heads and over all layers, alpha {ablation.alpha:g})",
    ]
    if ablation.of_layers.any():
        notes.append(f"whiskers: {ablation.confidence:.0%} bootstrap interval over examples")
    return y, notes


def short_change(value: float, largest: float) -> str:
    """``"−0.013"``: with as many digits as show the largest change with two, and a true minus."""
    digits = int(np.clip(1 - np.floor(np.log10(largest)), 0, 6)) if largest > 0 else 1
    text = f"{abs(value):.{digits}f}"
    # No minus before a number that was rounded to zero.
    return f"−{text}" if value < 0 and float(text) else text


def _stack(sheet: Sheet, ablation: Any, stack: str, y: float) -> float:
    """The map and the bars of one stack; return the next y."""
    style, grid, bars = sheet.style, ablation.grid(stack=stack), ablation.by_layer(stack=stack)
    rows, both = len(ablation.layers(stack)), bool(grid.size) and not np.isnan(bars).all()
    side = sheet.width_of("00", style.small) + 0.5 * style.em
    room = (sheet.width if not both else MAP * sheet.width) - side
    cell = min(LARGEST_CELL, room / grid.shape[1]) if grid.size else LARGEST_CELL
    named = f"{stack}, " if len(ablation.stacks) > 1 else ""
    top = y + 1.5 * style.em
    if not grid.size:
        draw_layer_numbers(sheet, ablation.layers(stack), at=(side, top), cell=cell)
    x, bottom = 0.0, top + rows * cell
    if grid.size:
        sheet.text(side, y + 0.6 * style.em, f"{named}without one head")
        _map(sheet, ablation, stack, at=(side, top), cell=cell)
        wide = max(grid.shape[1] * cell, sheet.width_of(f"{named}without one head"))
        x = side + wide + 2.2 * style.em
    if not np.isnan(bars).all():
        start = x if grid.size else side
        sheet.text(start, y + 0.6 * style.em, f"{named}without the whole layer")
        _bars(sheet, ablation, stack, at=(start, top), cell=cell)
    return bottom + 4.6 * style.em


def _map(sheet: Sheet, ablation: Any, stack: str, *, at: tuple[float, float], cell: float) -> None:
    style, grid, sure = sheet.style, ablation.grid(stack=stack), ablation.grid("significant", stack)
    # One scale for the maps of all stacks, so that equal colours are equal changes.
    largest = float(np.abs(ablation.change[~ablation.of_layers]).max())
    scale = Scale(
        style.score_scale(1.0).colours, largest, signed=True, power=1.0, masked=style.masked
    )
    rgb, (x, y) = scale.rgb(grid), at
    high, wide = (size * cell for size in grid.shape)
    layers = ablation.layers(stack)
    draw_head_map(sheet, rgb, layers, at=at, cell=cell, hidden=np.isnan(grid))
    for row, column in np.argwhere(sure == 1):
        dot = 0.26 * cell
        corner = (x + (column + 0.5) * cell - dot / 2, y + (row + 0.5) * cell - dot / 2)
        sheet.rect(*corner, dot, dot, fill=text_on(rgb[row, column]), round=dot / 2, layer=4)
    _colour_bar(
        sheet, ablation, scale, at=(x, y + high + 1.6 * style.em), width=max(wide, 16 * style.em)
    )


def _colour_bar(
    sheet: Sheet, ablation: Any, scale: Scale, *, at: tuple[float, float], width: float
) -> None:
    """Scores below the bar, the intact one marked; one number where nothing changed."""
    intact, largest = ablation.baseline, scale.largest
    ends = ("", "")
    if largest > 0:
        ends = short_change(intact - largest, largest), short_change(intact + largest, largest)
    words = (ends[0], f"intact {short_change(intact, largest)}", ends[1])
    rgb = scale.rgb(np.linspace(-largest, largest, 256)[None])
    draw_middle_bar(sheet, rgb, words, at=at, width=min(width, 60.0), middle=0.5)


def _bars(sheet: Sheet, ablation: Any, stack: str, *, at: tuple[float, float], cell: float) -> None:
    style, (x, y) = sheet.style, at
    own = [
        number
        for number, (name, _, head) in enumerate(ablation.cells)
        if name == stack and head < 0
    ]
    change, ends = ablation.change[own], ablation.intervals[own]
    layers = ablation.layers(stack)
    spots = np.concatenate([[0.0], change, ends[~np.isnan(ends)].ravel()])
    low, high = float(spots.min()), float(spots.max())
    # Where no layer changes the score, all bars are empty and this only avoids dividing by zero.
    span = max(high - low, 1e-12)
    written = [short_change(value, float(np.abs(change).max())) for value in change]
    right = (
        sheet.width - max(sheet.width_of(word, style.small) for word in written) - 1.2 * style.em
    )
    unit = (right - x) / span
    zero = x - low * unit
    bottom = y + len(layers) * cell
    for number, value, (least, most), word in zip(own, change, ends, written, strict=True):
        middle = y + (layers.index(ablation.cells[number][1]) + 0.5) * cell
        first, last = sorted((zero, zero + value * unit))
        fill = style.negative if value < 0 else style.positive
        sheet.rect(first, middle - 0.3 * cell, last - first, 0.6 * cell, fill=fill, layer=2)
        if np.isfinite(least):
            sheet.line(
                [zero + least * unit, zero + most * unit],
                [middle, middle],
                colour=style.ink,
                line=0.7,
            )
        mark = " •" if ablation.significant[number] else ""
        sheet.note(sheet.width, middle, word + mark if mark else word, anchor="right")
    sheet.line(
        [zero, zero], [y - 0.4 * style.em, bottom + 0.4 * style.em], colour=style.ink, line=0.7
    )
    words = f"intact {short_change(ablation.baseline, max(abs(low), abs(high)))}"
    edge = sheet.width_of(words, style.small) / 2
    sheet.note(
        min(max(zero, x + edge), sheet.width - edge),
        bottom + 1.0 * style.em,
        words,
        anchor="center",
    )
