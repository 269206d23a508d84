"""The best head on all texts, and the one that was chosen on half of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def shown(layer: int | None, head: int | None) -> str:
    """A head as printed, layer first, both from 0."""
    return "-" if layer is None else f"{layer}-{head}"


def places_of(cells: Sequence[tuple[int, int]], best: int, held: int | None) -> dict[str, Any]:
    """Layer and head by their names in results, of two numbers in ``cells``; None where none was
    chosen.
    """
    layer, head = cells[best]
    held_layer, held_head = (None, None) if held is None else cells[held]
    return {"layer": layer, "head": head, "held_out_layer": held_layer, "held_out_head": held_head}


def columns_of(
    fields: Sequence[str], listed: Sequence[Any], twins: Sequence[Any] | None
) -> dict[str, list[Any]]:
    """Heads as a table, one list for each column.

    Args:
        fields: names of the columns.
        listed: a line each.
        twins: the same of a model with random weights, for ``random_accuracy`` and
            ``random_held_out_accuracy``.
    """
    columns = {name: [getattr(each, name) for each in listed] for name in fields}
    if twins is not None:
        for name in ("accuracy", "held_out_accuracy"):
            columns[f"random_{name}"] = [getattr(each, name) for each in twins]
    return columns
