"""Scores and weights from queries and keys, in float64."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError
from headscope.record._checks import check_weights, is_on_disk
from headscope.record._mask import Mask
from headscope.record._stored import held

if TYPE_CHECKING:
    from headscope.record._layer import Layer


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


NUMBERS = 2**18
"""Weights of a block: 1 MiB in single precision, which stays in the cache of a core."""
FEWEST_ROWS = 32
"""Rows of a block at least: with fewer, a product of matrices is as slow as those of vectors."""


@dataclass(frozen=True, eq=False)
class WeightBlock:
    """Rows of the weights of one head.

    Args:
        queries: ``[query]``, positions of the rows.
        keys: the keys that the weights are of; on all others these rows have no weight.
        weights: ``[query key]``, in single precision.
    """

    queries: Int[np.ndarray, " query"]
    keys: slice
    weights: Float[np.ndarray, "query key"]


def weight_blocks(
    layer: Layer, head: int, queries: Int[np.ndarray, " query"], rows: int | None
) -> Iterator[WeightBlock]:
    """The blocks of `Layer.weight_blocks`, whose arguments were checked."""
    if rows is None:
        rows = max(FEWEST_ROWS, NUMBERS // max(1, layer.size[1]))
    parts = (queries[first : first + rows] for first in range(0, len(queries), rows))
    if layer.has("weights"):
        keys = slice(0, layer.size[1])
        for part in parts:
            weights = _kept(layer, head, part)
            yield WeightBlock(part, keys, weights.astype(np.float32, copy=False))
        return
    recomputed = _Recomputed.of(layer, head)
    yield from (recomputed.block(part) for part in parts)


def _kept(
    layer: Layer, head: int, queries: Int[np.ndarray, " query"]
) -> Float[np.ndarray, "query key"]:
    # Neighbours as a slice: a file is then read at once, and an array is not copied.
    near = bool((np.diff(queries) == 1).all()) and len(queries) > 0
    index = slice(int(queries[0]), int(queries[-1]) + 1) if near else queries
    weights = layer.part("weights", head, index)
    if is_on_disk(held(layer, "weights")):
        name, dead = layer._name("weights"), layer.dead[queries]
        check_weights(weights[None], name, sinks=layer._may_be_less, dead=dead)
    return weights


def exact_rows(
    layer: Layer, head: int, queries: Int[np.ndarray, " query"]
) -> Float[np.ndarray, "query key"]:
    """Rows of the weights of one head: kept ones, or recomputed in double precision."""
    if layer.has("weights"):
        return _kept(layer, head, queries)
    bias = None
    if layer.has("bias"):
        row = head if layer._has_axis_of_heads("bias") else 0
        bias = layer._finite_part("bias", row, queries)[None]
    scores = scores_of(
        layer._finite_part("queries", head, queries)[None],
        layer._finite_part("keys", int(layer.kv_head_of[head]))[None],
        scale=layer.scale,
        soft_cap=layer.soft_cap,
        bias=bias,
        visible=None if layer.visible.is_full else layer.visible.rows(queries),
    )
    sinks = layer.part("sinks", [head]) if layer.has("sinks") else None
    return softmax_of(scores, sinks)[0]


def sampled_queries(queries: int, most: int, *, first: int = 0) -> Int[np.ndarray, " query"]:
    """Rising positions of queries: all of them where there are no more than ``most``, else the
    ``first`` ones and others drawn at random, the same at every call.
    """
    if queries <= most:
        return np.arange(queries)
    # Drawn, not every so manieth: texts have periods, of lines and of verses.
    drawn = np.random.default_rng(queries).choice(queries - first, most - first, replace=False)
    return np.concatenate([np.arange(first), first + np.sort(drawn)])


def sampled_in_rows(
    starts: Int[np.ndarray, " row"], queries: int, most: int
) -> Int[np.ndarray, " query"]:
    """Rising positions of ``most`` queries of each row at most, drawn as by `sampled_queries`.

    Args:
        starts: first query of each row.
        queries: how many there are.
        most: of each row.
    """
    ends = [*starts[1:].tolist(), queries]
    rows = zip(starts.tolist(), ends, strict=True)
    return np.concatenate([first + sampled_queries(end - first, most) for first, end in rows])


@dataclass(frozen=True, eq=False)
class _Recomputed:
    """Queries and keys of one head in single precision, and what else its weights follow from."""

    layer: Layer
    head: int
    queries: Float[np.ndarray, "query feature"]
    keys: Float[np.ndarray, "feature key"]
    sink: np.float32 | None

    @classmethod
    def of(cls, layer: Layer, head: int) -> _Recomputed:
        queries = layer._finite_part("queries", head)
        keys = layer._finite_part("keys", int(layer.kv_head_of[head]))
        return cls(
            layer,
            head,
            # The scale goes into the queries, which are fewer numbers than the scores.
            queries=(queries.astype(np.float64) * layer.scale).astype(np.float32),
            keys=np.ascontiguousarray(keys.astype(np.float32, copy=False).T),
            sink=np.float32(layer.part("sinks", [head])[0]) if layer.has("sinks") else None,
        )

    def block(self, queries: Int[np.ndarray, " query"]) -> WeightBlock:
        """Weights of these queries with all keys that one of them sees."""
        keys, hidden = span_of(self.layer.visible, queries)
        scores = self.queries[queries] @ self.keys[:, keys]
        if self.layer.soft_cap is not None:
            scores = np.float32(self.layer.soft_cap) * np.tanh(scores / self.layer.soft_cap)
        if self.layer.has("bias"):
            row = self.head if self.layer._has_axis_of_heads("bias") else 0
            scores += self.layer._finite_part("bias", row, queries, keys)
        for rows, unseen in hidden:
            scores[:, rows][unseen] = -np.inf
        return WeightBlock(queries, keys, _softmax(scores, self.sink))


def span_of(
    visible: Mask, queries: Int[np.ndarray, " query"]
) -> tuple[slice, list[tuple[slice, Bool[np.ndarray, "query key"]]]]:
    """The keys from the first to the last that one of these queries sees, and where within these
    keys a query sees nothing.

    Returns:
        the keys; and for each stretch of them in which not all is seen its place within the keys,
        and True where the query may not look.
    """
    counts = visible.firsts[queries + 1] - visible.firsts[queries]
    if not counts.any():
        return slice(0, 0), []
    seeing = queries[counts > 0]
    starts = visible.runs[visible.firsts[seeing], 0]
    stops = visible.runs[visible.firsts[seeing + 1] - 1, 1]
    first, last = int(starts.min()), int(stops.max())
    keys = slice(first, last)
    if (counts != 1).any():
        return keys, [(slice(0, last - first), ~visible.rows(queries)[:, keys])]
    # One run for each query, as of causal and sliding attention: only at the ends of the runs some
    # queries see what others do not, and the many keys between need no mask.
    head, tail = int(starts.max()), int(stops.min())
    if head >= tail:
        at = np.arange(first, last)
        return keys, [(slice(0, last - first), (at < starts[:, None]) | (at >= stops[:, None]))]
    before = np.arange(first, head) < starts[:, None]
    after = np.arange(tail, last) >= stops[:, None]
    return keys, [(slice(0, head - first), before), (slice(tail - first, last - first), after)]


def _softmax(
    scores: Float[np.ndarray, "query key"], sink: np.float32 | None
) -> Float[np.ndarray, "query key"]:
    """Softmax over keys and sink, in place; a row of nothing but -inf becomes zero."""
    if not scores.size:
        return scores
    top = scores.max(axis=1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, sink)
    top[~np.isfinite(top)] = 0.0
    np.subtract(scores, top, out=scores)
    np.exp(scores, out=scores)
    total = scores.sum(axis=1, keepdims=True)
    if sink is not None:
        total += np.exp(sink - top)
    total[total == 0] = 1.0
    scores *= 1 / total
    return scores
