"""Figure of norms: shares of special tokens, punctuation and words over the layers, by weight and
by norm.
"""

from __future__ import annotations

from typing import Any, Unpack

from headscope.errors import FigureError
from headscope.results import draws
from headscope.views.figures._axis import percent_written
from headscope.views.figures._charts import Box, Line, draw_lines
from headscope.views.figures._figure import Figure
from headscope.views.figures._palette import head_greys
from headscope.views.figures._result import ResultOptions, draw_result
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import Style

TITLES = {"weight": "by weight  a", "norm": "by norm  ‖a f(x)‖"}
NAMES = {
    "cls": "[CLS]",
    "sep": "[SEP]",
    "first": "first",
    "stop": "period, comma",
    "other": "other",
}
"""Names of the classes of tokens, see `NormStudy.classes`."""
COLOURS = {
    "cls": ("#0072B2", "#68a6ff"),
    "sep": ("#D55E00", "#ff9a4d"),
    "first": ("#009E73", "#35c9a1"),
    "stop": ("#A0608F", "#d79ac9"),
    "other": ("#5A5A5A", "#a3a3a3"),
}
"""Okabe and Ito's, the lighter ones darkened for lines on white, lightened for dark paper."""
TALL = 52.0
"""Height of the lines in millimetres."""


@draws("norm study")
def norms_figure(study: Any, **options: Unpack[ResultOptions]) -> Figure:
    """The share of every class of tokens in a row of each layer, by weight on the left and by norm
    on the right, on one scale.

    Source: Kobayashi et al. 2020, section 4.

    Args:
        study: a `NormStudy`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: nothing was counted, an unknown option, or matplotlib is missing.

    Example:
        >>> norms_figure(norm_study(records)).save("norms.pdf")
    """
    if not study.texts:
        raise FigureError(
            "No text was counted, so there is nothing to draw; update the study with one first"
        )
    return draw_result(
        study,
        options,
        lambda sheet, y: _draw(sheet, study, y),
        kind="norms",
        title=f"{study.model or 'A model'}: what rows look at, and what is added",
        note=f"share of a row, mean over heads; {study.texts:,} text{'s' * (study.texts != 1)}",
        layers=study.layers,
        texts=study.sums.texts,
    )


def _draw(sheet: Sheet, study: Any, y: float) -> tuple[float, list[str]]:
    """Both panels; return the next y and the notes."""
    style, colours = sheet.style, _colours(sheet.style)
    side = sheet.width_of("100 %", style.small) + 0.8 * style.em
    names = max(sheet.width_of(NAMES[of], style.small) for of in study.classes) + 1.4 * style.em
    gap = 1.0 * style.em
    wide = (sheet.width - gap) / 2 - side - names
    top, bottom = y + 1.8 * style.em, y
    for number, (by, title) in enumerate(TITLES.items()):
        x = side + number * (side + wide + names + gap)
        sheet.text(x, y + 0.6 * style.em, title)
        lines = []
        for of in study.classes:
            row = f"share by {by}: {of}"
            # The last column is all layers together.
            values, ends = study.mean(row)[:-1], study.interval(row)[:-1]
            lines.append(Line(NAMES[of], colours[of], values, ends))
        box = Box(x, top, wide, TALL)
        bottom = draw_lines(
            sheet, lines, study.layers, box, ends=(0.0, 1.0), written=percent_written
        )
        sheet.note(x + wide / 2, bottom, "layer", anchor="center")
    return bottom + 1.2 * style.em, [f"bands: {study.confidence:.0%} interval over texts"]


def _colours(style: Style) -> dict[str, str]:
    if not style.colour:
        return dict(zip(COLOURS, head_greys(len(COLOURS), dark=style.dark), strict=True))
    return {name: both[int(style.dark)] for name, both in COLOURS.items()}
