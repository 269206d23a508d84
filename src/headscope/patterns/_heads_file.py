"""Files of `Heads`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from headscope.errors import FileError
from headscope.evidence import MapSum, Statistic, load_statistic
from headscope.evidence.correction import CORRECTIONS
from headscope.patterns._heads import Heads
from headscope.patterns._pattern import PATTERNS, MissingFunction, Pattern
from headscope.patterns._tally import TOKENS, Tally, load_tally, rows_and_heads
from headscope.patterns._tally_sums import TallySums
from headscope.results import Kept, reads
from headscope.storage import (
    PAIR,
    STATISTIC,
    Finite,
    array_of,
    arrays_below,
    check_document,
    load_kept,
    reading,
)

OPTIONS = ("confidence", "alpha", "correction", "margin")
FACTS = ("name", "says", "source", "threshold", "by_place", "by_word")
"""Fields of a pattern that a file holds; it cannot hold the functions that score it."""
DISTANCES = "distances."
PATTERN: dict[str, Any] = {
    "name": str,
    "says": str,
    "source": str,
    "threshold": Finite,
    "by_place": bool,
    "by_word": bool,
}
DOCUMENT: dict[str, Any] = {
    "options": {"confidence": Finite, "alpha": Finite, "correction": str, "margin": Finite},
    "levels": ({str: Finite}, None),
    "model": str,
    "stack": (str, None),
    "cells": [PAIR],
    "rows": [str],
    "patterns": [PATTERN],
    "texts": [str],
    "groups": ([(str, None)], None),
    "battery": ([str], None),
    "sums": bool,
}
SUMS = "sums."
"""Prefix of the arrays of a run, which has no values of single texts."""


def kept_of(heads: Heads) -> Kept:
    """The fields and arrays of a file: the counted values, and the options of the labels."""
    tally = heads.tally
    options = {name: getattr(heads, name) for name in OPTIONS}
    patterns = []
    for pattern in tally.patterns:
        patterns.append({name: getattr(pattern, name) for name in FACTS})
    document: dict[str, Any] = {
        "options": options,
        "levels": None if heads.levels is None else dict(heads.levels),
        "model": tally.model,
        "stack": tally.stack,
        "cells": tally.cells,
        "rows": tally.rows,
        "patterns": patterns,
        "texts": tally.statistic.texts,
        "groups": tally.statistic.groups,
        "battery": None,
        "sums": isinstance(tally, TallySums),
    }
    if isinstance(tally, TallySums):
        arrays = {f"{SUMS}{name}": array for name, array in tally.arrays.items()}
    else:
        arrays = {"values": tally.statistic.values}
    if heads.has_distances and tally.distances is not None:
        arrays |= {f"{DISTANCES}{name}": array for name, array in tally.distances.arrays.items()}
    if tally.battery is not None:
        document["battery"] = [pattern.name for pattern in tally.battery.patterns]
        arrays["battery"] = tally.battery.statistic.values
    return document, arrays


@reads(Heads.KIND)
def load_heads(path: str | os.PathLike[str]) -> Heads:
    """Read heads that `Heads.save` wrote.

    Patterns of your own come back without their functions: their results are complete, but more
    texts cannot be counted.

    Raises:
        FileError: where the file does not exist, is cut, or was not written by headscope.
    """
    document, arrays = load_kept(path, Heads.KIND)
    with reading(path, Heads.KIND):
        return heads_of_kept(document, arrays)


@reads(STATISTIC)
def heads_of_tally(path: str | os.PathLike[str]) -> Heads:
    """The heads of a tally that `Tally.save` wrote: a statistic of its rows.

    Raises:
        FileError: where the file does not exist, is cut, or holds a statistic of something else.
        RecordError: where it is a tally of patterns of one's own.
    """
    if TOKENS not in load_statistic(path).names:
        raise FileError(
            f"{path} holds a statistic of your own; headscope.evidence.load_statistic reads it"
        )
    return Heads(load_tally(path))


def heads_of_kept(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Heads:
    """Heads from the fields and arrays of `kept_of`. To be called inside `reading`.

    Raises:
        TypeError: where something has a wrong type.
        ValueError: where the numbers do not belong to its heads and patterns.
    """
    check_document(document, DOCUMENT)
    options = document["options"]
    if not 0 < options["confidence"] < 1 or options["correction"] not in CORRECTIONS:
        raise ValueError(f"its options are {options}")
    tally = _tally_sums(document, arrays) if document.get("sums") else _tally(document, arrays)
    return Heads(tally, levels=document["levels"], **{name: options[name] for name in OPTIONS})


def _tally(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Tally:
    patterns = tuple(_pattern(facts) for facts in document["patterns"])
    tally = Tally(patterns, stack=document["stack"])
    tally.model = document["model"]
    # JSON has lists, but heads are looked up as tuples.
    tally.cells = [(layer, head) for layer, head in document["cells"]]
    texts = document["texts"]
    tally.shown = {text: text for text in texts}
    shape = len(texts), len(document["rows"]), len(tally.cells)
    if tuple(document["rows"]) != tally.rows:
        raise ValueError("its rows are not those of its patterns")
    tally.statistic = _statistic(tally, array_of(arrays, "values", "f", shape), document)
    if document["battery"] is not None:
        tally.battery = _battery(tally, document, arrays)
    tally.distances = _distances(tally, arrays, tally.statistic.texts)
    tally.adds_distances = tally.distances is not None
    return tally


def _distances(
    tally: Tally | TallySums, arrays: dict[str, np.ndarray], texts: Iterable[str]
) -> MapSum | None:
    """The distances of heads; None where they were not added up."""
    kept = arrays_below(arrays, DISTANCES)
    if not kept:
        return None
    distances = MapSum.of_arrays(kept, texts)
    shape, heads = distances.mean.shape, len(tally.cells)
    if shape != (1, heads, heads):
        raise ValueError(f"it has distances {list(shape)} of {heads} heads")
    return distances


def _tally_sums(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> TallySums:
    """The sums of a run."""
    patterns = tuple(_pattern(facts) for facts in document["patterns"])
    cells = [(layer, head) for layer, head in document["cells"]]
    tally = TallySums(patterns, cells, stack=document["stack"], levels=document["levels"])
    if list(tally.rows) != document["rows"]:
        raise ValueError("its rows are not those of its patterns; it was made by another headscope")
    tally.model = document["model"]
    sums = {name: array for name, array in arrays.items() if name.startswith(SUMS)}
    tally.fill({name.removeprefix(SUMS): array for name, array in sums.items()})
    # Single texts have no names in a run.
    tally.distances = _distances(tally, arrays, ())
    if document["battery"] is not None:
        tally.battery = _battery(tally, document, arrays)
    return tally


def _statistic(tally: Tally, values: np.ndarray, document: dict[str, Any]) -> Statistic:
    statistic = Statistic(_size(tally), rows_and_heads(tally.rows, tally.cells))
    groups = document["groups"] or [None] * len(values)
    for text, row, group in zip(document["texts"], values, groups, strict=True):
        statistic.update(text, row, group=group)
    return statistic


def _battery(
    tally: Tally | TallySums, document: dict[str, Any], arrays: dict[str, np.ndarray]
) -> Tally:
    """The runs of repeated tokens, numbered."""
    names = document["battery"]
    battery = Tally(tuple(pattern for pattern in tally.patterns if pattern.name in names))
    shape = (None, len(battery.rows), len(tally.cells))
    values = array_of(arrays, "battery", "f", shape)
    return Tally.of_values(battery.patterns, tally.cells, values)


def _size(tally: Tally) -> tuple[int, int]:
    return len(tally.rows), len(tally.cells)


def _pattern(facts: dict[str, Any]) -> Pattern:
    """The built-in pattern of this name and threshold; else one whose function is missing."""
    for pattern in PATTERNS:
        if pattern.name == facts["name"] and pattern.threshold == facts["threshold"]:
            return pattern
    return Pattern(**{name: facts[name] for name in FACTS}, score=MissingFunction(facts["name"]))
