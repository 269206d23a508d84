"""Figure of an ablation: maps of the score without each head, and bars of whole layers."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from headscope.results import draws
from headscope.views.figures._axis import Axis
from headscope.views.figures._charts import (
    LARGEST_CELL,
    Bar,
    Matrix,
    draw_bars,
    draw_colour_bar,
    draw_matrix,
    draw_row_names,
)
from headscope.views.figures._figure import Figure
from headscope.views.figures._result import ResultOptions, draw_result
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
    return draw_result(
        ablation,
        options,
        lambda sheet, y: _draw(sheet, ablation, y),
        title=f"{ablation.model or 'A model'}: {ablation.metric} without each head",
        note=f"{ablation.task}, {ablation.examples:,} examples; disabled: {ablation.by}",
        layers=layers,
        heads=[head for head in heads if head >= 0],
        texts=[ablation.task, str(ablation.examples)],
    )


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
        draw_row_names(sheet, ablation.layers(stack), at=(side, top), cell=cell)
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
    rgb, (x, y), (high, wide) = scale.rgb(grid), at, (size * cell for size in grid.shape)
    shown = Matrix(
        rgb=rgb, rows=ablation.layers(stack), hidden=np.isnan(grid), dots=np.equal(sure, 1)
    )
    draw_matrix(sheet, shown, at=at, cell=cell)
    # Scores below the bar, the intact one marked; one number where nothing changed.
    marks = [(0.5, f"intact {short_change(ablation.baseline, largest)}")]
    if largest > 0:
        marks = [
            (0.0, short_change(ablation.baseline - largest, largest)),
            *marks,
            (1.0, short_change(ablation.baseline + largest, largest)),
        ]
    width = min(max(wide, 16 * style.em), 60.0)
    bar = scale.rgb(np.linspace(-largest, largest, 256)[None])
    place = (x, y + high + 1.6 * style.em)
    draw_colour_bar(sheet, bar, marks, at=place, width=width, line=True)


def _bars(sheet: Sheet, ablation: Any, stack: str, *, at: tuple[float, float], cell: float) -> None:
    """A bar for each layer without all of its heads, on both sides of the intact score."""
    style, (x, y), layers = sheet.style, at, ablation.layers(stack)
    own = {
        layer: number
        for number, (name, layer, head) in enumerate(ablation.cells)
        if name == stack and head < 0
    }
    change, ends = ablation.change[[*own.values()]], ablation.intervals[[*own.values()]]
    spots = np.concatenate([[0.0], change, ends[~np.isnan(ends)].ravel()])
    # Where no layer changes the score, all bars are empty and this only avoids dividing by zero.
    low, high = float(spots.min()), max(float(spots.max()), float(spots.min()) + 1e-12)
    bars = []
    for layer in layers:
        if layer not in own:
            bars.append(Bar("", np.nan, np.nan, np.nan, "", ""))
            continue
        number = own[layer]
        value = float(ablation.change[number])
        mark = " •" if ablation.significant[number] else ""
        words = short_change(value, float(np.abs(change).max())) + mark
        colour = style.negative if value < 0 else style.positive
        bars.append(Bar("", value, *ablation.intervals[number], words, colour))
    room = max(sheet.width_of(bar.words, style.small) for bar in bars)
    axis = Axis(x, sheet.width - room - 0.8 * style.em, low, high)
    draw_bars(sheet, bars, axis, y, pitch=cell, share=0.6, edge=sheet.width)
    zero, bottom = axis.at(0.0), y + len(layers) * cell
    upright = [y - 0.4 * style.em, bottom + 0.4 * style.em]
    sheet.line([zero, zero], upright, colour=style.ink, line=0.7)
    words = f"intact {short_change(ablation.baseline, max(abs(low), abs(high)))}"
    half = sheet.width_of(words, style.small) / 2
    middle = min(max(zero, x + half), sheet.width - half)
    sheet.note(middle, bottom + 1.0 * style.em, words, anchor="center")
