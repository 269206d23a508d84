"""Comparisons and effects kept as files, with the two records that they show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from headscope.comparison._compare import Comparison, grid_of
from headscope.comparison._grid import Cell, Grid, MatchedHeads, cells_of
from headscope.comparison.effect import SAYS, Effect, OutputChange
from headscope.comparison.stack import StackComparison
from headscope.record import Record
from headscope.results import Kept
from headscope.storage import array_of, arrays_below, record_of, record_parts

PLAIN = ("name", "spread_of", "candidates", "confidence")
"""Fields of a stack that JSON can hold as they are."""


def kept_of(comparison: Comparison) -> Kept:
    """What a file of it holds: both records, how their tokens are aligned, and how far
    every head is from the one that it is set against.
    """
    document: dict[str, Any] = {"left_out": list(comparison.left_out)}
    arrays: dict[str, np.ndarray] = {}
    for side, record in (("a", comparison.a), ("b", comparison.b)):
        document[side], tensors = record_parts(record)
        arrays |= {f"{side}.{name}": np.asarray(tensor) for name, tensor in tensors.items()}
    document["stacks"] = [_document_of(stack) for stack in comparison.stacks.values()]
    for number, stack in enumerate(comparison.stacks.values()):
        arrays |= {f"stacks.{number}.{name}": array for name, array in _arrays_of(stack).items()}
    return document, arrays


def kept_of_effect(effect: Effect) -> Kept:
    """What a file of it holds: the comparison of the model before and after, and the outputs."""
    document, arrays = kept_of(effect.comparison)
    outputs = []
    for number, output in enumerate(effect.outputs):
        guesses = {"before": output.before, "after": output.after}
        outputs.append({"kind": output.kind, "labels": list(output.labels)} | guesses)
        arrays[f"outputs.{number}"] = output.values
    return document | {"done": list(effect.done), "outputs": outputs}, arrays


def effect_of(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Effect:
    """The effect of what `kept_of_effect` gave."""
    outputs = tuple(
        _output(entry, arrays, f"outputs.{number}")
        for number, entry in enumerate(document["outputs"])
    )
    if not outputs:
        raise ValueError("it has no outputs")
    comparison = comparison_of(document, arrays)
    return Effect(comparison=comparison, outputs=outputs, done=tuple(document["done"]))


def _document_of(stack: StackComparison) -> dict[str, Any]:
    """What is no array of how far the heads of a stack are apart."""
    groups = stack.groups
    # JSON has no numbers of NumPy.
    plain = [int(g) if isinstance(g, int | np.integer) else str(g) for g in groups or ()]
    return {
        **{name: getattr(stack, name) for name in PLAIN},
        "other": stack.grid.b.name,
        "changed": sorted(stack.changed),
        "can_move": None if stack.can_move is None else sorted(stack.can_move),
        "groups": None if groups is None else plain,
        "nulls": len(stack.nulls),
        "texts": len(stack.matched),
    }


def _arrays_of(stack: StackComparison) -> dict[str, np.ndarray]:
    arrays = {"spread": np.asarray(stack.spread, float)}
    arrays |= {f"nulls.{number}": np.asarray(null) for number, null in enumerate(stack.nulls)}
    for number, matched in enumerate(stack.matched):
        # texts differ in length, so that their rows do not fit into one array
        arrays[f"distances.{number}"] = matched.distances
        arrays[f"heads.{number}"] = np.array([matched.cells, matched.partners])
    return arrays


def comparison_of(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Comparison:
    """The comparison of what `kept_of` gave."""
    a, b = (record_of(document[side], arrays_below(arrays, f"{side}.")) for side in ("a", "b"))
    stacks = [
        _stack(entry, arrays_below(arrays, f"stacks.{number}."), a, b)
        for number, entry in enumerate(document["stacks"])
    ]
    if not stacks:
        raise ValueError("it has no stacks")
    left_out = tuple(document["left_out"])
    return Comparison(a=a, b=b, stacks={each.name: each for each in stacks}, left_out=left_out)


def _stack(
    entry: dict[str, Any], arrays: dict[str, np.ndarray], a: Record, b: Record
) -> StackComparison:
    # The tokens are aligned again: that follows from the records.
    grid = grid_of((a, b), (entry["name"], entry["other"]), least=0.0)
    matched = tuple(_matched(arrays, number, grid) for number in range(entry["texts"]))
    if not matched or matched[0].distances.shape[1] != len(grid.rows):
        raise ValueError("its distances are of other rows than its records have")
    heads = (len(matched[0].cells),)
    nulls = [array_of(arrays, f"nulls.{number}", "f", heads) for number in range(entry["nulls"])]
    return StackComparison(
        **{name: entry[name] for name in PLAIN},
        grid=grid,
        matched=matched,
        spread=array_of(arrays, "spread", "f", heads),
        changed=frozenset(_pairs(entry["changed"])),
        groups=None if entry["groups"] is None else tuple(entry["groups"]),
        nulls=tuple(nulls),
        can_move=None if entry["can_move"] is None else frozenset(_pairs(entry["can_move"])),
    )


def _matched(arrays: dict[str, np.ndarray], number: int, grid: Grid) -> MatchedHeads:
    cells = cells_of(grid.a)
    distances = array_of(arrays, f"distances.{number}", "f", (len(cells), None))
    heads = array_of(arrays, f"heads.{number}", "i", (2, len(cells), 2))
    kept, partners = (_pairs(side.tolist()) for side in heads)
    if kept != cells or not set(partners) <= set(cells_of(grid.b)):
        raise ValueError("its heads are not those of its records")
    return MatchedHeads(cells, partners, distances)


def _output(entry: dict[str, Any], arrays: dict[str, np.ndarray], name: str) -> OutputChange:
    if entry["kind"] not in SAYS:
        raise ValueError(f"an output is of the kind {entry['kind']!r}")
    labels = tuple(entry["labels"])
    before, after = (
        tuple(tuple(map(tuple, position)) for position in entry[when])
        for when in ("before", "after")
    )
    values = array_of(arrays, name, "f", (len(labels),))
    return OutputChange(
        kind=entry["kind"], labels=labels, values=values, before=before, after=after
    )


def _pairs(listed: Iterable[Any]) -> tuple[Cell, ...]:
    # JSON and arrays have lists, and heads are looked up and compared as pairs
    return tuple((int(layer), int(head)) for layer, head in listed)
