"""A tree of HeadVis as a folder of files that any web server can host: the page of an atlas whose
heads have metrics, in place of mean maps and labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from headscope.headvis._tree import HeadvisHead, HeadvisSequence, HeadvisTree
from headscope.results import shows
from headscope.views.atlas_page import Data, FolderPage, metric_data

DIGITS = 4
ROUNDING = 1e-3
"""Weights are rounded: a row of which less than this is missing was kept whole."""


@shows(HeadvisTree.KIND)
def headvis_page(tree: HeadvisTree) -> FolderPage:
    """A tree of HeadVis as a folder of files to look at."""
    title = f"{tree.model or 'A model'}: {len(tree.cells)} heads"
    return FolderPage(tree, title, partial(_data, tree))


def _data(tree: HeadvisTree) -> Iterator[tuple[str, Data]]:
    for layer, head in tree.cells:
        yield f"head-{layer}-{head}", {"tree": _head_data(tree, tree.head(layer, head))}
    yield "texts", []
    yield "index", _index_data(tree)


def _index_data(tree: HeadvisTree) -> dict[str, Any]:
    """What the map of all heads needs; the map of one is a cell in the colour of its metric."""
    lists = ("labels", "pairs", "keys", "evenKeys")
    empty: dict[str, Any] = {name: [] for name in lists}
    return {
        **{"model": tree.model, "summary": tree.summary, "caution": "", "maps": ""},
        **{"patterns": [], "classes": [], "side": 0.5},
        "heads": [{"layer": layer, "head": head, **empty} for layer, head in tree.cells],
        "metrics": [
            metric_data(name.replace("_", " "), tree.says(name) or name, values)
            for name, values in tree.metrics.items()
        ],
    }


def _head_data(tree: HeadvisTree, head: HeadvisHead) -> dict[str, Any]:
    """What the page of one head needs; its texts by stratum, the strongest first."""
    display: Any = tree.config.get("statistics_display")
    statistics = []
    for name, value in head.statistics.items():
        told = display.get(name) if isinstance(display, dict) else None
        form = told if isinstance(told, dict) else {}
        statistics.append([form.get("label") or name.replace("_", " "), value, form.get("format")])
    plots = filter(None, (head.histogram, *head.plots))
    strata = groupby(range(len(head.sequences)), key=lambda at: head.sequences[at].interval)
    return {
        "statistics": statistics,
        "plots": [*map(asdict, plots)],
        "tables": [*map(asdict, head.tables)],
        "strata": [[interval, [*numbers]] for interval, numbers in strata][::-1],
        "sequences": [_sequence_data(each) for each in head.sequences],
    }


def _sequence_data(sequence: HeadvisSequence) -> dict[str, Any]:
    """A text: query, key and weight of each link that is kept, the strongest first; and how much of
    each row is not.
    """
    order = np.argsort(-sequence.weights, kind="stable")
    rest = 1 - sequence.kept
    return {
        "name": sequence.name,
        "largest": round(sequence.max_activation, DIGITS),
        "tokens": list(sequence.tokens),
        "queries": sequence.queries[order].tolist(),
        "keys": sequence.keys[order].tolist(),
        "weights": sequence.weights[order].round(DIGITS).tolist(),
        "rest": np.where(rest < ROUNDING, 0, rest).round(DIGITS).tolist(),
    }
