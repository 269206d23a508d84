"""An alignment study as a table, and as it is printed."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.evidence import length_text, p_text
from headscope.results import TextTable
from headscope.studies.shared._head_answers import left_out_lines, percent
from headscope.studies.word_alignment import BY, STATES

if TYPE_CHECKING:
    from headscope.studies.alignment import AlignmentStudy

HELD_OUT = (
    "held_out_aer",
    "held_out_low",
    "held_out_high",
    "held_out_spread",
    "held_out_chosen",
    "p",
    "p_corrected",
)
"""Only in the rows of the layer and of the head that were chosen most often; None in others."""
FIELDS = (
    "state",
    "by",
    "layer",
    "head",
    "aer",
    "low",
    "high",
    "baseline",
    "baseline_low",
    "baseline_high",
    "sentences",
    *HELD_OUT,
)
SAYS = {
    "weight, output": "by attention weight, of the step that writes the target word",
    "norm, output": "by the norm of what is added, of that step",
    "weight, input": "by attention weight, of the step that reads the target word",
    "norm, input": "by the norm of what is added, of that step",
}
"""The legend of the table."""


def columns_of(study: AlignmentStudy) -> dict[str, list[Any]]:
    """See `AlignmentStudy.columns`."""
    columns: dict[str, list[Any]] = {name: [] for name in FIELDS}
    baseline = (study.baseline, *study.baseline_interval)
    for state, by in product(STATES, BY):
        rates, ends = study.error_rates(by, state), study.intervals(by, state)
        best = {(each.layer, each.head): each for each in study.bests(by, state)}
        for number, head in np.ndindex(rates.shape):
            # The last column of the rates is of all heads of the layer together.
            place = (study.layers[number], head if head < study.heads else None)
            held: tuple[float | None, ...] = (None,) * len(HELD_OUT)
            if (top := best.get(place)) is not None:
                held = (top.aer, *top.interval, top.spread, top.chosen, top.p, top.p_corrected)
            numbers = rates[number, head].item(), *ends[number, head].tolist()
            cells = (state, by, *place, *numbers, *baseline, study.sentences, *held)
            for field, cell in zip(columns, cells, strict=True):
                columns[field].append(cell)
    if study.control is not None:
        theirs = study.control.columns()
        columns |= {f"random_{name}": theirs[name] for name in ("aer", "low", "high", *HELD_OUT)}
    return columns


def summary_of(study: AlignmentStudy) -> str:
    """What was counted, and the least error rate of a layer by weight and by norm, and the
    diagonal's.
    """
    parts = []
    for by in BY:
        rates = np.array([study.error_rates(by, state)[:, -1] for state in STATES])
        if not np.isnan(rates).all():
            parts.append(f"{percent(float(np.nanmin(rates)))} by {by}")
    return (
        f"{study.model or 'a model'}: {study.sentences} sentences "
        f"({length_text(study.sums.lengths)} of the source). "
        "The least alignment error rate of a layer is "
        f"{' and '.join(parts) or 'not known'} (in %, chosen on these sentences); the diagonal, "
        f"without any attention, has {percent(study.baseline)}"
    )


def blocks_of(study: AlignmentStudy) -> list[TextTable | str]:
    """The table of layers, the baseline, the best places, and what was left out."""
    left_out = [f"norms of layer {at} are left out: {why}" for at, why in study.refused.items()]
    left_out += left_out_lines(study.left_out, "sentences are")
    if not study.sentences:
        return ["\n".join(left_out)]
    title = (
        f"Alignment error rate in % [{study.confidence:.0%} interval over sentences], all heads "
        "of a layer together:"
    )
    rate = percent(study.baseline, study.baseline_interval)
    lines = [f"the diagonal, without any attention: {rate}", *_chosen(study)]
    blocks: list[TextTable | str] = [_layers(study, title), "\n".join(lines)]
    if study.control is not None:
        title = "the same with random weights:"
        blocks += [_layers(study.control, title), "\n".join(_chosen(study.control))]
    return [*blocks, "\n".join(left_out)]


def _layers(study: AlignmentStudy, title: str) -> TextTable:
    columns = [["layer", *map(str, study.layers)]]
    for state, by in product(STATES, BY):
        rates, ends = study.error_rates(by, state)[:, -1], study.intervals(by, state)[:, -1]
        cells = [percent(*each) for each in zip(rates.tolist(), ends.tolist(), strict=True)]
        columns.append([f"{by}, {state}", *cells])
    return TextTable.of_rows(list(zip(*columns, strict=True)), title=title, says=SAYS)


def _chosen(study: AlignmentStudy) -> list[str]:
    return [
        f"best by {by}, {state}: {best.place} ({best.chosen:.0%} of the choices), "
        f"{percent(best.aer, best.interval)} held out, {100 * best.spread:.1f} over splits, "
        f"p {p_text(best.p_corrected)}"
        for state, by in product(STATES, BY)
        for best in study.bests(by, state)
    ]
