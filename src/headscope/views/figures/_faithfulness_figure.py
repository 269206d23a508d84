"""Figure of faithfulness: agreement and erasure of every signal in a classifier, and erasure
curves.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from headscope.results import draws
from headscope.views.figures._charts import (
    MARK,
    ROW,
    Axis,
    Line,
    Value,
    draw_lines,
    draw_upright_grid,
    draw_value,
)
from headscope.views.figures._figure import Figure, ResultOptions, draw_result
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import (
    counted,
    number_written,
)

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
CURVES_TALL = 42.0
"""Height of the erasure curves in millimetres."""


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

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        known = dict(zip(SIGNALS, sheet.style.series(len(SIGNALS)), strict=True))
        colours = {name: known.get(name, sheet.style.muted) for name in faithfulness.signals}
        y = _agreement(sheet, faithfulness, colours, y)
        y = _erasure(sheet, faithfulness, colours, y)
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

    texts = counted(faithfulness.texts, "text")
    return draw_result(
        faithfulness,
        options,
        draw,
        title=f"{faithfulness.model or 'A classifier'}: what agrees with what mattered",
        note=f"mean over {texts}; what comes out is reported, nothing is asserted about it",
        layers=(faithfulness.layer,),
    )


def _agreement(sheet: Sheet, faithfulness: Any, colours: dict[str, str], y: float) -> float:
    """A row for each signal, a panel for each measure; return the next y."""
    style, means = sheet.style, faithfulness.means
    pitch, gap = ROW * style.em, 1.8 * style.em
    side = max(sheet.width_of(WORDS.get(name, name)) for name in colours) + 1.7 * style.em
    room = sheet.width - side - gap * 3 - sheet.width_of("1.0", style.small) / 2
    wide = room / len(PANELS)
    starts = (side + np.arange(len(PANELS)) * (wide + gap)).tolist()
    titles = list(zip(starts, [words for *_, words in PANELS], strict=True))
    top = sheet.titles(y, titles, wide + 0.8 * gap) + 0.3 * style.em
    middles = (top + (np.arange(len(colours)) + 0.5) * pitch).tolist()
    for middle, (name, colour) in zip(middles, colours.items(), strict=True):
        sheet.dot(MARK / 2, middle, MARK, fill=colour)
        sheet.text(0.9 * style.em, middle, WORDS.get(name, name))
    bottom = top + len(colours) * pitch
    for start, (measures, against, _) in zip(starts, PANELS, strict=True):
        axis = _agreement_axis(means, measures[0], (start, start + wide))
        draw_upright_grid(sheet, axis, (top, bottom))
        # Erasing tokens in random order, with which all are to be compared.
        if (measures[0], "random", "") in means:
            at = axis.at(means[measures[0], "random", ""][0])
            sheet.line([at, at], [top, bottom], colour=style.ink, line=1.0)
        for row in range(1, len(colours)):
            sheet.line([start, start + wide], [top + row * pitch] * 2, colour=style.edge, line=0.3)
        for middle, (name, colour) in zip(middles, colours.items(), strict=True):
            if name == against:
                sheet.note(axis.at(0.0) + 0.6 * style.em, middle, "itself")
            for index, measure in enumerate(measures):
                shift = (index - (len(measures) - 1) / 2) * 0.34 * pitch
                if (measure, name, against) in means:
                    mean, _, low, high, _ = means[measure, name, against]
                    look = colour, "ring" if measure == "kendall" else "dot"
                    draw_value(sheet, Value(mean, low, high), look, at=(axis, middle + shift))
    return bottom + 2.6 * style.em


def _agreement_axis(means: Any, measure: str, ends: tuple[float, float]) -> Axis:
    """The axis of a panel, the same for both panels of agreement, and for both of erasure."""
    ranks = measure in PANELS[0][0]
    spots = [0.0, 0.5]
    for (of, *_), (mean, _, low, high, _) in means.items():
        names = PANELS[0][0] if ranks else (PANELS[2][0] + PANELS[3][0])
        if of in names:
            spots += [number for number in (mean, low, high) if np.isfinite(number)]
    # At least from 0 to 0.5, so that small differences do not fill the panel and look large.
    return Axis(*ends, np.floor(min(spots) * 10) / 10, np.ceil(max(spots) * 10) / 10)


def _erasure(sheet: Sheet, faithfulness: Any, colours: dict[str, str], y: float) -> float:
    """What the answer loses by the share of tokens, two panels; return the next y."""
    style, words = sheet.style, {name: WORDS.get(name, name) for name in colours}
    of_all = {}
    for measure, *_ in CURVES:
        for name in colours:
            of_all[name, measure] = faithfulness.erasure(name, measure)[:, 0]
    values = np.concatenate([*of_all.values(), [0.0, 0.1]])
    ends = np.floor(values.min() * 10) / 10, np.ceil(values.max() * 10) / 10
    side = sheet.width_of("−0.5", style.small) + 0.5 * style.em
    names = max(sheet.width_of(name, style.small) for name in words.values()) + style.em
    gap = 2.0 * style.em
    wide = (sheet.width - gap) / 2 - side - names
    starts = [side + number * (side + wide + names + gap) for number in range(len(CURVES))]
    titles = [(start, words) for start, (_, words, _) in zip(starts, CURVES, strict=True)]
    y = sheet.titles(y, titles, wide + names)
    below = {share: f"{100 * share:.0f} %" for share in SHARES[1:]}
    unknown, bottom = np.full((len(SHARES), 2), np.nan), y
    for start, (measure, _, wanted) in zip(starts, CURVES, strict=True):
        sheet.note(start, y + 0.6 * style.em, wanted)
        lines = []
        for name, colour in colours.items():
            lines.append(Line(words[name], colour, of_all[name, measure], unknown))
        box, unit = (start, y + 1.8 * style.em, wide, CURVES_TALL), number_written
        bottom = draw_lines(sheet, lines, SHARES, box, ends=ends, written=unit, below=below)
        place = (start + wide / 2, bottom + 0.2 * style.em)
        sheet.note(*place, "of the tokens of a text", anchor="center")
    return bottom + 1.5 * style.em
