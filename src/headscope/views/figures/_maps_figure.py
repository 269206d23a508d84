"""Figures of results with a map of heads: ablation, word alignment, comparison and mechanism."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Unpack

import numpy as np

from headscope.comparison import Comparison, Effect
from headscope.errors import FigureError
from headscope.results import draws
from headscope.views.figure_options import ResultOptions
from headscope.views.figures import charts
from headscope.views.figures._figure import Figure, draw_result
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import Scale, counted, parse_hex, short_change, two_digits

MAPS_OF_ABLATION, MAPS_OF_ALIGNMENT = 0.6, 0.66
"""Share of the width that maps of heads take; layers get the rest."""
BY = {"weight": "by weight  a", "norm": "by norm  ‖a f(x)‖"}
STATES = {"output": "the state that writes a word", "input": "the state that reads it"}
ALIGNED_CELL, NUMBERED_CELL = 6.4, 4.6
"""Millimetres of a cell at most, and of one that has room for its number."""
ALL_APART = 0.35
"""Gap between the columns of heads and the column of all of them together, in cells."""
GAP = 0.5
"""Below the bar that explains colours, in units of the font size."""
MOST_MECHANISMS, PANEL, POSITION = 12, 56.0, 1.1
"""Number of heads, approximate width of each, and height of a position in millimetres."""
ROWS_ARE_LAYERS = "rows are layers, columns are heads, both from 0"


@draws("ablation")
def ablation_figure(ablation: Any, **options: Unpack[ResultOptions]) -> Figure:
    """Layers and heads, coloured by the score without each of them, and a bar for each layer
    without all of its heads.

    Paper is the score of the intact model, which is marked on the colour bar. Dots mark changes
    that are significant after correction for the number of heads (of layers); whiskers are
    bootstrap intervals over examples.

    Source: Kovaleva et al. 2019, figure 8 (heads and layers with the score of the intact model).

    Args:
        ablation: an `Ablation`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: an unknown option, or matplotlib is missing.

    Example:
        >>> ablation_figure(ablate(model, task)).save("ablation.pdf")
    """
    # One scale for the maps of all stacks, so that equal colours are equal changes.
    largest = float(np.abs(ablation.change[~ablation.of_layers]).max(initial=0.0))
    notes = [
        ROWS_ARE_LAYERS,
        f"a dot: the change is significant (paired sign-flip test, {ablation.correction} over "
        f"all heads and over all layers, alpha {ablation.alpha:g})",
    ]
    if ablation.of_layers.any():
        notes.append(f"whiskers: {ablation.confidence:.0%} bootstrap interval over examples")

    def draw(sheet: Sheet, y: float) -> float:
        scale = sheet.style.score_scale(largest, power=1.0)
        for stack in ablation.stacks:
            y = _ablated_stack(sheet, ablation, stack, scale, y=y)
        if ablation.of_layers.all():
            return y
        # One number where nothing changed.
        ends = [(0.0, -largest), (1.0, largest)] if largest > 0 else []
        marks = [(at, short_change(ablation.baseline + end, largest)) for at, end in ends]
        marks.insert(1, (0.5, f"intact {short_change(ablation.baseline, largest)}"))
        return (
            charts.colour_bar(sheet, scale, ablation.metric, y=y, ticks=marks)
            + GAP * sheet.style.em
        )

    return draw_result(
        ablation,
        options,
        draw,
        title=f"{ablation.model or 'A model'}: {ablation.metric} without each head",
        note=f"{ablation.task}, {ablation.examples:,} examples; disabled: {ablation.by}",
        notes=notes,
        texts=[ablation.task, str(ablation.examples)],
    )


def _ablated_stack(sheet: Sheet, ablation: Any, stack: str, scale: Scale, *, y: float) -> float:
    """The map of one stack, and a bar for each layer on both sides of the intact score; return the
    next y.
    """
    em, named = sheet.style.em, f"{stack}, " * (len(ablation.stacks) > 1)
    grid, layers = ablation.grid(stack=stack), ablation.layers_of(stack)
    own = [row for row, (name, *_) in enumerate(ablation.cells) if name == stack]
    rows = {ablation.cells[row][1]: row for row in own if ablation.cells[row][2] < 0}
    x, cell, titles = sheet.widest(map(str, layers)) + 0.5 * em, charts.LARGEST_CELL, []
    left, room = x, sheet.width * (MAPS_OF_ABLATION if rows else 1.0) - x
    if grid.size:
        titles = [(x, f"{named}without one head")]
        cell = min(charts.LARGEST_CELL, room / grid.shape[1])
        left += max(grid.shape[1] * cell, min(room, sheet.width_of(titles[0][1]))) + 2.2 * em
    if rows:
        titles.append((left, f"{named}without the whole layer"))
    top = sheet.titles(y, titles, sheet.width - (left if rows else 0.0)) + 0.3 * em
    if grid.size:
        marks = {"hidden": np.isnan(grid), "dots": ablation.grid("significant", stack) == 1}
        charts.draw_matrix(sheet, scale.rgb(grid), at=(x, top), cell=cell, rows=layers, **marks)
    if rows:
        names = {layer: "" if grid.size else str(layer) for layer in layers}
        _ablated_layers(sheet, ablation, rows, names, at=(left, top, cell))
    return top + len(layers) * cell + 2.4 * em


def _ablated_layers(
    sheet: Sheet,
    ablation: Any,
    rows: dict[int, int],
    names: dict[int, str],
    *,
    at: tuple[float, float, float],
) -> None:
    """A bar for each layer without all of its heads, on both sides of the intact score."""
    style, em, (left, top, cell), bars = sheet.style, sheet.style.em, at, []
    largest = float(np.abs(ablation.change[[*rows.values()]]).max())
    for layer, name in names.items():
        value, ends, words = np.nan, (), ""
        if (row := rows.get(layer)) is not None:
            value, ends = float(ablation.change[row]), ablation.intervals[row]
            words = short_change(value, largest) + " •" * bool(ablation.significant[row])
        colour = style.negative if value < 0 else style.positive
        bars.append(charts.Bar(name, (value, *ends), words, colour))
    room = sheet.width - sheet.widest(bar.words for bar in bars) - 0.8 * em - left
    box, (low, high) = (left, top, room, len(bars) * cell), charts.ends_of(bars)
    axes = sheet.axes(box)
    axes.set_xlim(low, high)
    charts.draw_bars(sheet, bars, axes, box, edge=sheet.width)
    zero, bottom = left - low / (high - low) * room, top + box[3]
    words = f"intact {short_change(ablation.baseline, max(-low, high))}"
    sheet.line([zero, zero], [top - 0.4 * em, bottom + 0.4 * em], colour=style.ink, line=0.7)
    half = sheet.width_of(words, style.small) / 2
    middle = min(max(zero, left + half), sheet.width - half)
    sheet.note(middle, bottom + 1.0 * em, words, anchor="center")


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
    baseline = study.baseline
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

    def draw(sheet: Sheet, y: float) -> float:
        # Rates lie between 0 and 1, so this is the largest difference that can occur: all studies
        # with one baseline share their colours. Fewer errors than the diagonal are above 0.
        scale = sheet.style.score_scale(max(baseline, 1 - baseline), power=1.0)
        # A filled dot for weights, a square of paper for norms.
        looks = {"weight": (sheet.style.ink, "dot"), "norm": (sheet.style.ink, "square")}
        for state in STATES:
            y = _aligned_state(sheet, study, state, scale=scale, looks=looks, y=y)
        marks = [(0.0, "0"), (baseline, f"{100 * baseline:.0f}"), (1.0, "100")]
        values, words = baseline - np.linspace(0, 1, 256), f"error rate, % (diagonal {marks[1][1]})"
        y = charts.colour_bar(sheet, scale, words, y=y, ticks=marks, values=values)
        legend = [(look, f"all heads together, {BY[by]}") for by, look in looks.items()]
        return sheet.legend(legend, y, charts.draw_mark) + GAP * sheet.style.em

    return draw_result(
        study,
        options,
        draw,
        kind="alignment",
        title=f"{study.model or 'A model'}: word alignment by weight and by norm",
        note=f"alignment error rate in %, {counted(study.sentences, 'sentence')}",
        notes=notes,
        cells=[(layer, head) for layer in study.layers for head in range(study.heads)],
    )


def _aligned_state(
    sheet: Sheet, study: Any, state: str, *, scale: Scale, looks: dict[str, Any], y: float
) -> float:
    """The maps of one state, and behind them all heads of each layer together: a mark for each of
    weight and norm, and the diagonal as a line; return the next y.
    """
    style, em, heads, count = sheet.style, sheet.style.em, study.heads, len(study.layers)
    rates_of = {by: study.error_rates(by, state) for by in looks}
    rates_of = {by: rates for by, rates in rates_of.items() if not np.isnan(rates).all()}
    x, columns, gap = sheet.width_of("00", style.small) + 0.6 * em, heads + 1 + ALL_APART, 1.6 * em
    room = (MAPS_OF_ALIGNMENT * sheet.width - x - gap * len(BY)) / len(BY)
    cell, top, rows = min(ALIGNED_CELL, room / columns), y + 2.8 * em, study.layers
    sheet.text(x, y + 0.6 * em, f"{state}: {STATES[state]}")
    for by, rates in rates_of.items():
        sheet.note(x, y + 2.0 * em, BY[by] if room > sheet.width_of(BY[by]) else by)
        # The heads, and behind a gap all heads of a layer together: each has its own best cell.
        for known, start in ((rates[:, :-1], 0.0), (rates[:, -1:], heads + ALL_APART)):
            hidden, words = np.isnan(known), {}
            best = [] if hidden.all() else [divmod(int(np.nanargmin(known)), known.shape[1])]
            for row, column in np.argwhere(~hidden & (cell >= NUMBERED_CELL)).tolist():
                words[row, column] = f"{100 * known[row, column]:.0f}"
            marks: dict[str, Any] = {"hidden": hidden, "frames": best, "words": words, "rows": rows}
            marks["columns"], at = ["all"] if start else None, (x + start * cell, top)
            charts.draw_matrix(sheet, scale.rgb(study.baseline - known), at=at, cell=cell, **marks)
            rows = ()
        x += columns * cell + gap
    left = x + 0.6 * em
    box = (left, top, sheet.width - sheet.width_of("100", style.small) / 2 - left, count * cell)
    axes = charts.draw_grid(sheet, box, (0.0, 1.0), lambda rate: f"{100 * rate:.0f}")
    if np.isfinite(study.baseline_interval).all():
        axes.axvspan(*study.baseline_interval, color=style.masked, zorder=0)
    axes.axvline(study.baseline, color=style.muted, linewidth=1.0, zorder=1)
    half = sheet.width_of("diagonal", style.small) / 2
    middle = min(left + study.baseline * box[2], sheet.width - half)
    sheet.note(middle, top - 0.8 * em, "diagonal", anchor="center")
    values: list[dict[str, charts.Value]] = [{} for _ in range(count)]
    for by, rates in rates_of.items():
        for row, rate, ends in zip(values, rates, study.intervals(by, state), strict=True):
            row[by] = (rate[-1], *ends[-1])
    charts.draw_values(sheet, axes, values, looks, spread=0.36, size=min(1.9, 0.4 * cell))
    return top + box[3] + 2.8 * em


@draws("comparison")
@draws("effect")
def difference_figure(difference: Comparison | Effect, **options: Unpack[ResultOptions]) -> Figure:
    """The Jensen-Shannon distance of every head of the first record from its partner in the second;
    dots mark heads that moved by more than the baseline, frames those that were changed.

    Args:
        difference: the result of `headscope.compare` or `headscope.effect`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: an unknown option, or matplotlib is missing.
    """
    comparison = difference.comparison if isinstance(difference, Effect) else difference
    stacks = comparison.stacks
    note = f"{comparison.a.summary}, compared with {comparison.b.summary}"
    if done := getattr(difference, "done", ()):
        note = f"changed: {'; '.join(done)}"
    notes = [
        f"{ROWS_ARE_LAYERS}, as the first record counts them",
        "Jensen-Shannon distance of rows, mean over rows and texts, 0 to 0.69 nats",
    ]
    if any(stack.has_baseline for stack in stacks.values()):
        notes.append("a dot: moved by more than the largest distance of the baseline")
    if any(stack.changed for stack in stacks.values()):
        notes.append("framed: changed on purpose")

    def draw(sheet: Sheet, y: float) -> float:
        largest, maps = max(float(stack.moved.max()) for stack in stacks.values()), []
        scale = sheet.style.weight_scale(largest, power=1.0, words=two_digits)
        for name, stack in stacks.items():
            grid, layers = stack.map(), list(dict.fromkeys(layer for layer, _ in stack.cells))
            dots, frames = np.zeros(grid.shape, bool), []
            if stack.has_baseline:
                dots |= stack.as_map(stack.beyond.astype(float)) == 1
            for layer, head in stack.changed:
                frames.append((layers.index(layer), head))
                dots[frames[-1]] = False
            marks = {"hidden": np.isnan(grid), "dots": dots, "frames": frames, "rows": layers}
            title = sheet.shown(name) * (len(stacks) > 1)
            maps.append((title, "", {"rgb": scale.rgb(grid), **marks}))
        return (
            charts.colour_bar(sheet, scale, "nats", y=charts.draw_maps(sheet, y, maps))
            + GAP * sheet.style.em
        )

    return draw_result(
        difference,
        options,
        draw,
        title=f"{difference.model or 'A model'}: where heads look elsewhere",
        note=note,
        notes=notes,
        cells=[cell for each in stacks.values() for cell in each.cells],
        texts=[*comparison.a.texts, *comparison.b.texts],
    )


@draws("mechanism")
def mechanism_figure(
    mechanism: Any,
    *,
    at: Collection[tuple[int, int]] | None = None,
    of: str = "margin",
    **options: Unpack[ResultOptions],
) -> Figure:
    """For each head, in how many texts each neuron carries the score of the query at each position.

    Neurons that carry a pattern at every position are stripes from top to bottom; neurons that
    change with the position make a pattern along the rows.

    Args:
        mechanism: the result of `headscope.mechanism`.
        at: layer and head of up to 12 heads to draw; by default all that were analysed.
        of: ``"margin"`` or ``"score"``, see `Mechanism`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: more heads than 12, an unknown option, or matplotlib is missing.
        RecordError: a head that was not analysed, or an unknown reading.

    Example:
        >>> mechanism_figure(mechanism(records, [(2, 0), (7, 3)])).save("neurons.pdf")
    """
    cells = list(mechanism.cells if at is None else at)
    if not 0 < len(cells) <= MOST_MECHANISMS:
        raise FigureError(
            f"{len(cells)} heads were asked for; the figure has room for 1 to {MOST_MECHANISMS}, "
            "give at=[(2, 0)]"
        )
    members = [member for layer, _ in cells for member in mechanism.units[layer].members]
    what = "neurons" if all(len(member) == 1 for member in members) else "units"
    looks = "what each query looks at"
    if mechanism.pattern is not None:
        looks = f"“{mechanism.pattern.name}”"
    table = mechanism.columns()
    keys = list(zip(table["layer"], table["head"], table["of"], strict=True))

    def draw(sheet: Sheet, y: float) -> float:
        maps, most = [], max(mechanism.seen_often(*cell) for cell in cells)
        for cell in cells:
            shares, row = mechanism.carried_at(*cell, of=of)[:most], keys.index((*cell, of))
            rgb = sheet.style.weight_scale(1.0, power=1.0).rgb(np.nan_to_num(shares))
            rgb[np.isnan(shares)] = parse_hex(sheet.style.masked)
            jaccard, chance = (two_digits(table[name][row]) for name in ("overlap", "chance"))
            note = f"{table['neurons'][row]:.1f} of {table['units'][row]}, "
            note += f"Jaccard {jaccard} (chance {chance})"
            of_head = {"rgb": rgb, "rows": range(len(shares))}
            maps.append(("head {}-{}".format(*cell), note, of_head))
        return charts.draw_maps(sheet, y, maps, wide=PANEL, cell=sheet.width, tall=POSITION)

    return draw_result(
        mechanism,
        options,
        draw,
        title=f"{mechanism.model or 'Heads'}: {what} that carry attention",
        note=f"{looks}, {mechanism.texts} texts, read by the {of}",
        notes=[
            "colour: share of texts in which a neuron is among the fewest that carry the score, "
            "paper for 0",
            "rows: position of the query, from 0; columns: neurons of the head, from 0",
            "Jaccard: how alike the sets of two positions are",
        ],
        cells=cells,
        chosen=f", at={cells!r}, of={of!r}",
    )
