"""Files of mechanisms and their tallies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headscope.errors import RecordError
from headscope.evidence import Statistic, StatisticSums
from headscope.patterns._groups import Group, Groups
from headscope.patterns._mechanism import Mechanism
from headscope.patterns._mechanism_tally import (
    POSITIONS,
    MechanismTally,
    parse_pattern,
    row_names,
    steady_names,
)
from headscope.patterns._pattern import Pattern
from headscope.patterns._units import Units
from headscope.results import Kept, reads
from headscope.storage import (
    PAIR,
    Finite,
    array_of,
    arrays_below,
    check_document,
    load_kept,
    reading,
    save_kept,
)

KIND = "mechanism tally"
CONTROL = "random."
"""Prefix of the arrays of the same architecture with random weights."""
SUMS, LENGTHS = "sums.", "sums of lengths"
"""Prefix of the arrays of a tally of sums, and how many texts have each length."""
GROUP_NUMBERS = ("neurons", "neurons_low", "neurons_high", "fixed", "fixed_low", "fixed_high")
DOCUMENT: dict[str, Any] = {
    "at": ([PAIR], None),
    "pattern": (str, None),
    "stack": (str, None),
    "share": Finite,
    "model": str,
    "cells": [PAIR],
    "units": [[int, [[int]], [(Finite, None)]]],
    "names": [str],
    "texts": [str],
}


def save(tally: MechanismTally, path: Path) -> Path:
    """Write a tally to a file; see `MechanismTally.save`."""
    return save_kept(path, KIND, *kept_of_tally(tally))


def kept_of(mechanism: Mechanism) -> Kept:
    """The fields and arrays of a file: the tally, and the one with random weights."""
    document, arrays = kept_of_tally(mechanism.tally)
    document |= {"confidence": mechanism.confidence, "control": None}
    if mechanism.control is not None:
        document["control"], theirs = kept_of_tally(mechanism.control.tally)
        arrays |= {f"{CONTROL}{name}": array for name, array in theirs.items()}
    return document, arrays


def kept_of_tally(tally: MechanismTally) -> Kept:
    """What a file of a tally holds."""
    document = {
        "at": tally.at,
        "pattern": tally.pattern and tally.pattern.name,
        "stack": tally.stack,
        "share": tally.share,
        "model": tally.model,
        "cells": tally.cells,
        "units": [[layer, each.members, each.frequencies] for layer, each in tally.units.items()],
        "names": tally.statistic.names,
        "texts": tally.statistic.texts,
    }
    arrays = {"carried": tally._carried, "seen": tally._seen}
    statistic = tally.statistic
    if isinstance(statistic, StatisticSums):
        known, sums = statistic.kept
        arrays |= {f"{SUMS}{name}": array for name, array in sums.items()}
        return document | {LENGTHS: known["lengths"]}, arrays
    lengths = [None if np.isnan(length) else int(length) for length in statistic.lengths]
    return document | {"groups": statistic.groups, "lengths": lengths}, arrays | {
        "values": statistic.values
    }


@reads(Mechanism.KIND)
def load_mechanism(path: str | os.PathLike[str], *, pattern: Pattern | None = None) -> Mechanism:
    """Read a mechanism that `Mechanism.save` wrote.

    Args:
        path: path of the file.
        pattern: the pattern that it was made with, where that was a `Pattern` of your own: a file
            holds only its name.

    Raises:
        FileError: where the file does not exist, is cut, or was not written by headscope.
        RecordError: where it was made with a pattern that has to be given, or with another one.
    """
    document, arrays = load_kept(path, Mechanism.KIND)
    with reading(path, Mechanism.KIND):
        check_document(document, {"confidence": Finite})
        confidence, control = document["confidence"], None
        if not 0 < confidence < 1:
            raise ValueError(f"its confidence is {confidence}")
        if document["control"] is not None:
            theirs = {
                name.removeprefix(CONTROL): array
                for name, array in arrays.items()
                if name.startswith(CONTROL)
            }
            control = Mechanism(tally_of(path, document["control"], theirs, pattern), confidence)
    return Mechanism(tally_of(path, document, arrays, pattern), confidence, control)


@reads(KIND)
def mechanism_of_tally(path: str | os.PathLike[str]) -> Mechanism:
    """The mechanism of a saved tally; see `load_mechanism_tally`."""
    return Mechanism(load_mechanism_tally(path))


def load_mechanism_tally(
    path: str | os.PathLike[str], *, pattern: Pattern | None = None
) -> MechanismTally:
    """Read a saved tally, to resume it or to add it to others.

    Args:
        path: path of the file.
        pattern: the pattern that it was made with, where that was a `Pattern` of your own: a file
            holds only its name.

    Raises:
        FileError: where the file does not exist, is cut, or was not written by headscope.
        RecordError: where it was made with a pattern that has to be given, or with another one.
    """
    return tally_of(path, *load_kept(path, KIND), pattern)


def tally_of(
    path: str | os.PathLike[str],
    document: dict[str, Any],
    arrays: dict[str, np.ndarray],
    pattern: Pattern | None,
) -> MechanismTally:
    """The tally of what `kept_of_tally` gave; see `load_mechanism_tally`.

    Raises:
        FileError: where it is none.
        RecordError: where it was made with a pattern that has to be given, or with another one.
    """
    with reading(path, KIND):
        _check(document, arrays)
    name = document["pattern"]
    if pattern is not None and pattern.name != name:
        raise RecordError(
            f"{path} was made with the pattern {name!r}, and given is {pattern.name!r}"
        )
    try:
        wanted = parse_pattern(name if pattern is None else pattern)
    except RecordError:
        raise RecordError(
            f"{path} was made with a pattern of one's own, {name!r}; give it as pattern="
        ) from None
    at = document["at"] and [(layer, head) for layer, head in document["at"]]
    with reading(path, KIND):
        return _made(
            document,
            arrays,
            MechanismTally(at, pattern=wanted, stack=document["stack"], share=document["share"]),
        )


def _made(
    document: dict[str, Any], arrays: dict[str, np.ndarray], tally: MechanismTally
) -> MechanismTally:
    tally.model, tally.cells = (
        document["model"],
        [(layer, head) for layer, head in document["cells"]],
    )
    tally.units = {
        layer: Units(
            tuple(map(tuple, members)),
            tuple(None if each is None else float(each) for each in frequencies),
        )
        for layer, members, frequencies in document["units"]
    }
    tally._carried, tally._seen = arrays["carried"], arrays["seen"]
    if LENGTHS in document:
        known = {"names": document["names"], "lengths": document[LENGTHS]}
        tally.statistic = StatisticSums.of_kept(known, arrays_below(arrays, SUMS))
        return tally
    statistic = Statistic(arrays["values"].shape[1:], tuple(document["names"]))
    groups = document["groups"] or [None] * len(document["texts"])
    facts = (document["texts"], arrays["values"], document["lengths"], groups)
    for text, values, length, group in zip(*facts, strict=True):
        statistic.update(text, values, length=length, group=group)
    tally.statistic = statistic
    return tally


def _check(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Raise where the shapes of the arrays do not fit heads, units and texts."""
    check_document(document, DOCUMENT)
    missing = DOCUMENT.keys() - document.keys()
    if missing:
        raise ValueError(f"it does not say its {', '.join(sorted(missing))}")
    cells = [tuple(cell) for cell in document["cells"]]
    units = {layer: members for layer, members, _ in document["units"]}
    width = max((len(members) for members in units.values()), default=0)
    is_summed = LENGTHS in document
    names = list(row_names(width)) if cells else []
    names += steady_names(width) if is_summed else []
    names += [f"head {layer}-{head}" for layer, head in cells]
    of_one_tally = document["names"] == names and {layer for layer, _ in cells} == set(units)
    if not of_one_tally or not 0 < document["share"] <= 1:
        raise ValueError("its rows, heads and units are not of one tally")
    _check_units(document["units"])
    rows = len(names) - len(cells)
    if is_summed:
        check_document(document, {LENGTHS: [[int, int]]})
        array_of(arrays, f"{SUMS}count", "i", (len(cells), rows))
    else:
        array_of(arrays, "values", "f", (len(document["texts"]), len(cells), rows))
    array_of(arrays, "carried", "i", (2, len(cells), POSITIONS, width))
    array_of(arrays, "seen", "i", (len(cells), POSITIONS))


def _check_units(units: Sequence[Any]) -> None:
    """Raise where a unit is neither one neuron nor the two that a rotation turns together."""
    for _, members, frequencies in units:
        one_or_two = all(1 <= len(member) <= 2 for member in members)
        if len(members) != len(frequencies) or not one_or_two:
            raise ValueError("its units are none")


def kept_of_groups(groups: Groups) -> Kept:
    """The fields and arrays of a file of groups."""
    document = {
        "confidence": groups.confidence,
        "labels": [group.label for group in groups.all],
        "heads": [group.heads for group in groups.all],
    }
    rows = [[getattr(group, name) for name in GROUP_NUMBERS] for group in groups.all]
    return document, {"numbers": np.array(rows, np.float64).reshape(-1, len(GROUP_NUMBERS))}


@reads(Groups.KIND)
def load_groups(path: str | os.PathLike[str]) -> Groups:
    """Read groups that `Groups.save` wrote.

    Raises:
        FileError: where the file does not exist, is cut, or was not written by headscope.
    """
    document, arrays = load_kept(path, Groups.KIND)
    with reading(path, Groups.KIND):
        check_document(document, {"confidence": Finite, "labels": [str], "heads": [int]})
        size = len(document["labels"]), len(GROUP_NUMBERS)
        numbers = array_of(arrays, "numbers", "f", size).tolist()
        groups = []
        for label, heads, row in zip(document["labels"], document["heads"], numbers, strict=True):
            named = dict(zip(GROUP_NUMBERS, row, strict=True))
            groups.append(Group(label=label, heads=heads, **named))
        return Groups(tuple(groups), document["confidence"])
