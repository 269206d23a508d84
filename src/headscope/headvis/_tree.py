"""A tree of HeadVis: what it holds, and how it is read from disk, of whoever wrote it.

What is required, and what may be missing, follows from what the readers of HeadVis do, since the
format has no schema: its front end of 2026, and the importers of Neuronpedia.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import FileError, RecordError
from headscope.headvis._heads import PATTERN
from headscope.results import Result, TextTable
from headscope.storage import PAIR, Finite, check_document

CONFIG, SCATTER = "config.json", "scatter_data.json"
MOST_TOKENS = 46_340
"""Of a text: more have no 32-bit number for each pair, which is the limit of Neuronpedia."""
OTHER_NAMES = {"previous_token_score": "prev_token_score"}
"""Metrics that the original calls otherwise."""
SEQUENCE = {"tokens": [str], "attention_indices": [int], "attention_values": [Finite]}
PLOT = {"bin_edges": [Finite], "bin_values": [Finite]}
TABLE = [{"token": str, "weight": Finite}]


@dataclass(frozen=True, eq=False)
class HeadvisSequence:
    """A text as one head sees it: the largest weights of each row. What was cut is unknown.

    Args:
        name: its ``sequence_id``.
        interval: its stratum, from 1, the highest the strongest; 0 where the tree does not say.
        tokens: as they are shown.
        queries: of the weights that are kept, row by row.
        keys: of the same.
        weights: of the same.
        max_activation: the largest weight outside row and column 0.
    """

    name: str
    interval: int
    tokens: tuple[str, ...]
    queries: Int[np.ndarray, " kept"]
    keys: Int[np.ndarray, " kept"]
    weights: Float[np.ndarray, " kept"]
    max_activation: float

    @property
    def kept(self) -> Float[np.ndarray, " query"]:
        """How much of each row is kept; the rest to 1 was cut, or went to a sink that is no
        token.
        """
        return np.bincount(self.queries, self.weights, len(self.tokens))

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        kept = self.kept.mean()
        return f"<HeadvisSequence {self.name}: {len(self)} tokens, {kept:.0%} of a row kept>"


@dataclass(frozen=True)
class HeadvisPlot:
    """A histogram of a head.

    Args:
        name: its key in the file.
        label: what it is called.
        description: what it shows; may be empty.
        edges: of its bins.
        values: of each bin.
    """

    name: str
    label: str
    description: str
    edges: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class HeadvisTable:
    """Tokens of a head with a weight each, the heaviest first.

    Args:
        name: its key in the file.
        label: what it is called.
        description: what it shows; may be empty.
        rows: token and weight.
    """

    name: str
    label: str
    description: str
    rows: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class HeadvisHead:
    """What a tree holds of one head.

    Args:
        layer: its layer.
        head: its number.
        sequences: by stratum, and in it by the largest weight, the strongest first.
        histogram: of the largest weight of each text; None where the tree has none.
        plots: further ones.
        tables: of tokens.
        statistics: numbers and words, by what they are called.
    """

    layer: int
    head: int
    sequences: tuple[HeadvisSequence, ...]
    histogram: HeadvisPlot | None = None
    plots: tuple[HeadvisPlot, ...] = ()
    tables: tuple[HeadvisTable, ...] = ()
    statistics: Mapping[str, float | str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<HeadvisHead {self.layer}-{self.head}: {len(self.sequences)} texts>"


@dataclass(frozen=True, eq=False)
class HeadvisTree(Result):
    """A tree of HeadVis; the files of heads are read when they are asked for.

    Args:
        config: config.json.
        cells: layer and head of each.
        metrics: of all heads, by name; NaN where it is not known.
        provenance: how the tree was made.
        read_head: gives what the file of a head holds.
    """

    KIND: ClassVar[str] = "headvis"

    config: Mapping[str, Any]
    cells: tuple[tuple[int, int], ...]
    metrics: Mapping[str, Float[np.ndarray, " head"]]
    provenance: Mapping[str, Any]
    read_head: Callable[[int, int], HeadvisHead]

    @property
    def model(self) -> str:
        """Name of the model; empty where the tree does not say."""
        return str(self.provenance.get("model_name") or self.config.get("model_name") or "")

    @property
    def dataset(self) -> str:
        """Name of the texts; empty where the tree does not say."""
        return str(self.provenance.get("dataset_name") or self.config.get("dataset_name") or "")

    @property
    def texts(self) -> int | None:
        """How many texts were read; None where the tree does not say."""
        count = self.provenance.get("n_sequences")
        return count if isinstance(count, int) else None

    def says(self, metric: str) -> str:
        """What a metric means; empty where the tree does not say."""
        descriptions = self.config.get("metric_descriptions")
        return str(descriptions.get(metric, "")) if isinstance(descriptions, Mapping) else ""

    def head(self, layer: int, head: int) -> HeadvisHead:
        """All that the tree holds of one head.

        Raises:
            RecordError: where there is no such head.
            FileError: where its file cannot be read, or does not hold what it should.
        """
        if (layer, head) not in self.cells:
            known = ", ".join(f"{one}-{other}" for one, other in self.cells[:5])
            raise RecordError(f"The tree has no head {layer}-{head}; it begins with {known}")
        return self.read_head(layer, head)

    def columns(self) -> dict[str, list[Any]]:
        """One row for each head: its metrics."""
        columns: dict[str, list[Any]] = {
            "layer": [layer for layer, _ in self.cells],
            "head": [head for _, head in self.cells],
        }
        return columns | {name: values.tolist() for name, values in self.metrics.items()}

    @property
    def summary(self) -> str:
        """How many heads, of which model, over how many texts."""
        over = f" over {self.texts:,} texts" if self.texts is not None else ""
        of = f" ({self.dataset})" if self.dataset else ""
        model = self.model or "a model"
        return f"A tree of HeadVis: {len(self.cells)} heads of {model}{over}{of}"

    def __repr__(self) -> str:
        return f"<HeadvisTree: {len(self.cells)} heads of {self.model or 'a model'}>"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> HeadvisTree:
        """Read a tree, see `read_headvis`."""
        return read_headvis(path)

    def _blocks(self) -> list[TextTable | str]:
        if not self.metrics:
            return []
        shown = {"head": [f"{layer}-{head}" for layer, head in self.cells]}
        for name, values in self.metrics.items():
            shown[name] = [f"{value:.3f}" for value in values]
        says = {name: self.says(name) for name in self.metrics}
        rows = [tuple(shown), *zip(*shown.values(), strict=True)]
        return [TextTable.of_rows(rows, says={name: each for name, each in says.items() if each})]


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
    with _file_of_tree(folder / SCATTER) as rows:
        check_document({"rows": rows}, {"rows": [{"layer": int, "head": int}]})
        by_cell = {}
        for number, row in enumerate(rows):
            if not {"layer", "head"} <= row.keys():
                raise ValueError(f'its row {number} must have a "layer" and a "head"')
            by_cell[row["layer"], row["head"]] = row
    with _file_of_tree(folder / CONFIG) as config:
        check_document(config, {"head_data_pattern": (str, None)})
        listed = config.get("heads") or [list(cell) for cell in by_cell]
        check_document({"heads": listed}, {"heads": [PAIR]})
        cells = [(layer, head) for layer, head in listed]
        if not cells:
            raise ValueError('it lists no "heads"')
        if len(set(cells)) < len(cells):
            raise ValueError('its "heads" lists one head twice')
        pattern = config.get("head_data_pattern") or PATTERN
        # A name, and no way out of the folder.
        if not re.fullmatch(r"[\w.-]*{layer}[\w.-]*{head}[\w.-]*", pattern):
            raise ValueError(
                'its "head_data_pattern" must be the name of a file with {layer} and {head}, and '
                f"is {pattern!r:.60}"
            )
    inner = config.get("pipeline_config")
    return HeadvisTree(
        config=config,
        cells=tuple(cells),
        metrics=_metrics(cells, by_cell),
        provenance=config | (inner if isinstance(inner, dict) else {}),
        read_head=partial(_read_head, folder / "heads" / pattern, config),
    )


@contextmanager
def _file_of_tree(path: Path) -> Generator[Any]:
    """What a file holds; its name stands in every error of the block."""
    try:
        yield json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(f"Cannot read {path}: {reason}; copy the whole tree") from None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError):
            why = f"it holds no JSON ({error})"
        raise FileError(f"{path} is no file of a HeadVis tree: {why}; write it again") from None


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


def _read_head(pattern: Path, config: Mapping[str, Any], layer: int, head: int) -> HeadvisHead:
    name = pattern.name.replace("{layer}", str(layer)).replace("{head}", str(head))
    with _file_of_tree(pattern.with_name(name)) as given:
        document = {"sequences": given} if isinstance(given, list) else given
        check_document(document, {"statistics": ({}, None)})
        listed = document.get("sequences") or []
        check_document({"sequences": listed}, {"sequences": [SEQUENCE]})
        sequences = [_sequence(str(number), each) for number, each in enumerate(listed)]
        # The front end draws the histogram anyway, so that some trees list it twice.
        plots = [each for each in _listed(config, "custom_plots") if each["key"] != "histogram"]
        tables = [_table(document, each) for each in _listed(config, "custom_tables")]
        statistics = {}
        for called, value in (document.get("statistics") or {}).items():
            if isinstance(value, str) or _is_number(value):
                statistics[called] = value
        return HeadvisHead(
            layer=layer,
            head=head,
            # By stratum, the strongest of each first.
            sequences=tuple(sorted(sequences, key=lambda own: (own.interval, -own.max_activation))),
            histogram=_plot(document, {"key": "histogram", "label": "Largest weight of each text"}),
            plots=tuple(filter(None, (_plot(document, each) for each in plots))),
            tables=tuple(filter(None, tables)),
            statistics=statistics,
        )


def _sequence(number: str, given: Mapping[str, Any]) -> HeadvisSequence:
    """One text, with entries in order and each once."""
    of, tokens = f"sequence {number}", given["tokens"]
    length = given.get("seq_len", len(tokens))
    # Whoever reads the tokens takes their number for the width of a row.
    if length != len(tokens):
        raise ValueError(f"{of} has {len(tokens)} tokens and a seq_len of {length!r:.20}")
    if not 0 < length <= MOST_TOKENS:
        raise ValueError(f"{of} has {length} tokens; it may have 1 to {MOST_TOKENS}")
    indices, values = given["attention_indices"], given["attention_values"]
    if len(indices) != len(values):
        raise ValueError(f"{of} has {len(indices)} attention_indices and {len(values)} values")
    for index, value in zip(indices, values, strict=True):
        if not 0 <= index < length**2:
            raise ValueError(f"{of} has the index {index!r:.20} among {length} x {length}")
        # A little above 1 by rounding, as with float32.
        if not 0 <= value <= 1.001:
            raise ValueError(f"{of} has the weight {value!r:.20}; it may be 0 to 1")
    # Of an index that is there twice the later entry counts, as for the front end.
    entries = dict(sorted(dict(zip(indices, values, strict=True)).items()))
    at = np.array(list(entries), np.int64)
    largest: Any = given.get("max_activation")
    interval = given.get("interval")
    return HeadvisSequence(
        name=str(given.get("sequence_id", number)),
        interval=interval if type(interval) is int and interval > 0 else 0,
        tokens=tuple(tokens),
        queries=at // length,
        keys=at % length,
        weights=np.array(list(entries.values()), np.float64),
        max_activation=largest if _is_number(largest) else 0.0,
    )


def _listed(config: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """What config.json holds of plots or tables, each key once; what has no key is passed over."""
    by_key: dict[str, Mapping[str, Any]] = {}
    for each in config.get(name) or []:
        if isinstance(each, dict) and isinstance(each.get("key"), str):
            by_key.setdefault(each["key"], each)
    return list(by_key.values())


def _plot(document: Mapping[str, Any], shown: Mapping[str, Any]) -> HeadvisPlot | None:
    """A histogram; None where there is none, or one without bins."""
    key = shown["key"]
    given = document.get(key) or {}
    check_document({key: given}, {key: PLOT})
    edges, values = given.get("bin_edges") or [], given.get("bin_values") or []
    if not values:
        return None
    if len(edges) != len(values) + 1:
        raise ValueError(f"its {key} must have bin_values, and one more as bin_edges")
    return HeadvisPlot(key, *_words(shown), tuple(edges), tuple(values))


def _table(document: Mapping[str, Any], shown: Mapping[str, Any]) -> HeadvisTable | None:
    """Tokens with a weight; None where there are none."""
    key = shown["key"]
    given = document.get(key) or []
    check_document({key: given}, {key: TABLE})
    rows = tuple((row["token"], float(row["weight"])) for row in given)
    return HeadvisTable(key, *_words(shown), rows) if rows else None


def _words(shown: Mapping[str, Any]) -> tuple[str, str]:
    """What a plot or table is called, and what it shows."""
    return str(shown.get("label") or shown["key"]), str(shown.get("description") or "")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
