"""What an array of a record must be like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.errors import RecordError
from headscope.record._stored import StoredArray, held

if TYPE_CHECKING:
    from headscope.record._layer import Layer


ROW_SUM_TOLERANCE = 5e-3
"""How far a row may be from 1; weights that a model computed in bfloat16 are off by up to
2.5e-3.
"""

BLOCK = 2**17
"""Weights that are looked at together."""


def frozen(array: np.ndarray | StoredArray) -> Any:
    """A view that cannot be written to; what stays in a file cannot anyway."""
    if isinstance(array, StoredArray):
        return array
    view = np.asanyarray(array).view()
    view.flags.writeable = False
    return view


def is_on_disk(array: np.ndarray | StoredArray) -> bool:
    """Whether the array is in a file (or a window on one), so that its values are checked when they
    are read.
    """
    if isinstance(array, StoredArray):
        return True
    # A slice or a view of a memory map has it for its base, possibly through several views.
    while not isinstance(array, np.memmap):
        if not isinstance(array.base, np.ndarray):
            return False
        array = array.base
    return True


def check_floats(
    array: np.ndarray | StoredArray, name: str, shape: tuple[int, ...], axes: str
) -> None:
    """Raise unless the array is of floating point and has this shape.

    Raises:
        RecordError: naming the array, what was given and what was wanted.
    """
    if not isinstance(array, np.ndarray | StoredArray) or array.dtype.kind != "f":
        given = array.dtype if isinstance(array, np.ndarray | StoredArray) else type(array).__name__
        raise RecordError(f"{name} must be a NumPy array of floating point, not {given}")
    if array.shape != shape:
        raise RecordError(
            f"{name} has shape {array.shape}, but [{axes}] is {shape}; do the tokens belong to "
            "this array?"
        )


def check_finite(array: np.ndarray, name: str) -> None:
    """Raise where a value is NaN or infinite."""
    if array.dtype == np.float32 and array.flags.c_contiguous:
        flat = array.reshape(-1)
        # Half as long as to look at each: the sum of the squares is finite where all values are,
        # but for values above 1e19.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(np.dot(flat, flat)):
                return
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise RecordError(f"{name} holds {array[where]} at {list(where)}; each must be finite")


def check_weights(weights: np.ndarray, name: str, *, sinks: bool, dead: np.ndarray) -> None:
    """Raise where a weight is not finite or negative, or where a row does not sum to 1.

    Args:
        weights: axes head, query, key (any number of heads).
        name: what to call them in the message.
        sinks: whether rows may sum to less than 1, the rest having gone to a learned sink.
        dead: axes query; True where a query may look at nothing and its row is all zero.
    """
    sums, smallest = _sums_and_smallest(weights)
    # A weight that is not finite makes the sum of its row so: the sums are looked at first, as
    # isfinite of all weights would take an array of their size.
    if not np.isfinite(sums).all():
        check_finite(weights, name)
    if smallest < 0:
        where = tuple(int(i) for i in np.argwhere(weights < 0)[0])
        raise RecordError(
            f"{name} holds the negative weight {weights[where]:.3g} at {list(where)}; are these "
            "scores before softmax?"
        )
    low, high = (0.0 if sinks else 1 - ROW_SUM_TOLERANCE), 1 + ROW_SUM_TOLERANCE
    wrong = ~dead[None, :] & ((sums < low) | (sums > high))
    if wrong.any():
        head, query = (int(i) for i in np.argwhere(wrong)[0])
        raise RecordError(
            f"{name}: head {head}, query {query} sums to {sums[head, query]:.4g}; "
            f"{_hint(weights, head, query)}"
        )


def _hint(weights: np.ndarray, head: int, query: int) -> str:
    """What is probably wrong with a row that does not sum to 1."""
    # Columns that sum to 1 tell that queries and keys were given the wrong way round.
    if query < weights.shape[2] and abs(weights[head, :, query].sum() - 1) < ROW_SUM_TOLERANCE:
        return "the axes must be [head query key]"
    return (
        "rows must sum to 1 over the keys; for padding, cut the padded tokens off; where "
        "only part of each row was kept, give from_weights(..., partial=True)"
    )


def _sums_and_smallest(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Sums of the rows ``[head query]`` and the smallest weight, in blocks that stay in the
    processor's cache.
    """
    heads, queries, keys = weights.shape
    dtype = np.promote_types(weights.dtype, np.float32)
    # all heads in one piece of memory are gone through without regard to where one ends
    parts = [weights.reshape(-1, keys)] if weights.flags.c_contiguous else list(weights)
    sums, smallest, ones = [np.empty(0, dtype)], 0.0, np.ones(keys, dtype)
    rows = max(1, BLOCK // max(1, keys))
    for part in parts:
        for first in range(0, len(part), rows):
            block = part[first : first + rows].astype(dtype, copy=False)
            # A product takes a quarter of the time of NumPy's sums over short rows. OpenBLAS 0.3.31
            # reads memory that nothing was written to where rows have five numbers: the product is
            # right, but NumPy warns of what was read.
            with np.errstate(invalid="ignore"):
                sums.append(block @ ones)
            smallest = min(smallest, block.min(initial=0.0))
    return np.concatenate(sums).reshape(heads, queries), float(smallest)


def check_number(what: str, given: Any) -> None:
    """Raise where something is no whole number; True and 1.0 are none.

    Raises:
        RecordError: with what was given.
    """
    if isinstance(given, bool | np.bool_) or not isinstance(given, Integral):
        raise RecordError(
            f"{what} is {given!r}; give one whole number from 0, or none at all for all of them"
        )


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
    sizes_of: dict[str, Any] = {"visible": layer.visible.shape}
    if layer.contributions is not None and layer.contributions.size is not None:
        sizes_of["contributions"] = layer.contributions.size
    if layer.statistics is not None:
        sizes_of["statistics"] = (layer.statistics.heads, *layer.statistics.size)
    for name, size in sizes_of.items():
        wanted = (heads, queries, keys)[-len(size) :]
        if size != wanted:
            raise RecordError(f"{layer._name(name)} has shape {size}, but the arrays have {wanted}")


def _check_bias(layer: Layer, heads: int, queries: int, keys: int) -> None:
    shared = layer.shape_of("bias")[0]
    check_floats(held(layer, "bias"), layer._name("bias"), (shared, queries, keys), ARRAYS["bias"])
    if shared not in (1, heads):
        raise RecordError(f"{layer._name('bias')} has {shared} heads; give 1 or {heads}")


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


FEW = 4
"""So many missing heads are named."""


@dataclass(frozen=True)
class HeldHeads:
    """The heads of a layer that were kept; the others were computed, and are not in the record.

    Args:
        numbers: their numbers in the model, rising.
        heads: how many the layer has in the model.
        kv_heads: how many key/value heads it has there.

    Raises:
        RecordError: where there are no such heads.
    """

    numbers: tuple[int, ...]
    heads: int
    kv_heads: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", tuple(self.numbers))
        rising = sorted(set(self.numbers)) == list(self.numbers)
        if not self.numbers or not rising or self.numbers[0] < 0 or self.numbers[-1] >= self.heads:
            raise RecordError(
                f"Of {self.heads} heads {list(self.numbers)} were kept; give rising numbers of some"
            )
        if self.kv_heads < 1 or self.heads % self.kv_heads:
            raise RecordError(
                f"{self.heads} heads cannot share {self.kv_heads} key/value heads evenly"
            )

    @property
    def kv_numbers(self) -> tuple[int, ...]:
        """Numbers of the key/value heads that the heads use, each once."""
        # Neighbouring heads share, as in `Layer.kv_head_of`; dict.fromkeys keeps the order.
        return tuple(dict.fromkeys(number * self.kv_heads // self.heads for number in self.numbers))

    def indices(self, wanted: Iterable[int], name: str, *, shared: bool = False) -> list[int]:
        """Where heads stand among those that were kept.

        Args:
            wanted: their numbers in the model.
            name: of the layer, for the error.
            shared: whether these are numbers of key/value heads.

        Raises:
            RecordError: where one was not kept.
        """
        kept, what = (self.kv_numbers, "key/value head") if shared else (self.numbers, "head")
        missing = [int(number) for number in wanted if number not in kept]
        if missing:
            listed, most = ", ".join(map(str, kept)), self.kv_heads if shared else self.heads
            lacking = ", ".join(map(str, missing)) if len(missing) <= FEW else "all of them"
            raise RecordError(
                f"{name} holds {what}{'s' * (len(kept) > 1)} {listed} of {most}, and not "
                f"{lacking}: it was captured with heads=; ask for what it holds, or capture "
                "without heads="
            )
        return [kept.index(number) for number in wanted]
