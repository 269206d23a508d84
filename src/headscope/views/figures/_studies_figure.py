"""Figures of results with a row for each question or lines over layers: relations, coreference,
groups of neurons, norms and probing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from headscope.errors import FigureError
from headscope.patterns import Groups
from headscope.results import draws
from headscope.views.figures._charts import (
    Axis,
    Bar,
    Line,
    Row,
    Value,
    draw_bars,
    draw_dots,
    draw_lines,
    draw_upright_grid,
)
from headscope.views.figures._figure import Figure, ResultOptions, draw_result
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import (
    Style,
    counted,
    head_greys,
    percent_written,
)

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
NORMS_TALL, PROBING_TALL = 52.0, 36.0
"""Height of lines in millimetres."""
PROBES = ("probe", "both directions")
"""Scores that are drawn as a probe; all others are controls."""
MOST_COMPARED = 20
"""Rows of two results that are drawn."""
NOT_BARS = ("selectivity",)
"""Scores without a bar: this one is the difference of two bars that are drawn."""
BAR_ROW, BAR = 2.1, 0.57
"""Height of a row in units of the font size, and the part of it that is a bar."""
MOST_SIDE = 0.42
"""Largest share of a panel's width for the names of bars."""


@draws("relations")
def relations_figure(
    relations: Any,
    *,
    least: int | None = None,
    score: str = "max",
    **options: Unpack[ResultOptions],
) -> Figure:
    """The held-out share of every relation's words whose head the best attention head names, with
    its interval, compared with the best fixed offset.

    Args:
        relations: a `Relations`.
        least: how many words a relation has that is drawn; by default 20, of few sentences 1.
        score: how heads are read, such as ``"max"`` or ``"tree"``; see `Relations.ways`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: no relation has so many words, an unknown option, or matplotlib is
            missing.
        RecordError: an unknown score, or nothing was counted.

    Example:
        >>> relations_figure(relations(model, tokenizer, treebank)).save("relations.pdf")
    """
    heads = [each for each in relations.heads_of(score) if each.relation in relations.named]
    most, enough = max((each.count for each in heads), default=0), relations.LEAST_WORDS
    if least is None:
        least = enough if most >= enough else 1
    shown = [each for each in heads if each.count >= least]
    if not shown:
        raise FigureError(
            f"There is nothing to draw: no relation has {least} words; give least= fewer"
        )
    rows = []
    for each in sorted(shown, key=lambda each: -each.held_out_accuracy):
        values = _held_out(each) | {"best offset": Value(each.held_out_baseline)}
        if relations.control is not None:
            control = relations.control.best(each.relation, each.score)
            values["random weights, best head"] = Value(control.held_out_accuracy)
        note = f"{each.held_out_place} {each.held_out_direction or ''}".rstrip()
        rows.append(Row(f"{each.relation}  ({each.count})", values, note))
    return _best_heads(
        relations,
        rows,
        options,
        title=f"{relations.model or 'A model'}, {relations.source or 'a treebank'}: heads that "
        "look along relations",
        note="share of words whose head the best attention head names, held out; "
        f"{relations.sentences:,} sentences",
        chosen=f", least={least!r}, score={score!r}",
        notes=[
            "in brackets: how many words",
            "on the right: the head that was chosen most often, and who looks at whom",
        ],
    )


@draws("coreference")
def coreference_figure(
    coreference: Any, *, candidates: str = "mentions", **options: Unpack[ResultOptions]
) -> Figure:
    """The held-out share of mentions of every kind whose antecedent the best attention head finds,
    with its interval, compared with what rules find.

    Args:
        coreference: a `Coreference`.
        candidates: ``"mentions"`` or ``"words"``, see `Coreference.heads_of`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: an unknown option, or matplotlib is missing.
        RecordError: unknown candidates, or nothing was counted.

    Example:
        >>> coreference_figure(coref(model, tokenizer, passages)).save("coref.pdf")
    """
    rows = []
    for each in coreference.heads_of(candidates):
        values = _held_out(each) | {"nearest mention": Value(each.held_out_nearest)}
        if coreference.control is not None:
            control = coreference.control.best(each.kind, each.candidates)
            values["random weights"] = Value(control.held_out_accuracy)
        values |= {"head match, all": Value(each.head_match), "sieves, all": Value(each.sieves)}
        rows.append(Row(f"{each.kind}  ({each.count})", values, each.held_out_place))
    return _best_heads(
        coreference,
        rows,
        options,
        title=f"{coreference.model or 'A model'}, {coreference.source or 'texts'}: heads that "
        "find antecedents",
        note="share of mentions whose antecedent the best attention head finds, held out; "
        f"{coreference.passages:,} passages",
        chosen=f", candidates={candidates!r}",
        notes=[
            "in brackets: how many mentions",
            "on the right: the head that was chosen most often",
        ],
    )


def _held_out(each: Any) -> dict[str, Value]:
    return {"best head": Value(each.held_out_accuracy, each.held_out_low, each.held_out_high)}


def _best_heads(
    study: Any, rows: Sequence[Row], options: ResultOptions, *, notes: list[str], **words: Any
) -> Figure:
    """Held-out shares with their intervals, a row for each question, from 0 to 100 %."""
    notes = [*notes, f"lines: {study.confidence:.0%} interval over documents"]

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        return draw_dots(sheet, rows, y, ends=(0.0, 1.0), written=percent_written), notes

    return draw_result(study, options, draw, texts=study.names, **words)


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

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        style, colours, bottom = sheet.style, _colours_of_classes(sheet.style), y
        side = sheet.width_of("100 %", style.small) + 0.8 * style.em
        names = max(sheet.width_of(NAMES[of], style.small) for of in study.classes)
        names += 1.4 * style.em
        wide = (sheet.width - style.em) / 2 - side - names
        for number, (by, title) in enumerate(TITLES.items()):
            x = side + number * (side + wide + names + style.em)
            sheet.text(x, y + 0.6 * style.em, title)
            lines = []
            for of in study.classes:
                row = f"share by {by}: {of}"
                # The last column is all layers together.
                values, ends = study.mean(row)[:-1], study.interval(row)[:-1]
                lines.append(Line(NAMES[of], colours[of], values, ends))
            box = (x, y + 1.8 * style.em, wide, NORMS_TALL)
            unit = percent_written
            bottom = draw_lines(sheet, lines, study.layers, box, ends=(0.0, 1.0), written=unit)
            sheet.note(x + wide / 2, bottom, "layer", anchor="center")
        return bottom + 1.2 * style.em, [f"bands: {study.confidence:.0%} interval over texts"]

    return draw_result(
        study,
        options,
        draw,
        kind="norms",
        title=f"{study.model or 'A model'}: what rows look at, and what is added",
        note=f"share of a row, mean over heads; {counted(study.texts, 'text')}",
        layers=study.layers,
    )


def _colours_of_classes(style: Style) -> dict[str, str]:
    if not style.colour:
        return dict(zip(COLOURS, head_greys(len(COLOURS), dark=style.dark), strict=True))
    return {name: both[int(style.dark)] for name, both in COLOURS.items()}


@draws("probing")
def probing_figure(probing: Any, **options: Unpack[ResultOptions]) -> Figure:
    """The probe and its controls with their intervals, one panel for each task; and, where layers
    were probed, the scores over layers.

    Args:
        probing: a `Probing`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: an unknown option, or matplotlib is missing.

    Example:
        >>> probing_figure(probe(model, tokenizer, treebank)).save("probe.pdf")
    """
    measures = {task: probing.measures(task)[0] for task in probing.tasks}
    layers_of = {task: probing.per_layer(task, measure) for task, measure in measures.items()}

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        em, gap = sheet.style.em, 2.0 * sheet.style.em
        wide = (sheet.width - gap * (len(measures) - 1)) / len(measures)
        bars = {task: _probed(probing, task, measure) for task, measure in measures.items()}
        titles = [f"{task}: {measure}" for task, measure in measures.items()]
        lefts = [number * (wide + gap) for number in range(len(measures))]
        y = sheet.titles(y, list(zip(lefts, titles, strict=True)), wide) + 0.4 * em
        below = y + max(map(len, bars.values())) * BAR_ROW * em + 2.4 * em
        bottom = below
        for x, (task, scores) in zip(lefts, bars.items(), strict=True):
            _probe_bars(sheet, scores, probing.confidence, at=(x, y), width=wide)
            if len(layers_of[task]) > 1:
                place = (x, below)
                end = _probe_layers(
                    sheet, layers_of[task], probing.confidence, at=place, width=wide
                )
                bottom = max(bottom, end)
        over = "documents" if any(each.groups for each in probing.scores) else "sentences"
        notes = [f"lines on bars: {probing.confidence:.0%} interval over {over}"]
        if bottom > below:
            notes.append("bands: the same of each layer")
        return bottom + 0.4 * em, notes

    learnt, _, test = probing.sentences
    return draw_result(
        probing,
        options,
        draw,
        title=f"{probing.model or 'A model'}: {probing.kind} probe",
        note=f"{learnt:,} sentences learnt from, {test:,} others scored",
        layers=[number for layers in layers_of.values() for number in layers],
        texts=[probing.kind, str(learnt), str(test)],
    )


def _probed(probing: Any, task: str, measure: str) -> list[Any]:
    """The probe first, then its controls; layers have a panel of their own."""
    bars = []
    for each in probing.scores:
        is_layer = each.of.startswith("layer") and each.of != "layer 0"
        is_shown = not is_layer and each.of not in NOT_BARS
        if is_shown and (each.task, each.measure) == (task, measure):
            bars.append(each)
    return bars


def _probe_bars(
    sheet: Sheet, scores: Sequence[Any], confidence: float, *, at: tuple[float, float], width: float
) -> None:
    style, (x, y), bars = sheet.style, at, []
    for each in scores:
        written = f"{each.value:.2f}" if each.lengths is not None else f"{100 * each.value:.1f}"
        colour = style.accent if each.of in PROBES else style.faint
        name = "embeddings (layer 0)" if each.of == "layer 0" else each.of
        name = sheet.fitted(name, MOST_SIDE * width, style.small)
        bars.append(Bar(name, Value(each.value, *each.interval(confidence)), written, colour))
    side = max(sheet.width_of(bar.name, style.small) for bar in bars) + 0.8 * style.em
    numbers = sheet.width_of("100.0", style.small) + 0.8 * style.em
    axis, pitch = Axis(x + side, x + width - numbers, 0.0, 1.0), BAR_ROW * style.em
    draw_upright_grid(sheet, axis, (y, y + len(scores) * pitch), percent_written)
    # A score below 0, as a correlation may be, gets a bar of no length; its number is written.
    draw_bars(sheet, bars, axis, y, pitch=pitch, share=BAR)


def _probe_layers(
    sheet: Sheet,
    layers: dict[int, Any],
    confidence: float,
    *,
    at: tuple[float, float],
    width: float,
) -> float:
    style, (x, y), numbers = sheet.style, at, sorted(layers)
    values = np.array([layers[number].value for number in numbers])
    ends = np.array([layers[number].interval(confidence) for number in numbers])
    spots = np.concatenate([values, ends.ravel()])
    low = max(0.0, float(np.nanmin(spots)) - 0.05)
    high = min(1.0, float(np.nanmax(spots)) + 0.05)
    side = sheet.width_of("100 %", style.small) + 0.8 * style.em
    box, unit = (x + side, y, width - side - 1.2 * style.em, PROBING_TALL), percent_written
    line = Line("", style.accent, values, ends)
    bottom = draw_lines(sheet, [line], numbers, box, ends=(low, high), written=unit)
    is_upto = any(" to " in layers[number].of for number in numbers)
    words = "layers 0 to ..." if is_upto else "layer (0: embeddings)"
    sheet.note(box[0] + box[2] / 2, bottom, words, anchor="center")
    return bottom + 1.2 * style.em
