"""Weights for other libraries: named axes for xarray, one row a weight for tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headscope._missing_packages import library
from headscope.errors import RecordError

if TYPE_CHECKING:
    from headscope.record._stack import Stack

AXES = ("layer", "head", "query", "key")


def to_xarray(stack: Stack, layer: Any = None, head: Any = None) -> Any:
    """See `headscope.Stack.to_xarray`."""
    xarray = library("xarray")
    numbers, heads, weights = _chosen(stack, layer, head)
    coordinates = {
        "layer": numbers,
        "head": heads,
        "query": np.arange(len(stack.query)),
        "key": np.arange(len(stack.key)),
        "query_token": ("query", np.array(stack.query.labels)),
        "key_token": ("key", np.array(stack.key.labels)),
    }
    array = xarray.DataArray(
        weights, dims=AXES, coords=coordinates, name="weight", attrs={"stack": stack.name}
    )
    # isel drops the axis but keeps the number as a coordinate, so the array still says whose it is.
    for name, given in (("layer", layer), ("head", head)):
        if given is not None:
            array = array.isel({name: 0})
    return array


def to_pandas(stack: Stack, layer: Any = None, head: Any = None) -> Any:
    """See `headscope.Stack.to_pandas`."""
    pandas = library("pandas")
    if layer is not None and head is not None:
        rows, columns = (
            pandas.MultiIndex.from_arrays(
                [range(len(side)), side.labels], names=[name, f"{name}_token"]
            )
            for name, side in (("query", stack.query), ("key", stack.key))
        )
        return pandas.DataFrame(stack.weights(layer, head), index=rows, columns=columns)
    return pandas.DataFrame(columns_of(stack, layer, head))


def to_arrow(stack: Stack, layer: Any = None, head: Any = None) -> Any:
    """See `headscope.Stack.to_arrow`."""
    pyarrow = library("pyarrow")
    columns = columns_of(stack, layer, head)
    for name in ("query_token", "key_token"):  # each word once
        columns[name] = pyarrow.array(columns[name]).dictionary_encode()
    return pyarrow.table(columns)


def columns_of(stack: Stack, layer: Any = None, head: Any = None) -> dict[str, Any]:
    """A row for each weight: layer, head, query, query_token, key, key_token, weight; one array for
    each column.
    """
    # Layers that hold other heads are no one array, but as rows of a table they can follow each
    # other.
    if layer is None and len({each.head_numbers for each in stack}) > 1 and not stack.is_whole:
        parts = [_columns(stack, each.layer, head) for each in stack]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return _columns(stack, layer, head)


def _columns(stack: Stack, layer: Any, head: Any) -> dict[str, Any]:
    numbers, heads, weights = _chosen(stack, layer, head)
    axes = (numbers, heads, range(len(stack.query)), range(len(stack.key)))
    grid = [axis.ravel() for axis in np.meshgrid(*map(np.asarray, axes), indexing="ij")]
    of_query, of_key = (np.array(side.labels) for side in (stack.query, stack.key))
    return {
        "layer": grid[0],
        "head": grid[1],
        "query": grid[2],
        "query_token": of_query[grid[2]],
        "key": grid[3],
        "key_token": of_key[grid[3]],
        "weight": weights.ravel(),
    }


def _chosen(stack: Stack, layer: Any, head: Any) -> tuple[list[int], list[int], np.ndarray]:
    """Numbers of the layers, of the heads, and their weights ``[layer head query key]``."""
    numbers = [each.layer for each in stack] if layer is None else [int(layer)]
    if head is None and not stack.is_whole:
        return (numbers, *_held(stack, numbers))
    weights = stack.weights(layer, head)
    # The axes of one layer and one head, which `weights` leaves off, are put back.
    if layer is not None:
        weights = weights[None]
    if head is None:
        return numbers, list(range(weights.shape[1])), weights
    return numbers, [int(head)], weights[:, None]


def _held(stack: Stack, numbers: list[int]) -> tuple[list[int], np.ndarray]:
    """Numbers and weights of the heads that some layers hold, where they hold the same."""
    layers = [stack.layer(number) for number in numbers]
    if len({each.head_numbers for each in layers}) > 1:
        held = ", ".join(f"{layer}-{head}" for layer, head in stack.held_heads)
        raise RecordError(
            f"Stack {stack.name!r} holds other heads in each layer ({held}), which "
            "are no one array; take them layer by layer, or as a table"
        )
    return list(layers[0].head_numbers), np.stack([each.held_weights() for each in layers])
