"""Figure of the heads of a model: maps of labels and measures, and the map of all heads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, Unpack

import numpy as np

from headscope.errors import FigureError
from headscope.patterns import Heads
from headscope.results import draws
from headscope.views.figures._charts import Matrix, draw_matrix
from headscope.views.figures._classes import bars_of, draw_classes
from headscope.views.figures._figure import Figure
from headscope.views.figures._heads_plane import (
    UNITS,
    draw_by_measures,
    draw_legend,
    draw_map,
    label_colours,
    rarest_labels,
    shows_candidates,
)
from headscope.views.figures._palette import parse_hex
from headscope.views.figures._recipe import Recipe
from headscope.views.figures._result import (
    ResultOptions,
    parse_result_options,
    result_heading,
    result_recipe,
    written_options,
)
from headscope.views.figures._sheet import Sheet, our_settings
from headscope.views.figures._style import Style
from headscope.views.figures._words import two_digits

PANEL = 38.0
"""Approximate width of a map of layers and heads in millimetres."""
LARGEST_CELL = 5.0


@draws("heads")
def heads_figure(
    result: Heads,
    *,
    show: Collection[str] | None = None,
    mds: bool | Literal["only"] | None = None,
    axes: tuple[str, str] | None = None,
    classes: bool | Mapping[str, Heads] = False,
    **options: Unpack[ResultOptions],
) -> Figure:
    """Labels and measures as maps of layers and heads, and all heads as points of a plane.

    The first map has the label of each head; where it holds several, that which fewest heads hold.
    Then come patterns and measures by their mean over texts; dots mark the heads that hold the
    label.

    Args:
        result: the labels of the heads.
        show: patterns and measures, by name; by default every pattern that some text shows and
            every measure.
        mds: whether to draw the map of all heads (Clark et al. 2019), or nothing else; by default
            where the distances of heads were added up.
        axes: draw nothing but heads as points by these two, across and up: measures, ``"layer"``,
            ``"class vertical"`` and so on, or names of patterns.
        classes: draw nothing but the shares of Kovaleva's five classes of maps, as stacked bars: of
            every layer (True), or of these results together and of others by name, such as one for
            each task (Kovaleva et al. 2019, figure 2).
        **options: see `ResultOptions`.

    Raises:
        FigureError: an unknown option, pattern or measure, or matplotlib is missing.
        RecordError: a map of all heads whose distances were not added up.

    Example:
        >>> heads_figure(heads(records, distances=True)).save("heads.pdf")
    """
    with our_settings():
        width, style = parse_result_options(options)
        sheet = Sheet(width, style)
        title = options.get("title", result.tally.model or "Heads")
        y = result_heading(sheet, title, f"{len(result.cells)} heads over {_texts(result)}")
        if classes is not False:
            y = _class_bars(sheet, result, classes, y)
            sheet.finish(y + 0.3 * style.em)
            return Figure(sheet.matplotlib, _recipe(result, "classes=...", options, style))
        notes = _notes(result)
        plain = style.faint
        if axes is not None:
            y = draw_by_measures(sheet, result, axes, y)
        else:
            if mds != "only":
                names = _chosen(result, show)
                y = _maps(sheet, result, names, colours=label_colours(result, sheet), y=y)
                dots = notes or ["a dot: the label holds"]
                notes = ["rows are layers, columns are heads, both from 0", *dots]
                plain = style.masked
            # By default where distances were added up for the map.
            if mds or (mds is None and result.tally.distances is not None):
                y = draw_map(sheet, result, y)
        sheet.finish(draw_legend(sheet, result, y, notes, plain=plain) + 0.3 * style.em)
    return Figure(
        sheet.matplotlib,
        _recipe(result, f"show={show!r}, mds={mds!r}, axes={axes!r}", options, style),
    )


def _texts(result: Heads) -> str:
    """How many texts, and how long they are."""
    words = f"{result.texts} texts"
    if result.texts == 1:
        words = "1 text: no evidence for others"
    if np.isnan(result.tokens):
        return words
    return f"{words}, median {result.tokens:.0f} tokens"


def _notes(result: Heads) -> list[str]:
    """Notes about labels that rest on too few texts."""
    notes = [] if result.texts > 1 else ["one text gives no label: what it shows"]
    if shows_candidates(result):
        notes.append("no label holds: candidates, on too few texts to tell")
    return notes


def _class_bars(
    sheet: Sheet, result: Heads, classes: Literal[True] | Mapping[str, Heads], y: float
) -> float:
    """Kovaleva's classes as stacked bars, and what they are made of; return the next y."""
    notes = [
        "percent of the maps of all heads on all texts, by rules (Kovaleva et al. trained a CNN)"
    ]
    if classes is True:
        return sheet.paragraph(draw_classes(sheet, bars_of(result, None), y), notes)
    y = draw_classes(sheet, bars_of(result, classes), y)
    notes += [f"{name}: {each.texts} texts" for name, each in classes.items()]
    return sheet.paragraph(y, notes)


def _recipe(result: Heads, chosen: str, options: ResultOptions, style: Style) -> Recipe:
    """How the figure was made."""
    layers, numbers = zip(*result.cells, strict=True)
    return result_recipe(
        "heads",
        model=result.tally.model,
        layers=layers,
        heads=numbers,
        texts=result.tally.shown.values(),
        call=f"headscope.figure(result, {chosen}{written_options(options)})",
        style=style,
    )


def _chosen(result: Heads, show: Collection[str] | None) -> list[str]:
    scored = list(dict.fromkeys(label.pattern for label in result.all_labels))
    known = [
        *scored,
        *(name for name, values in result.measures.items() if not np.isnan(values).all()),
    ]
    for name in show or ():
        if name not in known:
            raise FigureError(f"There is no {name!r} to draw; there are {', '.join(known)}")
    return known if show is None else list(show)


def _maps(
    sheet: Sheet, result: Heads, names: list[str], *, colours: dict[str, str], y: float
) -> float:
    """Small maps side by side; return the next y."""
    style = sheet.style
    layers = list(dict.fromkeys(layer for layer, _ in result.cells))
    heads = max(head for _, head in result.cells) + 1
    gap = 1.6 * style.em
    columns = max(1, min(len(names) + 1, int((sheet.width + gap) / (PANEL + gap))))
    width = (sheet.width - (columns - 1) * gap) / columns
    side = sheet.width_of(str(layers[-1]), style.small) + 0.5 * style.em
    cell = min(LARGEST_CELL, (width - side) / heads)
    tall = 1.5 * style.em + len(layers) * cell + 1.6 * style.em
    for number, name in enumerate(["label", *names]):
        x, top = (number % columns) * (width + gap), y + (number // columns) * tall
        rgb, holds, scale = _panel(sheet, result, name, colours)
        sheet.text(x + side, top + 0.6 * style.em, name)
        # Of few heads the words of the scale stand behind the name, and not over it.
        right = max(heads * cell, sheet.width_of(f"{name}  ") + sheet.width_of(scale, style.small))
        sheet.note(x + side + right, top + 0.6 * style.em, scale, anchor="right")
        # Paper where a layer has fewer heads than others. A copy, because a broadcast is read-only.
        grid = np.broadcast_to(parse_hex(style.paper), (len(layers), heads, 3)).copy()
        dots = np.zeros((len(layers), heads), bool)
        for (layer, head), colour, holding in zip(result.cells, rgb, holds, strict=True):
            grid[layers.index(layer), head] = colour
            dots[layers.index(layer), head] = holding
        shown = Matrix(rgb=grid, rows=layers, dots=dots)
        draw_matrix(sheet, shown, at=(x + side, top + 1.4 * style.em), cell=cell)
    return y + -(-(len(names) + 1) // columns) * tall + 0.3 * style.em


def _panel(
    sheet: Sheet, result: Heads, name: str, colours: dict[str, str]
) -> tuple[np.ndarray, list[bool], str]:
    """Colour of each head, whether it has a dot, and what the colours mean."""
    style = sheet.style
    if name == "label":
        labels = rarest_labels(result)
        rgb = []
        for cell in result.cells:
            colour = colours[labels[cell]] if cell in labels else style.masked
            rgb.append(parse_hex(colour))
        return np.array(rgb), [False] * len(rgb), ""
    if name in result.measures:
        values = result.measures[name]
        largest = float(np.nanmax(values)) or 1.0
        end = two_digits(largest) if largest < 1 else f"{largest:.1f}"
        scale = f"0–{end} {UNITS.get(name, '')}".rstrip()
        return style.weight_scale(largest, power=1.0).rgb(values), [False] * len(values), scale
    return _pattern_panel(style, result, name)


def _pattern_panel(style: Style, result: Heads, name: str) -> tuple[np.ndarray, list[bool], str]:
    """The scores of one pattern, with a dot on the heads that hold it."""
    mine = {
        (label.layer, label.head): label for label in result.all_labels if label.pattern == name
    }
    values = np.array([mine[cell].score if cell in mine else np.nan for cell in result.cells])
    holds = [cell in mine and mine[cell].holds for cell in result.cells]
    shades = style.weight_scale(1.0, power=1.0).rgb(
        np.where(np.isnan(values), values, np.clip(values, 0, 1))
    )
    return shades, holds, f"0–1, {sum(holds)} hold" if any(holds) else "0–1"
