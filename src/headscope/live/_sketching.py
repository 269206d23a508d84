"""Which heads look like a drawing, on one text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.live.contract import SketchAnswer, SketchedHead
from headscope.record import Record

MOST_CELLS = 2**12
"""Of a drawing: 64 x 64, which a request has room for."""


def sketched(record: Record, given: Mapping[str, Any]) -> SketchAnswer:
    """The heads of a stack, the likest first.

    ``cos(D, A) = sum(D A) / (|D| |A|)`` over all queries and keys, where D is the drawing, laid
    over the map and stretched to its size, and only where a query may look. Source: ours; of maps
    that are painted as patterns over many texts see `headscope.patterns.painted`.

    Args:
        record: whose heads.
        given: a request with ``stack`` and ``matrix``.

    Raises:
        RecordError: a stack that there is not, or what is no drawing.
    """
    name = given.get("stack")
    if not isinstance(name, str) or name not in record.stacks:
        raise RecordError(f"stack is one of {', '.join(record.stacks)}, not {repr(name)[:40]}")
    drawing = _drawing(given.get("matrix"))
    heads: list[SketchedHead] = []
    for layer in record[name]:
        wanted = stretched(drawing, layer.size)
        if not layer.visible.is_full:
            wanted = np.where(layer.visible.dense(slice(0, layer.size[0])), wanted, 0.0)
        for head in layer.head_numbers:
            value = round(_similarity(wanted, layer.weights_of(head)), 6)
            heads.append({"layer": layer.layer, "head": int(head), "likeness": value})
    heads.sort(key=lambda each: -each["likeness"])
    return {"heads": heads}


def stretched(
    drawing: Float[np.ndarray, "row column"], size: tuple[int, int]
) -> Float[np.ndarray, "query key"]:
    """A drawing at the size of a map, each cell of the map with the part that lies over it."""
    rows, columns = (
        np.arange(count) * of // count for count, of in zip(size, drawing.shape, strict=True)
    )
    return drawing[rows][:, columns]


def _similarity(wanted: np.ndarray, weights: np.ndarray) -> float:
    lengths = np.linalg.norm(wanted) * np.linalg.norm(weights)
    # Nothing of the drawing may lie where a query may look.
    return float((wanted * weights).sum() / lengths) if lengths > 0 else 0.0


def _drawing(given: Any) -> Float[np.ndarray, "row column"]:
    rows = given if isinstance(given, list) else []
    even = all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows)
    if not rows or not even or not rows[0] or len(rows) * len(rows[0]) > MOST_CELLS:
        raise RecordError(f"matrix is a list of equal rows, of at most {MOST_CELLS} cells")
    if not all(_is_cell(cell) for row in rows for cell in row):
        raise RecordError("matrix holds numbers from 0 to 1")
    drawing = np.array(rows, np.float64)
    if not drawing.any():
        raise RecordError("Nothing is drawn; draw where heads should look")
    return drawing


def _is_cell(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1
