"""Ablations kept as files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from headscope.evidence.correction import CORRECTIONS
from headscope.results import Kept, reads
from headscope.storage import (
    Finite,
    array_of,
    check_document,
    load_kept,
    reading,
)
from headscope.studies.ablation._result import Ablation, Cell
from headscope.studies.ablation._sums import AblationSums

MOST_NUMBERED = 2**14
"""Layers and heads of a file; maps of them are as large as their largest number."""
FIELDS = (
    "task",
    "metric",
    "by",
    "model",
    "shared",
    "confidence",
    "alpha",
    "correction",
    "groups",
    "tokens",
)
DOCUMENT: dict[str, Any] = {
    "task": str,
    "metric": str,
    "by": str,
    "model": str,
    "shared": str,
    "confidence": Finite,
    "alpha": Finite,
    "correction": str,
    "groups": ([(str, None)], None),
    "tokens": (float, None),
    "totals": {str: [float]},
    "random_totals": {str: [float]},
    "estimates": ([[str, int, int, float]], None),
    "cells": [[str, int, int]],
    "is_summed": (bool, None),
}


def kept_of(ablation: Ablation) -> Kept:
    """What a file of it holds: the score of every example, or sums, and those with random
    weights.
    """
    document: dict[str, Any] = {name: getattr(ablation, name) for name in FIELDS}
    document |= {"totals": dict(ablation.totals), "cells": ablation.cells}
    if ablation.estimates is not None:
        document["estimates"] = [[*cell, value] for cell, value in ablation.estimates.items()]
    if ablation.sums is not None:
        document["is_summed"] = True
    arrays = _arrays_of(ablation, "")
    control = ablation.control
    if control is not None:
        document["random_totals"] = dict(control.totals)
        arrays |= _arrays_of(control, "random_")
    return document, arrays


def _arrays_of(ablation: Ablation, before: str) -> dict[str, np.ndarray]:
    """Scores, or sums; ``before`` begins their names."""
    if ablation.sums is not None:
        return ablation.sums.arrays(before)
    return {f"{before}scores": ablation.scores, f"{before}intact": ablation.intact}


@reads(Ablation.KIND)
def load_ablation(path: str | os.PathLike[str]) -> Ablation:
    """A saved ablation.

    Raises:
        FileError: where the file does not exist, is cut, or is none of ours.
    """
    with reading(path, Ablation.KIND):
        return _ablation(*load_kept(path, Ablation.KIND))


def _ablation(words: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Ablation:
    """One of what a file holds, where its parts fit together.

    Raises:
        ValueError: where they do not; and others of `headscope.storage.reading`.
    """
    check_document(words, DOCUMENT)
    cells = tuple((stack, layer, head) for stack, layer, head in words.pop("cells"))
    totals = {name: tuple(values) for name, values in words.pop("totals").items()}
    theirs = {name: tuple(values) for name, values in words.pop("random_totals", {}).items()}
    words["groups"] = None if words.get("groups") is None else tuple(words["groups"])
    words["estimates"] = _estimates(words.get("estimates"), cells)
    _check_cells(cells, [*totals.values(), *theirs.values()])
    _check_options(words)
    is_summed = bool(words.pop("is_summed", None))
    read = _summed if is_summed else _pair
    own, control = read(arrays, "", len(cells), words["groups"]), None
    if any(name.startswith("random_") for name in arrays):
        beside = read(arrays, "random_", len(cells), words["groups"])
        # The screen ranked the heads of the trained model.
        of_control: dict[str, Any] = words | {"estimates": None}
        control = Ablation(cells, totals=theirs, **beside, **of_control)
    return Ablation(cells, totals=totals, **own, **words, control=control)


def _estimates(rows: list[list[Any]] | None, cells: tuple[Cell, ...]) -> dict[Cell, float] | None:
    """The estimates of a screen by stack, layer and head; None where there was none."""
    if rows is None:
        return None
    estimates = {(stack, layer, head): value for stack, layer, head, value in rows}
    if not {cell for cell in cells if cell[2] >= 0} <= set(estimates):
        raise ValueError("it has heads that its screen does not have")
    return estimates


def _check_cells(cells: tuple[tuple[str, int, int], ...], totals: list[tuple[float, ...]]) -> None:
    # A total is one number of the intact model and one without each cell.
    are_whole = all(len(each) == len(cells) + 1 for each in totals)
    if not cells or len(set(cells)) < len(cells) or not are_whole:
        raise ValueError("its heads, or the totals of these, are not of one ablation")
    if any(number >= MOST_NUMBERED for _, *numbers in cells for number in numbers):
        raise ValueError("its layers and heads have numbers that no model has")


def _check_options(words: dict[str, Any]) -> None:
    are_shares = 0 < words["confidence"] < 1 and 0 < words["alpha"] < 1
    if not are_shares or words["correction"] not in CORRECTIONS:
        raise ValueError("its options are none")


def _pair(
    arrays: Mapping[str, np.ndarray], before: str, cells: int, groups: tuple | None
) -> dict[str, Any]:
    """Scores of the changed models and of the intact one; ``before`` begins their names."""
    intact = array_of(arrays, f"{before}intact", "f", (None,))
    scores = array_of(arrays, f"{before}scores", "f", (len(intact), cells))
    if not len(intact) or len(groups or intact) != len(intact):
        raise ValueError(f"it has {len(intact)} examples, and documents of {len(groups or ())}")
    return {"scores": scores, "intact": intact}


def _summed(
    arrays: Mapping[str, np.ndarray], before: str, cells: int, groups: tuple | None
) -> dict[str, Any]:
    """Sums in place of scores; of no single example."""
    if groups is not None:
        raise ValueError("it has sums over examples, and documents of single ones")
    sums = AblationSums.of_arrays(arrays, before, cells)
    return {"scores": np.empty((0, cells)), "intact": np.empty(0), "sums": sums}
