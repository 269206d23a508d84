"""Relations as they are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.evidence import p_text
from headscope.linguistics.dependencies import ALL, NO_PUNCT, NO_ROOT
from headscope.results import TextTable
from headscope.studies.shared._printing import SUMMED, above_of, left_out_lines, percent

if TYPE_CHECKING:
    from headscope.studies.dependencies._result import Relations

GROUPS = (ALL, NO_PUNCT, NO_ROOT)
ALPHA = 0.05
"""For the sentence above the tables alone; p itself is in them."""
SAYS = {
    "words": "how many have the relation",
    "head": "layer-head, both from 0",
    "looks": "from the dependent to its head, or back",
    "accuracy": "% of words whose head the attention head looks at most",
    "offset": "the fixed distance that is right most often",
    "baseline": "% of words for which it is",
    "above": "points of head less offset",
    "splits": "standard deviation of these over splits",
    "p": "of being no better than the offset, corrected",
    "random weights": "accuracy of the best head of the same architecture with random weights",
}
"""The legend of the tables."""
HELD = {"head": "the one chosen most often"}


def summary_of(relations: Relations) -> str:
    """How many relations some head follows better than any fixed offset."""
    if not relations.sentences:
        return repr(relations)
    sentences = f"{relations.sentences} sentences{_of(relations)} ({relations.length_text})"
    least = relations.LEAST_WORDS
    tried = []
    for each in relations.heads_of():
        # Groups hold the words of many relations, and counting them too would count these twice.
        if each.count >= least and each.relation not in GROUPS:
            tried.append(each)
    first = (
        f"{titled(relations)}: {len(relations.cells)} heads, {sentences}, {relations.words} words"
    )
    if not tried:
        return f"{first}. No relation has {least} words, which is too few to judge any"
    better = [each for each in tried if each.p_corrected < ALPHA and each.held_out_above > 0]
    return (
        f"{first}. {len(better)} of {len(tried)} relations with {least} words or more have a head "
        "that names the head of a word more often than the best fixed offset does, on documents "
        f"it was not chosen on (p < {ALPHA:g}, {relations.correction})"
    )


def blocks_of(relations: Relations) -> list[TextTable | str]:
    """The tables of relations, what trees give, what the numbers mean, and what was left out."""
    if not relations.sentences:
        return ["\n".join(left_out_lines(relations.left_out, "sentences are"))]
    notes = [
        *_rare(relations),
        *_trees(relations),
        _note(relations),
        *([SUMMED] if relations.summed is not None else []),
        *left_out_lines(relations.left_out, "sentences are"),
    ]
    return [*_tables(relations), "\n".join(notes)]


def titled(relations: Relations) -> str:
    """The model, and the treebank."""
    return f"{relations.model or 'a model'}, {relations.treebank or 'a treebank'}"


def _tables(relations: Relations) -> list[TextTable]:
    """The head that is best on all documents, and the one that was chosen on half of them."""
    level = f"[{relations.confidence:.0%}]"
    best = [("relation", "words", "head", "looks", f"accuracy {level}", "offset", "baseline")]
    held = [
        (
            "relation",
            "head",
            "looks",
            f"accuracy {level}",
            "offset",
            "baseline",
            f"above {level}",
            "splits",
            "p",
        )
    ]
    held[0] += ("random weights",) * (relations.control is not None)
    for each in relations.heads_of():
        if each.count < relations.LEAST_WORDS and each.relation not in GROUPS:
            continue
        accuracy = percent(each.accuracy, (each.low, each.high))
        named = (each.relation, str(each.count), each.place, each.direction)
        best.append((*named, accuracy, f"{each.offset:+d}", percent(each.baseline)))
        cells = [each.relation, each.held_out_place, each.held_out_direction or "-"]
        cells += [percent(each.held_out_accuracy, (each.held_out_low, each.held_out_high))]
        cells += ["-" if each.held_out_offset is None else f"{each.held_out_offset:+d}"]
        cells += [percent(each.held_out_baseline), *above_of(each), p_text(each.p_corrected)]
        if relations.control is not None:
            cells.append(percent(relations.control.best(each.relation).held_out_accuracy))
        held.append(tuple(cells))
    says = SAYS | {f"accuracy {level}": SAYS["accuracy"], f"above {level}": SAYS["above"]}
    return [
        TextTable.of_rows(best, title="Best head on all documents:", says=says),
        TextTable.of_rows(
            held, title="Held out, chosen on one half and measured on the other:", says=says | HELD
        ),
    ]


def _of(relations: Relations) -> str:
    return (
        "" if relations.documents == relations.sentences else f" of {relations.documents} documents"
    )


def _rare(relations: Relations) -> list[str]:
    least = relations.LEAST_WORDS
    rare = []
    for each in relations.heads_of():
        if each.count < least and each.relation not in GROUPS:
            rare.append(each.relation)
    if not rare:
        return []
    named = ", ".join(rare)
    return [f"{len(rare)} relations with fewer than {least} words are not shown: {named}"]


def _trees(relations: Relations) -> list[str]:
    if NO_ROOT not in relations.relations:
        return []
    lines = []
    for score in (score for score in relations.scores if score != "max"):
        best = relations.best(NO_ROOT, score)
        cells = (
            f"{percent(best.held_out_accuracy, (best.held_out_low, best.held_out_high))} held out"
        )
        control = ""
        if relations.control is not None:
            theirs = relations.control.best(NO_ROOT, score)
            control = f", random weights {percent(theirs.held_out_accuracy)}"
        lines.append(
            f"{score}, {NO_ROOT}: {best.place} {best.direction} {percent(best.accuracy)}; "
            f"{best.held_out_place} {cells}, offset {percent(best.held_out_baseline)}{control}"
        )
    return lines


def _note(relations: Relations) -> str:
    return (
        "Held out: head and offset are chosen on one half of the documents and measured on the "
        f"other, both ways; mean over {relations.splits} splits. Intervals do not hold the spread "
        f"over splits. p: {relations.correction} over relations."
    )
