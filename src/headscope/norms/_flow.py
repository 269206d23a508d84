"""Attention flow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import HeadscopeError, RecordError
from headscope.norms._maps import Quantity, steps_of

WHOLE = 2**52
"""What a capacity of 1 is as a whole number."""


def flow(
    source: Any,
    quantity: Quantity = "weights",
    *,
    layer: int = -1,
    queries: Iterable[int] | None = None,
    residual: bool | None = None,
    stack: str | None = None,
) -> Float[np.ndarray, "query key"]:
    """The most that could flow from each token after a layer back to each input token, rows divided
    by their sums.

    Nodes are the tokens after each layer, and capacities ``B_l[query, key]`` as in `rollout`; each
    value is a maximum flow of its own. After the first layer it equals B_0. Time grows with layers
    squared and the fourth power of the length: seconds for 20 tokens, minutes for 50.

    NetworkX computes it (it comes with torch): capacities become whole numbers, 2^52 for 1, of
    which Python has no largest, so each flow is exact but for that rounding. SciPy's `maximum_flow`
    has 32 bits only.

    Source: Abnar and Zuidema 2020, section 3.

    Args:
        source: as of `rollout`.
        quantity: as of `rollout`.
        layer: after which layer.
        queries: which tokens; by default all.
        residual: as of `rollout`.
        stack: as of `rollout`.

    Raises:
        RecordError: as of `rollout`, or where there is no such layer or token.
        HeadscopeError: where NetworkX is not installed.

    Example:
        >>> flow(np.array([[[1.0, 0.0], [0.5, 0.5]]]), layer=0).tolist()
        [[1.0, 0.0], [0.25, 0.75]]
    """
    steps = steps_of(source, quantity, residual, stack)
    layers, size = steps.shape[:2]
    last = layer + layers if layer < 0 else layer
    chosen = list(range(size)) if queries is None else list(queries)
    if not 0 <= last < layers or not all(0 <= query < size for query in chosen):
        raise RecordError(
            f"There are layers 0 to {layers - 1} and tokens 0 to {size - 1}; not {layer} and "
            f"{chosen}"
        )
    # Nodes are (layer, token), the input tokens at layer 0; edges lead back to what is looked at.
    network = _network(steps[: last + 1])
    flows = np.zeros((len(chosen), size))
    for row, query in enumerate(chosen):
        for key in range(size):
            flows[row, key] = _most(network, (last + 1, query), (0, key)) / WHOLE
    sums = flows.sum(axis=-1, keepdims=True)
    return np.divide(flows, sums, out=np.zeros_like(flows), where=sums > 0)


def _network(steps: Float[np.ndarray, "layer query key"]) -> Any:
    try:
        from networkx import DiGraph
    except ImportError:
        raise HeadscopeError("flow needs NetworkX: pip install 'headscope[statistics]'") from None
    network = DiGraph()
    capacities = np.rint(steps * WHOLE).astype(np.int64)
    network.add_nodes_from(
        (layer, token) for layer in range(len(steps) + 1) for token in range(steps.shape[1])
    )
    for layer, query, key in np.argwhere(capacities > 0).tolist():
        network.add_edge(
            (layer + 1, query), (layer, key), capacity=int(capacities[layer, query, key])
        )
    return network


def _most(network: Any, source: tuple[int, int], sink: tuple[int, int]) -> int:
    from networkx.algorithms.flow import shortest_augmenting_path

    if not network.in_degree(sink) or not network.out_degree(source):
        return 0
    return shortest_augmenting_path(network, source, sink, value_only=True).graph["flow_value"]
