"""Figures of results with a map of heads: ablation, word alignment, comparison and mechanism."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Unpack

import numpy as np

from headscope.comparison import Comparison, Effect, StackComparison
from headscope.errors import FigureError
from headscope.results import draws
from headscope.views.figures._charts import (
    COLOUR_BAR,
    LARGEST_CELL,
    Axis,
    Bar,
    Look,
    Matrix,
    Value,
    draw_bars,
    draw_colour_bar,
    draw_mark,
    draw_matrix,
    draw_row_names,
    draw_upright_grid,
    draw_value,
)
from headscope.views.figures._figure import Figure, ResultOptions, draw_result
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
BAR_WIDTH = 40.0
"""Width of the colour bar of a comparison in millimetres."""
MOST_MECHANISMS, PANEL, POSITION = 12, 56.0, 1.1
"""Number of heads, approximate width of each, and height of a position in millimetres."""
MECHANISM_NOTES = [
    "colour: share of texts in which a neuron is among the fewest that carry the score, "
    "paper for 0",
    "rows: position of the query, from 0; columns: neurons of the head, from 0",
    "Jaccard: how alike the sets of two positions are",
]


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

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        for stack in ablation.stacks:
            y = _ablated_stack(sheet, ablation, stack, y)
        notes = [
            "rows are layers, columns are heads, both from 0",
            f"a dot: the change is significant (paired sign-flip test, {ablation.correction} over "
            f"all heads and over all layers, alpha {ablation.alpha:g})",
        ]
        if ablation.of_layers.any():
            notes.append(f"whiskers: {ablation.confidence:.0%} bootstrap interval over examples")
        return y, notes

    return draw_result(
        ablation,
        options,
        draw,
        title=f"{ablation.model or 'A model'}: {ablation.metric} without each head",
        note=f"{ablation.task}, {ablation.examples:,} examples; disabled: {ablation.by}",
        texts=[ablation.task, str(ablation.examples)],
    )


def _ablated_stack(sheet: Sheet, ablation: Any, stack: str, y: float) -> float:
    """The map and the bars of one stack; return the next y."""
    style, grid, layers = sheet.style, ablation.grid(stack=stack), ablation.layers(stack)
    has_bars = not np.isnan(ablation.by_layer(stack=stack)).all()
    named = f"{stack}, " if len(ablation.stacks) > 1 else ""
    x, top, cell = sheet.width_of("00", style.small) + 0.5 * style.em, y + 1.5 * style.em, 0.0
    if grid.size:
        room = sheet.width * (MAPS_OF_ABLATION if has_bars else 1) - x
        cell = min(LARGEST_CELL, room / grid.shape[1])
        words = f"{named}without one head"
        sheet.text(x, y + 0.6 * style.em, words)
        _ablated_heads(sheet, ablation, stack, at=(x, top), cell=cell)
        x += max(grid.shape[1] * cell, sheet.width_of(words)) + 2.2 * style.em
    else:
        cell = LARGEST_CELL
        draw_row_names(sheet, layers, at=(x, top), cell=cell)
    if has_bars:
        sheet.text(x, y + 0.6 * style.em, f"{named}without the whole layer")
        _ablated_layers(sheet, ablation, stack, at=(x, top), cell=cell)
    return top + len(layers) * cell + 4.6 * style.em


def _ablated_heads(
    sheet: Sheet, ablation: Any, stack: str, *, at: tuple[float, float], cell: float
) -> None:
    style, grid, intact = sheet.style, ablation.grid(stack=stack), ablation.baseline
    # One scale for the maps of all stacks, so that equal colours are equal changes.
    largest = float(np.abs(ablation.change[~ablation.of_layers]).max())
    scale = style.score_scale(largest, power=1.0)
    dots = np.equal(ablation.grid("significant", stack), 1)
    rows, hidden = ablation.layers(stack), np.isnan(grid)
    shown = Matrix(rgb=scale.rgb(grid), rows=rows, hidden=hidden, dots=dots)
    draw_matrix(sheet, shown, at=at, cell=cell)
    # Scores below the bar, the intact one marked; one number where nothing changed.
    marks = [(0.5, f"intact {short_change(intact, largest)}")]
    if largest > 0:
        marks.insert(0, (0.0, short_change(intact - largest, largest)))
        marks.append((1.0, short_change(intact + largest, largest)))
    width = min(max(grid.shape[1] * cell, 16 * style.em), 60.0)
    bar = scale.rgb(np.linspace(-largest, largest, 256)[None])
    place = (at[0], at[1] + len(grid) * cell + 1.6 * style.em)
    draw_colour_bar(sheet, bar, marks, at=place, width=width, line=True)


def _ablated_layers(
    sheet: Sheet, ablation: Any, stack: str, *, at: tuple[float, float], cell: float
) -> None:
    """A bar for each layer without all of its heads, on both sides of the intact score."""
    style, (x, y), layers = sheet.style, at, ablation.layers(stack)
    own = {}
    for number, (name, layer, head) in enumerate(ablation.cells):
        if name == stack and head < 0:
            own[layer] = number
    change, ends = ablation.change[[*own.values()]], ablation.intervals[[*own.values()]]
    spots = np.concatenate([[0.0], change, ends[~np.isnan(ends)].ravel()])
    # Where no layer changes the score, all bars are empty and this only avoids dividing by zero.
    low, high = float(spots.min()), max(float(spots.max()), float(spots.min()) + 1e-12)
    bars = []
    for layer in layers:
        if layer not in own:
            bars.append(Bar("", Value(np.nan), "", ""))
            continue
        number = own[layer]
        value = float(ablation.change[number])
        mark = " •" if ablation.significant[number] else ""
        words = short_change(value, float(np.abs(change).max())) + mark
        colour = style.negative if value < 0 else style.positive
        bars.append(Bar("", Value(value, *ablation.intervals[number]), words, colour))
    room = max(sheet.width_of(bar.words, style.small) for bar in bars)
    axis = Axis(x, sheet.width - room - 0.8 * style.em, low, high)
    draw_bars(sheet, bars, axis, y, pitch=cell, share=0.6, edge=sheet.width)
    zero, bottom = axis.at(0.0), y + len(layers) * cell
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

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        # Rates lie between 0 and 1, so this is the largest difference that can occur: all studies
        # with one baseline share their colours. Fewer errors than the diagonal are above 0.
        scale = sheet.style.score_scale(max(study.baseline, 1 - study.baseline), power=1.0)
        for state in STATES:
            y = _aligned_state(sheet, study, state, scale, y=y)
        y = _aligned_bar(sheet, study, scale, y)
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
        return y, notes

    return draw_result(
        study,
        options,
        draw,
        kind="alignment",
        title=f"{study.model or 'A model'}: word alignment by weight and by norm",
        note=f"alignment error rate in %, {counted(study.sentences, 'sentence')}",
        cells=[(layer, head) for layer in study.layers for head in range(study.heads)],
    )


def _aligned_state(sheet: Sheet, study: Any, state: str, scale: Scale, *, y: float) -> float:
    """The maps and layers of one state; return the next y."""
    style, layers, heads = sheet.style, study.layers, study.heads
    shown = [by for by in BY if not np.isnan(study.error_rates(by, state)).all()]
    x = sheet.width_of("00", style.small) + 0.6 * style.em
    columns, gap = heads + 1 + ALL_APART, 1.6 * style.em
    room = (MAPS_OF_ALIGNMENT * sheet.width - x - gap * len(BY)) / len(BY)
    cell, top = min(ALIGNED_CELL, room / columns), y + 2.8 * style.em
    sheet.text(x, y + 0.6 * style.em, f"{state}: {STATES[state]}")
    draw_row_names(sheet, layers, at=(x, top), cell=cell)
    for by in shown:
        sheet.note(x, y + 2.0 * style.em, BY[by])
        rates = study.error_rates(by, state)
        # The heads, and behind a gap all heads of a layer together: each has its own best cell.
        for known, start in ((rates[:, :-1], 0.0), (rates[:, -1:], heads + ALL_APART)):
            hidden, words, frames = np.isnan(known), {}, []
            if not hidden.all():
                frames = [divmod(int(np.nanargmin(known)), known.shape[1])]
            if cell >= NUMBERED_CELL:
                for row, column in np.argwhere(~hidden):
                    words[int(row), int(column)] = f"{100 * known[row, column]:.0f}"
            matrix = Matrix(
                rgb=scale.rgb(study.baseline - known),
                columns=["all"] if start else None,
                hidden=hidden,
                frames=frames,
                words=words,
            )
            draw_matrix(sheet, matrix, at=(x + start * cell, top), cell=cell)
        x += columns * cell + gap
    _aligned_layers(sheet, study, state, shown, at=(x + 0.6 * style.em, top), cell=cell)
    return top + len(layers) * cell + 2.8 * style.em


def _aligned_layers(
    sheet: Sheet, study: Any, state: str, shown: list[str], *, at: tuple[float, float], cell: float
) -> None:
    """All heads of each layer together, a mark for each of weight and norm, and the diagonal as a
    line.
    """
    style, (x, y) = sheet.style, at
    right = sheet.width - sheet.width_of("100", style.small) / 2
    axis, bottom = Axis(x, right, 0.0, 1.0), y + len(study.layers) * cell
    draw_upright_grid(sheet, axis, (y, bottom), lambda rate: f"{100 * rate:.0f}")
    for row in range(len(study.layers) + 1):
        sheet.line([x, right], [y + row * cell] * 2, colour=style.edge, line=0.4)
    line, (low, most) = axis.at(study.baseline), study.baseline_interval
    if np.isfinite(low):
        band = axis.at(most) - axis.at(low)
        sheet.rect(axis.at(low), y, band, bottom - y, fill=style.masked, layer=1)
    sheet.line([line, line], [y - 0.3 * style.em, bottom], colour=style.muted, line=1.0)
    half = sheet.width_of("diagonal", style.small) / 2
    sheet.note(min(line, sheet.width - half), y - 0.8 * style.em, "diagonal", anchor="center")
    for number, by in enumerate(shown):
        rates, ends = study.error_rates(by, state)[:, -1], study.intervals(by, state)[:, -1]
        shift = (number - (len(shown) - 1) / 2) * 0.36 * cell
        for row, (rate, (low, most)) in enumerate(zip(rates, ends, strict=True)):
            place = (axis, y + (row + 0.5) * cell + shift)
            value = Value(rate, low, most)
            draw_value(sheet, value, _look(sheet, by), at=place, size=min(MARK, 0.4 * cell))


def _look(sheet: Sheet, by: str) -> Look:
    """A filled dot for weights, a square of paper for norms."""
    return sheet.style.ink, "dot" if by == "weight" else "square"


def _aligned_bar(sheet: Sheet, study: Any, scale: Scale, y: float) -> float:
    """Rates below the bar, that of the diagonal marked, and what the marks on the right are; give
    the next y.
    """
    style, baseline = sheet.style, study.baseline
    side = sheet.width_of("00", style.small) + 0.6 * style.em
    width = min(60.0, 0.4 * sheet.width)
    marks = [(0.0, "0"), (baseline, f"diagonal {100 * baseline:.0f}"), (1.0, "100")]
    bar = scale.rgb(baseline - np.linspace(0, 1, 256)[None])
    below = draw_colour_bar(sheet, bar, marks, at=(side, y), width=width, line=True)
    x, middle = sheet.width, y + COLOUR_BAR / 2
    for by in reversed(BY):
        x -= sheet.width_of(by, style.small)
        sheet.note(x, middle, by)
        draw_mark(sheet, _look(sheet, by), x - 0.8 * style.em, middle, size=MARK)
        x -= 2.4 * style.em
    sheet.note(x + 0.6 * style.em, middle, "all heads together", anchor="right")
    return below + 0.2 * style.em


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
    done = "; ".join(difference.done) if isinstance(difference, Effect) else ""
    note = f"{comparison.a.summary}, compared with {comparison.b.summary}"

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        style = sheet.style
        largest = max(float(stack.moved.max()) for stack in stacks.values())
        scale = style.weight_scale(largest or 1.0, power=1.0, words=two_digits)
        for name, stack in stacks.items():
            if len(stacks) > 1:
                sheet.text(0, y + 0.6 * style.em, sheet.shown(name))
                y += 1.6 * style.em
            y = _moved(sheet, stack, scale, y)
        marks = [(0.0, "0"), (1.0, f"{two_digits(largest)} nats")]
        y = draw_colour_bar(sheet, scale.bar(20), marks, at=(0, y), width=BAR_WIDTH)
        notes = ["rows are layers, columns are heads, both from 0, as the first record counts them"]
        notes.append("Jensen-Shannon distance of rows, mean over rows and texts, 0 to 0.69 nats")
        if any(stack.has_baseline for stack in stacks.values()):
            notes.append("a dot: moved by more than the largest distance of the baseline")
        if any(stack.changed for stack in stacks.values()):
            notes.append("framed: changed on purpose")
        return y, notes

    return draw_result(
        difference,
        options,
        draw,
        title=f"{difference.model or 'A model'}: where heads look elsewhere",
        note=f"changed: {done}" if done else note,
        cells=[cell for each in stacks.values() for cell in each.cells],
        texts=[*comparison.a.texts, *comparison.b.texts],
    )


def _moved(sheet: Sheet, stack: StackComparison, scale: Scale, y: float) -> float:
    """The map of one stack; return the next y."""
    grid, style = stack.map(), sheet.style
    layers = list(dict.fromkeys(layer for layer, _ in stack.cells))
    changed = [(layers.index(layer), head) for layer, head in stack.changed]
    dots = None
    if stack.has_baseline:
        dots = stack.as_map(stack.beyond.astype(float)) == 1
        for cell in changed:
            dots[cell] = False
    side = sheet.width_of(str(layers[-1]), style.small) + 0.6 * style.em
    cell, hidden = min(LARGEST_CELL, (sheet.width - side) / grid.shape[1]), np.isnan(grid)
    shown = Matrix(rgb=scale.rgb(grid), rows=layers, hidden=hidden, dots=dots, frames=changed)
    draw_matrix(sheet, shown, at=(side, y), cell=cell)
    return y + len(layers) * cell + 2.0 * style.em


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

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        em, rows = sheet.style.em, max(mechanism.seen_often(*cell) for cell in cells)
        gap, tall = 2 * em, 4.8 * em + rows * POSITION
        columns = max(1, min(len(cells), int((sheet.width + gap) / (PANEL + gap))))
        width = (sheet.width - (columns - 1) * gap) / columns
        for number, cell in enumerate(cells):
            corner = (number % columns * (width + gap), y + number // columns * tall)
            _carried(sheet, mechanism, cell, of, at=corner, width=width, rows=rows)
        return y + -(-len(cells) // columns) * tall, MECHANISM_NOTES

    return draw_result(
        mechanism,
        options,
        draw,
        title=f"{mechanism.model or 'Heads'}: {what} that carry attention",
        note=f"{looks}, {mechanism.texts} texts, read by the {of}",
        cells=cells,
        chosen=f", at={cells!r}, of={of!r}",
    )


def _carried(
    sheet: Sheet,
    mechanism: Any,
    cell: tuple[int, int],
    of: str,
    *,
    at: tuple[float, float],
    width: float,
    rows: int,
) -> None:
    """The neurons of one head by position."""
    style, columns, (x, y) = sheet.style, mechanism.columns(), at
    keys = zip(columns["layer"], columns["head"], columns["of"], strict=True)
    row = list(keys).index((*cell, of))
    numbers = {name: columns[name][row] for name in ("neurons", "units", "overlap", "chance")}
    side = sheet.width_of("00", style.small) + 0.5 * style.em
    sheet.text(x + side, y + 0.6 * style.em, f"head {cell[0]}-{cell[1]}")
    note = (
        f"{numbers['neurons']:.1f} of {numbers['units']}, "
        f"Jaccard {two_digits(numbers['overlap'])} (chance {two_digits(numbers['chance'])})"
    )
    sheet.note(x + side, y + 1.8 * style.em, note)
    shares = mechanism.carried_at(*cell, of=of)[:rows]
    rgb = style.weight_scale(1.0, power=1.0).rgb(np.nan_to_num(shares))
    rgb[np.isnan(shares)] = parse_hex(style.masked)
    pitch, place = (width - side) / shares.shape[1], (x + side, y + 2.7 * style.em)
    shown = Matrix(rgb=rgb, rows=range(len(shares)))
    draw_matrix(sheet, shown, at=place, cell=pitch, tall=POSITION)
