"""What attention agrees with in a classifier, drawn: agreement and erasure of every signal, and
erasure curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from typing_extensions import Unpack

from headscope.results import draws
from headscope.views.figures._figure import Figure
from headscope.views.figures._palette import head_colours, head_greys
from headscope.views.figures._result import (
    ResultOptions,
    parse_result_options,
    result_heading,
    result_recipe,
    written_options,
)
from headscope.views.figures._sheet import Sheet, our_settings
from headscope.views.figures._style import POINT

SIGNALS = ("attention", "contribution", "rollout", "alti", "gradient", "leave_one_out")
COLOURS = (0, 1, 2, 5, 8, 10)
"""Of a palette of twelve, those that are told apart best."""
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
ROW = 1.75
"""Height of a signal, in units of the font size."""
MARK = 1.7
TALL = 42.0
"""Millimetres of the erasure curves."""


@dataclass(frozen=True)
class Axis:
    """A line of numbers: millimetres of its ends, and the numbers there."""

    start: float
    stop: float
    low: float
    high: float

    def at(self, value: float) -> float:
        """Millimetres of a number."""
        return float(
            self.start + (self.stop - self.start) * (value - self.low) / (self.high - self.low)
        )

    def ticks(self, least: int = 3) -> list[float]:
        """Round numbers, few of them."""
        step = next(
            size
            for size in (0.5, 0.25, 0.1, 0.05, 0.01)
            if (self.high - self.low) / size >= least or size < 0.05
        )
        first = int(np.ceil(self.low / step - 1e-9))
        return [number * step for number in range(first, int(self.high / step + 1e-9) + 1)]


@draws("faithfulness")
def faithfulness_figure(found: Any, **options: Unpack[ResultOptions]) -> Figure:
    """Agreement of each signal with gradient and leaving out, and what erasing tokens in its order
    does.

    Filled marks are Spearman's rho (or the mean over the shares of tokens), hollow ones Kendall's
    tau-b; whiskers are intervals over texts. Below, what the answer loses by the share of tokens.
    What tokens in random order do is a line in the panels of erasure: the zero line of all others.

    Source: Jain and Wallace 2019 (agreement); DeYoung et al. 2020 (erasure).

    Args:
        found: a `Faithfulness`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: an option that there is not, or matplotlib is missing.

    Example:
        >>> faithfulness_figure(faithfulness(classifier, tokenizer, texts)).save("faithfulness.pdf")
    """
    with our_settings():
        width, style = parse_result_options(options)
        sheet = Sheet(width, style)
        colours = _colours(sheet, found.signals)
        title = options.get(
            "title", f"{found.model or 'A classifier'}: what agrees with what mattered"
        )
        texts = f"{len(found.texts):,} text{'s' * (len(found.texts) != 1)}"
        y = result_heading(
            sheet,
            title,
            f"mean over {texts}; what comes out is reported, nothing is asserted about it",
        )
        y = _rows(sheet, found, colours, y)
        y = _curves(sheet, found, colours, y)
        notes = [
            "agreement: rank correlation over the tokens of a text, filled Spearman’s rho, "
            "hollow Kendall’s tau-b"
        ]
        notes.append("comprehensiveness and sufficiency: what the curves below are in the mean")
        if len(found.texts) > 1:
            over = "texts" if found.groups is None else "documents"
            notes.append(f"whiskers: {found.confidence:.0%} interval over {over}")
        if "random" in colours:
            notes.append(
                "random: one random draw for each text; its line, what any cut of tokens does, "
                "is the zero line"
            )
        sheet.finish(sheet.paragraph(y, notes) + 0.3 * style.em)
    recipe = result_recipe(
        "faithfulness",
        model=found.model,
        layers=(found.layer,),
        heads=(),
        texts=[" ".join(text.pieces) for text in found.texts],
        call=f"headscope.figure(found{written_options(options)})",
        style=style,
    )
    return Figure(sheet.matplotlib, recipe)


def _colours(sheet: Sheet, signals: Sequence[str]) -> dict[str, str]:
    style = sheet.style
    palette = head_colours(12, dark=style.dark)
    chosen = (
        [palette[number] for number in COLOURS]
        if style.colour
        else head_greys(len(SIGNALS), dark=style.dark)
    )
    known = dict(zip(SIGNALS, chosen, strict=True))
    return {name: known.get(name, style.muted) for name in signals}


def _rows(sheet: Sheet, found: Any, colours: dict[str, str], y: float) -> float:
    """A row for each signal, a panel for each measure; give the next y."""
    style = sheet.style
    pitch, top = ROW * style.em, y + 1.5 * style.em
    side = max(sheet.width_of(WORDS.get(name, name)) for name in colours) + 0.8 * style.em
    gap = 1.8 * style.em
    wide = (
        sheet.width - side - gap * (len(PANELS) - 1) - sheet.width_of("1.0", style.small) / 2
    ) / len(PANELS)
    for row, (name, colour) in enumerate(colours.items()):
        _swatch(sheet, top + (row + 0.5) * pitch, colour)
        sheet.text(0.9 * style.em, top + (row + 0.5) * pitch, WORDS.get(name, name))
    side += 0.9 * style.em
    wide -= 0.9 * style.em / len(PANELS)
    bottom = top + len(colours) * pitch
    for number, (measures, against, words) in enumerate(PANELS):
        start = side + number * (wide + gap)
        sheet.text(start, y + 0.6 * style.em, sheet.fitted(words, wide + 0.8 * gap))
        axis = _axis(
            found,
            measures,
            PANELS[number - number % 2 : number - number % 2 + 2],
            (start, start + wide),
        )
        _grid(sheet, axis, top, bottom)
        _zero_line(sheet, _random(found, measures), axis, (top, bottom))
        for row in range(1, len(colours)):
            sheet.line([start, start + wide], [top + row * pitch] * 2, colour=style.edge, line=0.3)
        for row, (name, colour) in enumerate(colours.items()):
            middle = top + (row + 0.5) * pitch
            if name == against:
                sheet.note(axis.at(0.0) + 0.6 * style.em, middle, "itself")
            for place, measure in enumerate(measures):
                shift = (place - (len(measures) - 1) / 2) * 0.34 * pitch
                _mark(sheet, found, (measure, name, against), axis, y=middle + shift, colour=colour)
    return bottom + 2.6 * style.em


def _axis(
    found: Any, measures: Sequence[str], beside: Sequence[tuple], ends: tuple[float, float]
) -> Axis:
    """The same for panels of one kind."""
    names = {measure for kinds, _, _ in beside for measure in kinds} | set(measures)
    spots = [
        number
        for (measure, *_), (mean, _, low, high, _) in found.means.items()
        if measure in names
        for number in (mean, low, high)
        if np.isfinite(number)
    ]
    low, high = min([0.0, *spots]), max([0.5, *spots])
    return Axis(*ends, np.floor(low * 10) / 10, np.ceil(high * 10) / 10)


def _grid(sheet: Sheet, axis: Axis, top: float, bottom: float) -> None:
    style = sheet.style
    for tick in axis.ticks():
        x, is_zero = axis.at(tick), abs(tick) < 1e-9
        colour, line = (style.muted, 0.7) if is_zero else (style.edge, 0.4)
        sheet.line([x, x], [top, bottom], colour=colour, line=line)
        sheet.note(x, bottom + 0.8 * style.em, _number(tick), anchor="center")


def _random(found: Any, measures: Sequence[str]) -> list[float]:
    """What cutting tokens in random order does, of measures of erasure; none of others."""
    names = [(measure, "random", "") for measure in measures]
    return [found.means[name][0] for name in names if name in found.means]


def _zero_line(
    sheet: Sheet, values: Sequence[float], axis: Axis, ends: tuple[float, float]
) -> None:
    for value in values:
        sheet.line([axis.at(value)] * 2, list(ends), colour=sheet.style.ink, line=1.0)


def _mark(
    sheet: Sheet, found: Any, name: tuple[str, str, str], axis: Axis, *, y: float, colour: str
) -> None:
    if name not in found.means:
        return
    mean, _, low, high, _ = found.means[name]
    size = min(MARK, 0.5 * ROW * sheet.style.em)
    if np.isfinite(low):
        sheet.line([axis.at(low), axis.at(high)], [y, y], colour=colour, line=1.1)
    fill = sheet.style.paper if name[0] == "kendall" else colour
    x = axis.at(mean)
    sheet.rect(
        x - size / 2,
        y - size / 2,
        size,
        size,
        fill=fill,
        edge=colour,
        line=0.9,
        round=size / 2,
        layer=4,
    )


def _curves(sheet: Sheet, found: Any, colours: dict[str, str], y: float) -> float:
    """What the answer loses by the share of tokens, two panels; give the next y."""
    style = sheet.style
    of_all = {
        (name, measure): found.erasure(name, measure) for name in colours for measure, *_ in CURVES
    }
    values = np.concatenate([curve[:, 0] for curve in of_all.values()])
    low, high = min(0.0, float(values.min())), max(0.1, float(values.max()))
    side = sheet.width_of("−0.5", style.small) + 0.5 * style.em
    names = (
        max(sheet.width_of(WORDS.get(name, name), style.small) for name in colours) + 1.0 * style.em
    )
    gap = 2.0 * style.em
    wide = (sheet.width - gap) / 2 - side - names
    top = y + 3.0 * style.em
    heights = Axis(top + TALL, top, np.floor(low * 10) / 10, np.ceil(high * 10) / 10)
    for number, (measure, words, wanted) in enumerate(CURVES):
        start = side + number * (side + wide + names + gap)
        shares = Axis(start, start + wide, 0.0, max(SHARES))
        sheet.text(start, y + 0.6 * style.em, sheet.fitted(words, wide + names))
        sheet.note(start, y + 1.8 * style.em, wanted)
        for tick in heights.ticks():
            zero = abs(tick) < 1e-9
            height = heights.at(tick)
            sheet.line(
                [start, start + wide],
                [height, height],
                colour=style.muted if zero else style.edge,
                line=0.4,
            )
            sheet.note(start - 0.5 * style.em, height, _number(tick), anchor="right")
        for share in SHARES[2 if wide < 50 else 1 :]:
            sheet.note(
                shares.at(share),
                top + TALL + 0.9 * style.em,
                f"{100 * share:.0f} %",
                anchor="center",
            )
        ends = {}
        for name, colour in reversed(colours.items()):
            curve = of_all[name, measure]
            _curve(sheet, curve, (shares, heights), colour)
            ends[name] = heights.at(curve[-1, 0])
        for name, height in _apart(ends, 1.25 * style.small * POINT, top + TALL).items():
            x = start + wide + 0.9 * style.em
            sheet.text(x, height, WORDS.get(name, name), size=style.small, colour=colours[name])
        sheet.note(
            start + wide / 2,
            top + TALL + 2.1 * style.em,
            "of the tokens of a text",
            anchor="center",
        )
    return top + TALL + 3.4 * style.em


def _curve(
    sheet: Sheet, curve: Float[np.ndarray, "share 3"], axes: tuple[Axis, Axis], colour: str
) -> None:
    shares, heights = axes
    xs, ys = [shares.at(share) for share in SHARES], [heights.at(value) for value in curve[:, 0]]
    sheet.line(xs, ys, colour=colour, line=1.3)
    for x, y in zip(xs, ys, strict=True):
        sheet.rect(x - 0.45, y - 0.45, 0.9, 0.9, fill=colour, round=0.45, layer=3)


def _apart(heights: dict[str, float], least: float, lowest: float) -> dict[str, float]:
    """Heights of names, moved so that none touch, as groups around where they would stand, none
    below the lowest.
    """
    groups: list[tuple[list[str], float]] = []
    for name in sorted(heights, key=heights.__getitem__):
        groups.append(([name], min(heights[name], lowest)))
        while len(groups) > 1 and _touch(groups[-2], groups[-1], least):
            (first, above), (second, below) = groups[-2:]
            both = (above * len(first) + below * len(second)) / (len(first) + len(second))
            names = first + second
            groups[-2:] = [(names, min(both, lowest - (len(names) - 1) / 2 * least))]
    return {
        name: middle + (place - (len(names) - 1) / 2) * least
        for names, middle in groups
        for place, name in enumerate(names)
    }


def _touch(above: tuple[list[str], float], below: tuple[list[str], float], least: float) -> bool:
    return below[1] - above[1] < least * (len(above[0]) + len(below[0])) / 2


def _swatch(sheet: Sheet, y: float, colour: str) -> None:
    sheet.rect(0, y - MARK / 2, MARK, MARK, fill=colour, round=MARK / 2)


def _number(value: float) -> str:
    text = f"{abs(value):.2f}".rstrip("0").rstrip(".") or "0"
    return f"−{text}" if value < -1e-9 else text
