"""The map of heads: over the texts of the evidence where it has distances, else from the text that
a page shows.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

import numpy as np

from headscope.axes import HEAD, LAYER
from headscope.measures import head_distances, head_map, stress
from headscope.patterns import Heads
from headscope.record import Stack
from headscope.views._payload import Chunks
from headscope.views.contract import PageMap, PageStack

MOST_HEADS = 256
"""Number of heads on a map; with more of them the layout takes longer than about 6 s."""
MOST_VALUES = 2**25
"""Number of logarithms that the distances may cost; of longer texts only some queries are used."""


def _cells(stack: Stack, held: PageStack) -> list[tuple[int, int]]:
    """Row and column of each head of the grid; layers may differ in their number of heads."""
    cells = []
    for row, layer in enumerate(held["layers"]):
        heads = stack.layer(layer["layer"]).heads
        cells += [(row, column) for column, head in enumerate(held["head_numbers"]) if head < heads]
    return cells


def page_map(
    stack: Stack, held: PageStack, chunks: Chunks, evidence: Heads | None = None
) -> PageMap | None:
    """Heads as points, like heads close together; None for a single head, or for more than 256.

    Distances are those of Clark et al. 2019 (`headscope.measures.head_distances`): the mean over
    the texts of the evidence where it has them, else of the shown text, of evenly spaced queries
    where that is long. The points come from `headscope.measures.head_map`.

    Args:
        stack: the stack that the page shows.
        held: its layers and heads that the page holds.
        chunks: takes the bytes of the points.
        evidence: evidence about the heads, where it was given.
    """
    cells = _cells(stack, held)
    if not 2 <= len(cells) <= MOST_HEADS:
        return None
    numbers = held["head_numbers"]
    names = [(held["layers"][row]["layer"], numbers[column]) for row, column in cells]
    if evidence is not None and evidence.has_distances:
        index_of = {cell: index for index, cell in enumerate(evidence.cells)}
        chosen = [index_of[name] for name in names]
        distances = np.ascontiguousarray(evidence.distances[np.ix_(chosen, chosen)])
        rows, texts = 0, evidence.texts
    else:
        distances, rows = _on_shown_text(stack, names)
        texts = 0
    # As bytes, because a cache needs a key that can be hashed.
    points = _placed(distances.tobytes())
    coordinates = np.full((len(held["layers"]), len(numbers), 2), np.nan, np.float32)
    for cell, point in zip(cells, points, strict=True):
        coordinates[cell] = point
    return {
        "places": chunks.add(f"map/{held['name']}", coordinates, (LAYER, HEAD, "direction")),
        "stress": stress(distances, points),
        "queries": rows,
        "texts": texts,
    }


def _on_shown_text(stack: Stack, names: list[tuple[int, int]]) -> tuple[np.ndarray, int]:
    """Distances of heads on one text, and the number of queries that they were taken from."""
    queries, keys = len(stack.query), len(stack.key)
    # Half of the pairs of heads need computing, because distances are symmetric: hence the 2.
    wanted = max(1, min(queries, 2 * MOST_VALUES // (len(names) ** 2 * keys)))
    chosen = np.arange(wanted) * queries // wanted
    weights = np.stack([stack.layer(layer).weights_of(head)[chosen] for layer, head in names])
    return head_distances(weights), wanted


@lru_cache(maxsize=8)
def _placed(distances: bytes) -> np.ndarray:
    """Positions of heads on the map; kept, because they take seconds and pages are opened again."""
    placed = np.frombuffer(distances)
    size = isqrt(len(placed))
    return head_map(placed.reshape(size, size))
