"""Layers that leave memory as soon as they are complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from headscope.record import CONTRIBUTIONS, STATISTICS, Contributions, Statistics, held

Put = Callable[[np.ndarray], Any]
"""Function that takes an array and gives what is kept in its place."""


def put_away(layers: Iterable[dict[str, Any]], put: Put | None) -> None:
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
                layer[name] = _in_file(value, STATISTICS, put)
            elif isinstance(value, Contributions):
                layer[name] = _in_file(value, CONTRIBUTIONS, put)


Arrays = TypeVar("Arrays", Statistics, Contributions)


def _in_file(holder: Arrays, names: Iterable[str], put: Put) -> Arrays:
    arrays = {}
    for name in names:
        array = held(holder, name)
        if isinstance(array, np.ndarray):
            arrays[name] = put(array)
    return replace(holder, **arrays)
