"""Attention through several layers: rollout and flow, and contributions by ALTI."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from headscope.errors import HeadscopeError, RecordError
from headscope.norms._block import Block
from headscope.norms._vectors import output_vectors, residual_vectors
from headscope.record import Record, Stack, warn_changed

Quantity = Literal["weights", "attention", "residual", "output", "alti", "globenc"]
RESIDUAL_INSIDE = ("residual", "output", "alti", "globenc")
"""Quantities whose diagonal holds the residual already."""


def rollout(
    source: Any,
    quantity: Quantity = "weights",
    *,
    residual: bool | None = None,
    stack: str | None = None,
) -> Float[np.ndarray, "layer query key"]:
    """How much of each input token is in each token after every layer, if layers pass on what they
    look at.

    ``R_0 = B_0``, ``R_l = B_l R_{l-1}`` with ``B_l = A_l + I``, rows divided by their sums; A_l is
    the mean over heads. Rows sum to 1. Of ``output`` with no I added it is what Kobayashi's norms
    give rolled out; of ``globenc`` it is GlobEnc, of ``alti`` it is ALTI: their maps hold the
    residual already.

    Source: Abnar and Zuidema 2020, section 3; Modarressi et al. 2022; Ferrando et al. 2022.

    Args:
        source: a record, a stack, or maps ``[layer query key]``.
        quantity: ``"weights"``, or a kind of contributions, for which the record was captured with
            ``keep="norms"``.
        residual: whether I is added; by default where the quantity does not hold the residual.
            Norms (``attention``) are first divided by the sums of rows then, so that I weighs as
            much as all of them.
        stack: name of a stack of the record; may be left out where it has one alone.

    Raises:
        RecordError: where there is no map for each layer, or queries and keys are different tokens.

    Example:
        >>> rollout(np.array([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]]))[1].tolist()
        [[1.0, 0.0], [0.625, 0.375]]
    """
    steps = steps_of(source, quantity, residual, stack)
    rolled = np.empty_like(steps)
    whole = np.eye(steps.shape[1])
    # The later layer stands on the left: its queries look at what the layers before handed on.
    for layer, step in enumerate(steps):
        rolled[layer] = whole = step @ whole
    return rolled


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
    chosen = range(size) if queries is None else queries
    chosen = list(chosen) if isinstance(chosen, Iterable) else [chosen]
    if layer not in range(-layers, layers) or any(each not in range(size) for each in chosen):
        raise RecordError(
            f"There are layers 0 to {layers - 1} and tokens 0 to {size - 1}; not {layer} and "
            f"{chosen}"
        )
    # Nodes are (layer, token), the input tokens at layer 0; edges lead back to what is looked at.
    last = layer % layers
    network = _network(steps[: last + 1])
    flows = np.zeros((len(chosen), size))
    for row, key in np.ndindex(flows.shape):
        flows[row, key] = _most(network, (last + 1, chosen[row]), (0, key)) / WHOLE
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


def alti(block: Block) -> Float[Any, "*text query key"]:
    """ALTI: ``c_ij = max(0, ||y_i||_1 - ||y_i - T_ij||_1)``, rows divided by their sum.

    y_i is the norm's output, shift and b_O included as in the release, T_ij the vectors of
    `output_norms`; where no norm follows, the residual stream and the vectors of `residual_norms`
    (ours). The deviation is that of the norm itself; the release takes ``(p + eps).std()`` with n -
    1, off by ``sqrt((d - 1) / d)``. A row in which no piece comes nearer to the whole than nothing
    does is all zero; so where queries and keys are different tokens, rows sum to less than 1: the
    rest is the residual's.

    Source: Ferrando et al. 2022, section 3.2; for cross-attention Ferrando et al. 2022 (ALTI+),
    section 3.

    Raises:
        RecordError: where the block has no residual.
    """
    block = block.in_double  # what is left of the whole is a small difference of sums
    added = residual_vectors(block) if block.after is None else output_vectors(block)
    whole = block.normed
    length = abs(whole).sum(-1)
    near = block.weights[..., 0, :, :] * 0
    # Vectors of all pairs at once would take query x key x model numbers.
    texts = math.prod(whole.shape[:-2])
    for keys in block.tiles(block.size[2], 4 * texts * block.size[1] * block.size[3]):
        apart = abs(whole[..., None, :, :] - added.vectors(keys)).sum(-1)
        near[..., keys] = (length[..., None, :] - apart).swapaxes(-2, -1)
    near = near.clip(0)
    sums = near.sum(-1)
    # Of different tokens the residual is no key's, but takes its share of the whole all the same.
    if not block.same:
        sums = sums + (length - abs(whole - added.own).sum(-1)).clip(0)
    return near / (sums + (sums == 0))[..., None]


def steps_of(
    source: Any, quantity: Quantity, residual: bool | None, stack: str | None = None
) -> Float[np.ndarray, "layer query key"]:
    """What each layer passes on, rows summing to 1: ``A + I`` or ``A``, divided by the sums of
    rows.

    Args:
        source: a record with one stack, a stack, or an array ``[layer query key]``.
        quantity: of a record: the mean of the weights over heads, or a map of its contributions.
        residual: whether I is added; None for where the quantity does not hold it.
        stack: name of a stack of the record; None where it has one alone.

    Raises:
        RecordError: where there is no map for each layer, or queries and keys are different tokens.
    """
    if quantity not in get_args(Quantity):
        raise RecordError(
            f"There is no quantity {quantity!r}; there are {', '.join(get_args(Quantity))}"
        )
    if isinstance(source, Record | Stack):
        own = _stack_of(source, stack)
        warn_changed("attention through layers", [Record(stacks={own.name: own}).changed])
        maps = maps_of(own, quantity)
    else:
        maps = np.asarray(source)
    if maps.ndim != 3 or maps.shape[1] != maps.shape[2]:
        raise RecordError(
            f"Expected maps [layer query key] with the same tokens on both sides, not {maps.shape}"
        )
    maps = np.array(maps, np.float64)
    if not np.isfinite(maps).all() or maps.min(initial=0.0) < 0:
        raise RecordError("Maps must be finite and not negative")
    residual = quantity not in RESIDUAL_INSIDE if residual is None else residual
    if residual:
        # Norms have no sum of their own; rows are made to sum to 1, so that I weighs as much.
        if quantity == "attention":
            maps = _even(maps)
        maps = maps + np.eye(maps.shape[1])
    return _even(maps)


def _even(maps: np.ndarray) -> np.ndarray:
    """Rows divided by their sums; a row of nothing stays one."""
    sums = maps.sum(axis=-1, keepdims=True)
    return np.divide(maps, sums, out=np.zeros_like(maps), where=sums > 0)


def _stack_of(source: Record | Stack, name: str | None) -> Stack:
    if isinstance(source, Stack):
        return source
    if name is not None:
        return source[name]
    if len(source.stacks) > 1:
        listed = ", ".join(map(repr, source.stacks))
        raise RecordError(f"This record has the stacks {listed}; give one with stack=")
    return next(iter(source.stacks.values()))


def maps_of(stack: Stack, quantity: Quantity) -> np.ndarray:
    """A map of each layer, for results that name themselves what was changed of the model."""
    if stack.query != stack.key:
        raise RecordError(
            f"Stack {stack.name!r} looks at other tokens; what flows through it cannot be "
            "followed back"
        )
    numbers = [layer.layer for layer in stack]
    if numbers != list(range(len(numbers))):
        gaps = sorted(set(range(numbers[-1])) - set(numbers))
        raise RecordError(
            f"Stack {stack.name!r} has no attention in layers {gaps}; nothing is known of what "
            "flows there"
        )
    if quantity == "weights":
        return np.stack([layer.weights_of().mean(axis=0, dtype=np.float64) for layer in stack])
    return np.stack([np.asarray(layer.contributions_of(quantity), np.float64) for layer in stack])
