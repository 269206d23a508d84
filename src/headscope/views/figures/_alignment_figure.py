"""Figure of word alignment: maps of the error rate by weight and by norm, layers with intervals,
and the diagonal.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from headscope.errors import FigureError
from headscope.results import draws
from headscope.views.figures._figure import Figure
from headscope.views.figures._palette import text_on
from headscope.views.figures._result import FigureWords, ResultOptions, draw_result
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
BAR = 2.2


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
    drawn = FigureWords(
        kind="alignment",
        title=f"{study.model or 'A model'}: word alignment by weight and by norm",
        note=f"alignment error rate in %, {sentences}",
        model=study.model,
        layers=study.layers,
        heads=range(study.heads),
        texts=study.sums.texts,
    )
    return draw_result(drawn, options, lambda sheet, y: _draw(sheet, study, y))


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
    for row in range(0, len(layers), _every(sheet, cell)):
        sheet.note(
            side - 0.5 * style.em, top + (row + 0.5) * cell, str(layers[row]), anchor="right"
        )
    x = side
    for by in shown:
        sheet.note(x, names, NAMES[by])
        _map(
            sheet,
            study.error_rates(by, state),
            scale,
            at=(x, top),
            cell=cell,
            baseline=study.baseline,
        )
        x += columns * cell + gap
    _layers(sheet, study, state, shown, at=(x + 0.6 * style.em, top), cell=cell)
    return top + len(layers) * cell + 2.8 * style.em


def _map(
    sheet: Sheet,
    rates: np.ndarray,
    scale: Scale,
    *,
    at: tuple[float, float],
    cell: float,
    baseline: float,
) -> None:
    style, (x, y), heads = sheet.style, at, rates.shape[1] - 1
    rgb, high = scale.rgb(baseline - rates), len(rates) * cell
    starts = [
        head * cell + (ALL_APART * cell if head == heads else 0.0) for head in range(heads + 1)
    ]
    # Two pictures, because there is a gap before the last column and each has its own best cell.
    for part in (slice(0, heads), slice(heads, heads + 1)):
        corner, wide = (x + starts[part.start], y), (part.stop - part.start) * cell
        sheet.cells(rgb[:, part], at=corner, size=(wide, high), hidden=np.isnan(rates[:, part]))
        sheet.rect(*corner, wide, high, edge=style.edge, line=0.35, layer=3)
        known = rates[:, part]
        if not np.isnan(known).all():
            row, column = divmod(int(np.nanargmin(known)), known.shape[1])
            frame = (corner[0] + column * cell, y + row * cell)
            sheet.rect(*frame, cell, cell, edge=style.ink, line=1.1, layer=4)
    if cell >= NUMBERED_CELL:
        for row, column in np.argwhere(~np.isnan(rates)):
            middle = (x + starts[column] + cell / 2, y + (row + 0.5) * cell)
            words, ink = f"{100 * rates[row, column]:.0f}", text_on(rgb[row, column])
            sheet.text(*middle, words, size=style.small, colour=ink, anchor="center")
    below = y + high + 0.8 * style.em
    for head in range(
        0, heads, max(1, int(np.ceil(1.4 * sheet.width_of(str(heads), style.small) / cell)))
    ):
        sheet.note(x + starts[head] + cell / 2, below, str(head), anchor="center")
    sheet.note(x + starts[-1] + cell / 2, below, "all", anchor="center")


def _layers(
    sheet: Sheet, study: Any, state: str, shown: list[str], *, at: tuple[float, float], cell: float
) -> None:
    """All heads of each layer together, a mark for each of weight and norm, and the diagonal as a
    line.
    """
    style, (x, y) = sheet.style, at
    wide, high = sheet.width - x - sheet.width_of("100", style.small) / 2, len(study.layers) * cell
    for tick in (0, 25, 50, 75, 100):
        at_tick = x + wide * tick / 100
        sheet.line([at_tick, at_tick], [y, y + high], colour=style.edge, line=0.4)
        sheet.note(at_tick, y + high + 0.8 * style.em, str(tick), anchor="center")
    for row in range(len(study.layers) + 1):
        sheet.line([x, x + wide], [y + row * cell, y + row * cell], colour=style.edge, line=0.4)
    line = x + wide * study.baseline
    low, most = study.baseline_interval
    if np.isfinite(low):
        sheet.rect(x + wide * low, y, wide * (most - low), high, fill=style.masked, layer=1)
    sheet.line([line, line], [y - 0.3 * style.em, y + high], colour=style.muted, line=1.0)
    half = sheet.width_of("diagonal", style.small) / 2
    sheet.note(min(line, sheet.width - half), y - 0.8 * style.em, "diagonal", anchor="center")
    for number, by in enumerate(shown):
        rates, ends = study.error_rates(by, state)[:, -1], study.intervals(by, state)[:, -1]
        shift = (number - (len(shown) - 1) / 2) * 0.36 * cell
        for row, (rate, (low, most)) in enumerate(zip(rates, ends, strict=True)):
            height = y + (row + 0.5) * cell + shift
            if np.isfinite(low):
                sheet.line(
                    [x + wide * low, x + wide * most], [height, height], colour=style.ink, line=0.8
                )
            if np.isfinite(rate):
                mark(sheet, x + wide * rate, height, by, size=min(MARK, 0.4 * cell))


def mark(sheet: Sheet, x: float, y: float, by: str, *, size: float) -> None:
    """A filled dot for weights, a square of paper for norms."""
    fill = sheet.style.ink if by == "weight" else sheet.style.paper
    round_by = size / 2 if by == "weight" else 0.0
    sheet.rect(
        x - size / 2,
        y - size / 2,
        size,
        size,
        fill=fill,
        edge=sheet.style.ink,
        line=0.8,
        round=round_by,
        layer=5,
    )


def _colour_bar(sheet: Sheet, study: Any, scale: Scale, y: float) -> float:
    """Rates below the bar, that of the diagonal marked, and what the marks on the right are; give
    the next y.
    """
    style, baseline = sheet.style, study.baseline
    side = sheet.width_of("00", style.small) + 0.6 * style.em
    width = min(60.0, 0.4 * sheet.width)
    sheet.cells(scale.rgb(baseline - np.linspace(0, 1, 256)[None]), at=(side, y), size=(width, BAR))
    sheet.rect(side, y, width, BAR, edge=style.edge, line=0.35, layer=3)
    at, below = side + width * baseline, y + BAR + 0.85 * style.em
    sheet.line([at, at], [y - 0.6, y + BAR + 0.6], colour=style.ink, line=1.0)
    words = f"diagonal {100 * baseline:.0f}"
    half = sheet.width_of(words, style.small) / 2
    ends = [sheet.width_of(end, style.small) + 0.5 * style.em for end in ("0", "100")]
    sheet.note(
        min(max(at, side + ends[0] + half), side + width - ends[1] - half),
        below,
        words,
        anchor="center",
    )
    sheet.note(side, below, "0")
    sheet.note(side + width, below, "100", anchor="right")
    x = sheet.width
    for by in reversed(BY):
        x -= sheet.width_of(by, style.small)
        sheet.note(x, y + BAR / 2, by)
        mark(sheet, x - 0.8 * style.em, y + BAR / 2, by, size=MARK)
        x -= 2.4 * style.em
    sheet.note(x + 0.6 * style.em, y + BAR / 2, "all heads together", anchor="right")
    return below + 1.6 * style.em


def _every(sheet: Sheet, cell: float) -> int:
    return max(1, int(np.ceil(1.3 * sheet.style.small * 0.353 / cell)))
