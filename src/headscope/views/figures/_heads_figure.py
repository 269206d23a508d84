"""Figures of heads: maps of labels and measures, the map of all heads, Kovaleva's classes of maps
as stacked bars, groups of neurons by the labels of heads, and what two results differ in most.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, Unpack

import numpy as np

from headscope.errors import FigureError
from headscope.patterns import CLASSES, Groups, Heads
from headscope.results import draws
from headscope.views.figures._charts import Matrix, Row, Value, draw_dots, draw_matrix
from headscope.views.figures._figure import Figure, ResultOptions, draw_result
from headscope.views.figures._heads_plane import (
    UNITS,
    axis_names,
    draw_by_measures,
    draw_labels,
    draw_map,
    label_colours,
    rarest_labels,
    shows_candidates,
)
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import head_greys, parse_hex, text_on, two_digits

PANEL = 38.0
"""Approximate width of a map of layers and heads in millimetres."""
LARGEST_CELL = 5.0
MOST_COMPARED = 20
"""Rows of two results that are drawn."""
CLASS_COLOURS = ("#8d9bb0", "#2f6fd6", "#86b8ea", "#4f9d4a", "#dcd6c8")
"""Colours in the order of the classes. The class that Kovaleva et al. call vertical is slate, like
the kind that the viewer calls resting.
"""
BAR, GAP, BEFORE_ALL = 4.6, 1.5, 1.6
"""Height of a stacked bar, of the gap between two, and of that before all layers together, in
millimetres.
"""


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

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        if classes is not False:
            return _classes(sheet, result, None if classes is True else classes, y)
        notes, plain = _notes(result), sheet.style.faint
        if axes is not None:
            y = draw_by_measures(sheet, result, axes, y)
        else:
            if mds != "only":
                y = _maps(sheet, result, show, y)
                dots = notes or ["a dot: the label holds"]
                notes = ["rows are layers, columns are heads, both from 0", *dots]
                plain = sheet.style.masked
            # By default where distances were added up for the map.
            if mds or (mds is None and result.tally.distances is not None):
                y = draw_map(sheet, result, y)
        y, more = draw_labels(sheet, result, y, plain=plain)
        return y, [*notes, *more]

    texts = f"{result.texts} texts" if result.texts > 1 else "1 text: no evidence for others"
    if not np.isnan(result.tokens):
        texts += f", median {result.tokens:.0f} tokens"
    shown = "classes=..." if classes is not False else f"show={show!r}, mds={mds!r}, axes={axes!r}"
    return draw_result(
        result,
        options,
        draw,
        title=result.model or "Heads",
        note=f"{len(result.cells)} heads over {texts}",
        texts=(says for says, _ in result.tally.examples),
        chosen=f", {shown}",
    )


@draws("result comparison")
def compared_figure(
    comparison: Any, *, measure: str | None = None, **options: Unpack[ResultOptions]
) -> Figure:
    """How far a measure of two results is apart, B less A: the rows that differ most, with their
    intervals.

    Args:
        comparison: what `headscope.compare` gives of two results.
        measure: one that both have; by default the first.
        **options: see `ResultOptions`.

    Raises:
        FigureError: both have no such measure, an unknown option, or matplotlib is missing.

    Example:
        >>> compared_figure(compare(heads_a, heads_b), measure="score").save("compared.pdf")
    """
    there = list(dict.fromkeys(comparison.columns()["measure"]))
    name = there[0] if measure is None else measure
    if not (own := comparison.most(name, MOST_COMPARED)):
        raise FigureError(f"There is no measure {name!r} in both; there are {', '.join(there)}")
    rows, ends = [], [1e-9]
    for each in own:
        value = Value(each["difference"], each["low"], each["high"])
        note = f"{each['a']:.3g} to {each['b']:.3g}"
        rows.append(Row(comparison.named(each), {f"{name}, B less A": value}, note))
        ends += [abs(end) for end in (value.value, value.low, value.high) if np.isfinite(end)]
    reach = 1.05 * max(ends)

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        y = draw_dots(sheet, rows, y, ends=(-reach, reach))
        has_ends = any(np.isfinite(each["low"]) for each in own)
        lines = ["lines: interval of the difference, where both have one"] * has_ends
        return y, [f"the {len(rows)} rows that differ most", "on the right: A and B", *lines]

    cells = dict.fromkeys((each["layer"], each["head"]) for each in own if "head" in each)
    return draw_result(
        comparison,
        options,
        draw,
        title=comparison.summary.partition(":")[0],
        cells=cells,
        texts=(),
        chosen=f", measure={name!r}",
    )


@draws(Groups.KIND)
def groups_figure(groups: Groups, **options: Unpack[ResultOptions]) -> Figure:
    """The smallest number of neurons that carry a query's score, and how fixed their set is, by the
    label of the heads.

    Source: Vig 2019, part 2 (few fixed neurons, or many that shift).

    Args:
        groups: the result of `Mechanism.grouped`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: no head holds a label, an unknown option, or matplotlib is missing.
    """
    if not groups.all:
        raise FigureError("No head holds a label, so there is nothing to draw")

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        neurons, fixed = [], []
        for each in groups.all:
            name = f"{each.label}  ({each.heads})"
            many = Value(each.neurons, each.neurons_low, each.neurons_high)
            alike = Value(each.fixed, each.fixed_low, each.fixed_high)
            neurons.append(Row(name, {"neurons that carry a query's score": many}))
            fixed.append(Row(name, {"fixed: Jaccard above chance": alike}))
        most = [end for each in groups.all for end in (each.neurons, each.neurons_high)]
        least = [end for each in groups.all for end in (each.fixed, each.fixed_low)]
        y = draw_dots(sheet, neurons, y, ends=(0.0, max(1.0, 1.05 * float(np.nanmax(most)))))
        y = draw_dots(sheet, fixed, y, ends=(min(0.0, float(np.nanmin(least))), 1.0))
        return y, [
            "in brackets: how many heads hold the label",
            "fixed: 0 as by chance, 1 the same neurons at all positions",
            f"lines: {groups.confidence:.0%} interval over texts",
        ]

    title, texts = "Neurons that carry heads, by label", [each.label for each in groups.all]
    return draw_result(groups, options, draw, title=title, kind="mechanism groups", texts=texts)


def _notes(result: Heads) -> list[str]:
    """Notes about labels that rest on too few texts."""
    notes = [] if result.texts > 1 else ["one text gives no label: what it shows"]
    if shows_candidates(result):
        notes.append("no label holds: candidates, on too few texts to tell")
    return notes


def _maps(sheet: Sheet, result: Heads, show: Collection[str] | None, y: float) -> float:
    """Small maps side by side: labels, patterns and measures; return the next y."""
    style, known = sheet.style, axis_names(result, of_maps=True)
    for name in show or ():
        if name not in known:
            raise FigureError(f"There is no {name!r} to draw; there are {', '.join(known)}")
    names = ["label", *(known if show is None else show)]
    layers = list(dict.fromkeys(layer for layer, _ in result.cells))
    heads = max(head for _, head in result.cells) + 1
    gap = 1.6 * style.em
    columns = max(1, min(len(names), int((sheet.width + gap) / (PANEL + gap))))
    width = (sheet.width - (columns - 1) * gap) / columns
    side = sheet.width_of(str(layers[-1]), style.small) + 0.5 * style.em
    cell = min(LARGEST_CELL, (width - side) / heads)
    tall = 1.5 * style.em + len(layers) * cell + 1.6 * style.em
    for number, name in enumerate(names):
        x, top = number % columns * (width + gap) + side, y + number // columns * tall
        rgb, holds, scale = _panel(sheet, result, name)
        sheet.text(x, top + 0.6 * style.em, name)
        # Of few heads the words of the scale stand behind the name, and not over it.
        right = max(heads * cell, sheet.width_of(f"{name}  ") + sheet.width_of(scale, style.small))
        sheet.note(x + right, top + 0.6 * style.em, scale, anchor="right")
        # Paper where a layer has fewer heads than others. A copy, because a broadcast is read-only.
        grid = np.broadcast_to(parse_hex(style.paper), (len(layers), heads, 3)).copy()
        dots = np.zeros((len(layers), heads), bool)
        for (layer, head), colour, holding in zip(result.cells, rgb, holds, strict=True):
            grid[layers.index(layer), head] = colour
            dots[layers.index(layer), head] = holding
        shown = Matrix(rgb=grid, rows=layers, dots=dots)
        draw_matrix(sheet, shown, at=(x, top + 1.4 * style.em), cell=cell)
    return y + -(-len(names) // columns) * tall + 0.3 * style.em


def _panel(sheet: Sheet, result: Heads, name: str) -> tuple[np.ndarray, list[bool], str]:
    """Colour of each head, whether it has a dot, and what the colours mean."""
    style, none = sheet.style, [False] * len(result.cells)
    if name == "label":
        labels, colours = rarest_labels(result), label_colours(result, sheet)
        shown = [colours[labels[each]] if each in labels else style.masked for each in result.cells]
        return np.array([parse_hex(colour) for colour in shown]), none, ""
    if name in result.measures:
        values = result.measures[name]
        largest = float(np.nanmax(values)) or 1.0
        end = two_digits(largest) if largest < 1 else f"{largest:.1f}"
        scale = f"0–{end} {UNITS.get(name, '')}".rstrip()
        return style.weight_scale(largest, power=1.0).rgb(values), none, scale
    return _pattern_panel(sheet, result, name)


def _pattern_panel(sheet: Sheet, result: Heads, name: str) -> tuple[np.ndarray, list[bool], str]:
    """The scores of one pattern, with a dot on the heads that hold it."""
    mine = {(each.layer, each.head): each for each in result.all_labels if each.pattern == name}
    values = np.array([mine[cell].score if cell in mine else np.nan for cell in result.cells])
    holds = [cell in mine and mine[cell].holds for cell in result.cells]
    rgb = sheet.style.weight_scale(1.0, power=1.0).rgb(np.clip(values, 0, 1))
    return rgb, holds, f"0–1, {sum(holds)} hold" if any(holds) else "0–1"


def _shares_of(result: Heads) -> dict[str, float]:
    return {name: float(np.mean(shares)) for name, shares in result.classes.items()}


def _classes(
    sheet: Sheet, result: Heads, others: Mapping[str, Heads] | None, y: float
) -> tuple[float, list[str]]:
    """A stacked bar from 0 to 100 % for every layer, or every set of texts, each part with its
    number; return the next y and the notes.

    Raises:
        FigureError: where another set is not a result of `headscope.heads`.
    """
    style, names = sheet.style, list(CLASSES)
    notes = [
        "percent of the maps of all heads on all texts, by rules (Kovaleva et al. trained a CNN)"
    ]
    if others is None:
        bars = {f"layer {layer}": shares for layer, shares in result.classes_of_layers().items()}
        bars["all"] = _shares_of(result)
    else:
        bars = {result.model or "this": _shares_of(result)}
        for name, each in others.items():
            if not isinstance(each, Heads):
                raise FigureError(
                    f"classes has a {type(each).__name__} for {name!r}; give what headscope.heads "
                    "found"
                )
            bars[str(name)] = _shares_of(each)
            notes.append(f"{name}: {each.texts} texts")
    colours = CLASS_COLOURS if style.colour else head_greys(len(names), dark=style.dark)
    side = min(0.4 * sheet.width, max(map(sheet.width_of, bars))) + 0.8 * style.em
    y = sheet.legend(list(zip(colours, names, strict=True)), y, x=side) + 0.6 * style.em
    for name, shares in bars.items():
        y += BEFORE_ALL * (name == "all")
        sheet.text(side - 0.6 * style.em, y + BAR / 2, sheet.fitted(name, side), anchor="right")
        x = side
        for of, colour in zip(names, colours, strict=True):
            width, words = (sheet.width - side) * shares[of], f"{100 * shares[of]:.0f}"
            sheet.rect(x, y, width, BAR, fill=colour, edge=style.paper, line=0.6)
            # A part that is too narrow for its number stays without one.
            if width > sheet.width_of(words, style.small) + 0.8 * style.em:
                ink, place = text_on(parse_hex(colour)), (x + width / 2, y + BAR / 2)
                sheet.text(*place, words, size=style.small, colour=ink, anchor="center")
            x += width
        y += BAR + GAP
    return y + 0.4 * style.em, notes
