"""Effective attention of a captured layer."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.measures import effective_attention
from headscope.record import Layer


def effective_weights(layer: Layer) -> Float[np.ndarray, "head query key"]:
    """`headscope.measures.effective_attention` of a layer whose values were kept.

    The vectors are the values themselves: a head's part of W_O has as many independent rows as the
    head has features in every model that is at least as wide as its heads, and then values and f(x)
    have the same null space.

    Source: Brunner et al. 2020, section 3.2.

    Args:
        layer: captured with values (``keep="auto"`` or ``"values"``).

    Raises:
        RecordError: where values were not kept.
    """
    if not layer.has("values"):
        raise RecordError(
            f"Layer {layer.layer} holds no values; capture with keep='auto', or 'values' among "
            "others"
        )
    weights, values = layer.weights_of(), np.asarray(layer.values, np.float64)
    return effective_attention(np.asarray(weights, np.float64), values[layer.kv_head_of])
