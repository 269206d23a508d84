"""An alignment study as a table, and as it is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.evidence import length_text
from headscope.results import TextTable
from headscope.studies.alignment._best_layer_or_head import BestLayerOrHead
from headscope.studies.alignment._word_alignment import BY, STATES
from headscope.studies.shared._printing import left_out_lines, percent

if TYPE_CHECKING:
    from headscope.studies.alignment._result import AlignmentStudy

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
)
HELD_OUT = (
    "held_out_aer",
    "held_out_low",
    "held_out_high",
    "held_out_spread",
    "held_out_chosen",
)
"""Only in the rows of the layer and of the head that were chosen most often; None in others."""
SAYS = {
    "weight, output": "by attention weight, of the step that writes the target word",
    "norm, output": "by the norm of what is added, of that step",
    "weight, input": "by attention weight, of the step that reads the target word",
    "norm, input": "by the norm of what is added, of that step",
}
"""The legend of the table."""
LEAST = 4
"""Sentences that make two halves, to choose on and to measure on."""


def columns_of(study: AlignmentStudy) -> dict[str, list[Any]]:
    """See `AlignmentStudy.columns`."""
    columns: dict[str, list[Any]] = {name: [] for name in (*FIELDS, *HELD_OUT)}
    ends_of_baseline = study.baseline_interval
    for state in STATES:
        for by in BY:
            rates, ends = study.error_rates(by, state), study.intervals(by, state)
            best = {(each.layer, each.head): each for each in _chosen_of(study, by, state)}
            for number, head in np.ndindex(rates.shape):
                # The last column of the rates is of all heads of the layer together.
                layer_and_head = (study.layers[number], head if head < study.heads else None)
                cells = (
                    state,
                    by,
                    *layer_and_head,
                    rates[number, head],
                    *ends[number, head],
                    study.baseline,
                    *ends_of_baseline,
                    study.sentences,
                    *_held_out(best.get(layer_and_head)),
                )
                for field, cell in zip(columns, cells, strict=True):
                    columns[field].append(_own(cell))
    if study.control is not None:
        theirs = columns_of(study.control)
        columns |= {f"random_{name}": theirs[name] for name in ("aer", "low", "high", *HELD_OUT)}
    return columns


def _own(cell: Any) -> Any:
    """A cell as a number of Python's own, which json can write and NumPy's it cannot."""
    return cell.item() if isinstance(cell, np.generic) else cell


def _held_out(best: BestLayerOrHead | None) -> tuple[float | None, ...]:
    """What is held out of a layer or head; None where another was chosen more often."""
    if best is None:
        return (None,) * len(HELD_OUT)
    return (best.aer, *best.interval, best.spread, best.chosen)


def _chosen_of(study: AlignmentStudy, by: str, state: str) -> list[BestLayerOrHead]:
    """The best layer and the best head, each held out, where there are enough sentences to tell."""
    if study.sentences < LEAST:
        return []
    if study.sums is not None:
        kinds = [(by, state, of_heads) for of_heads in (False, True)]
        return [study.sums.best[key] for key in kinds if key in study.sums.best]
    counted = study.error_rates(by, state)
    chosen = []
    for of_heads, part in ((False, counted[:, -1:]), (True, counted[:, :-1])):
        if not np.isnan(part).all():
            chosen.append(study.best(by, state, of_heads=of_heads))
    return chosen


def summary_of(study: AlignmentStudy) -> str:
    """What was counted, and the least error rate of a layer by weight and by norm, and the
    diagonal's.
    """
    if not study.sentences:
        return repr(study)
    lengths = study.lengths.values() if study.sums is None else study.sums.lengths
    length = f"{length_text(lengths)} of the source"
    baseline = percent(study.baseline)
    subject = f"{study.model or 'a model'}: {study.sentences} sentences ({length}). "
    parts = []
    for by in BY:
        rates = np.concatenate([study.error_rates(by, state)[:, -1] for state in STATES])
        known = rates[~np.isnan(rates)]
        if len(known):
            parts.append(f"{percent(float(known.min()))} by {by}")
    return (
        f"{subject}The least alignment error rate of a layer is "
        f"{' and '.join(parts) or 'not known'} (in %, chosen on these sentences); "
        f"the diagonal, without any attention, has {baseline}"
    )


def blocks_of(study: AlignmentStudy) -> list[TextTable | str]:
    """The table of layers, the baseline, the best places, and what was left out."""
    if not study.sentences:
        return ["\n".join(_left_out(study))]
    title = (
        f"Alignment error rate in % [{study.confidence:.0%} interval over sentences], all heads "
        "of a layer together:"
    )
    baseline = (
        f"the diagonal, without any attention: {percent(study.baseline, study.baseline_interval)}"
    )
    blocks: list[TextTable | str] = [_layers(study, title), "\n".join([baseline, *_chosen(study)])]
    if study.control is not None:
        blocks += [
            _layers(study.control, "the same with random weights:"),
            "\n".join(_chosen(study.control)),
        ]
    return [*blocks, "\n".join(_left_out(study))]


def _layers(study: AlignmentStudy, title: str) -> TextTable:
    shown = [(state, by) for state in STATES for by in BY]
    tables = [
        (study.error_rates(by, state)[:, -1], study.intervals(by, state)[:, -1])
        for state, by in shown
    ]
    rows = [("layer", *(f"{by}, {state}" for state, by in shown))]
    for number, layer in enumerate(study.layers):
        rows.append((str(layer), *(_cell(rates[number], ends[number]) for rates, ends in tables)))
    return TextTable.of_rows(rows, title=title, says=SAYS)


def _chosen(study: AlignmentStudy) -> list[str]:
    lines = []
    for state, by in ((state, by) for state in STATES for by in BY):
        for best in _chosen_of(study, by, state):
            rate = percent(best.aer, best.interval)
            lines.append(
                f"best by {by}, {state}: {best.place} ({best.chosen:.0%} of the choices), {rate} "
                f"held out, {100 * best.spread:.1f} over splits"
            )
    return lines


def _left_out(study: AlignmentStudy) -> list[str]:
    layers = [
        f"norms of layer {layer} are left out: {reason}" for layer, reason in study.refused.items()
    ]
    return [*layers, *left_out_lines(study.left_out, "sentences are")]


def _cell(rate: float, ends: Any) -> str:
    return percent(float(rate), [float(end) for end in ends])
