"""Figure of faithfulness: agreement and erasure of every signal in a classifier, and erasure
curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from headscope.results import draws
from headscope.views.figures._axis import Axis, draw_upright_grid, number_written
from headscope.views.figures._charts import (
    MARK,
    ROW,
    Box,
    Line,
    Value,
    dot,
    draw_lines,
    draw_value,
    series_colours,
)
from headscope.views.figures._figure import Figure
from headscope.views.figures._result import ResultOptions, draw_result
from headscope.views.figures._sheet import Sheet

SIGNALS = ("attention", "contribution", "rollout", "alti", "gradient", "leave_one_out")
WORDS = {"leave_one_out": "leave one out", "alti": "ALTI"}
PANELS = (
    (("kendall", "spearman"), "gradient", "agrees with gradient"),
    (("kendall", "spearman"), "leave_one_out", "with leaving out"),
    (("comprehensiveness",), "", "comprehensiveness"),
    (("sufficiency",), "", "sufficiency"),
)
CURVES = (
    ("comprehensiveness", "without the top tokens the answer loses", "more is better"),
    ("sufficiency", "with the top tokens alone it loses", "less is better"),
)
SHARES = (0.01, 0.05, 0.10, 0.20, 0.50)
TALL = 42.0
"""Millimetres of the erasure curves."""


@draws("faithfulness")
def faithfulness_figure(faithfulness: Any, **options: Unpack[ResultOptions]) -> Figure:
    """Agreement of each signal with the gradient and with leave-one-out, and the effect of erasing
    tokens in its order.

    Filled marks are Spearman's rho (or the mean over the shares of tokens), hollow ones Kendall's
    tau-b; whiskers are intervals over texts. The curves below show what the answer loses by the
    share of tokens. Erasing tokens in random order is a line in the panels of erasure, with which
    all signals are to be compared.

    Source: Jain and Wallace 2019 (agreement); DeYoung et al. 2020 (erasure).

    Args:
        faithfulness: a `Faithfulness`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: an unknown option, or matplotlib is missing.

    Example:
        >>> faithfulness_figure(faithfulness(classifier, tokenizer, texts)).save("faithfulness.pdf")
    """
    count = faithfulness.texts
    texts = f"{count:,} text{'s' * (count != 1)}"
    return draw_result(
        faithfulness,
        options,
        lambda sheet, y: _draw(sheet, faithfulness, y),
        title=f"{faithfulness.model or 'A classifier'}: what agrees with what mattered",
        note=f"mean over {texts}; what comes out is reported, nothing is asserted about it",
        layers=(faithfulness.layer,),
        texts=faithfulness.sums.texts,
    )


def _draw(sheet: Sheet, faithfulness: Any, y: float) -> tuple[float, list[str]]:
    """Agreement, erasure and its curves; return the next y and the notes."""
    colours = _colours(sheet, faithfulness.signals)
    y = _rows(sheet, faithfulness, colours, y)
    y = _curves(sheet, faithfulness, colours, y)
    notes = [
        "agreement: rank correlation over the tokens of a text, filled Spearman’s rho, "
        "hollow Kendall’s tau-b",
        "comprehensiveness and sufficiency: means of the curves below",
    ]
    if faithfulness.texts > 1:
        level, over = f"{faithfulness.confidence:.0%}", faithfulness.over
        notes.append(f"whiskers: {level} interval over {over}")
    if "random" in colours:
        notes.append(
            "random: one random draw for each text; its line, what any cut of tokens does, "
            "is the zero line"
        )
    return y, notes


def _colours(sheet: Sheet, signals: Sequence[str]) -> dict[str, str]:
    style = sheet.style
    chosen = series_colours(style, len(SIGNALS))
    known = dict(zip(SIGNALS, chosen, strict=True))
    return {name: known.get(name, style.muted) for name in signals}


def _rows(sheet: Sheet, faithfulness: Any, colours: dict[str, str], y: float) -> float:
    """A row for each signal, a panel for each measure; return the next y."""
    style = sheet.style
    pitch = ROW * style.em
    side = max(sheet.width_of(WORDS.get(name, name)) for name in colours) + 0.8 * style.em
    gap = 1.8 * style.em
    wide = (
        sheet.width - side - gap * (len(PANELS) - 1) - sheet.width_of("1.0", style.small) / 2
    ) / len(PANELS)
    side += 0.9 * style.em
    wide -= 0.9 * style.em / len(PANELS)
    starts = [side + number * (wide + gap) for number in range(len(PANELS))]
    titles = [(start, words) for start, (*_, words) in zip(starts, PANELS, strict=True)]
    top = sheet.titles(y, titles, wide + 0.8 * gap) + 0.3 * style.em
    for row, (name, colour) in enumerate(colours.items()):
        _swatch(sheet, top + (row + 0.5) * pitch, colour)
        sheet.text(0.9 * style.em, top + (row + 0.5) * pitch, WORDS.get(name, name))
    bottom = top + len(colours) * pitch
    for number, (measures, against, _) in enumerate(PANELS):
        start = starts[number]
        axis = _axis(
            faithfulness,
            measures,
            PANELS[number - number % 2 : number - number % 2 + 2],
            (start, start + wide),
        )
        draw_upright_grid(sheet, axis, (top, bottom))
        _zero_line(sheet, _random(faithfulness, measures), axis, (top, bottom))
        for row in range(1, len(colours)):
            sheet.line([start, start + wide], [top + row * pitch] * 2, colour=style.edge, line=0.3)
        for row, (name, colour) in enumerate(colours.items()):
            middle = top + (row + 0.5) * pitch
            if name == against:
                sheet.note(axis.at(0.0) + 0.6 * style.em, middle, "itself")
            for index, measure in enumerate(measures):
                shift = (index - (len(measures) - 1) / 2) * 0.34 * pitch
                if (measure, name, against) in faithfulness.means:
                    mean, _, low, high, _ = faithfulness.means[measure, name, against]
                    look = colour, dot(colour, is_hollow=measure == "kendall")
                    draw_value(sheet, Value(mean, low, high), look, at=(axis, middle + shift))
    return bottom + 2.6 * style.em


def _axis(
    faithfulness: Any, measures: Sequence[str], beside: Sequence[tuple], ends: tuple[float, float]
) -> Axis:
    """The axis of a panel, the same for all panels of one kind."""
    names = {measure for kinds, _, _ in beside for measure in kinds} | set(measures)
    spots = [
        number
        for (measure, *_), (mean, _, low, high, _) in faithfulness.means.items()
        if measure in names
        for number in (mean, low, high)
        if np.isfinite(number)
    ]
    # At least from 0 to 0.5, so that small differences do not fill the panel and look large.
    low, high = min([0.0, *spots]), max([0.5, *spots])
    return Axis(*ends, np.floor(low * 10) / 10, np.ceil(high * 10) / 10)


def _random(faithfulness: Any, measures: Sequence[str]) -> list[float]:
    """The means of erasing tokens in random order, for measures of erasure; empty for others."""
    names = [(measure, "random", "") for measure in measures]
    return [faithfulness.means[name][0] for name in names if name in faithfulness.means]


def _zero_line(
    sheet: Sheet, values: Sequence[float], axis: Axis, ends: tuple[float, float]
) -> None:
    for value in values:
        sheet.line([axis.at(value)] * 2, list(ends), colour=sheet.style.ink, line=1.0)


def _curves(sheet: Sheet, faithfulness: Any, colours: dict[str, str], y: float) -> float:
    """What the answer loses by the share of tokens, two panels; return the next y."""
    style = sheet.style
    of_all = {
        (name, measure): faithfulness.erasure(name, measure)
        for name in colours
        for measure, *_ in CURVES
    }
    values = np.concatenate([curve[:, 0] for curve in of_all.values()])
    low, high = min(0.0, float(values.min())), max(0.1, float(values.max()))
    side = sheet.width_of("−0.5", style.small) + 0.5 * style.em
    names = (
        max(sheet.width_of(WORDS.get(name, name), style.small) for name in colours) + 1.0 * style.em
    )
    gap = 2.0 * style.em
    wide = (sheet.width - gap) / 2 - side - names
    starts = [side + number * (side + wide + names + gap) for number in range(len(CURVES))]
    titles = [(start, words) for start, (_, words, _) in zip(starts, CURVES, strict=True)]
    y = sheet.titles(y, titles, wide + names)
    top = y + 1.8 * style.em
    ends = np.floor(low * 10) / 10, np.ceil(high * 10) / 10
    below = {share: f"{100 * share:.0f} %" for share in SHARES[1:]}
    unknown, bottom = np.full((len(SHARES), 2), np.nan), y
    for start, (measure, _, wanted) in zip(starts, CURVES, strict=True):
        sheet.note(start, y + 0.6 * style.em, wanted)
        lines = [
            Line(WORDS.get(name, name), colour, of_all[name, measure][:, 0], unknown)
            for name, colour in colours.items()
        ]
        bottom = draw_lines(
            sheet,
            lines,
            SHARES,
            Box(start, top, wide, TALL),
            ends=ends,
            written=number_written,
            below=below,
        )
        words = "of the tokens of a text"
        sheet.note(start + wide / 2, bottom + 0.2 * style.em, words, anchor="center")
    return bottom + 1.5 * style.em


def _swatch(sheet: Sheet, y: float, colour: str) -> None:
    sheet.rect(0, y - MARK / 2, MARK, MARK, fill=colour, round=MARK / 2)
