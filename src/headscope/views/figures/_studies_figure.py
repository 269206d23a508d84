"""Figures of results with a row for each question or lines over layers: relations, coreference,
norms, probing and faithfulness.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np

from headscope.errors import FigureError
from headscope.results import draws
from headscope.views.figure_options import ResultOptions
from headscope.views.figures import charts
from headscope.views.figures._figure import Figure, draw_result
from headscope.views.figures._maps_figure import BY
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import counted, head_greys, number_written, percent_written

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
NORMS_TALL, PROBING_TALL, CURVES_TALL = 52.0, 36.0, 42.0
"""Height of lines in millimetres."""
PROBES = ("probe", "both directions")
"""Scores that are drawn as a probe; all others are controls."""
NOT_BARS = re.compile("layers? (?!0$)|selectivity$")
"""Scores without a bar: layers, and what is the difference of two bars that are drawn."""
BAR_ROW, BETWEEN = 2.1, 2.0
"""Height of a row of bars and the gap between two panels, in units of the font size."""
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
        values = _held_out(each) | {"best offset": (each.held_out_baseline,)}
        if relations.control is not None:
            control = relations.control.best(each.relation, each.score)
            values["random weights, best head"] = (control.held_out_accuracy,)
        note = f"{each.held_out_place} {each.held_out_direction or ''}".rstrip()
        rows.append(charts.Row(f"{each.relation}  ({each.count})", values, note))
    return _of_best_heads(
        relations,
        options,
        rows,
        title=f"{relations.source or 'a treebank'}: heads that look along relations",
        note="share of words whose head the best attention head names, held out; "
        f"{relations.sentences:,} sentences",
        notes=("how many words", ", and who looks at whom"),
        chosen=f", least={least!r}, score={score!r}",
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
        values = _held_out(each) | {"nearest mention": (each.held_out_nearest,)}
        if coreference.control is not None:
            control = coreference.control.best(each.kind, each.candidates)
            values["random weights"] = (control.held_out_accuracy,)
        values |= {"head match, all": (each.head_match,), "sieves, all": (each.sieves,)}
        rows.append(charts.Row(f"{each.kind}  ({each.count})", values, each.held_out_place))
    return _of_best_heads(
        coreference,
        options,
        rows,
        title=f"{coreference.source or 'texts'}: heads that find antecedents",
        note="share of mentions whose antecedent the best attention head finds, held out; "
        f"{coreference.passages:,} passages",
        notes=("how many mentions", ""),
        chosen=f", candidates={candidates!r}",
    )


def _held_out(each: Any) -> dict[str, charts.Value]:
    return {"best head": (each.held_out_accuracy, each.held_out_low, each.held_out_high)}


def _of_best_heads(
    study: Any, options: ResultOptions, rows: list[charts.Row], *, title: str, **words: Any
) -> Figure:
    """The figure of a study with a row for each question and the head that answers it best."""
    what, more = words.pop("notes")
    notes = [f"in brackets: {what}", f"on the right: the head that was chosen most often{more}"]
    notes.append(f"lines: {study.confidence:.0%} interval over documents")
    body = partial(charts.draw_dots, rows=rows, ends=(0.0, 1.0), written=percent_written)
    title, texts = f"{study.model or 'A model'}, {title}", study.names
    return draw_result(study, options, body, title=title, notes=notes, texts=texts, **words)


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

    def draw(sheet: Sheet, y: float) -> float:
        panels, style = [], sheet.style
        greys = head_greys(len(COLOURS), dark=style.dark)
        colours = {name: both[style.dark] for name, both in COLOURS.items()}
        if not style.colour:
            colours = dict(zip(COLOURS, greys, strict=True))
        for by, title in BY.items():
            lines = []
            for of in study.classes:
                row = f"share by {by}: {of}"
                # The last column is all layers together.
                values, ends = study.mean(row)[:-1], study.interval(row)[:-1]
                lines.append(charts.Line(NAMES[of], colours[of], values, ends))
            panels.append(
                charts.LinePanel(title=title, lines=lines, over=study.layers, under="layer")
            )
        return charts.draw_line_panels(sheet, y, panels, tall=NORMS_TALL)

    return draw_result(
        study,
        options,
        draw,
        kind="norms",
        title=f"{study.model or 'A model'}: what rows look at, and what is added",
        note=f"share of a row, mean over heads; {counted(study.texts, 'text')}",
        notes=[f"bands: {study.confidence:.0%} interval over texts"],
        layers=study.layers,
    )


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
    panels = [_probed_layers(probing, of) if len(of) > 1 else None for of in layers_of.values()]
    over = "documents" if any(each.groups for each in probing.scores) else "sentences"
    notes = [f"lines on bars: {probing.confidence:.0%} interval over {over}"]
    notes += ["bands: the same of each layer"] * any(panels)

    def draw(sheet: Sheet, y: float) -> float:
        y = _probe_bars(sheet, probing, measures, y) + 1.8 * sheet.style.em
        if any(panels):
            y = charts.draw_line_panels(sheet, y, panels, tall=PROBING_TALL, gap=BETWEEN)
        return y + 0.4 * sheet.style.em

    learnt, _, test = probing.sentences
    return draw_result(
        probing,
        options,
        draw,
        title=f"{probing.model or 'A model'}: {probing.kind} probe",
        note=f"{learnt:,} sentences learnt from, {test:,} others scored",
        notes=notes,
        layers=[number for layers in layers_of.values() for number in layers],
        texts=[probing.kind, str(learnt), str(test)],
    )


def _probe_bars(sheet: Sheet, probing: Any, measures: Mapping[str, str], y: float) -> float:
    """A panel for each task: the probe first, then its controls, without layers, which have a panel
    of their own; return the next y.
    """
    style, em = sheet.style, sheet.style.em
    pitch = (sheet.width + BETWEEN * em) / len(measures)
    width, lefts = pitch - BETWEEN * em, [number * pitch for number in range(len(measures))]
    titles = [f"{task}: {measure}" for task, measure in measures.items()]
    top = bottom = sheet.titles(y, list(zip(lefts, titles, strict=True)), width) + 0.4 * em
    for x, shown in zip(lefts, measures.items(), strict=True):
        bars = []
        for each in probing.scores:
            if (each.task, each.measure) != shown or NOT_BARS.match(each.of):
                continue
            words = f"{each.value:.2f}" if each.lengths is not None else f"{100 * each.value:.1f}"
            name = each.of.replace("layer 0", "embeddings (layer 0)")
            name = sheet.fitted(name, MOST_SIDE * width, style.small)
            colour = style.accent if each.of in PROBES else style.faint
            value = (each.value, *each.interval(probing.confidence))
            bars.append(charts.Bar(name, value, words, colour))
        side = sheet.widest(bar.name for bar in bars) + 0.8 * em
        room = width - side - sheet.width_of("100.0", style.small) - 0.8 * em
        box = (x + side, top, room, len(bars) * BAR_ROW * em)
        axes = charts.draw_grid(sheet, box, (0.0, 1.0), percent_written)
        # A score below 0, as a correlation may be, gets a bar of no length; its number is written.
        charts.draw_bars(sheet, bars, axes, box)
        bottom = max(bottom, top + box[3])
    return bottom


def _probed_layers(probing: Any, layers: Mapping[int, Any]) -> charts.LinePanel:
    numbers = sorted(layers)
    values = np.array([layers[number].value for number in numbers])
    ends = np.array([layers[number].interval(probing.confidence) for number in numbers])
    spots = np.concatenate([values, ends.ravel()])
    is_upto = any(" to " in layers[number].of for number in numbers)
    return charts.LinePanel(
        lines=[charts.Line("", "", values, ends)],
        over=numbers,
        under="layers 0 to ..." if is_upto else "layer (0: embeddings)",
        ends=(max(0.0, np.nanmin(spots) - 0.05), min(1.0, np.nanmax(spots) + 0.05)),
    )


SIGNALS = ("attention", "contribution", "rollout", "alti", "gradient", "leave_one_out")
WORDS = {"leave_one_out": "leave one out", "alti": "ALTI"}
RANKS = {"spearman": "dot", "kendall": "ring"}
"""Rank correlations and their marks."""
PANELS = (
    (("kendall", "spearman"), "gradient", "agrees with gradient"),
    (("kendall", "spearman"), "leave_one_out", "with leaving out"),
    (("comprehensiveness",), "", "comprehensiveness"),
    (("sufficiency",), "", "sufficiency"),
)
CURVES = {
    "comprehensiveness": ("without the top tokens the answer loses", "more is better"),
    "sufficiency": ("with the top tokens alone it loses", "less is better"),
}
SHARES = (0.01, 0.05, 0.10, 0.20, 0.50)
PANEL = 16.0
"""Smallest width of a panel of agreement in millimetres."""


@draws("faithfulness")
def faithfulness_figure(faithfulness: Any, **options: Unpack[ResultOptions]) -> Figure:
    """Agreement of each signal with the gradient and with leave-one-out, and the effect of erasing
    tokens in its order.

    Filled marks are Spearman's rho (or the mean over the shares of tokens), hollow ones Kendall's
    tau-b; whiskers are intervals over texts. The curves below show what the answer loses by the
    share of tokens. Erasing tokens in random order is a line in the panels of erasure, with which
    all signals are to be compared.

    Source: Jain and Wallace 2019 (agreement); DeYoung et al. 2020 (erasure).

    Args:
        faithfulness: a `Faithfulness`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: an unknown option, or matplotlib is missing.

    Example:
        >>> faithfulness_figure(faithfulness(classifier, tokenizer, texts)).save("faithfulness.pdf")
    """
    notes = [
        "agreement: rank correlation over the tokens of a text, filled Spearman’s rho, "
        "hollow Kendall’s tau-b",
        "comprehensiveness and sufficiency: means of the curves below",
    ]
    if faithfulness.texts > 1:
        notes.append(f"whiskers: {faithfulness.confidence:.0%} interval over {faithfulness.over}")
    if "random" in faithfulness.signals:
        notes.append(
            "random: one random draw for each text; its line, what any cut of tokens does, "
            "is the zero line"
        )
    below = {share: f"{100 * share:.0f} %" for share in (0.05, 0.20, 0.50)}

    def draw(sheet: Sheet, y: float) -> float:
        known = dict(zip(SIGNALS, sheet.style.series(len(SIGNALS)), strict=True))
        colours = {name: known.get(name, sheet.style.muted) for name in faithfulness.signals}
        y, panels, spots = _agreement(sheet, faithfulness, colours, y), [], [0.0, 0.1]
        for measure, (title, wanted) in CURVES.items():
            lines = []
            for name, colour in colours.items():
                values = faithfulness.erasure(name, measure)[:, 0]
                lines.append(charts.Line(WORDS.get(name, name), colour, values))
                spots += values.tolist()
            panels.append({"title": title, "note": wanted, "lines": lines})
        same = {"over": SHARES, "under": "of the tokens of a text", "below": below}
        curves = [charts.LinePanel(**panel, **same, ends=_tenths(spots)) for panel in panels]
        tall, written = CURVES_TALL, number_written
        return charts.draw_line_panels(sheet, y, curves, tall=tall, gap=2.0, written=written)

    texts = counted(faithfulness.texts, "text")
    return draw_result(
        faithfulness,
        options,
        draw,
        title=f"{faithfulness.model or 'A classifier'}: what agrees with what mattered",
        note=f"mean over {texts}; what comes out is reported, nothing is asserted about it",
        notes=notes,
        layers=(faithfulness.layer,),
    )


def _agreement(sheet: Sheet, faithfulness: Any, colours: dict[str, str], y: float) -> float:
    """A row for each signal, a panel for each measure, as many side by side as there is room for;
    return the next y.
    """
    em, gap, pitch = sheet.style.em, 1.8 * sheet.style.em, charts.ROW * sheet.style.em
    side = max(sheet.width_of(WORDS.get(name, name)) for name in colours) + 1.7 * em
    room = sheet.width - side - sheet.width_of("1.0", sheet.style.small) / 2 + gap
    words = " ".join(title for *_, title in PANELS).split()
    least = max(PANEL, *map(sheet.width_of, words)) + 0.2 * gap
    columns = max([1, *(count for count in (2, 4) if room / count >= least)])
    wide = room / columns - gap
    for first in range(0, len(PANELS), columns):
        panels = PANELS[first : first + columns]
        starts = [side + number * (wide + gap) for number in range(columns)]
        said = [(start, title) for start, (*_, title) in zip(starts, panels, strict=True)]
        top = sheet.titles(y, said, wide + 0.8 * gap) + 0.3 * em
        for number, (name, colour) in enumerate(colours.items()):
            sheet.dot(charts.MARK / 2, top + (number + 0.5) * pitch, charts.MARK, fill=colour)
            sheet.text(0.9 * em, top + (number + 0.5) * pitch, WORDS.get(name, name))
        for start, panel in zip(starts, panels, strict=True):
            _agreement_panel(sheet, faithfulness.means, colours, panel, at=(start, top, wide))
        y = top + len(colours) * pitch + 2.6 * em
    return y


def _agreement_panel(
    sheet: Sheet, means: Any, colours: dict[str, str], panel: Any, *, at: tuple[float, float, float]
) -> None:
    """The marks of one panel, at an x and y and so wide."""
    (measures, against, _), (x, y, wide), em = panel, at, sheet.style.em
    same = tuple(CURVES) if measures[0] in CURVES else measures
    numbers = np.array([ends[:4] for (of, *_), ends in means.items() if of in same])[:, [0, 2, 3]]
    # At least from 0 to 0.5, so that small differences do not fill the panel and look large; the
    # same for both panels of agreement, and for both of erasure.
    ends = _tenths([0.0, 0.5, *numbers[np.isfinite(numbers)]])
    axes = charts.draw_grid(sheet, (x, y, wide, len(colours) * charts.ROW * em), ends)
    rows, looks = [], {}
    for number, (name, colour) in enumerate(colours.items()):
        if name == against:
            zero = x - ends[0] / (ends[1] - ends[0]) * wide
            sheet.note(zero + 0.6 * em, y + (number + 0.5) * charts.ROW * em, "itself")
        row = {}
        for measure in measures:
            if (measure, name, against) in means:
                mean, _, low, high, _ = means[measure, name, against]
                row[measure, name] = (mean, low, high)
                looks[measure, name] = (colour, RANKS.get(measure, "dot"))
        rows.append(row)
    charts.draw_values(sheet, axes, rows, looks, spread=0.34)
    # Erasing tokens in random order, with which all are to be compared.
    if (measures[0], "random", "") in means:
        axes.axvline(means[measures[0], "random", ""][0], color=sheet.style.ink, linewidth=1.0)


def _tenths(spots: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis with all these numbers, in whole tenths."""
    return float(np.floor(min(spots) * 10) / 10), float(np.ceil(max(spots) * 10) / 10)
