"""Figure of probing: the scores of a probe and of its controls, and its scores over the layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from headscope.results import draws
from headscope.views.figures._axis import Axis, draw_upright_grid, percent_written
from headscope.views.figures._charts import Bar, Box, Line, draw_bars, draw_lines
from headscope.views.figures._figure import Figure
from headscope.views.figures._result import ResultOptions, draw_result
from headscope.views.figures._sheet import Sheet

PROBES = ("probe", "both directions")
"""Scores that are drawn as a probe; all others are controls."""
NOT_BARS = ("selectivity",)
"""Scores without a bar: this one is the difference of two bars that are drawn."""
LAYER, EMBEDDINGS = "layer", "layer 0"
ROW, BAR = 2.1, 0.57
"""Height of a row in units of the font size, and the part of it that is a bar."""
TALL = 36.0
"""Height of the lines over layers in millimetres."""
MOST_SIDE = 0.42
"""Largest share of a panel's width for the names of bars."""


@draws("probing")
def probing_figure(probing: Any, **options: Unpack[ResultOptions]) -> Figure:
    """The probe and its controls with their intervals, one panel for each task; and, where layers
    were probed, the scores over layers.

    Args:
        probing: a `Probing`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: an unknown option, or matplotlib is missing.

    Example:
        >>> probing_figure(probe(model, tokenizer, treebank)).save("probe.pdf")
    """
    learnt, _, test = probing.sentences
    layers = {
        number
        for task in probing.tasks
        for number in probing.per_layer(task, probing.measures(task)[0])
    }
    return draw_result(
        probing,
        options,
        lambda sheet, y: _draw(sheet, probing, y),
        title=f"{probing.model or 'A model'}: {probing.kind} probe",
        note=f"{learnt:,} sentences learnt from, {test:,} others scored",
        layers=layers,
        texts=[probing.kind, str(learnt), str(test)],
    )


def _draw(sheet: Sheet, probing: Any, y: float) -> tuple[float, list[str]]:
    """One panel of bars for each task, lines over layers below; return the next y and the notes."""
    style, tasks = sheet.style, probing.tasks
    gap = 2.0 * style.em
    wide = (sheet.width - gap * (len(tasks) - 1)) / len(tasks)
    most = max(len(_bars(probing, task, probing.measures(task)[0])) for task in tasks)
    titles = [
        (number * (wide + gap), f"{task}: {probing.measures(task)[0]}")
        for number, task in enumerate(tasks)
    ]
    y = sheet.titles(y, titles, wide) + 0.4 * style.em
    below = y + most * ROW * style.em + 2.4 * style.em
    bottom, has_layers = below, False
    for number, task in enumerate(tasks):
        x, measure = number * (wide + gap), probing.measures(task)[0]
        bars = _bars(probing, task, measure)
        _draw_bars(sheet, bars, probing.confidence, at=(x, y), width=wide)
        layers = probing.per_layer(task, measure)
        if len(layers) > 1:
            has_layers = True
            end = _draw_layers(sheet, layers, probing.confidence, at=(x, below), width=wide)
            bottom = max(bottom, end)
    over = "documents" if any(each.groups for each in probing.scores) else "sentences"
    notes = [f"lines on bars: {probing.confidence:.0%} interval over {over}"]
    if has_layers:
        notes.append("bands: the same of each layer")
    return bottom + 0.4 * style.em, notes


def _bars(probing: Any, task: str, measure: str) -> list[Any]:
    """The probe first, then its controls; layers have a panel of their own."""
    bars = []
    for each in probing.scores:
        is_layer = each.of.startswith(LAYER) and each.of != EMBEDDINGS
        is_shown = not is_layer and each.of not in NOT_BARS
        if is_shown and (each.task, each.measure) == (task, measure):
            bars.append(each)
    return bars


def _draw_bars(
    sheet: Sheet,
    scores: Sequence[Any],
    confidence: float,
    *,
    at: tuple[float, float],
    width: float,
) -> None:
    style, (x, y) = sheet.style, at
    bars = []
    for each in scores:
        written = f"{each.value:.2f}" if each.lengths is not None else f"{100 * each.value:.1f}"
        colour = style.accent if each.of in PROBES else style.faint
        name = sheet.fitted(_name(each.of), MOST_SIDE * width, style.small)
        bars.append(Bar(name, each.value, *each.interval(confidence), written, colour))
    side = max(sheet.width_of(bar.name, style.small) for bar in bars) + 0.8 * style.em
    numbers = sheet.width_of("100.0", style.small) + 0.8 * style.em
    axis, pitch = Axis(x + side, x + width - numbers, 0.0, 1.0), ROW * style.em
    draw_upright_grid(sheet, axis, (y, y + len(scores) * pitch), percent_written)
    # A score below 0, as a correlation may be, gets a bar of no length; its number is written.
    draw_bars(sheet, bars, axis, y, pitch=pitch, share=BAR)


def _draw_layers(
    sheet: Sheet,
    layers: dict[int, Any],
    confidence: float,
    *,
    at: tuple[float, float],
    width: float,
) -> float:
    style, (x, y) = sheet.style, at
    numbers = sorted(layers)
    values = np.array([layers[number].value for number in numbers])
    ends = np.array([layers[number].interval(confidence) for number in numbers])
    spots = np.concatenate([values, ends.ravel()])
    low = max(0.0, float(np.nanmin(spots)) - 0.05)
    high = min(1.0, float(np.nanmax(spots)) + 0.05)
    side = sheet.width_of("100 %", style.small) + 0.8 * style.em
    box = Box(x + side, y, width - side - 1.2 * style.em, TALL)
    line = Line("", style.accent, values, ends)
    bottom = draw_lines(sheet, [line], numbers, box, ends=(low, high), written=percent_written)
    is_upto = any(" to " in layers[number].of for number in numbers)
    words = "layers 0 to ..." if is_upto else "layer (0: embeddings)"
    sheet.note(box.x + box.width / 2, bottom, words, anchor="center")
    return bottom + 1.2 * style.em


def _name(of: str) -> str:
    return "embeddings (layer 0)" if of == EMBEDDINGS else of
