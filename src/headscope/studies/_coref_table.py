"""Coreference as it is printed, and as its plot shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.evidence import p_shown
from headscope.results import aligned
from headscope.studies._antecedent_head import AntecedentHead
from headscope.studies._coref_tally import CANDIDATES
from headscope.studies._range_plot import Mark
from headscope.studies._reading import above_of, percent, said_of

if TYPE_CHECKING:
    from headscope.studies._coref_result import Coreference


def printed(found: Coreference) -> str:
    """The tables for both candidate sets, what their numbers mean, and what was left out."""
    if not found.passages:
        return "\n".join([repr(found), *said_of(found.left_out, "passages are")])
    asked = found.questions
    passages = f"{found.passages} passages ({found.length_said})"
    title = f"{titled(found)}: {len(found.cells)} heads, {passages}, {asked} questions"
    tables = [line for candidates in CANDIDATES for line in _table(found, candidates)]
    note = (
        "Accuracy in %: of mentions whose head word looks most at the right one. Held out: the head is chosen on "
        f"one half of the documents and measured on the other, both ways; mean over {found.splits} splits, and the "
        "head chosen most often. Above: points of head less nearest mention; splits: their standard deviation over "
        f"splits, which the interval does not hold. p of being no better, {found.correction} over kinds. Heads are "
        "layer-head from 0."
    )
    return "\n".join([title, *tables, note, *said_of(found.left_out, "passages are")])


def plotted(found: Coreference, candidates: str) -> tuple[dict[str, tuple[str, dict[str, Mark]]], str]:
    """Rows and caption of `headscope.studies._range_plot.range_plot`."""
    rows = {
        f"{each.kind}  ({each.count})": (each.held_out_place, _marks(found, each))
        for each in found.heads_of(candidates)
    }
    return rows, f"{titled(found)}: share of mentions whose antecedent the best attention head finds, held out"


def titled(found: Coreference) -> str:
    """The model, and what it read."""
    return f"{found.model or 'a model'}, {found.data or 'texts'}"


def _table(found: Coreference, candidates: str) -> list[str]:
    level = f"[{found.confidence:.0%}]"
    header = ["mention", "count", "head", f"accuracy {level}", "nearest", "head match", "sieves"]
    header += ["held out", f"accuracy {level}", "nearest", f"above {level}", "splits", "p"]
    rows = [tuple(header + ["random weights"] * (found.control is not None))]
    for each in found.heads_of(candidates):
        cells = [each.kind, str(each.count), each.place, percent(each.accuracy, (each.low, each.high))]
        cells += [percent(value) for value in (each.nearest, each.head_match, each.sieves)]
        cells += [each.held_out_place, percent(each.held_out_accuracy, (each.held_out_low, each.held_out_high))]
        cells += [percent(each.held_out_nearest), *above_of(each), p_shown(each.p_corrected)]
        if found.control is not None:
            cells.append(percent(found.control.best(each.kind, candidates).held_out_accuracy))
        rows.append(tuple(cells))
    among = "the heads of the candidate mentions" if candidates == "mentions" else "all other words"
    return [f"among {among}:", *aligned(rows)]


def _marks(coreference: Coreference, each: AntecedentHead) -> dict[str, Mark]:
    found: dict[str, Mark] = {
        "best head": (each.held_out_accuracy, (each.held_out_low, each.held_out_high)),
        "nearest mention": (each.held_out_nearest, None),
    }
    if coreference.control is not None:
        control = coreference.control.best(each.kind, each.candidates).held_out_accuracy
        found["random weights"] = (control, None)
    return found | {"head match, all": (each.head_match, None), "sieves, all": (each.sieves, None)}
