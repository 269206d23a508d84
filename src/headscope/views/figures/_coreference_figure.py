"""Figure of coreference: the head that attends to antecedents, compared with rules without
attention.
"""

from __future__ import annotations

from typing import Any, Unpack

from headscope.results import draws
from headscope.views.figures._best_heads import BestHeadsWords, best_heads_figure
from headscope.views.figures._figure import Figure
from headscope.views.figures._ranges import Row, Value
from headscope.views.figures._result import ResultOptions


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
    rows = [_row(coreference, each) for each in coreference.heads_of(candidates)]
    words: BestHeadsWords = {
        "title": f"{coreference.model or 'A model'}, {coreference.source or 'texts'}: heads that "
        "find antecedents",
        "note": "share of mentions whose antecedent the best attention head finds, held out; "
        f"{coreference.passages:,} passages",
        "chosen": f", candidates={candidates!r}",
        "counted": "mentions",
        "beside": "the head that was chosen most often",
    }
    return best_heads_figure(coreference, rows, words, options)


def _row(coreference: Any, each: Any) -> Row:
    values = {
        "best head": Value(each.held_out_accuracy, each.held_out_low, each.held_out_high),
        "nearest mention": Value(each.held_out_nearest),
    }
    if coreference.control is not None:
        control = coreference.control.best(each.kind, each.candidates)
        values["random weights"] = Value(control.held_out_accuracy)
    values["head match, all"] = Value(each.head_match)
    values["sieves, all"] = Value(each.sieves)
    return Row(f"{each.kind}  ({each.count})", values, each.held_out_place)
