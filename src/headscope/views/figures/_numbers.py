"""The numbers that figures draw."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from headscope.record import Layer
from headscope.views.figures._quantity import DrawnQuantity
from headscope.views.figures._sinks import without_keys

Numbers = Float[np.ndarray, "head query key"]


def numbers_of(
    layer: Layer, heads: tuple[int, ...], shown: DrawnQuantity, without: tuple[int, ...] = ()
) -> Numbers:
    """The numbers of some heads in float64, NaN where a query may not look; a single map for a
    quantity of all heads together.

    Args:
        layer: the layer.
        heads: the heads.
        shown: the quantity.
        without: keys whose weights are left out, the rest of each row renormalised.

    Raises:
        RecordError: scores of a layer that keeps no queries and keys.
    """
    values = shown.of(layer, heads)
    if not layer.visible.is_full:
        values[:, ~np.asarray(layer.visible, bool)] = np.nan
    values[np.isinf(values)] = np.nan
    return without_keys(values, without) if without and shown.weights else values


def even_of(
    layer: Layer, shown: DrawnQuantity, without: tuple[int, ...] = ()
) -> Float[np.ndarray, "query key"]:
    """What even attention gives: each query the same to every key that it sees; NaN where it may
    not look.

    Args:
        layer: the layer.
        shown: the quantity.
        without: keys whose weights are left out.
    """
    even = shown.combined.of(layer, _even)[0]
    even = np.where(np.asarray(layer.visible, bool), even, np.nan)
    return without_keys(even[None], without)[0] if without else even


def _even(layer: Layer) -> Numbers:
    """Even attention between the tokens of a layer, 0 where a query may not look."""
    seen = np.asarray(layer.visible, bool)
    return (seen / np.maximum(seen.sum(axis=-1, keepdims=True), 1))[None]


def lifts_of(values: np.ndarray, even: np.ndarray) -> np.ndarray:
    """Weights as multiples of what even attention gives; 0 where it gives nothing."""
    return np.where(np.isnan(values), np.nan, values / np.where(even > 0, even, np.inf))


def mean_of(values: Float[np.ndarray, "*axes"], axis: int = 0) -> Float[np.ndarray, "*less"]:
    """Mean over an axis without hidden numbers; NaN where all are hidden."""
    # np.nanmean would do the same, but warns where all are hidden.
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    total = np.where(there, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def largest_of(values: np.ndarray) -> float:
    """Largest magnitude, hidden numbers left out; 0 where there is none."""
    return float(np.nanmax(np.abs(values), initial=0.0, where=~np.isnan(values)))


def pooled(
    values: Float[np.ndarray, "query key"], most: int, *, mean: bool = False
) -> Float[np.ndarray, "row column"]:
    """At most so many rows and columns, each cell the number of largest magnitude in its block, or
    the mean of its numbers.
    """
    for axis in (0, 1):
        count = values.shape[axis]
        if count > most:
            starts = np.arange(most) * count // most
            if mean:
                there = np.add.reduceat((~np.isnan(values)).astype(float), starts, axis=axis)
                total = np.add.reduceat(np.nan_to_num(values), starts, axis=axis)
                values = np.where(there > 0, total / np.maximum(there, 1), np.nan)
                continue
            # fmax and fmin skip NaN, so that a block is hidden only where all of it is.
            high = np.fmax.reduceat(values, starts, axis=axis)
            low = np.fmin.reduceat(values, starts, axis=axis)
            values = np.where(np.abs(low) > np.abs(high), low, high)
    return values


def pooling_words(*, mean: bool, signed: bool) -> str:
    """A note about cells that stand for several numbers."""
    if mean:
        return "each cell is the mean of its block"
    return f"each cell is the largest of its block{', by magnitude' if signed else ''}"


def top_share(sizes: Numbers, share: int) -> Bool[np.ndarray, "head query key"]:
    """The strongest keys of each row up to a share of its mass, in percent.

    Those that equal the weakest one kept are kept too, so that nothing depends on the order of the
    keys; what is 0 is never kept.
    """
    ordered = -np.sort(-sizes, axis=-1)
    # A key is needed while those before it do not yet reach the share. The small reduction keeps
    # rounding errors of the sum from adding a last, tiny key.
    before = np.cumsum(ordered, axis=-1) - ordered
    needed = before < share / 100 * sizes.sum(axis=-1, keepdims=True) * (1 - 1e-9)
    weakest = np.where(needed, ordered, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    return (sizes >= weakest) & (sizes > 0)


def affordable_share(sizes: Numbers, seen: Bool[np.ndarray, "head query key"], budget: int) -> int:
    """The largest share in percent with no more visible lines than the budget, but at least 1."""
    order = np.argsort(-sizes, axis=-1, kind="stable")
    ordered = np.take_along_axis(sizes, order, axis=-1)
    mass = sizes.sum(axis=-1, keepdims=True)
    before = (np.cumsum(ordered, axis=-1) - ordered) / np.where(mass > 0, mass, 1)
    first = np.sort(before[np.take_along_axis(seen, order, axis=-1)])
    for share in range(100, 1, -1):
        if np.searchsorted(first, share / 100) <= budget:
            return share
    return 1
