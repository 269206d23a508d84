"""Layers that leave memory as soon as they are complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from headscope.record import STATISTICS, Statistics


def put_away(layers: Iterable[dict[str, Any]], put: Callable[[np.ndarray], Any] | None) -> None:
    """Hand over the arrays of layers that are complete.

    Args:
        layers: arguments of each `Layer`; arrays among them are replaced.
        put: takes an array and gives what is kept in its place; None to keep all in memory.
    """
    if put is None:
        return
    for layer in layers:
        for name, value in layer.items():
            if isinstance(value, np.ndarray):
                layer[name] = put(value)
            elif isinstance(value, Statistics):
                layer[name] = _in_file(value, put)


def _in_file(statistics: Statistics, put: Callable[[np.ndarray], Any]) -> Statistics:
    given = {name: getattr(statistics, name) for name in STATISTICS}
    arrays = {name: put(array) for name, array in given.items() if array is not None}
    return replace(statistics, **arrays)
