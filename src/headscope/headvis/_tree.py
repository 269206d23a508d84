"""A tree of HeadVis as it was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import RecordError
from headscope.results import Result, TextTable


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
    """What a tree says of one head.

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

    @property
    def is_causal(self) -> bool:
        """Whether the tree says that no query saw what comes after it: trees of headscope do."""
        own = self.provenance.get("headscope")
        return isinstance(own, Mapping) and own.get("causal") is True

    def says(self, metric: str) -> str:
        """What a metric means; empty where the tree does not say."""
        descriptions = self.config.get("metric_descriptions")
        return str(descriptions.get(metric, "")) if isinstance(descriptions, Mapping) else ""

    def head(self, layer: int, head: int) -> HeadvisHead:
        """All that the tree says of one head.

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

    def _blocks(self) -> list[TextTable | str]:
        if not self.metrics:
            return []
        shown = {"head": [f"{layer}-{head}" for layer, head in self.cells]}
        for name, values in self.metrics.items():
            shown[name] = [f"{value:.3f}" for value in values]
        says = {name: self.says(name) for name in self.metrics}
        rows = [tuple(shown), *zip(*shown.values(), strict=True)]
        return [TextTable.of_rows(rows, says={name: each for name, each in says.items() if each})]
