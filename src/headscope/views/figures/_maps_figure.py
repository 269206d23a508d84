"""Figures of results with a map of heads: ablation, word alignment, comparison and mechanism."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from headscope.comparison import Comparison, Effect
from headscope.errors import FigureError
from headscope.views.figures import charts
from headscope.views.figures._figure import Spec, specified
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import Scale, counted, short_change, two_digits

BY = {"weight": "by weight  a", "norm": "by norm  ‖a f(x)‖"}
STATES = {"output": "the state that writes a word", "input": "the state that reads it"}
MOST_MECHANISMS, PANEL, PAGE, POSITION = 12, 46.0, 1000.0, 1.1
"""Number of heads, smallest width of each, and height of a position in millimetres."""
ROWS_ARE_LAYERS = "rows are layers, columns are heads, both from 0"


@specified("ablation")
def ablation_figure(ablation: Any) -> Spec:
    """Layers and heads, coloured by the score without each of them, and a bar for each layer
    without all of its heads.

    Paper is the score of the intact model, which is marked on the colour bar. Dots mark changes
    that are significant after correction for the number of heads (of layers); whiskers are
    bootstrap intervals over examples.

    Source: Kovaleva et al. 2019, figure 8 (heads and layers with the score of the intact model).

    Args:
        ablation: an `Ablation`.

    Example:
        >>> ablate(model, task).figure().save("ablation.pdf")
    """
    # One scale for the maps of all stacks, so that equal colours are equal changes.
    largest = float(np.abs(ablation.change[~ablation.of_layers]).max(initial=0.0))

    def draw(sheet: Sheet) -> None:
        scale = sheet.style.score_scale(largest, power=1.0)
        for stack in ablation.stacks:
            charts.draw_panels(sheet, _ablated_stack(sheet, ablation, stack, scale), least=9.0)
        # One number where nothing changed.
        ends = [(0.0, -largest), (1.0, largest)] if largest > 0 else []
        marks = [(at, short_change(ablation.baseline + end, largest)) for at, end in ends]
        marks.insert(1, (0.5, f"intact {short_change(ablation.baseline, largest)}"))
        if not ablation.of_layers.all():
            charts.colour_bar(sheet, scale, ablation.metric, ticks=marks)

    return Spec(
        title=f"{ablation.model or 'A model'}: {ablation.metric} without each head",
        body=draw,
        note=f"{ablation.task}, {ablation.examples:,} examples; disabled: {ablation.by}",
        notes=[
            ROWS_ARE_LAYERS,
            f"a dot: the change is significant (paired sign-flip test, {ablation.correction} over "
            f"all heads and over all layers, alpha {ablation.alpha:g})",
            f"whiskers: {ablation.confidence:.0%} bootstrap interval over examples"
            * bool(ablation.of_layers.any()),
        ],
        texts=[ablation.task, str(ablation.examples)],
    )


def _ablated_stack(sheet: Sheet, ablation: Any, stack: str, scale: Scale) -> list[charts.Panel]:
    """The map of one stack, and a bar for each layer on both sides of the intact score."""
    style, named = sheet.style, f"{stack}, " * (len(ablation.stacks) > 1)
    grid, layers = ablation.grid(stack=stack), ablation.layers_of(stack)
    look: dict[str, Any] = {"names": layers, "values": grid, "scale": scale}
    look["dots"] = ablation.grid("significant", stack) == 1
    panels: list[charts.Panel] = []
    if grid.size:
        panels.append(charts.Cells(title=f"{named}without one head", **look))
    places = {cell[1]: row for row, cell in enumerate(ablation.cells) if cell[::2] == (stack, -1)}
    if not places:
        return panels
    largest, rows = float(np.abs(ablation.change[[*places.values()]]).max()), []
    for row in map(places.get, layers):
        rows.append(charts.Row({}))
        if row is not None:
            value = float(ablation.change[row])
            words = short_change(value, largest) + " •" * bool(ablation.significant[row])
            rows[-1] = charts.Row({value < 0: (value, *ablation.intervals[row])}, words)
    ends = charts.ends_of(rows)
    bars = charts.RowMarks(
        title=f"{named}without the whole layer",
        under=f"change; intact {short_change(ablation.baseline, max(-ends[0], ends[1]))}",
        names=layers,
        rows=rows,
        looks={False: (style.positive, "bar"), True: (style.negative, "bar")},
        ends=ends,
    )
    return [*panels, bars]


@specified("alignment study")
def alignment_figure(study: Any) -> Spec:
    """Alignment error rate of every head and layer, by weight and by norm, for both states of the
    decoder.

    Paper is the rate of the diagonal, which position alone reaches: blue cells have fewer errors,
    orange ones more. The least of each map is framed. On the right all heads of a layer together
    with their intervals.

    Source: Kobayashi et al. 2020, section 5 (rates of layers and heads).

    Args:
        study: an `AlignmentStudy`.

    Raises:
        FigureError: nothing was counted.

    Example:
        >>> alignment_study(model, tokenizer, pairs).figure().save("alignment.pdf")
    """
    if not study.sentences:
        raise FigureError("No sentence was counted; update the study with one first")
    baseline, refused = study.baseline, ", ".join(map(str, study.refused))

    def draw(sheet: Sheet) -> None:
        # Rates lie between 0 and 1, so this is the largest difference that can occur: all studies
        # with one baseline share their colours. Fewer errors than the diagonal are above 0.
        scale = sheet.style.score_scale(max(baseline, 1 - baseline), power=1.0)
        # A filled dot for weights, a square of paper for norms.
        looks = {"weight": (sheet.style.ink, "dot"), "norm": (sheet.style.ink, "square")}
        for state, words in STATES.items():
            sheet.text(0.0, sheet.y + 0.6 * sheet.style.em, f"{state}: {words}")
            sheet.y += 1.4 * sheet.style.em
            panels = _aligned_state(study, state, scale, looks)
            charts.draw_panels(sheet, panels, least=2.0, gap=0.8)
        marks = [(0.0, "0"), (baseline, f"{100 * baseline:.0f}"), (1.0, "100")]
        values, words = baseline - np.linspace(0, 1, 256), f"error rate, % (diagonal {marks[1][1]})"
        charts.colour_bar(sheet, scale, words, ticks=marks, values=values)
        legend = [(look, f"all heads together, {BY[by]}") for by, look in looks.items()]
        sheet.legend(legend, charts.draw_mark)

    return Spec(
        title=f"{study.model or 'A model'}: word alignment by weight and by norm",
        body=draw,
        note=f"alignment error rate in %, {counted(study.sentences, 'sentence')}",
        notes=[
            "rows are layers of the decoder, columns its heads, both from 0; “all”: all heads of "
            "a layer together",
            "framed: the fewest errors of a map",
            "diagonal: each word linked to the one at its relative place, without any attention",
            f"whiskers: {study.confidence:.0%} bootstrap interval over sentences"
            * (study.sentences > 1),
            f"no norms of layer{'s' * (len(study.refused) > 1)} {refused}" * bool(refused),
        ],
        cells=[(layer, head) for layer in study.layers for head in range(study.heads)],
    )


def _aligned_state(
    study: Any, state: str, scale: Scale, looks: dict[Any, charts.Look]
) -> list[charts.Panel]:
    """The maps of one state, the heads and all heads of a layer together, each with its own best
    cell; and a mark for each of weight and norm, with the diagonal.
    """
    panels: list[charts.Panel] = []
    rows = [charts.Row({}) for _ in study.layers]
    for by in looks:
        rates = study.error_rates(by, state)
        if np.isnan(rates).all():
            continue
        for title, part in ((BY[by], rates[:, :-1]), ("", rates[:, -1:])):
            look: dict[str, Any] = {"title": title, "names": study.layers, "scale": scale}
            look["below"] = range(part.shape[1]) if title else ["all"]
            cells = map(tuple, np.argwhere(~np.isnan(part)).tolist())
            known: dict[charts.Cell, float] = {cell: float(part[cell]) for cell in cells}
            look["frames"] = sorted(known, key=known.__getitem__)[:1]
            look["words"] = {at: f"{100 * rate:.0f}" for at, rate in known.items()}
            panels.append(charts.Cells(values=study.baseline - part, **look))
        for row, rate, ends in zip(rows, rates, study.intervals(by, state), strict=True):
            row.values[by] = (rate[-1], *ends[-1])
    marks = charts.RowMarks(
        title="all, and the diagonal",
        names=study.layers,
        rows=rows,
        looks=looks,
        base=(study.baseline, *study.baseline_interval),
        spread=0.36,
        written="{:.0%}".format,
    )
    return [*panels, marks]


@specified("comparison", "effect")
def difference_figure(difference: Comparison | Effect) -> Spec:
    """The Jensen-Shannon distance of every head of the first record from its partner in the second;
    dots mark heads that moved by more than the baseline, frames those that were changed.

    Args:
        difference: the result of `headscope.compare` or `headscope.effect`.

    Raises:
        FigureError: an unknown option, or matplotlib is missing.
    """
    comparison = difference.comparison if isinstance(difference, Effect) else difference
    stacks, done = comparison.stacks, "; ".join(getattr(difference, "done", ()))
    both = f"{comparison.a.summary}, compared with {comparison.b.summary}"

    def draw(sheet: Sheet) -> None:
        largest, maps = max(float(stack.moved.max()) for stack in stacks.values()), []
        scale = sheet.style.weight_scale(largest, power=1.0, words=two_digits)
        for name, stack in stacks.items():
            grid, layers = stack.map(), list(dict.fromkeys(layer for layer, _ in stack.cells))
            frames = [(layers.index(layer), head) for layer, head in stack.changed]
            given = np.array([cell in stack.changed for cell in stack.cells])
            dots = stack.as_map(stack.beyond & ~given & stack.has_baseline) == 1
            look: dict[str, Any] = {"values": grid, "scale": scale, "dots": dots, "frames": frames}
            title = sheet.shown(name) * (len(stacks) > 1)
            maps.append(charts.Cells(title=title, names=layers, **look))
        charts.draw_panels(sheet, maps)
        charts.colour_bar(sheet, scale, "nats")

    return Spec(
        title=f"{difference.model or 'A model'}: where heads look elsewhere",
        body=draw,
        note=f"changed: {done}" if done else both,
        notes=[
            f"{ROWS_ARE_LAYERS}, as the first record counts them",
            "Jensen-Shannon distance of rows, mean over rows and texts, 0 to 0.69 nats",
            "a dot: moved by more than the largest distance of the baseline"
            * any(stack.has_baseline for stack in stacks.values()),
            "framed: changed on purpose" * any(stack.changed for stack in stacks.values()),
        ],
        cells=[cell for each in stacks.values() for cell in each.cells],
        texts=[*comparison.a.texts, *comparison.b.texts],
    )


@specified("mechanism")
def mechanism_figure(
    mechanism: Any, *, at: Collection[tuple[int, int]] | None = None, of: str = "margin"
) -> Spec:
    """For each head, in how many texts each neuron carries the score of the query at each position.

    Neurons that carry a pattern at every position are stripes from top to bottom; neurons that
    change with the position make a pattern along the rows.

    Args:
        mechanism: the result of `headscope.mechanism`.
        at: layer and head of up to 12 heads to draw; by default all that were analysed.
        of: ``"margin"`` or ``"score"``, see `Mechanism`.

    Raises:
        FigureError: more heads than 12.
        RecordError: a head that was not analysed, or an unknown reading.

    Example:
        >>> mechanism(records, [(2, 0), (7, 3)]).figure().save("neurons.pdf")
    """
    cells = list(mechanism.cells if at is None else at)
    if not 0 < len(cells) <= MOST_MECHANISMS:
        raise FigureError(f"at= has {len(cells)} heads; there is room for 1 to {MOST_MECHANISMS}")
    members = [member for layer, _ in cells for member in mechanism.units[layer].members]
    what = "neurons" if all(len(member) == 1 for member in members) else "units"
    pattern = mechanism.pattern
    looks = "what each query looks at" if pattern is None else f"“{pattern.name}”"
    table = mechanism.columns()
    keys = list(zip(table["layer"], table["head"], table["of"], strict=True))

    def draw(sheet: Sheet) -> None:
        maps, most = [], max(mechanism.seen_often(*cell) for cell in cells)
        scale = sheet.style.weight_scale(1.0, power=1.0)
        for cell in cells:
            shares, row = mechanism.carried_at(*cell, of=of)[:most], keys.index((*cell, of))
            jaccard, chance = (two_digits(table[name][row]) for name in ("overlap", "chance"))
            note = f"{table['neurons'][row]:.1f} of {table['units'][row]}, "
            note += f"Jaccard {jaccard} (chance {chance})"
            look: dict[str, Any] = {"names": range(len(shares)), "high": POSITION, "cell": PAGE}
            look |= {"title": "head {}-{}".format(*cell), "note": note, "scale": scale}
            maps.append(charts.Cells(values=shares, **look))
        charts.draw_panels(sheet, maps, least=PANEL)

    return Spec(
        title=f"{mechanism.model or 'Heads'}: {what} that carry attention",
        body=draw,
        note=f"{looks}, {mechanism.texts} texts, read by the {of}",
        notes=[
            "colour: share of texts in which a neuron is among the fewest that carry the score, "
            "paper for 0",
            "rows: position of the query, from 0; columns: neurons of the head, from 0",
            "Jaccard: how alike the sets of two positions are",
        ],
        cells=cells,
    )
