"""Coreference as it is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.evidence import p_text
from headscope.results import TextTable
from headscope.studies.coreference._tally import CANDIDATES
from headscope.studies.shared._printing import SUMMED, above_of, left_out_lines, percent

if TYPE_CHECKING:
    from headscope.studies.coreference._result import Coreference


SAYS = {
    "count": "how many were asked for",
    "head": "layer-head, both from 0",
    "accuracy": "% of mentions whose head word looks most at the right one",
    "nearest": "% for which the nearest mention is right",
    "head match": "% for which the nearest mention with the same head word is",
    "sieves": "% for which rules are, one after the other",
    "above": "points of head less nearest mention",
    "splits": "standard deviation of these over splits",
    "p": "of being no better than the nearest mention, corrected",
    "random weights": "accuracy of the best head of the same architecture with random weights",
}
"""The legend of the tables."""
HELD = {"head": "the one chosen most often"}


def summary_of(coreference: Coreference) -> str:
    """How often the best head, and how often the nearest mention, is what a mention means."""
    if not coreference.passages:
        return repr(coreference)
    passages = f"{coreference.passages} passages ({coreference.length_text})"
    best = coreference.best()
    share, nearest = percent(best.held_out_accuracy), percent(best.held_out_nearest)
    return (
        f"{titled(coreference)}: {len(coreference.cells)} heads, {passages}, "
        f"{coreference.questions} questions. On documents it was not chosen on, the "
        "best head looks most at what a mention means for "
        f"{share} % of mentions; the nearest mention is right for {nearest} % (p "
        f"{p_text(best.p_corrected)})"
    )


def blocks_of(coreference: Coreference) -> list[TextTable | str]:
    """The tables for both candidate sets, what their numbers mean, and what was left out."""
    if not coreference.passages:
        return ["\n".join(left_out_lines(coreference.left_out, "passages are"))]
    tables = [table for candidates in CANDIDATES for table in _tables(coreference, candidates)]
    note = (
        "Held out: the head is chosen on one half of the documents and measured on the other, "
        f"both ways; mean over {coreference.splits} splits. Intervals do not hold the spread over "
        f"splits. p: {coreference.correction} over kinds."
    )
    notes = [note, *([SUMMED] if coreference.summed is not None else [])]
    return [*tables, "\n".join([*notes, *left_out_lines(coreference.left_out, "passages are")])]


def titled(coreference: Coreference) -> str:
    """The model, and what it read."""
    return f"{coreference.model or 'a model'}, {coreference.data or 'texts'}"


def _tables(coreference: Coreference, candidates: str) -> list[TextTable]:
    """The head that is best on all documents, and the one that was chosen on half of them."""
    level = f"[{coreference.confidence:.0%}]"
    best = [("mention", "count", "head", f"accuracy {level}", "nearest", "head match", "sieves")]
    held = [("mention", "head", f"accuracy {level}", "nearest", f"above {level}", "splits", "p")]
    held[0] += ("random weights",) * (coreference.control is not None)
    for each in coreference.heads_of(candidates):
        rules = (percent(value) for value in (each.nearest, each.head_match, each.sieves))
        best.append(
            (
                each.kind,
                str(each.count),
                each.place,
                percent(each.accuracy, (each.low, each.high)),
                *rules,
            )
        )
        cells = [each.kind, each.held_out_place]
        cells += [percent(each.held_out_accuracy, (each.held_out_low, each.held_out_high))]
        cells += [percent(each.held_out_nearest), *above_of(each), p_text(each.p_corrected)]
        if coreference.control is not None:
            cells.append(percent(coreference.control.best(each.kind, candidates).held_out_accuracy))
        held.append(tuple(cells))
    among = "the heads of the candidate mentions" if candidates == "mentions" else "all other words"
    says = SAYS | {f"accuracy {level}": SAYS["accuracy"], f"above {level}": SAYS["above"]}
    return [
        TextTable.of_rows(best, title=f"among {among}:", says=says),
        TextTable.of_rows(held, title=f"among {among}, held out:", says=says | HELD),
    ]
