"""Relations as they are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.evidence import p_shown
from headscope.linguistics.dependencies import ALL, NO_PUNCT, NO_ROOT
from headscope.results import TextTable
from headscope.studies.shared._reading import above_of, percent, said_of

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
LEAST = 20
"""How many words a relation has that is printed; tables to export hold them all."""


def summary_of(found: Relations) -> str:
    """How many relations some head follows better than any fixed offset."""
    if not found.sentences:
        return repr(found)
    sentences = f"{found.sentences} sentences{_of(found)} ({found.length_said})"
    tried = [
        each for each in found.heads_of() if each.count >= LEAST and each.relation not in GROUPS
    ]
    first = f"{titled(found)}: {len(found.cells)} heads, {sentences}, {found.words} words"
    if not tried:
        return f"{first}. No relation has {LEAST} words, which is too few to tell of any"
    better = [each for each in tried if each.p_corrected < ALPHA and each.held_out_above > 0]
    return (
        f"{first}. {len(better)} of {len(tried)} relations with {LEAST} words or more have a head "
        "that names the head of a word more often than the best fixed offset does, on documents "
        f"it was not chosen on (p < {ALPHA:g}, {found.correction})"
    )


def blocks_of(found: Relations) -> list[TextTable | str]:
    """The tables of relations, what trees give, what the numbers mean, and what was left out."""
    if not found.sentences:
        return ["\n".join(said_of(found.left_out, "sentences are"))]
    notes = [*_rare(found), *_trees(found), _note(found), *said_of(found.left_out, "sentences are")]
    return [*_tables(found), "\n".join(notes)]


def titled(found: Relations) -> str:
    """The model, and the treebank."""
    return f"{found.model or 'a model'}, {found.treebank or 'a treebank'}"


def _tables(found: Relations) -> list[TextTable]:
    """The head that is best on all documents, and the one that was chosen on half of them."""
    level = f"[{found.confidence:.0%}]"
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
    held[0] += ("random weights",) * (found.control is not None)
    for each in found.heads_of():
        if each.count < LEAST and each.relation not in GROUPS:
            continue
        accuracy = percent(each.accuracy, (each.low, each.high))
        named = (each.relation, str(each.count), each.place, each.direction)
        best.append((*named, accuracy, f"{each.offset:+d}", percent(each.baseline)))
        cells = [each.relation, each.held_out_place, each.held_out_direction or "-"]
        cells += [percent(each.held_out_accuracy, (each.held_out_low, each.held_out_high))]
        cells += ["-" if each.held_out_offset is None else f"{each.held_out_offset:+d}"]
        cells += [percent(each.held_out_baseline), *above_of(each), p_shown(each.p_corrected)]
        if found.control is not None:
            cells.append(percent(found.control.best(each.relation).held_out_accuracy))
        held.append(tuple(cells))
    says = SAYS | {f"accuracy {level}": SAYS["accuracy"], f"above {level}": SAYS["above"]}
    return [
        TextTable.of_rows(best, title="Best head on all documents:", says=says),
        TextTable.of_rows(
            held, title="Held out, chosen on one half and measured on the other:", says=says | HELD
        ),
    ]


def _of(found: Relations) -> str:
    return "" if found.documents == found.sentences else f" of {found.documents} documents"


def _rare(found: Relations) -> list[str]:
    rare = [
        each.relation
        for each in found.heads_of()
        if each.count < LEAST and each.relation not in GROUPS
    ]
    return (
        [f"{len(rare)} relations with fewer than {LEAST} words are not shown: {', '.join(rare)}"]
        if rare
        else []
    )


def _trees(found: Relations) -> list[str]:
    if NO_ROOT not in found.relations:
        return []
    lines = []
    for score in (score for score in found.scores if score != "max"):
        best = found.best(NO_ROOT, score)
        cells = (
            f"{percent(best.held_out_accuracy, (best.held_out_low, best.held_out_high))} held out"
        )
        control = ""
        if found.control is not None:
            control = (
                f", random weights {percent(found.control.best(NO_ROOT, score).held_out_accuracy)}"
            )
        lines.append(
            f"{score}, {NO_ROOT}: {best.place} {best.direction} {percent(best.accuracy)}; "
            f"{best.held_out_place} {cells}, offset {percent(best.held_out_baseline)}{control}"
        )
    return lines


def _note(found: Relations) -> str:
    return (
        "Held out: head and offset are chosen on one half of the documents and measured on the "
        f"other, both ways; mean over {found.splits} splits. Intervals do not hold the spread "
        f"over splits. p: {found.correction} over relations."
    )
