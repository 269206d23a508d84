"""Figures of results with a map of heads: ablation, word alignment, comparison and mechanism."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any, Unpack

import numpy as np

from headscope.comparison import Comparison, Effect, StackComparison
from headscope.errors import FigureError
from headscope.results import draws
from headscope.views.figure_options import ResultOptions
from headscope.views.figures._charts import (
    LARGEST_CELL,
    Axis,
    Bar,
    Value,
    colour_bar,
    draw_bars,
    draw_mark,
    draw_matrix,
    draw_values,
)
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
MARK = 1.9
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
        marks = [(0.5, f"intact {short_change(ablation.baseline, largest)}")]
        if largest > 0:
            low, high = ablation.baseline + np.array([-largest, largest])
            marks.insert(0, (0.0, short_change(low, largest)))
            marks.append((1.0, short_change(high, largest)))
        return colour_bar(sheet, scale, ablation.metric, y=y, ticks=marks) + GAP * sheet.style.em

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
    """The map and the bars of one stack; return the next y."""
    em, grid, layers = sheet.style.em, ablation.grid(stack=stack), ablation.layers_of(stack)
    named = f"{stack}, " if len(ablation.stacks) > 1 else ""
    x, cell, has_map = sheet.width_of("00", sheet.style.small) + 0.5 * em, LARGEST_CELL, grid.size
    has_bars = not np.isnan(ablation.by_layer(stack=stack)).all()
    titles, left = [(x, f"{named}without one head")] * bool(has_map), x
    if has_map:
        room = sheet.width * (MAPS_OF_ABLATION if has_bars else 1) - x
        cell = min(LARGEST_CELL, room / grid.shape[1])
        left += max(grid.shape[1] * cell, min(room, sheet.width_of(titles[0][1]))) + 2.2 * em
    if has_bars:
        titles.append((left, f"{named}without the whole layer"))
    room = sheet.width - left if has_bars else sheet.width
    top = sheet.titles(y, titles, room) + 0.3 * em
    if has_map:
        dots = np.equal(ablation.grid("significant", stack), 1)
        hidden = np.isnan(grid)
        draw_matrix(
            sheet, scale.rgb(grid), at=(x, top), cell=cell, rows=layers, hidden=hidden, dots=dots
        )
    if has_bars:
        names = [""] * len(layers) if has_map else [str(layer) for layer in layers]
        _ablated_layers(sheet, ablation, stack, names, at=(left, top), cell=cell)
    return top + len(layers) * cell + 2.4 * em


def _ablated_layers(
    sheet: Sheet,
    ablation: Any,
    stack: str,
    names: list[str],
    *,
    at: tuple[float, float],
    cell: float,
) -> None:
    """A bar for each layer without all of its heads, on both sides of the intact score."""
    style, (x, y), own = sheet.style, at, {}
    for number, (name, layer, head) in enumerate(ablation.cells):
        if name == stack and head < 0:
            own[layer] = number
    change, ends = ablation.change[[*own.values()]], ablation.intervals[[*own.values()]]
    spots = np.concatenate([[0.0], change, ends[~np.isnan(ends)].ravel()])
    # Where no layer changes the score, all bars are empty and this only avoids dividing by zero.
    low, high = float(spots.min()), max(float(spots.max()), float(spots.min()) + 1e-12)
    bars = []
    for layer, name in zip(ablation.layers_of(stack), names, strict=True):
        if layer not in own:
            bars.append(Bar(name, Value(np.nan), "", ""))
            continue
        value, number = float(ablation.change[own[layer]]), own[layer]
        words = short_change(value, float(np.abs(change).max()))
        words += " •" * bool(ablation.significant[number])
        colour = style.negative if value < 0 else style.positive
        bars.append(Bar(name, Value(value, *ablation.intervals[number]), words, colour))
    room = sheet.widest(bar.words for bar in bars)
    axis = Axis(x, sheet.width - room - 0.8 * style.em, low, high)
    draw_bars(sheet, bars, axis, y, pitch=cell, edge=sheet.width)
    zero, bottom = axis.at(0.0), y + len(bars) * cell
    upright = [y - 0.4 * style.em, bottom + 0.4 * style.em]
    sheet.line([zero, zero], upright, colour=style.ink, line=0.7)
    words = f"intact {short_change(ablation.baseline, max(abs(low), abs(high)))}"
    half = sheet.width_of(words, style.small) / 2
    middle = min(max(zero, x + half), sheet.width - half)
    sheet.note(middle, bottom + 1.0 * style.em, words, anchor="center")


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
        values = baseline - np.linspace(0, 1, 256)
        y = colour_bar(
            sheet, scale, f"error rate, % (diagonal {marks[1][1]})", y=y, ticks=marks, values=values
        )
        legend = [(look, f"all heads together, {BY[by]}") for by, look in looks.items()]
        return sheet.legend(legend, y, draw_mark) + GAP * sheet.style.em

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
    """The maps and layers of one state; return the next y."""
    style, heads = sheet.style, study.heads
    rates_of = {by: study.error_rates(by, state) for by in BY}
    looks = {by: looks[by] for by, rates in rates_of.items() if not np.isnan(rates).all()}
    x = sheet.width_of("00", style.small) + 0.6 * style.em
    columns, gap = heads + 1 + ALL_APART, 1.6 * style.em
    room = (MAPS_OF_ALIGNMENT * sheet.width - x - gap * len(BY)) / len(BY)
    cell, top = min(ALIGNED_CELL, room / columns), y + 2.8 * style.em
    sheet.text(x, y + 0.6 * style.em, f"{state}: {STATES[state]}")
    for number, by in enumerate(looks):
        sheet.note(x, y + 2.0 * style.em, BY[by] if room > sheet.width_of(BY[by]) else by)
        rates = rates_of[by]
        # The heads, and behind a gap all heads of a layer together: each has its own best cell.
        for known, start in ((rates[:, :-1], 0.0), (rates[:, -1:], heads + ALL_APART)):
            hidden, words = np.isnan(known), {}
            best = [] if hidden.all() else [divmod(int(np.nanargmin(known)), known.shape[1])]
            for row, column in np.argwhere(~hidden & (cell >= NUMBERED_CELL)):
                words[int(row), int(column)] = f"{100 * known[row, column]:.0f}"
            draw_matrix(
                sheet,
                scale.rgb(study.baseline - known),
                at=(x + start * cell, top),
                cell=cell,
                rows=study.layers if number == start == 0 else (),
                columns=["all"] if start else None,
                hidden=hidden,
                frames=best,
                words=words,
            )
        x += columns * cell + gap
    _aligned_layers(
        sheet,
        study,
        state,
        looks,
        at=(x + 0.6 * style.em, top),
        cell=cell,
    )
    return top + len(study.layers) * cell + 2.8 * style.em


def _aligned_layers(
    sheet: Sheet,
    study: Any,
    state: str,
    looks: dict[str, Any],
    *,
    at: tuple[float, float],
    cell: float,
) -> None:
    """All heads of each layer together, a mark for each of weight and norm, and the diagonal as a
    line.
    """
    style, (x, y) = sheet.style, at
    axis = Axis(x, sheet.width - sheet.width_of("100", style.small) / 2, 0.0, 1.0)
    values = []
    for by in looks:
        rates, ends = study.error_rates(by, state)[:, -1], study.intervals(by, state)[:, -1]
        values.append([Value(rate, *between) for rate, between in zip(rates, ends, strict=True)])
    line, (low, most) = axis.at(study.baseline), study.baseline_interval
    bottom = y + len(study.layers) * cell
    if np.isfinite(low):
        band = axis.at(most) - axis.at(low)
        sheet.rect(axis.at(low), y, band, bottom - y, fill=style.masked, layer=1)
    sheet.line([line, line], [y - 0.3 * style.em, bottom], colour=style.muted, line=1.0)
    half = sheet.width_of("diagonal", style.small) / 2
    sheet.note(min(line, sheet.width - half), y - 0.8 * style.em, "diagonal", anchor="center")
    rows = [dict(zip(looks, of, strict=True)) for of in zip(*values, strict=True)]
    marks = {"pitch": cell, "spread": 0.36, "size": min(MARK, 0.4 * cell)}
    draw_values(
        sheet, rows, axis, y, looks=looks, written=lambda rate: f"{100 * rate:.0f}", **marks
    )


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
    if isinstance(difference, Effect) and difference.done:
        note = f"changed: {'; '.join(difference.done)}"
    largest = max(float(stack.moved.max()) for stack in stacks.values())
    notes = [f"{ROWS_ARE_LAYERS}, as the first record counts them"]
    notes.append("Jensen-Shannon distance of rows, mean over rows and texts, 0 to 0.69 nats")
    if any(stack.has_baseline for stack in stacks.values()):
        notes.append("a dot: moved by more than the largest distance of the baseline")
    if any(stack.changed for stack in stacks.values()):
        notes.append("framed: changed on purpose")

    def draw(sheet: Sheet, y: float) -> float:
        em = sheet.style.em
        scale = sheet.style.weight_scale(largest, power=1.0, words=two_digits)
        for name, stack in stacks.items():
            if len(stacks) > 1:
                sheet.text(0, y + 0.6 * em, sheet.shown(name))
                y += 1.6 * em
            y = _moved(sheet, stack, scale, y)
        return colour_bar(sheet, scale, "nats", y=y) + GAP * em

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


def _moved(sheet: Sheet, stack: StackComparison, scale: Scale, y: float) -> float:
    """The map of one stack; return the next y."""
    grid, layers = stack.map(), list(dict.fromkeys(layer for layer, _ in stack.cells))
    changed, em = [(layers.index(layer), head) for layer, head in stack.changed], sheet.style.em
    dots = np.zeros(grid.shape, bool)
    if stack.has_baseline:
        dots |= stack.as_map(stack.beyond.astype(float)) == 1
    for cell in changed:
        dots[cell] = False
    side = sheet.width_of(str(layers[-1]), sheet.style.small) + 0.6 * em
    cell, rgb, hidden = (sheet.width - side) / grid.shape[1], scale.rgb(grid), np.isnan(grid)
    marks = partial(draw_matrix, hidden=hidden, dots=dots, frames=changed)
    marks(sheet, rgb, at=(side, y), cell=min(LARGEST_CELL, cell), rows=layers)
    return y + len(layers) * min(LARGEST_CELL, cell) + 2.0 * em


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
    pattern = mechanism.pattern
    looks = "what each query looks at" if pattern is None else f"“{pattern.name}”"
    table = mechanism.columns()
    numbers = {}
    for row, key in enumerate(zip(table["layer"], table["head"], table["of"], strict=True)):
        chance = f"(chance {two_digits(table['chance'][row])})"
        jaccard = f"Jaccard {two_digits(table['overlap'][row])} {chance}"
        numbers[key] = f"{table['neurons'][row]:.1f} of {table['units'][row]}, {jaccard}"

    def draw(sheet: Sheet, y: float) -> float:
        style, em = sheet.style, sheet.style.em
        rows = max(mechanism.seen_often(*cell) for cell in cells)
        side, tall = sheet.width_of("00", style.small) + 0.5 * em, 4.8 * em + rows * POSITION
        places, width, bottom = sheet.panels(
            y, len(cells), (PANEL, sheet.width), gap=2 * em, tall=lambda _: tall
        )
        for cell, (x, top) in zip(cells, places, strict=True):
            shares = mechanism.carried_at(*cell, of=of)[:rows]
            sheet.text(x + side, top + 0.6 * em, "head {}-{}".format(*cell))
            sheet.note(x + side, top + 1.8 * em, numbers[*cell, of])
            rgb = style.weight_scale(1.0, power=1.0).rgb(np.nan_to_num(shares))
            rgb[np.isnan(shares)] = parse_hex(style.masked)
            pitch, corner = (width - side) / shares.shape[1], (x + side, top + 2.7 * em)
            draw_matrix(sheet, rgb, at=corner, cell=pitch, tall=POSITION, rows=range(len(shares)))
        return bottom

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
