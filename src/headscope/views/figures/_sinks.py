"""Keys that take most of the attention, by the rule of the live viewer."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from jaxtyping import Float

from headscope.record import Layer
from headscope.views.constants import SINK_PART, SINK_TIMES


def find_sinks(layer: Layer, heads: Collection[int]) -> dict[int, float]:
    """The share of these heads' attention that goes to each sink, the strongest first."""
    received = np.mean(
        [np.asarray(layer.weights_of(head), np.float64).sum(axis=0) for head in heads], axis=0
    )
    total = received.sum()
    if total == 0:
        return {}
    parts = received / total
    # In a short text each key gets much anyway: it must also get several times its even share.
    least = max(SINK_PART, SINK_TIMES / len(parts))
    return {
        int(key): float(parts[key])
        for key in np.argsort(-parts, kind="stable")
        if parts[key] >= least
    }


def without_keys(
    values: Float[np.ndarray, "head query key"], keys: Collection[int]
) -> Float[np.ndarray, "head query key"]:
    """Weights with some keys left out, each row renormalised to the sum that it had; zero where
    nothing is left.

    Args:
        values: weights, NaN where a query may not look.
        keys: positions of the keys that are left out.
    """
    weights = values.copy()
    weights[:, :, list(keys)] = 0
    before, after = (
        np.nansum(values, axis=-1, keepdims=True),
        np.nansum(weights, axis=-1, keepdims=True),
    )
    return weights * np.where(after > 0, before / np.where(after > 0, after, 1), 0)
