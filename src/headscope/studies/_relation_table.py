"""Relations as they are printed, and as their plot shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.evidence import p_shown
from headscope.linguistics.dependencies import ALL, NO_PUNCT, NO_ROOT
from headscope.results import aligned
from headscope.studies._range_plot import Mark
from headscope.studies._reading import above_of, percent, said_of
from headscope.studies._relation_head import RelationHead

if TYPE_CHECKING:
    from headscope.studies._relation_result import Relations

GROUPS = (ALL, NO_PUNCT, NO_ROOT)
LEAST = 20
"""How many words a relation has that is printed; tables to export hold them all."""


def printed(found: Relations) -> str:
    """The table of relations, what trees give, what the numbers mean, and what was left out."""
    if not found.sentences:
        return "\n".join([repr(found), *said_of(found.left_out, "sentences are")])
    sentences = f"{found.sentences} sentences{_of(found)} ({found.length_said})"
    title = f"{titled(found)}: {len(found.cells)} heads, {sentences}, {found.words} words"
    lines = [title, *aligned(_table(found)), *_rare(found), *_trees(found), _note(found)]
    return "\n".join([*lines, *said_of(found.left_out, "sentences are")])


def plotted(found: Relations, least: int, score: str) -> tuple[dict[str, tuple[str, dict[str, Mark]]], str]:
    """Rows and caption of `headscope.studies._range_plot.range_plot`."""
    shown = [each for each in found.heads_of(score) if each.count >= least and each.relation in found.named]
    rows = {
        f"{each.relation}  ({each.count})": (f"{each.held_out_place} {each.held_out_direction}", _marks(found, each))
        for each in sorted(shown, key=lambda each: -each.held_out_accuracy)
    }
    return rows, f"{titled(found)}: share of words whose head the best attention head names, held out"


def titled(found: Relations) -> str:
    """The model, and the treebank."""
    return f"{found.model or 'a model'}, {found.treebank or 'a treebank'}"


def _table(found: Relations) -> list[tuple[str, ...]]:
    level = f"[{found.confidence:.0%}]"
    header = ["relation", "words", "head", "looks", f"accuracy {level}", "offset", "baseline"]
    header += ["held out", "looks", f"accuracy {level}", "offset", "baseline", f"above {level}", "splits", "p"]
    rows = [tuple(header + ["random weights"] * (found.control is not None))]
    for each in found.heads_of():
        if each.count < LEAST and each.relation not in GROUPS:
            continue
        cells = [each.relation, str(each.count), each.place, each.direction]
        cells += [percent(each.accuracy, (each.low, each.high)), f"{each.offset:+d}", percent(each.baseline)]
        cells += [each.held_out_place, each.held_out_direction or "-"]
        cells += [percent(each.held_out_accuracy, (each.held_out_low, each.held_out_high))]
        cells += ["-" if each.held_out_offset is None else f"{each.held_out_offset:+d}"]
        cells += [percent(each.held_out_baseline), *above_of(each), p_shown(each.p_corrected)]
        if found.control is not None:
            cells.append(percent(found.control.best(each.relation).held_out_accuracy))
        rows.append(tuple(cells))
    return rows


def _of(found: Relations) -> str:
    return "" if found.documents == found.sentences else f" of {found.documents} documents"


def _rare(found: Relations) -> list[str]:
    rare = [each.relation for each in found.heads_of() if each.count < LEAST and each.relation not in GROUPS]
    return [f"{len(rare)} relations with fewer than {LEAST} words are not shown: {', '.join(rare)}"] if rare else []


def _trees(found: Relations) -> list[str]:
    if NO_ROOT not in found.relations:
        return []
    lines = []
    for score in (score for score in found.scores if score != "max"):
        best = found.best(NO_ROOT, score)
        cells = f"{percent(best.held_out_accuracy, (best.held_out_low, best.held_out_high))} held out"
        control = ""
        if found.control is not None:
            control = f", random weights {percent(found.control.best(NO_ROOT, score).held_out_accuracy)}"
        lines.append(
            f"{score}, {NO_ROOT}: {best.place} {best.direction} {percent(best.accuracy)}; {best.held_out_place} "
            f"{cells}, offset {percent(best.held_out_baseline)}{control}"
        )
    return lines


def _note(found: Relations) -> str:
    return (
        "Accuracy in %: of words whose head the attention head looks at most. Held out: head and offset are chosen "
        f"on one half of the documents and measured on the other, both ways; mean over {found.splits} splits, and the "
        "head chosen most often. Above: points of head less offset; splits: their standard deviation over splits, "
        f"which the interval does not hold. p of being no better, {found.correction} over relations. Heads are "
        "layer-head from 0."
    )


def _marks(relations: Relations, each: RelationHead) -> dict[str, Mark]:
    found = {
        "best head": (each.held_out_accuracy, (each.held_out_low, each.held_out_high)),
        "best offset": (each.held_out_baseline, None),
    }
    if relations.control is not None:
        control = relations.control.best(each.relation, each.score).held_out_accuracy
        found["random weights, best head"] = (control, None)
    return found
