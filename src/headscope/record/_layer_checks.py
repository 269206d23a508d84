"""What the arrays of a layer must be like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headscope.errors import RecordError
from headscope.record._checks import check_finite, check_floats, check_weights, is_on_disk
from headscope.record._stored import held

if TYPE_CHECKING:
    from headscope.record._layer import Layer

ARRAYS = {
    "weights": "head query key",
    "queries": "head query feature",
    "keys": "kv_head key feature",
    "values": "kv_head key feature",
    "queries_before": "head query feature",
    "keys_before": "kv_head key feature",
    "value_norms": "head key",
    "bias": "head query key",
    "sinks": "head",
}
"""The arrays that a layer may hold besides its mask, and their axes."""
AXES = {name: tuple(axes.split()) for name, axes in ARRAYS.items()}


def check_shapes(layer: Layer, kept: Sequence[str]) -> None:
    """Raise where the arrays of a layer do not fit each other.

    Args:
        layer: whose arrays have the axes that they should have.
        kept: the names of these arrays.

    Raises:
        RecordError: naming the array, and what it has and should have.
    """
    (heads, queries, keys), kv_heads = layer._kept_size, layer.kv_heads
    # Of chosen heads the arrays hold some only, which need not share evenly.
    if layer.held_heads is not None:
        heads, kv_heads = len(layer.held_heads.numbers), len(layer.held_heads.kv_numbers)
    elif heads % max(1, kv_heads):
        raise RecordError(
            f"Layer {layer.layer}: {heads} heads cannot share {kv_heads} key/value heads evenly"
        )
    sizes = {"head": heads, "kv_head": kv_heads, "query": queries, "key": keys}
    for name in kept:
        if name == "bias":
            _check_bias(layer, heads, queries, keys)
            continue
        # Keys are as wide as the queries, which they are multiplied with; values have their own
        # width.
        as_wide_as = "queries" if name == "keys" and "queries" in kept else name
        sizes["feature"] = layer.shape_of(as_wide_as)[-1]
        shape = tuple([sizes[axis] for axis in AXES[name]])
        check_floats(held(layer, name), layer._name(name), shape, ARRAYS[name])
    _check_statistics(layer, heads, queries, keys)
    _check_maps(layer, queries, keys)


def _check_bias(layer: Layer, heads: int, queries: int, keys: int) -> None:
    shared = layer.shape_of("bias")[0]
    check_floats(held(layer, "bias"), layer._name("bias"), (shared, queries, keys), ARRAYS["bias"])
    if shared not in (1, heads):
        raise RecordError(f"{layer._name('bias')} has {shared} heads; give 1 or {heads}")


def _check_statistics(layer: Layer, heads: int, queries: int, keys: int) -> None:
    if layer.statistics is None:
        return
    if (layer.statistics.heads, *layer.statistics.size) != (heads, queries, keys):
        raise RecordError(
            f"{layer._name('statistics')} are of {layer.statistics.heads} heads and "
            f"{layer.statistics.size} queries and keys, but the arrays of {heads} heads and "
            f"{(queries, keys)}"
        )


def _check_maps(layer: Layer, queries: int, keys: int) -> None:
    """Raise unless contributions and mask have these queries and keys."""
    size = None if layer.contributions is None else layer.contributions.size
    if size is not None and size != (queries, keys):
        raise RecordError(
            f"{layer._name('contributions')} are of {size} queries and "
            f"keys, but the arrays of {(queries, keys)}"
        )
    if layer.visible.shape != (queries, keys):
        raise RecordError(
            f"{layer._name('visible')} has shape {layer.visible.shape}, but [query key] is "
            f"{(queries, keys)}"
        )


def check_values(layer: Layer, names: Iterable[str]) -> None:
    """Raise where numbers are not finite, or weights are none.

    Args:
        layer: whose arrays fit together.
        names: the arrays that are looked at.

    Raises:
        RecordError: naming the array.
    """
    for name in names:
        array = held(layer, name)
        # A record in a file must open at once: values are checked when they are read.
        if is_on_disk(array):
            continue
        if name == "weights":
            check_weights(array, layer._name(name), sinks=layer._may_be_less, dead=layer.dead)
        else:
            check_finite(array, layer._name(name))
