"""The map of heads, from the text that a page shows."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from math import isqrt

import numpy as np

from headscope.axes import HEAD, LAYER
from headscope.errors import HeadscopeError
from headscope.measures import head_distances, head_map, stress
from headscope.record import Stack
from headscope.views._contract import PageMap, PageStack
from headscope.views._payload import Chunks

MOST_HEADS = 256
"""More heads take more than about 6 s to be placed."""
MOST_VALUES = 2**25
"""Numbers whose logarithms are taken for the distances; of longer texts some queries stand for all."""


def page_map(stack: Stack, held: PageStack, chunks: Chunks) -> PageMap | None:
    """Heads as points, like heads on this text close together; None for a single head, or for more than 256.

    Distances are those of Clark et al. 2019 (`headscope.measures.head_distances`), of evenly spaced queries where the
    text is long; the points come from `headscope.measures.head_map`.

    Args:
        stack: what the page shows.
        held: the layers and heads that the page holds of it.
        chunks: where the bytes go.

    Raises:
        HeadscopeError: without scikit-learn.
    """
    cells = [
        (row, column)
        for row, layer in enumerate(held["layers"])
        for column, head in enumerate(held["head_numbers"])
        if head < stack.layer(layer["layer"]).heads
    ]
    if not 2 <= len(cells) <= MOST_HEADS:
        return None
    if find_spec("sklearn") is None:
        raise HeadscopeError(
            "The map of heads needs scikit-learn, which is not installed: pip install 'headscope[statistics]'"
        )
    queries, keys = len(stack.query), len(stack.key)
    wanted = max(1, min(queries, 2 * MOST_VALUES // (len(cells) ** 2 * keys)))
    chosen = np.arange(wanted) * queries // wanted
    numbers = held["head_numbers"]
    weights = np.stack(
        [stack.layer(held["layers"][row]["layer"]).weights_of(numbers[column])[chosen] for row, column in cells]
    )
    distances = head_distances(weights)
    points = _placed(distances.tobytes())
    places = np.full((len(held["layers"]), len(numbers), 2), np.nan, np.float32)
    for cell, point in zip(cells, points, strict=True):
        places[cell] = point
    return {
        "places": chunks.add(f"map/{held['name']}", places, (LAYER, HEAD, "direction")),
        "stress": stress(distances, points),
        "queries": wanted,
    }


@lru_cache(maxsize=8)
def _placed(distances: bytes) -> np.ndarray:
    """Places of heads; they take seconds, and the same record is looked at more than once."""
    found = np.frombuffer(distances)
    size = isqrt(len(found))
    return head_map(found.reshape(size, size))
