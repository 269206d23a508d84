"""Scores and weights from queries and keys, in float64."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError


def scores_of(
    queries: Float[np.ndarray, "head query feature"],
    keys: Float[np.ndarray, "head key feature"],
    *,
    scale: float,
    soft_cap: float | None = None,
    bias: Float[np.ndarray, "_ query key"] | None = None,
    visible: Bool[np.ndarray, "query key"] | None = None,
) -> Float[np.ndarray, "head query key"]:
    """What goes into the softmax: ``soft_cap * tanh(q . k * scale / soft_cap) + bias``, -inf where
    not visible.
    """
    scores = queries.astype(np.float64) @ keys.astype(np.float64).swapaxes(-1, -2) * scale
    if soft_cap is not None:
        scores = soft_cap * np.tanh(scores / soft_cap)
    if bias is not None:
        scores = scores + bias
    return scores if visible is None else np.where(visible, scores, -np.inf)


def softmax_of(
    scores: Float[np.ndarray, "head query key"], sinks: Float[np.ndarray, " head"] | None = None
) -> Float[np.ndarray, "head query key"]:
    """Softmax over the keys and the sink of each head; a row of nothing but -inf becomes zero."""
    # The largest score is taken off first, so that exp cannot overflow. In a row of nothing but
    # -inf that would be -inf - -inf, which is NaN; 0 is taken off there.
    top = scores.max(axis=-1, keepdims=True)
    if sinks is not None:
        top = np.maximum(top, sinks[:, None, None])
    raised = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = raised.sum(axis=-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(sinks[:, None, None] - top)
    return raised / np.where(total > 0, total, 1.0)


RECOMPUTED = 24
"""Bytes of each weight at the peak of a softmax in double precision: scores, their exponentials
and the weights.
"""
SCORED = 8
"""Bytes of each score in double precision."""


def memory_of_machine() -> int | None:
    """Bytes of memory that this machine has; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return None


@contextmanager
def room_for(shape: tuple[int, int, int], bytes_each: int, name: str) -> Generator[None]:
    """Refuse weights that this machine cannot hold, before memory is taken where that is known.

    Args:
        shape: numbers of heads, queries and keys.
        bytes_each: bytes of each weight while it is computed.
        name: of the layer, in the message.

    Raises:
        RecordError: with what they need, and how to get them in parts.
    """
    heads, queries, keys = shape
    needed, memory = heads * queries * keys * bytes_each, memory_of_machine()
    message = (
        f"{name}: weights of {heads} {'head' if heads == 1 else 'heads'} with {queries:,} "
        f"queries and {keys:,} keys need about {needed / 1e9:,.1f} GB of memory, more than "
        "this machine has; ask for some rows with weights_of(head, queries=[...]), or for all of "
        "them in blocks with weight_blocks(head)"
    )
    if memory is not None and needed > memory:
        raise RecordError(message)
    try:
        yield
    except MemoryError:
        raise RecordError(message) from None
