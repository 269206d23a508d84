"""Figure of word alignment: maps of the error rate by weight and by norm, layers with intervals,
and the diagonal.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from headscope.errors import FigureError
from headscope.results import draws
from headscope.views.figures._axis import Axis, draw_upright_grid
from headscope.views.figures._charts import (
    COLOUR_BAR,
    Mark,
    Matrix,
    Value,
    dot,
    draw_colour_bar,
    draw_matrix,
    draw_row_names,
    draw_value,
    hollow_square,
)
from headscope.views.figures._figure import Figure
from headscope.views.figures._result import ResultOptions, draw_result
from headscope.views.figures._scale import Scale
from headscope.views.figures._sheet import Sheet

BY = ("weight", "norm")
STATES = {"output": "the state that writes a word", "input": "the state that reads it"}
NAMES = {"weight": "by weight  a", "norm": "by norm  ‖a f(x)‖"}
LARGEST_CELL, NUMBERED_CELL = 6.4, 4.6
"""Millimetres of a cell at most, and of one that has room for its number."""
ALL_APART = 0.35
"""Gap between the columns of heads and the column of all of them together, in cells."""
MAPS = 0.66
"""Share of the width that the maps take."""
MARK = 1.9


@draws("alignment study")
def alignment_figure(study: Any, **options: Unpack[ResultOptions]) -> Figure:
    """Alignment error rate of every head and layer, by weight and by norm, for both states of the
    decoder.

    Paper is the rate of the diagonal, which position alone reaches: blue cells have fewer errors,
    orange ones more. The least of each map is framed. On the right all heads of a layer together
    with their intervals.

    Source: Kobayashi et al. 2020, section 5 (rates of layers and heads).

    Args:
        study: an `AlignmentStudy`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: nothing was counted, an unknown option, or matplotlib is missing.

    Example:
        >>> alignment_figure(alignment_study(model, tokenizer, pairs)).save("alignment.pdf")
    """
    if not study.sentences:
        raise FigureError(
            "No sentence was counted, so there is nothing to draw; update the study with one first"
        )
    sentences = f"{study.sentences:,} sentence{'s' * (study.sentences != 1)}"
    return draw_result(
        study,
        options,
        lambda sheet, y: _draw(sheet, study, y),
        kind="alignment",
        title=f"{study.model or 'A model'}: word alignment by weight and by norm",
        note=f"alignment error rate in %, {sentences}",
        layers=study.layers,
        heads=range(study.heads),
        texts=study.sums.texts,
    )


def _draw(sheet: Sheet, study: Any, y: float) -> tuple[float, list[str]]:
    """The maps and layers of both states; return the next y and the notes."""
    scale = _scale(sheet, study)
    for state in STATES:
        y = _state(sheet, study, state, scale, y=y)
    y = _colour_bar(sheet, study, scale, y)
    notes = [
        "rows are layers of the decoder, columns its heads, both from 0; “all”: all heads of "
        "a layer together",
        "framed: the fewest errors of a map",
        "diagonal: each word linked to the one at its relative place, without any attention",
    ]
    if study.sentences > 1:
        notes.append(f"whiskers: {study.confidence:.0%} bootstrap interval over sentences")
    if study.refused:
        layers = ", ".join(map(str, study.refused))
        notes.append(f"no norms of layer{'s' * (len(study.refused) > 1)} {layers}")
    return y, notes


def _scale(sheet: Sheet, study: Any) -> Scale:
    """Colours for fewer errors than the diagonal (above 0), or more (below 0)."""
    style, baseline = sheet.style, study.baseline
    # Rates lie between 0 and 1, so this is the largest difference that can occur: all studies with
    # one baseline share their colours.
    return Scale(
        style.score_scale(1.0).colours, max(baseline, 1 - baseline), True, 1.0, style.masked
    )


def _state(sheet: Sheet, study: Any, state: str, scale: Scale, *, y: float) -> float:
    """The maps and layers of one state; return the next y."""
    style, layers = sheet.style, study.layers
    shown = [by for by in BY if not np.isnan(study.error_rates(by, state)).all()]
    side = sheet.width_of("00", style.small) + 0.6 * style.em
    columns, gap = study.heads + 1 + ALL_APART, 1.6 * style.em
    room = (MAPS * sheet.width - side - gap * len(BY)) / len(BY)
    cell = min(LARGEST_CELL, room / columns)
    sheet.text(side, y + 0.6 * style.em, f"{state}: {STATES[state]}")
    names, top = y + 2.0 * style.em, y + 2.8 * style.em
    draw_row_names(sheet, layers, at=(side, top), cell=cell)
    x = side
    for by in shown:
        sheet.note(x, names, NAMES[by])
        _map(sheet, study, study.error_rates(by, state), scale, at=(x, top), cell=cell)
        x += columns * cell + gap
    _layers(sheet, study, state, shown, at=(x + 0.6 * style.em, top), cell=cell)
    return top + len(layers) * cell + 2.8 * style.em


def _map(
    sheet: Sheet,
    study: Any,
    rates: np.ndarray,
    scale: Scale,
    *,
    at: tuple[float, float],
    cell: float,
) -> None:
    """The heads, and behind a gap all heads of a layer together: each has its own best cell."""
    heads = rates.shape[1] - 1
    for part, start in ((slice(0, heads), 0.0), (slice(heads, heads + 1), heads + ALL_APART)):
        known = rates[:, part]
        frames, words = [], {}
        if not np.isnan(known).all():
            frames = [divmod(int(np.nanargmin(known)), known.shape[1])]
        if cell >= NUMBERED_CELL:
            cells = np.argwhere(~np.isnan(known)).tolist()
            words = {(row, column): f"{100 * known[row, column]:.0f}" for row, column in cells}
        shown = Matrix(
            rgb=scale.rgb(study.baseline - known),
            columns=["all"] if start else None,
            hidden=np.isnan(known),
            frames=frames,
            words=words,
        )
        draw_matrix(sheet, shown, at=(at[0] + start * cell, at[1]), cell=cell)


def _layers(
    sheet: Sheet, study: Any, state: str, shown: list[str], *, at: tuple[float, float], cell: float
) -> None:
    """All heads of each layer together, a mark for each of weight and norm, and the diagonal as a
    line.
    """
    style, (x, y) = sheet.style, at
    right = sheet.width - sheet.width_of("100", style.small) / 2
    axis, bottom = Axis(x, right, 0.0, 1.0), y + len(study.layers) * cell
    draw_upright_grid(sheet, axis, (y, bottom), lambda rate: f"{100 * rate:.0f}")
    for row in range(len(study.layers) + 1):
        sheet.line([x, right], [y + row * cell] * 2, colour=style.edge, line=0.4)
    line, (low, most) = axis.at(study.baseline), study.baseline_interval
    if np.isfinite(low):
        band = axis.at(most) - axis.at(low)
        sheet.rect(axis.at(low), y, band, bottom - y, fill=style.masked, layer=1)
    sheet.line([line, line], [y - 0.3 * style.em, bottom], colour=style.muted, line=1.0)
    half = sheet.width_of("diagonal", style.small) / 2
    sheet.note(min(line, sheet.width - half), y - 0.8 * style.em, "diagonal", anchor="center")
    marks = _marks(sheet, min(MARK, 0.4 * cell))
    for number, by in enumerate(shown):
        rates, ends = study.error_rates(by, state)[:, -1], study.intervals(by, state)[:, -1]
        shift = (number - (len(shown) - 1) / 2) * 0.36 * cell
        for row, (rate, (low, most)) in enumerate(zip(rates, ends, strict=True)):
            height = y + (row + 0.5) * cell + shift
            value = Value(rate, low, most)
            draw_value(sheet, value, (style.ink, marks[by]), at=(axis, height))


def _marks(sheet: Sheet, size: float) -> dict[str, Mark]:
    """A filled dot for weights, a square of paper for norms."""
    ink = sheet.style.ink
    return {"weight": dot(ink, size=size), "norm": hollow_square(ink, size=size)}


def _colour_bar(sheet: Sheet, study: Any, scale: Scale, y: float) -> float:
    """Rates below the bar, that of the diagonal marked, and what the marks on the right are; give
    the next y.
    """
    style, baseline = sheet.style, study.baseline
    side = sheet.width_of("00", style.small) + 0.6 * style.em
    width = min(60.0, 0.4 * sheet.width)
    marks = [(0.0, "0"), (baseline, f"diagonal {100 * baseline:.0f}"), (1.0, "100")]
    bar = scale.rgb(baseline - np.linspace(0, 1, 256)[None])
    below = draw_colour_bar(sheet, bar, marks, at=(side, y), width=width, line=True)
    x = sheet.width
    for by in reversed(BY):
        x -= sheet.width_of(by, style.small)
        sheet.note(x, y + COLOUR_BAR / 2, by)
        _marks(sheet, MARK)[by](sheet, x - 0.8 * style.em, y + COLOUR_BAR / 2)
        x -= 2.4 * style.em
    sheet.note(x + 0.6 * style.em, y + COLOUR_BAR / 2, "all heads together", anchor="right")
    return below + 0.2 * style.em
