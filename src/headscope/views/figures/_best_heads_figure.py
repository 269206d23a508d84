"""Figures of dots with intervals: the best head for each relation or kind of mention beside its
baselines, and the neurons of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from headscope.errors import FigureError
from headscope.patterns import Groups
from headscope.results import draws
from headscope.views.figures._axis import percent_written
from headscope.views.figures._charts import Row, Value, draw_dots
from headscope.views.figures._figure import Figure
from headscope.views.figures._result import ResultOptions, draw_result
from headscope.views.figures._sheet import Sheet


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
    if least is None:
        enough = relations.LEAST_WORDS
        least = enough if any(each.count >= enough for each in heads) else 1
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
    study: Any, rows: Sequence[Row], options: ResultOptions, *, notes: list[str], **words: str
) -> Figure:
    """Held-out shares with their intervals, a row for each question, from 0 to 100 %."""
    notes = [*notes, f"lines: {study.confidence:.0%} interval over documents"]

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        return draw_dots(sheet, rows, y, ends=(0.0, 1.0), written=percent_written), notes

    layers, heads = zip(*study.cells, strict=True)
    return draw_result(study, options, draw, layers=layers, heads=heads, texts=study.names, **words)


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
