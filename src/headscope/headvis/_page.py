"""A tree of HeadVis as a folder of files that any web server can host: the page of an atlas, with
what such a tree has.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from headscope.headvis._tree import HeadvisHead, HeadvisPlot, HeadvisSequence, HeadvisTree
from headscope.results import shows
from headscope.views.atlas_page import Data, FolderPage, short_number

DIGITS = 4


@shows(HeadvisTree.KIND)
def headvis_page(tree: HeadvisTree) -> FolderPage:
    """A tree of HeadVis as a folder of files to look at."""
    title = f"{tree.model or 'A model'}: {len(tree.cells)} heads"
    return FolderPage(tree, title, partial(_data, tree))


def _data(tree: HeadvisTree) -> Iterator[tuple[str, Data]]:
    for layer, head in tree.cells:
        yield f"head-{layer}-{head}", _head_data(tree.head(layer, head))
    yield "index", _index_data(tree)


def _index_data(tree: HeadvisTree) -> dict[str, Any]:
    """What the map of all heads needs."""
    metrics = []
    for name, values in tree.metrics.items():
        shown = [short_number(float(value)) for value in values]
        metrics.append({"name": name, "says": tree.says(name), "values": shown})
    return {
        "kind": "headvis",
        "model": tree.model,
        "dataset": tree.dataset,
        "texts": tree.texts,
        "causal": tree.is_causal,
        "heads": [list(cell) for cell in tree.cells],
        "metrics": metrics,
        "statistics": _formats(tree),
    }


def _formats(tree: HeadvisTree) -> dict[str, dict[str, str]]:
    """How statistics are called and written, where the tree names them."""
    given = tree.config.get("statistics_display")
    formats = {}
    for name, each in (given if isinstance(given, dict) else {}).items():
        if isinstance(each, dict):
            label, written = each.get("label"), each.get("format")
            formats[str(name)] = {"label": str(label or name), "format": str(written or "default")}
    return formats


def _head_data(head: HeadvisHead) -> dict[str, Any]:
    """What the page of one head needs."""
    tables = []
    for table in head.tables:
        rows = [[token, short_number(weight)] for token, weight in table.rows]
        tables.append({"label": table.label, "says": table.description, "rows": rows})
    histogram = None
    if head.histogram is not None:
        histogram = _plot_data(head.histogram)
    return {
        "layer": head.layer,
        "head": head.head,
        "sequences": [_sequence_data(each) for each in head.sequences],
        "histogram": histogram,
        "plots": [_plot_data(plot) for plot in head.plots],
        "tables": tables,
        "statistics": list(head.statistics.items()),
    }


def _plot_data(plot: HeadvisPlot) -> dict[str, Any]:
    return {
        "label": plot.label,
        "says": plot.description,
        "edges": [short_number(edge) for edge in plot.edges],
        "values": [short_number(value) for value in plot.values],
    }


def _sequence_data(sequence: HeadvisSequence) -> dict[str, Any]:
    """A text: for each weight that is kept its query, its key and itself, one after the other."""
    return {
        "name": sequence.name,
        "interval": sequence.interval,
        "largest": round(sequence.max_activation, DIGITS),
        "tokens": list(sequence.tokens),
        "queries": sequence.queries.tolist(),
        "keys": sequence.keys.tolist(),
        "weights": sequence.weights.round(DIGITS).tolist(),
    }
