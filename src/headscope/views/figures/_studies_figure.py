"""Figures of results with a row for each question or lines over layers: relations, coreference,
norms, probing, faithfulness and answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from headscope.errors import FigureError
from headscope.views.figures import charts
from headscope.views.figures._figure import Spec, specified
from headscope.views.figures._maps_figure import BY
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import counted, percent_written

CLASSES = {
    "cls": ("[CLS]", ("#0072B2", "#68a6ff")),
    "sep": ("[SEP]", ("#D55E00", "#ff9a4d")),
    "first": ("first", ("#009E73", "#35c9a1")),
    "stop": ("period, comma", ("#A0608F", "#d79ac9")),
    "other": ("other", ("#5A5A5A", "#a3a3a3")),
}
"""Name of each class of tokens, see `NormStudy.classes`, and its colours on light and dark paper:
Okabe and Ito's, the lighter ones darkened for lines on white, lightened for dark paper.
"""
NORMS_TALL, PROBING_TALL, CURVES_TALL = 52.0, 36.0, 42.0
"""Height of lines in millimetres."""
PROBES = ("probe", "both directions")
"""Scores that are drawn as a probe; all others are controls."""
NOT_BARS = re.compile("layers? (?!0$)|selectivity$")
"""Scores without a bar: layers, and what is the difference of two bars that are drawn."""
NARROWEST = 15.0
"""Millimetres of a chart, below which panels are not side by side."""
CHOSEN = "on the right: the head that was chosen most often"


@specified("relations")
def relations_figure(relations: Any, *, least: int | None = None, score: str = "max") -> Spec:
    """The held-out share of every relation's words whose head the best attention head names, with
    its interval, compared with the best fixed offset.

    Args:
        relations: a `Relations`.
        least: how many words a relation has that is drawn; by default 20, of few sentences 1.
        score: how heads are read, such as ``"max"`` or ``"tree"``; see `Relations.ways`.

    Raises:
        FigureError: no relation has so many words.
        RecordError: an unknown score, or nothing was counted.

    Example:
        >>> relations(model, tokenizer, treebank).figure(least=50).save("relations.pdf")
    """
    heads = [each for each in relations.heads_of(score) if each.relation in relations.named]
    if least is None:
        most, enough = max((each.count for each in heads), default=0), relations.LEAST_WORDS
        least = enough if most >= enough else 1
    heads = [each for each in heads if each.count >= least]
    if not heads:
        raise FigureError(
            f"There is nothing to draw: no relation has {least} words; give least= fewer"
        )
    heads = sorted(heads, key=lambda each: -each.held_out_accuracy)
    others = {"best offset": "held_out_baseline", "random weights, best head": ""}
    return Spec(
        title=f"{relations.model or 'A model'}, {relations.source or 'a treebank'}: heads that "
        "look along relations",
        body=_best_heads(relations, heads, ("relation", score), others),
        note="share of words whose head the best attention head names, held out; "
        f"{relations.sentences:,} sentences",
        notes=[
            "in brackets: how many words",
            f"{CHOSEN}, and who looks at whom",
            f"lines: {relations.confidence:.0%} interval over documents",
        ],
    )


@specified("coreference")
def coreference_figure(coreference: Any, *, candidates: str = "mentions") -> Spec:
    """The held-out share of mentions of every kind whose antecedent the best attention head finds,
    with its interval, compared with what rules find.

    Args:
        coreference: a `Coreference`.
        candidates: ``"mentions"`` or ``"words"``, see `Coreference.heads_of`.

    Raises:
        RecordError: unknown candidates, or nothing was counted.

    Example:
        >>> coref(model, tokenizer, passages).figure().save("coref.pdf")
    """
    heads, model = coreference.heads_of(candidates), coreference.model or "A model"
    others = {"nearest mention": "held_out_nearest", "random weights": ""}
    others |= {"head match, all": "head_match", "sieves, all": "sieves"}
    return Spec(
        title=f"{model}, {coreference.source or 'texts'}: heads that find antecedents",
        body=_best_heads(coreference, heads, ("kind", candidates), others),
        note="share of mentions whose antecedent the best attention head finds, held out; "
        f"{coreference.passages:,} passages",
        notes=[
            "in brackets: how many mentions",
            CHOSEN,
            f"lines: {coreference.confidence:.0%} interval over documents",
        ],
    )


def _best_heads(
    study: Any, heads: Sequence[Any], asked: tuple[str, str], others: Mapping[str, str]
) -> Callable[[Sheet], None]:
    """Draw a row for each question with the head that answers it best, and what else was tried.

    Args:
        study: the result.
        heads: the best head of each question.
        asked: the field of these with the question, and the way in which heads are read.
        others: the field with the share that each other way reaches; empty for random weights.
    """
    rows, (field, way) = {}, asked
    for each in heads:
        question = getattr(each, field)
        values = {"best head": (each.held_out_accuracy, each.held_out_low, each.held_out_high)}
        for name, share in others.items():
            if share:
                values[name] = (getattr(each, share),)
            elif study.control is not None:
                values[name] = (study.control.best(question, way).held_out_accuracy,)
        words = f"{each.held_out_place} {getattr(each, 'held_out_direction', '') or ''}".rstrip()
        rows[f"{question}  ({each.count})"] = charts.Row(values, words)
    return partial(charts.draw_dots, rows=rows, written=percent_written)


@specified("answers")
def answers_figure(answers: Any, *, heads: int = 12) -> Spec:
    """How much heads look at what answers needed, with intervals over prompts: a row for each of
    those that give it most.

    Args:
        answers: a `headscope.studies.Answers`.
        heads: how many have a row.

    Raises:
        FigureError: no prompt needed anything.

    Example:
        >>> answers(model, tokenizer, prompts).figure().save("answers.pdf")
    """
    rows = {}
    for cell in answers.best_heads(heads):
        share, lift, _, copies = answers.heads[:, answers.cells.index(cell)]
        values = {"share of attention on it": tuple(share), "retrieval score": tuple(copies)}
        rows["{}-{}".format(*cell)] = charts.Row(values, f"{lift[0]:.2f} x")
    if not rows or np.isnan(answers.heads[0, :, 0]).all():
        raise FigureError("No prompt needed anything that heads could look at, or heads is 0")
    return Spec(
        title=f"{answers.model or 'A model'}: heads that look at what answers needed",
        body=partial(charts.draw_dots, rows=rows, written=percent_written),
        note=answers.summary,
        notes=["x: times what its length gives", f"lines: {answers.confidence:.0%} interval"],
    )


@specified("norm study")
def norms_figure(study: Any) -> Spec:
    """The share of every class of tokens in a row of each layer, by weight on the left and by norm
    on the right, on one scale.

    Source: Kobayashi et al. 2020, section 4.

    Args:
        study: a `NormStudy`.

    Raises:
        FigureError: nothing was counted.

    Example:
        >>> norm_study(records).figure().save("norms.pdf")
    """
    if not study.texts:
        raise FigureError("No text was counted; update the study with one first")

    def draw(sheet: Sheet) -> None:
        hues = sheet.style.hues([colours for _, colours in CLASSES.values()])
        known, panels = dict(zip(CLASSES, hues, strict=True)), []
        look: dict[str, Any] = {"under": "layer", "high": NORMS_TALL, "written": percent_written}
        for by, title in BY.items():
            lines = []
            for of in study.classes:
                row = f"share by {by}: {of}"
                # The last column is all layers together.
                values, ends = study.mean(row)[:-1], study.interval(row)[:-1]
                lines.append(charts.Line(CLASSES[of][0], known[of], values, ends))
            panels.append(charts.Lines(title=title, lines=lines, over=study.layers, **look))
        charts.draw_panels(sheet, panels, least=NARROWEST)

    return Spec(
        title=f"{study.model or 'A model'}: what rows look at, and what is added",
        body=draw,
        note=f"share of a row, mean over heads; {counted(study.texts, 'text')}",
        notes=[f"bands: {study.confidence:.0%} interval over texts"],
        cells=[(layer, -1) for layer in study.layers],
    )


@specified("probing")
def probing_figure(probing: Any) -> Spec:
    """The probe and its controls with their intervals, one panel for each task; and, where layers
    were probed, the scores over layers.

    Args:
        probing: a `Probing`.

    Example:
        >>> probe(model, tokenizer, treebank).figure().save("probe.pdf")
    """
    measures = {task: probing.measures(task)[0] for task in probing.tasks}
    layers_of = {task: probing.per_layer(task, measure) for task, measure in measures.items()}
    over = "documents" if any(each.groups for each in probing.scores) else "sentences"
    lines = [_probed_layers(probing, *of) for of in layers_of.items() if len(of[1]) > 1]

    def draw(sheet: Sheet) -> None:
        bars = [_probe_bars(sheet, probing, *of) for of in measures.items()]
        for panels in filter(None, (bars, lines)):
            charts.draw_panels(sheet, panels, least=NARROWEST, gap=2.0)

    learnt, _, test = probing.sentences
    return Spec(
        title=f"{probing.model or 'A model'}: {probing.kind} probe",
        body=draw,
        note=f"{learnt:,} sentences learnt from, {test:,} others scored",
        notes=[
            f"lines on bars: {probing.confidence:.0%} interval over {over}",
            "bands: the same of each layer" * bool(lines),
        ],
        cells=[(number, -1) for layers in layers_of.values() for number in layers],
        texts=[probing.kind, str(learnt), str(test)],
    )


def _probe_bars(sheet: Sheet, probing: Any, task: str, measure: str) -> charts.RowMarks:
    """The probe first, then its controls, without layers, which have a panel of their own."""
    rows = {}
    for each in probing.scores:
        if (each.task, each.measure) != (task, measure) or NOT_BARS.match(each.of):
            continue
        words = f"{each.value:.2f}" if each.lengths is not None else f"{100 * each.value:.1f}"
        value = (each.value, *each.interval(probing.confidence))
        name = each.of.replace("layer 0", "embeddings (layer 0)")
        rows[name] = charts.Row({each.of in PROBES: value}, words)
    return charts.RowMarks(
        title=f"{task}: {measure}",
        names=[*rows],
        rows=[*rows.values()],
        looks={True: (sheet.style.accent, "bar"), False: (sheet.style.faint, "bar")},
        written=percent_written,
    )


def _probed_layers(probing: Any, task: str, layers: Mapping[int, Any]) -> charts.Lines:
    numbers = sorted(layers)
    values = np.array([layers[number].value for number in numbers])
    ends = np.array([layers[number].interval(probing.confidence) for number in numbers])
    spots = np.concatenate([values, ends.ravel()])
    is_upto = any(" to " in layers[number].of for number in numbers)
    return charts.Lines(
        title=f"{task}, by layer",
        lines=[charts.Line("", "", values, ends)],
        over=numbers,
        under="layers 0 to ..." if is_upto else "layer (0: embeddings)",
        ends=(max(0.0, np.nanmin(spots) - 0.05), min(1.0, np.nanmax(spots) + 0.05)),
        high=PROBING_TALL,
        written=percent_written,
    )


SIGNALS = ("attention", "contribution", "rollout", "alti", "gradient", "leave_one_out")
WORDS = {"leave_one_out": "leave one out", "alti": "ALTI"}
RANKS = {"kendall": "ring", "spearman": "dot"}
"""Rank correlations and their marks."""
AGREES = {"gradient": "agrees with gradient", "leave_one_out": "with leaving out"}
CURVES = {
    "comprehensiveness": ("without the top tokens the answer loses", "more is better"),
    "sufficiency": ("with the top tokens alone it loses", "less is better"),
}
SHARES = (0.01, 0.05, 0.10, 0.20, 0.50)


@specified("faithfulness")
def faithfulness_figure(faithfulness: Any) -> Spec:
    """Agreement of each signal with the gradient and with leave-one-out, and the effect of erasing
    tokens in its order.

    Filled marks are Spearman's rho (or the mean over the shares of tokens), hollow ones Kendall's
    tau-b; whiskers are intervals over texts. The curves below show what the answer loses by the
    share of tokens. Erasing tokens in random order is a line in the panels of erasure, with which
    all signals are to be compared.

    Source: Jain and Wallace 2019 (agreement); DeYoung et al. 2020 (erasure).

    Args:
        faithfulness: a `Faithfulness`.

    Example:
        >>> faithfulness(classifier, tokenizer, texts).figure().save("faithfulness.pdf")
    """

    def draw(sheet: Sheet) -> None:
        known = dict(zip(SIGNALS, sheet.style.series(len(SIGNALS)), strict=True))
        colours = {name: known.get(name, sheet.style.muted) for name in faithfulness.signals}
        means = faithfulness.means
        agreement = [_agreement(means, colours, (*RANKS,), against) for against in AGREES]
        agreement += [_agreement(means, colours, (measure,)) for measure in CURVES]
        least = max(sheet.width_of("comprehensiveness"), NARROWEST)
        charts.draw_panels(sheet, agreement, least=least)
        charts.draw_panels(sheet, _curves(faithfulness, colours), least=NARROWEST)

    texts = counted(faithfulness.texts, "text")
    return Spec(
        title=f"{faithfulness.model or 'A classifier'}: what agrees with what mattered",
        body=draw,
        note=f"mean over {texts}; what comes out is reported, nothing is asserted about it",
        notes=[
            "agreement: rank correlation over the tokens of a text, filled Spearman’s rho, "
            "hollow Kendall’s tau-b",
            "comprehensiveness and sufficiency: means of the curves below",
            f"whiskers: {faithfulness.confidence:.0%} interval over {faithfulness.over}"
            * (faithfulness.texts > 1),
            "random: one random draw for each text; its line, what any cut of tokens does, "
            "is the zero line" * ("random" in faithfulness.signals),
        ],
        cells=[(faithfulness.layer, -1)],
    )


def _agreement(
    means: Any, colours: Mapping[str, str], measures: tuple[str, ...], against: str = ""
) -> charts.RowMarks:
    """A row for each signal."""
    same = tuple(CURVES) if measures[0] in CURVES else measures
    numbers = np.array([ends[:4] for (of, *_), ends in means.items() if of in same])[:, [0, 2, 3]]
    rows, looks = [], {}
    for name, colour in colours.items():
        values: dict[Any, charts.Value] = {}
        for measure in measures:
            if (measure, name, against) in means:
                mean, _, low, high, _ = means[measure, name, against]
                values[measure, name] = (mean, low, high)
                looks[measure, name] = (colour, RANKS.get(measure, "dot"))
        rows.append(charts.Row(values, "itself" * (name == against)))
    # Erasing tokens in random order, with which all are to be compared.
    at_random = means.get((measures[0], "random", ""), ())
    return charts.RowMarks(
        title=AGREES.get(against, measures[0]),
        names=[WORDS.get(name, name) for name in colours],
        rows=rows,
        looks=looks,
        # At least from 0 to 0.5, so that small differences do not fill the panel and look large;
        # the same for both panels of agreement, and for both of erasure.
        ends=_tenths([0.0, 0.5, *numbers[np.isfinite(numbers)]]),
        base=at_random[:1],
        spread=0.34,
    )


def _curves(faithfulness: Any, colours: Mapping[str, str]) -> list[charts.Lines]:
    """What the answer loses by the share of tokens, for both ways of erasing them."""
    curves, panels = {}, []
    for measure in CURVES:
        for name in colours:
            curves[measure, name] = faithfulness.erasure(name, measure)[:, 0]
    look: dict[str, Any] = {"over": SHARES, "under": "of the tokens of a text"}
    look["below"] = {share: f"{100 * share:.0f} %" for share in (0.05, 0.20, 0.50)}
    look["ends"] = _tenths([0.0, 0.1, *np.concatenate([*curves.values()])])
    for measure, (title, wanted) in CURVES.items():
        lines = []
        for name, colour in colours.items():
            lines.append(charts.Line(WORDS.get(name, name), colour, curves[measure, name]))
        panels.append(charts.Lines(title=title, note=wanted, lines=lines, high=CURVES_TALL, **look))
    return panels


def _tenths(spots: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis with all these numbers, in whole tenths."""
    return float(np.floor(min(spots) * 10) / 10), float(np.ceil(max(spots) * 10) / 10)
