"""Relations as they are printed, and as labels of heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import RecordError
from headscope.evidence import p_text
from headscope.linguistics import DIRECTIONS, OFFSETS
from headscope.linguistics.dependencies import NO_ROOT
from headscope.patterns import AttentionMaps, Pattern, Tally
from headscope.results import TextTable
from headscope.studies.shared._head_answers import above_of, left_out_lines, percent

if TYPE_CHECKING:
    from headscope.studies.relations import RelationHead, Relations

LOOKS = {
    DIRECTIONS[0]: "looks from the dependent to its head",
    DIRECTIONS[1]: "looks from the head to its dependent",
}
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


def blocks_of(relations: Relations) -> list[TextTable | str]:
    lines = left_out_lines(relations.left_out, "sentences are")
    if not relations.sentences:
        return ["\n".join(lines)]
    note = (
        "Held out: head and offset are chosen on one half of the documents and measured on the "
        f"other, both ways; mean over {relations.splits} splits. Intervals and p allow for the "
        "choice; an offset that leaves the sentence is right by chance. p: "
        f"{relations.correction} over relations."
    )
    shown = [each.relation for each in relations.shown()]
    rare = [name for name in relations.relations if name not in shown]
    notes = [note, *lines]
    if NO_ROOT in relations.counts:
        notes = [_tree(relations, score) for score in relations.ways if score != "max"] + notes
    if rare:
        few = f"{len(rare)} relations with fewer than {relations.LEAST_WORDS} words"
        notes.insert(0, f"{few} are not shown: {', '.join(rare)}")
    return [*_tables(relations), "\n".join(notes)]


def _tables(relations: Relations) -> list[TextTable]:
    """The head that is best on all documents, and the one that was chosen on half of them."""
    accuracy, above = (
        f"accuracy [{relations.confidence:.0%}]",
        f"above [{relations.confidence:.0%}]",
    )
    best = [("relation", "words", "head", "looks", accuracy, "offset", "baseline")]
    names = ("relation", "head", "looks", accuracy, "offset", "baseline", above, "splits", "p")
    held = [names + ("random weights",) * (relations.control is not None)]
    for each in relations.shown():
        share = percent(each.accuracy, (each.low, each.high))
        named = (each.relation, str(each.count), each.place, each.direction)
        best.append((*named, share, f"{each.offset:+d}", percent(each.baseline)))
        cells = [each.relation, each.held_out_place, each.held_out_direction or "-"]
        cells += [percent(each.held_out_accuracy, (each.held_out_low, each.held_out_high))]
        cells += ["-" if each.held_out_offset is None else f"{each.held_out_offset:+d}"]
        cells += [percent(each.held_out_baseline), *above_of(each), p_text(each.p_corrected)]
        if relations.control is not None:
            cells.append(percent(relations.control.best(each.relation).held_out_accuracy))
        held.append(tuple(cells))
    says = SAYS | {accuracy: SAYS["accuracy"], above: SAYS["above"]}
    title = "Held out, chosen on one half and measured on the other:"
    return [
        TextTable.of_rows(best, title="Best head on all documents:", says=says),
        TextTable.of_rows(held, title=title, says=says | HELD),
    ]


def _tree(relations: Relations, score: str) -> str:
    """A line about another way of reading heads."""
    best, control = relations.best(NO_ROOT, score), ""
    share = percent(best.held_out_accuracy, (best.held_out_low, best.held_out_high))
    if relations.control is not None:
        theirs = percent(relations.control.best(NO_ROOT, score).held_out_accuracy)
        control = f", random weights {theirs}"
    return (
        f"{score}, {NO_ROOT}: {best.place} {best.direction} {percent(best.accuracy)}; "
        f"{best.held_out_place} {share} held out, offset {percent(best.held_out_baseline)}"
        f"{control}"
    )


def tally_of(
    relations: Relations, shown: list[RelationHead], threshold: float, levels: Mapping[str, float]
) -> Tally:
    """The share of the words of each relation in each document, as a tally of patterns."""
    source = "Clark et al. 2019, section 4.2; mean over documents of the share of words"
    patterns = tuple(
        Pattern(
            name=each.relation,
            says=LOOKS[each.direction],
            source=source,
            threshold=threshold,
            score=_counted,
        )
        for each in shown
    )
    sums, tally = relations.sums, Tally(patterns, stack=relations.how["stack"], levels=levels)
    values = np.full((len(sums.rows), len(tally.rows), len(relations.cells)), np.nan)
    for each in shown:
        wholes = sums[f"asked/{each.relation}"][:, None]
        hits = sums[f"hits/max/{each.relation}"].reshape(len(wholes), len(DIRECTIONS), -1)
        offset = sums[f"rules/max/{each.relation}"][:, OFFSETS.index(each.offset), None]
        right = {"": hits[:, DIRECTIONS.index(each.direction)], ":position": offset}
        for row, parts in right.items():
            nothing = np.full(parts.shape, np.nan)
            shares = np.divide(parts, wholes, out=nothing, where=wholes > 0)
            values[:, tally.rows.index(f"{each.relation}{row}")] = shares
    facts = {"heads": [list(cell) for cell in relations.cells], "model": relations.model}
    for name, of in zip(sums.rows, values, strict=True):
        tally.add(name, of, facts)
    return tally


# A pattern must say how it is scored; these come with their scores, and no text can add to them.
def _counted(maps: AttentionMaps) -> np.ndarray:
    raise RecordError("A relation needs a treebank; it cannot be scored on a text without its tree")
