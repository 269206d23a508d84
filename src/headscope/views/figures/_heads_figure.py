"""Figures of heads: maps of labels and measures, the map of all heads, Kovaleva's classes of maps
as stacked bars, groups of neurons by the labels of heads, and what two results differ in most.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np

from headscope.errors import FigureError
from headscope.patterns import CLASSES, MEASURES, Groups, Heads
from headscope.views.figures import _heads_plane, charts
from headscope.views.figures._figure import Spec, specified
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import Scale, named_scale, percent_written, two_digits

PANEL = 33.0
"""Smallest width of a map of layers and heads in millimetres."""
ROWS_ARE_LAYERS = "rows are layers, columns are heads, both from 0"
MOST_COMPARED = 20
"""Rows of two results that are drawn."""
CLASS_COLOURS = ("#8d9bb0", "#2f6fd6", "#86b8ea", "#4f9d4a", "#dcd6c8")
"""Colours in the order of the classes. The class that Kovaleva et al. call vertical is slate, like
the kind that the viewer calls resting.
"""


@specified("heads")
def heads_figure(
    result: Heads,
    *,
    show: Collection[str] | None = None,
    mds: bool | Literal["only"] | None = None,
    axes: tuple[str, str] | None = None,
    classes: bool | Mapping[str, Heads] = False,
) -> Spec:
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

    Raises:
        FigureError: an unknown pattern or measure.
        RecordError: a map of all heads whose distances were not added up.

    Example:
        >>> heads(records, distances=True).figure().save("heads.pdf")
    """
    is_maps, one = axes is None and mds != "only", result.texts == 1
    has_plane = result.tally.distances is not None if mds is None else bool(mds)
    candidates = _heads_plane.shows_candidates(result)
    notes = [
        ROWS_ARE_LAYERS * is_maps,
        "one text gives no label: what it shows" * one,
        "no label holds: candidates, on too few texts to tell" * candidates,
        "a dot: the label holds" * (is_maps and not one and not candidates),
        *_heads_plane.label_notes(result),
    ]

    def draw(sheet: Sheet) -> None:
        if is_maps:
            _maps(sheet, result, show)
        if axes is not None or has_plane:
            _heads_plane.draw_plane(sheet, result, axes or (_heads_plane.MAP, ""))
        plain = sheet.style.masked if is_maps else sheet.style.faint
        _heads_plane.draw_labels(sheet, result, plain=plain)

    if classes is not False:
        bars, notes = _class_bars(result, classes)
        draw = partial(_draw_classes, bars=bars)
    texts = "1 text: no evidence for others" if one else f"{result.texts} texts"
    tokens = "" if np.isnan(result.tokens) else f", median {result.tokens:.0f} tokens"
    return Spec(
        title=result.model or "Heads",
        body=draw,
        note=f"{len(result.cells)} heads over {texts}{tokens}",
        notes=notes,
        texts=(says for says, _ in result.tally.examples),
    )


@specified("result comparison")
def compared_figure(comparison: Any, *, measure: str | None = None) -> Spec:
    """How far a measure of two results is apart, B less A: the rows that differ most, with their
    intervals.

    Args:
        comparison: what `headscope.compare` gives of two results.
        measure: one that both have; by default the first.

    Raises:
        FigureError: both have no such measure.

    Example:
        >>> compare(heads_a, heads_b), measure="score".figure().save("compared.pdf")
    """
    there = list(dict.fromkeys(comparison.columns()["measure"]))
    name = there[0] if measure is None else measure
    if not (own := comparison.most(name, MOST_COMPARED)):
        raise FigureError(f"There is no measure {name!r} in both; there are {', '.join(there)}")
    rows = {}
    for each in own:
        value = (each["difference"], each["low"], each["high"])
        note = f"{each['a']:.3g} to {each['b']:.3g}"
        rows[comparison.named(each)] = charts.Row({f"{name}, B less A": value}, note)
    reach = 1.05 * max(map(abs, charts.ends_of([*rows.values()])))
    return Spec(
        title=comparison.summary.partition(":")[0],
        body=partial(charts.draw_dots, rows=rows, ends=(-reach, reach)),
        notes=[
            f"the {len(rows)} rows that differ most",
            "on the right: A and B",
            "lines: interval of the difference, where both have one"
            * any(np.isfinite(each["low"]) for each in own),
        ],
        cells=dict.fromkeys((each["layer"], each["head"]) for each in own if "head" in each),
        texts=(),
    )


@specified(Groups.KIND)
def groups_figure(groups: Groups) -> Spec:
    """The smallest number of neurons that carry a query's score, and how fixed their set is, by the
    label of the heads.

    Source: Vig 2019, part 2 (few fixed neurons, or many that shift).

    Args:
        groups: the result of `Mechanism.grouped`.

    Raises:
        FigureError: no head holds a label.
    """
    if not groups.all:
        raise FigureError("No head holds a label, so there is nothing to draw")
    neurons, fixed = {}, {}
    for each in groups.all:
        name = f"{each.label}  ({each.heads})"
        many = (each.neurons, each.neurons_low, each.neurons_high)
        alike = (each.fixed, each.fixed_low, each.fixed_high)
        neurons[name] = charts.Row({"neurons that carry a query's score": many})
        fixed[name] = charts.Row({"fixed: Jaccard above chance": alike})

    def draw(sheet: Sheet) -> None:
        most, least = charts.ends_of([*neurons.values()])[1], charts.ends_of([*fixed.values()])[0]
        charts.draw_dots(sheet, neurons, ends=(0.0, max(1.0, 1.05 * most)))
        charts.draw_dots(sheet, fixed, ends=(least, 1.0))

    return Spec(
        title="Neurons that carry heads, by label",
        body=draw,
        notes=[
            "in brackets: how many heads hold the label",
            "fixed: 0 as by chance, 1 the same neurons at all positions",
            f"lines: {groups.confidence:.0%} interval over texts",
        ],
        texts=[each.label for each in groups.all],
    )


def _maps(sheet: Sheet, result: Heads, show: Collection[str] | None) -> None:
    """Small maps side by side: labels, patterns and measures."""
    known, label = _heads_plane.axes_of(result, of_maps=True), _heads_plane.rarest_labels(result)
    colours, style = _heads_plane.label_colours(result, sheet), sheet.style
    layers = list(dict.fromkeys(layer for layer, _ in result.cells))
    rows, columns = zip(*((layers.index(layer), head) for layer, head in result.cells), strict=True)
    numbers = {name: number for number, name in enumerate(colours, 1)}
    values = np.array([numbers.get(label.get(cell, ""), 0) for cell in result.cells])
    panels = {"label": (named_scale(style, [style.masked, *colours.values()]), values, "")}
    for name in known if show is None else show:
        values = _heads_plane.axis_values(known, name, "to draw")
        panels[name] = _panel(sheet, result, name, values)
    held, maps = {(each.pattern, each.layer, each.head) for each in result.labels}, []
    for name, (scale, values, note) in panels.items():
        grid = np.full((len(layers), max(columns) + 1), np.nan)
        dots = np.zeros(grid.shape, bool)
        grid[rows, columns] = np.maximum(values, 0)
        dots[rows, columns] = [(name, *cell) in held for cell in result.cells]
        look: dict[str, Any] = {"names": layers, "values": grid, "scale": scale, "dots": dots}
        maps.append(charts.Cells(title=name, note=note, **look))
    charts.draw_panels(sheet, maps, least=PANEL)


def _panel(
    sheet: Sheet, result: Heads, name: str, values: np.ndarray
) -> tuple[Scale, np.ndarray, str]:
    """The scale of a pattern or measure, its numbers, and what the colours mean."""
    holds = sum(label.pattern == name for label in result.labels)
    largest, words = 1.0, "0–1" + f", {holds} hold" * bool(holds)
    if name in result.measures:
        largest = float(np.nanmax(values)) or 1.0
        end = two_digits(largest) if largest < 1 else f"{largest:.1f}"
        words = f"0–{end} {MEASURES[name].unit}".rstrip()
    return sheet.style.weight_scale(largest, power=1.0), values, words


def _class_bars(
    result: Heads, classes: bool | Mapping[str, Heads]
) -> tuple[dict[str, Mapping[str, float]], list[str]]:
    """The shares of classes for every layer, or every set of texts, and the notes.

    Raises:
        FigureError: where another set is not a result of `headscope.heads`.
    """
    wanted, notes = (
        {result.model or "this": result},
        ["percent of the maps of all heads on all texts, by rules (Kovaleva et al. trained a CNN)"],
    )
    for name, each in classes.items() if isinstance(classes, Mapping) else ():
        if not isinstance(each, Heads):
            raise FigureError(
                f"classes has a {type(each).__name__} for {name!r}; give what headscope.heads found"
            )
        wanted[str(name)] = each
        notes.append(f"{name}: {each.texts} texts")
    bars = {}
    for name, of in wanted.items():
        bars[name] = {kind: float(np.mean(shares)) for kind, shares in of.classes.items()}
    if isinstance(classes, Mapping):
        return bars, notes
    layers = {f"layer {layer}": of for layer, of in result.classes_of_layers().items()}
    # All together are apart from the layers by an empty row.
    return layers | {"": {}, "all": next(iter(bars.values()))}, notes


def _draw_classes(sheet: Sheet, bars: Mapping[str, Mapping[str, float]]) -> None:
    """A stacked bar from 0 to 100 % for each, each part with its number."""
    colours = sheet.style.hues([(colour, colour) for colour in CLASS_COLOURS])
    sheet.legend(list(zip(colours, CLASSES, strict=True)))
    sheet.y += 0.6 * sheet.style.em
    looks = {name: (colour, "part") for name, colour in zip(CLASSES, colours, strict=True)}
    rows = []
    for each in bars.values():
        rows.append(charts.Row({name: (share,) for name, share in each.items()}))
    look: dict[str, Any] = {"looks": looks, "written": percent_written}
    charts.draw_panels(sheet, [charts.RowMarks(names=[*bars], rows=rows, **look)])
