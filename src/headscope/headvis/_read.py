"""A tree of HeadVis, read from disk: of whoever wrote it.

What is required, and what may be missing, follows from what the readers of HeadVis do, since the
format has no schema: its front end of 2026, and the importers of Neuronpedia.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from headscope.errors import FileError
from headscope.headvis._head_files import PATTERN
from headscope.headvis._tree import (
    HeadvisHead,
    HeadvisPlot,
    HeadvisSequence,
    HeadvisTable,
    HeadvisTree,
)

CONFIG, SCATTER = "config.json", "scatter_data.json"
MOST_TOKENS = 46_340
"""Of a text: more have no 32-bit number for each pair, which is the limit of Neuronpedia."""
OTHER_NAMES = {"previous_token_score": "prev_token_score"}
"""Metrics that the original calls otherwise."""


@dataclass(frozen=True)
class JsonFile:
    """A file of a tree, whose name stands in every error.

    Args:
        path: of the file.
    """

    path: Path

    def read(self) -> Any:
        """What it holds.

        Raises:
            FileError: where it cannot be read, or holds no JSON.
        """
        try:
            return json.loads(self.path.read_text(encoding="utf-8"))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise FileError(f"Cannot read {self.path}: {reason}; copy the whole tree") from None
        except (ValueError, RecursionError) as error:
            raise self.wrong(f"it holds no JSON ({error})") from None

    def wrong(self, why: str) -> FileError:
        """The error to raise."""
        return FileError(f"{self.path} is no file of a HeadVis tree: {why}; write the tree again")


def is_headvis(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder looks like a tree of HeadVis: it has its two first files."""
    return all((Path(folder) / name).is_file() for name in (CONFIG, SCATTER))


def read_headvis(folder: str | os.PathLike[str]) -> HeadvisTree:
    """Read a tree of HeadVis, whoever wrote it; heads are read when they are asked for.

    Trees of its own pipeline, of Neuronpedia and of `write_headvis` are taken: stubs may be
    missing, layers may have gaps, entries of a row may be unsorted or there twice (the later one
    counts).

    Raises:
        FileError: where it is no tree, naming the file that does not hold what it should.

    Example:
        >>> tree = read_headvis("tree")
        >>> tree.head(0, 3).sequences[0].kept
    """
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        raise FileError(f"{folder} is no HeadVis tree: it has no {CONFIG}; give the folder with it")
    file, scatter = JsonFile(folder / CONFIG), JsonFile(folder / SCATTER)
    config = file.read()
    if not isinstance(config, dict):
        raise file.wrong("it must hold an object")
    rows = _scatter_rows(scatter)
    cells = _cells_of(file, config) or list(rows)
    if not cells:
        raise file.wrong('it lists no "heads"')
    inner = config.get("pipeline_config")
    return HeadvisTree(
        config=config,
        cells=tuple(cells),
        metrics=_metrics(cells, rows),
        provenance=config | (inner if isinstance(inner, dict) else {}),
        read_head=partial(_head, folder / "heads" / _name_pattern(file, config), config),
    )


def _scatter_rows(file: JsonFile) -> dict[tuple[int, int], dict[str, Any]]:
    """The metrics of each head as they are written."""
    rows = file.read()
    if not isinstance(rows, list):
        raise file.wrong("it must hold a list")
    by_cell = {}
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or not _is_count(row.get("layer"), row.get("head")):
            raise file.wrong(f'row {number} must have a "layer" and a "head"')
        by_cell[row["layer"], row["head"]] = row
    return by_cell


def _cells_of(file: JsonFile, config: Mapping[str, Any]) -> list[tuple[int, int]]:
    given = config.get("heads") or []
    if not isinstance(given, list):
        raise file.wrong('"heads" must be a list')
    cells = []
    for each in given:
        if not isinstance(each, list) or len(each) != 2 or not _is_count(*each):
            raise file.wrong(f'"heads" must be pairs of layer and head, and one is {each!r:.60}')
        cells.append((each[0], each[1]))
    if len(set(cells)) < len(cells):
        raise file.wrong('"heads" lists one head twice')
    return cells


def _metrics(
    cells: list[tuple[int, int]], rows: Mapping[tuple[int, int], Mapping[str, Any]]
) -> dict[str, np.ndarray]:
    """Every column that is a number in some row; NaN where it is none."""
    metrics: dict[str, np.ndarray] = {}
    for index, cell in enumerate(cells):
        for name, value in rows.get(cell, {}).items():
            if name in ("layer", "head") or not _is_number(value):
                continue
            known = OTHER_NAMES.get(name, name)
            metrics.setdefault(known, np.full(len(cells), np.nan))[index] = value
    return metrics


def _name_pattern(file: JsonFile, config: Mapping[str, Any]) -> str:
    pattern = config.get("head_data_pattern") or PATTERN
    # A name, and no way out of the folder.
    if not isinstance(pattern, str) or not re.fullmatch(r"[\w.{}-]+", pattern):
        raise file.wrong(f'"head_data_pattern" must be the name of a file, and is {pattern!r:.60}')
    if "{layer}" not in pattern or "{head}" not in pattern:
        raise file.wrong('"head_data_pattern" must have {layer} and {head}')
    return pattern


def _head(pattern: Path, config: Mapping[str, Any], layer: int, head: int) -> HeadvisHead:
    """The file of one head."""
    name = pattern.name.replace("{layer}", str(layer)).replace("{head}", str(head))
    file = JsonFile(pattern.with_name(name))
    document = file.read()
    if isinstance(document, list):
        document = {"sequences": document}
    if not isinstance(document, dict):
        raise file.wrong("it must hold an object, or a list of texts")
    histogram = _plot(file, document, {"key": "histogram", "label": "Largest weight of each text"})
    plots, tables = [], []
    for each in _listed(config, "custom_plots"):
        # The front end draws the histogram anyway, so that some trees list it twice.
        plot = None if each["key"] == "histogram" else _plot(file, document, each)
        plots += [] if plot is None else [plot]
    for each in _listed(config, "custom_tables"):
        table = _table(file, document, each)
        tables += [] if table is None else [table]
    return HeadvisHead(
        layer=layer,
        head=head,
        sequences=_sequences(file, document.get("sequences") or []),
        histogram=histogram,
        plots=tuple(plots),
        tables=tuple(tables),
        statistics=_statistics(document),
    )


def _sequences(file: JsonFile, given: Any) -> tuple[HeadvisSequence, ...]:
    """Texts by stratum, the strongest of each first."""
    if not isinstance(given, list):
        raise file.wrong('"sequences" must be a list')
    sequences = [_sequence(file, number, each) for number, each in enumerate(given)]
    return tuple(sorted(sequences, key=lambda each: (each.interval, -each.max_activation)))


def _sequence(file: JsonFile, number: int, given: Any) -> HeadvisSequence:
    """One text, with entries in order and each once."""
    of = f"sequence {number}"
    if not isinstance(given, dict):
        raise file.wrong(f"{of} must be an object")
    tokens = given.get("tokens")
    if not isinstance(tokens, list) or not all(isinstance(each, str) for each in tokens):
        raise file.wrong(f'{of} must have a list of strings as "tokens"')
    length = given.get("seq_len", len(tokens))
    # Whoever reads the tokens takes their number for the width of a row.
    if length != len(tokens):
        raise file.wrong(f"{of} has {len(tokens)} tokens and a seq_len of {length!r:.20}")
    if not 0 < length <= MOST_TOKENS:
        raise file.wrong(f"{of} has {length} tokens; it may have 1 to {MOST_TOKENS}")
    indices, values = _entries(file, of, given, length)
    largest = given.get("max_activation")
    interval = given.get("interval")
    return HeadvisSequence(
        name=str(given.get("sequence_id", number)),
        interval=interval if _is_count(interval) else 0,
        tokens=tuple(tokens),
        queries=indices // length,
        keys=indices % length,
        weights=values,
        max_activation=float(largest) if _is_number(largest) else 0.0,
    )


def _entries(
    file: JsonFile, of: str, given: Mapping[str, Any], length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Indices, ascending and each once, and their weights."""
    indices, values = given.get("attention_indices"), given.get("attention_values")
    if not isinstance(indices, list) or not isinstance(values, list):
        raise file.wrong(f"{of} must have lists of attention_indices and attention_values")
    if len(indices) != len(values):
        raise file.wrong(f"{of} has {len(indices)} attention_indices and {len(values)} values")
    wrong = [index for index in indices if not _is_count(index) or index >= length**2]
    if wrong:
        raise file.wrong(f"{of} has the index {wrong[0]!r:.20} among {length} x {length}")
    wrong = [value for value in values if not _is_weight(value)]
    if wrong:
        raise file.wrong(f"{of} has the weight {wrong[0]!r:.20}; it may be 0 to 1")
    # Of an index that is there twice the later entry counts, as for the front end.
    entries = dict(zip(indices, values, strict=True))
    ordered = sorted(entries)
    return np.array(ordered, np.int64), np.array([entries[each] for each in ordered], np.float64)


def _listed(config: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """What config.json says of plots or tables, each key once; what has no key is passed over."""
    by_key: dict[str, Mapping[str, Any]] = {}
    for each in config.get(name) or []:
        if isinstance(each, dict) and isinstance(each.get("key"), str):
            by_key.setdefault(each["key"], each)
    return list(by_key.values())


def _plot(
    file: JsonFile, document: Mapping[str, Any], shown: Mapping[str, Any]
) -> HeadvisPlot | None:
    """A histogram; None where there is none, or one without bins."""
    key = shown["key"]
    given = document.get(key) or {}
    if not isinstance(given, dict):
        raise file.wrong(f"{key} must be an object")
    edges, values = given.get("bin_edges") or [], given.get("bin_values") or []
    if not values:
        return None
    if not _are_numbers(edges) or not _are_numbers(values) or len(edges) != len(values) + 1:
        raise file.wrong(f"{key} must have numbers as bin_values, and one more as bin_edges")
    return HeadvisPlot(key, *_words(shown), tuple(edges), tuple(values))


def _table(
    file: JsonFile, document: Mapping[str, Any], shown: Mapping[str, Any]
) -> HeadvisTable | None:
    key = shown["key"]
    given = document.get(key) or []
    rows = []
    for row in given if isinstance(given, list) else [given]:
        is_row = isinstance(row, dict) and isinstance(row.get("token"), str)
        if not is_row or not _is_number(row.get("weight")):
            raise file.wrong(f'{key} must be a list of {{"token": string, "weight": number}}')
        rows.append((row["token"], float(row["weight"])))
    return HeadvisTable(key, *_words(shown), tuple(rows)) if rows else None


def _words(shown: Mapping[str, Any]) -> tuple[str, str]:
    """What a plot or table is called, and what it shows."""
    return str(shown.get("label") or shown["key"]), str(shown.get("description") or "")


def _statistics(document: Mapping[str, Any]) -> dict[str, float | str]:
    given = document.get("statistics")
    if not isinstance(given, dict):
        return {}
    return {
        str(name): value
        for name, value in given.items()
        if isinstance(value, str) or _is_number(value)
    }


def _is_count(*values: Any) -> bool:
    """Whether all are whole numbers from 0 on."""
    return all(type(value) is int and value >= 0 for value in values)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_weight(value: Any) -> bool:
    # A little above 1 by rounding, as with float32.
    return _is_number(value) and 0 <= value <= 1.001


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(_is_number(value) for value in values)
