"""Figure of relations: the share of the best head for each relation, with its baselines."""

from __future__ import annotations

from typing import Any, Unpack

from headscope.errors import FigureError
from headscope.results import draws
from headscope.views.figures._best_heads import BestHeadsWords, best_heads_figure
from headscope.views.figures._figure import Figure
from headscope.views.figures._ranges import Row, Value
from headscope.views.figures._result import ResultOptions


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
    shown.sort(key=lambda each: -each.held_out_accuracy)
    rows = [_row(relations, each) for each in shown]
    words: BestHeadsWords = {
        "title": f"{relations.model or 'A model'}, {relations.source or 'a treebank'}: heads "
        "that look along relations",
        "note": "share of words whose head the best attention head names, held out; "
        f"{relations.sentences:,} sentences",
        "chosen": f", least={least!r}, score={score!r}",
        "counted": "words",
        "beside": "the head that was chosen most often, and who looks at whom",
    }
    return best_heads_figure(relations, rows, words, options)


def _row(relations: Any, each: Any) -> Row:
    values = {
        "best head": Value(each.held_out_accuracy, each.held_out_low, each.held_out_high),
        "best offset": Value(each.held_out_baseline),
    }
    if relations.control is not None:
        control = relations.control.best(each.relation, each.score)
        values["random weights, best head"] = Value(control.held_out_accuracy)
    note = f"{each.held_out_place} {each.held_out_direction or ''}".rstrip()
    return Row(f"{each.relation}  ({each.count})", values, note)
