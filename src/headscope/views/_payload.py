"""The arrays of one layer, in the form that is smallest.

Where a page has room for queries and keys, it holds them: the neuron view needs them, and weights
that are recomputed from them are more exact than one byte for each. In larger pages a layer is held
as queries and keys or as bytes of the weights, whichever is smaller when compressed.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from headscope.axes import FEATURE, HEAD, KEY, KV_HEAD, QUERY
from headscope.patterns import TextFacts
from headscope.record import Layer, WeightBlock, sampled_queries
from headscope.record.recompute import scores_of, softmax_of
from headscope.views._head_pictures import (
    ERROR_QUERIES,
    MEASURED_QUERIES,
    HeadPictures,
    head_pictures,
)
from headscope.views._thumbs import Blocks, decoded, quantise
from headscope.views.contract import PageArray, PageLayer, PageScores

MOST_ERROR = 1 / 255
"""Largest error of a weight that is recomputed from queries and keys; where it is larger, bytes of
the weights, which err by less, are held instead.
"""
LARGEST_FLOAT16 = 2.0**15
"""The largest power of two in half precision, whose largest number is 65504."""
SURELY_SMALLER = 8
"""Bytes of weights for each byte of queries and keys beyond which compressing both is not worth the
time.
"""
ROUNDING = 2e-6
"""Error that the browser's single precision may add."""


def described(
    chunk: str, axes: Iterable[str], shape: Iterable[int], dtype: str, **more: Any
) -> PageArray:
    """The header's description of an array; ``encoding`` is ``"plain"`` unless it is given."""
    of = {"chunk": chunk, "axes": list(axes), "shape": list(shape), "dtype": dtype}
    return cast("PageArray", {**of, "encoding": "plain", **more})


@dataclass
class Chunks:
    """The bytes of a page; an array that several layers share is held once."""

    by_name: dict[str, bytes] = field(default_factory=dict)
    _names: dict[tuple, str] = field(default_factory=dict)

    def add(
        self, name: str, array: np.ndarray, axes: Iterable[str], *, sqrt: bool = False
    ) -> PageArray:
        """Keep the bytes of an array, and return the header's description of them."""
        # Typed arrays of browsers read the byte order of their machine, which is little-endian.
        stored = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        data = stored.tobytes()
        # Layers often share their mask: equal arrays get the name of the first of them.
        kept = self._names.setdefault((data, stored.shape, stored.dtype.str), name)
        self.by_name[kept] = data
        encoding = "sqrt" if sqrt else "plain"
        return described(kept, axes, stored.shape, stored.dtype.name, encoding=encoding)

    def add_pictures(self, name: str, pictures: Iterable[np.ndarray]) -> list[PageArray]:
        """Keep pictures, and return their descriptions; axes row, column, channel."""
        return [
            self.add(f"{name}/{at}", picture, ("row", "column", "channel"))
            for at, picture in enumerate(pictures)
        ]


@dataclass(frozen=True)
class HalfScores:
    """Queries and keys in half precision, and everything else that scores are computed from."""

    queries: np.ndarray
    keys: np.ndarray
    scale: float
    bias: np.ndarray | None
    sinks: np.ndarray | None

    @classmethod
    def of(cls, layer: Layer, heads: list[int], *, single: bool = False) -> HalfScores | None:
        """Scores of some heads of a layer, with ``single`` in single precision; None where the
        layer holds no queries and keys.
        """
        if not layer.has("queries") or not layer.has("keys"):
            return None
        shorten = _single if single else _half
        queries, query_factor = shorten(_rows(layer, "queries", heads))
        keys, key_factor = shorten(_rows(layer, "keys", _shared(layer, heads)))
        bias = sinks = None
        if layer.has("bias"):
            # The bias of these heads, or the one that all heads share.
            shared = layer.shape_of("bias")[0] == 1
            bias = layer.part("bias", [0]) if shared else _rows(layer, "bias", heads)
            bias = _short(bias, np.float32 if single else np.float16)
        if layer.has("sinks"):
            sinks = np.asarray(_rows(layer, "sinks", heads), np.float64)
        return cls(queries, keys, layer.scale * query_factor * key_factor, bias, sinks)

    @property
    def arrays(self) -> list[np.ndarray]:
        """The arrays that a page holds."""
        return [array for array in (self.queries, self.keys, self.bias) if array is not None]

    @property
    def size(self) -> int:
        """Bytes before compression."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def packed(self) -> int:
        """Approximate number of bytes after compression."""
        return sum(map(_packed_size, self.arrays))

    def weights(
        self, layer: Layer, position: int, queries: Int[np.ndarray, " query"]
    ) -> Float[np.ndarray, "query key"]:
        """Rows of the weights that the page will recompute for the head at this position among its
        own.
        """
        # `_shared` holds each key head once where heads divide evenly among them, else one for each
        # head. This formula gives the right one in both cases.
        shared = position * self.keys.shape[0] // self.queries.shape[0]
        bias = self.bias
        if bias is not None:
            part = slice(None) if bias.shape[0] == 1 else slice(position, position + 1)
            bias = _dense(bias[part].astype(np.float64), layer.size, queries)
        scores = scores_of(
            self.queries[position : position + 1, queries],
            self.keys[shared : shared + 1],
            scale=self.scale,
            soft_cap=layer.soft_cap,
            bias=bias,
            visible=None if layer.visible.is_full else layer.visible.rows(queries),
        )
        return softmax_of(
            scores, None if self.sinks is None else self.sinks[position : position + 1]
        )[0]

    def measured(self, layer: Layer, heads: list[int]) -> float:
        """The largest error of a weight recomputed from these arrays: of a long text over
        `ERROR_QUERIES` of its queries, the first ones among them, which see fewest keys and so have
        the largest weights.
        """
        count = layer.size[0]
        most = count if count <= MEASURED_QUERIES else ERROR_QUERIES
        queries = sampled_queries(count, most, first=most // 4)
        error = 0.0
        for at in held_positions(layer, heads):
            # Rows in parts, as both sides are in double precision.
            for part in np.array_split(queries, -(-len(queries) * layer.size[1] // 2**20) or 1):
                exact = layer.weights_of(heads[at], queries=part)
                away = np.abs(self.weights(layer, at, part) - exact).max(initial=0)
                error = max(error, float(away))
        return error + ROUNDING


@dataclass
class WeightBytes:
    """The weights of some heads as bytes, and the largest error of one."""

    array: np.ndarray
    error: float = 0.0

    @classmethod
    def empty(cls, layer: Layer, heads: list[int]) -> WeightBytes:
        """Bytes that are all zero, to be filled by `put`."""
        return cls(np.zeros((len(heads), *layer.size), np.uint8))

    @classmethod
    def of(cls, layer: Layer, heads: list[int]) -> WeightBytes:
        """The weights of these heads."""
        made = cls.empty(layer, heads)
        for position in held_positions(layer, heads):
            for block in layer.weight_blocks(heads[position]):
                made.put(position, block)
        return made

    def put(self, position: int, exact: WeightBlock | Float[np.ndarray, "query key"]) -> None:
        """Set the weights of one head, or some rows of them."""
        if isinstance(exact, WeightBlock):
            # A block's queries are neighbours here, and its keys too: a part of the array, no copy.
            first, last = int(exact.queries[0]), int(exact.queries[-1])
            into, exact = self.array[position, first : last + 1, exact.keys], exact.weights
        else:
            into = self.array[position]
        into[...] = quantise(exact)
        self.error = max(self.error, float(np.abs(decoded(into) - exact).max(initial=0)))

    @property
    def packed(self) -> int:
        """Approximate number of bytes after compression."""
        return _packed_size(self.array)


@dataclass(frozen=True)
class LayerParts:
    """A layer's part of the header, and the pictures of its heads."""

    header: PageLayer
    pictures: HeadPictures


def made_layer(
    stack: str,
    layer: Layer,
    heads: list[int],
    chunks: Chunks,
    *,
    facts: TextFacts,
    room: int,
    blocks: Blocks | None = None,
) -> LayerParts:
    """Put a layer into the chunks, and return its part of the header.

    Args:
        stack: name of its stack.
        layer: the layer.
        heads: the heads that the page holds.
        chunks: takes the bytes of its arrays.
        facts: facts about the stack's tokens, which the kinds of heads depend on.
        room: bytes that queries and keys may take even where the weights are smaller.
        blocks: what the rows and columns of a thumbnail stand for.
    """
    half = HalfScores.of(layer, heads)
    fits = half is not None and half.size <= room
    # Heads that the record does not hold have queries of zero: recomputed, their rows would be
    # uniform and not empty.
    recomputes = half is not None and len(held_positions(layer, heads)) == len(heads)
    # Bytes are made together with the pictures, so that no weight is computed twice, unless queries
    # and keys are surely smaller.
    stored, weights = None, len(heads) * layer.size[0] * layer.size[1]
    if half is None or not recomputes or not (fits or weights > SURELY_SMALLER * half.size):
        stored = WeightBytes.empty(layer, heads)
    put = None if stored is None else stored.put
    pictures = head_pictures(layer, heads, facts, put, blocks=blocks)
    # Measured against exact weights with the arithmetic of the page, so that the error that it
    # states is the error of what it draws.
    error = ROUNDING if half is None else half.measured(layer, heads)
    recompute = False
    # Half precision of large scores may miss a weight by far: then bytes of the weights are held.
    if half is not None and recomputes and error <= MOST_ERROR:
        recompute = stored is None or half.packed < stored.packed
    if not recompute and stored is None:
        stored = WeightBytes.of(layer, heads)
    name = f"{stack}/{layer.layer}"
    header = layer_facts(stack, layer, heads, chunks) | {"error": error}
    if half is not None and (recompute or fits):
        header["scores"] = scores_part(name, layer, half, chunks, error=error)
    if not recompute and stored is not None:
        header["error"] = stored.error
        header["weights"] = chunks.add(
            f"weights/{name}", stored.array, (HEAD, QUERY, KEY), sqrt=True
        )
    return LayerParts(header, pictures)


def own_heads(layer: Layer, heads: list[int]) -> list[int]:
    """The heads among these that the layer has in the model: it may have fewer than its stack."""
    return [head for head in heads if head < layer.heads]


def held_positions(layer: Layer, heads: list[int]) -> list[int]:
    """Positions, among these heads, of those that the record holds."""
    return [position for position, head in enumerate(heads) if head in layer.head_numbers]


def _rows(layer: Layer, name: str, numbers: list[int]) -> np.ndarray:
    """Rows of an array for these heads (for keys: key/value heads); zeros for heads that the record
    does not hold.
    """
    held = layer.held_heads
    if held is None:
        return layer.part(name, numbers)
    known = held.kv_numbers if name == "keys" else held.numbers
    positions = [at for at, number in enumerate(numbers) if number in known]
    rows = layer.part(name, [numbers[at] for at in positions])
    values = np.zeros((len(numbers), *rows.shape[1:]), rows.dtype)
    values[positions] = rows
    return values


def layer_facts(stack: str, layer: Layer, heads: list[int], chunks: Chunks) -> PageLayer:
    """A layer's part of the header without its weights and scores; its mask goes into the
    chunks.
    """
    recomputes = layer.has("queries") and layer.has("keys")
    header: PageLayer = {
        "layer": layer.layer,
        "kind": layer.kind,
        "kv_heads": len(_shared(layer, heads) if recomputes else heads),
        "visible": _visible(stack, layer, chunks),
        "weights": None,
        "scores": None,
        "error": 0.0,
        "row_sums": "less" if layer.has("sinks") or layer.partial else "one",
    }
    there = held_positions(layer, heads)
    if len(there) < len(heads):
        header["held"] = there
    if layer.partial:
        header["not_kept"] = layer.not_kept
    if layer.rotary is not None:
        rotary, frequencies = layer.rotary, layer.rotary.frequencies.tolist()
        header["rotary"] = {
            "frequencies": frequencies,
            "style": rotary.style,
            "start": rotary.start,
        }
    return header


def _visible(stack: str, layer: Layer, chunks: Chunks) -> PageArray | None:
    if layer.visible.is_full:
        return None
    # Runs of visible keys take far less room than a matrix of booleans: a causal mask is one run
    # for each query.
    mask = layer.visible
    queries = np.repeat(np.arange(mask.shape[0], dtype=np.int32), np.diff(mask.firsts))
    return chunks.add(
        f"visible/{stack}/{layer.layer}", np.column_stack([queries, mask.runs]), ("run", "bound")
    )


def scores_part(
    name: str, layer: Layer, half: HalfScores, chunks: Chunks, *, error: float
) -> PageScores:
    """Put everything that scores are computed from into the chunks, and describe it."""
    bias_axes = (
        (HEAD, "offset") if half.bias is not None and half.bias.ndim == 2 else (HEAD, QUERY, KEY)
    )
    return {
        "queries": chunks.add(f"queries/{name}", half.queries, (HEAD, QUERY, FEATURE)),
        "keys": chunks.add(f"keys/{name}", half.keys, (KV_HEAD, KEY, FEATURE)),
        "scale": half.scale,
        "soft_cap": layer.soft_cap,
        "bias": None if half.bias is None else chunks.add(f"bias/{name}", half.bias, bias_axes),
        "sinks": None if half.sinks is None else half.sinks.tolist(),
        "error": error,
    }


def _shared(layer: Layer, heads: list[int]) -> list[int]:
    """Numbers of the key heads of these heads: each once where the heads share them evenly, else
    one for each head.
    """
    shared = [head * layer.kv_heads // layer.heads for head in heads]
    once = list(dict.fromkeys(shared))
    evenly = [once[at * len(once) // len(heads)] for at in range(len(heads))]
    return once if len(heads) % len(once) == 0 and shared == evenly else shared


def _half(array: np.ndarray) -> tuple[np.ndarray, float]:
    """The array in half precision and the factor that it was divided by."""
    # A power of two, because dividing by it changes no digit; the scale of the scores undoes it.
    most = float(np.abs(array).max(initial=0))
    factor = 2.0 ** max(0, np.ceil(np.log2(most / LARGEST_FLOAT16))) if most > 0 else 1.0
    return (array / factor).astype(np.float16), float(factor)


def _single(array: np.ndarray) -> tuple[np.ndarray, float]:
    return array.astype(np.float32), 1.0


def _short(bias: np.ndarray, dense: type[np.floating]) -> np.ndarray:
    """The bias as ``[head offset]`` where it depends on the distance of key and query only, else as
    ``[head query key]``.
    """
    _, queries, keys = bias.shape
    # Offsets in ascending order: the first column read from below, then the first row.
    line = np.concatenate([bias[:, :0:-1, 0], bias[:, 0, :]], axis=1).astype(np.float32)
    every = np.arange(queries)
    same = np.array_equal(_dense(line, (queries, keys), every), bias)
    return line if same else bias.astype(dense)


def _dense(
    bias: np.ndarray, size: tuple[int, int], rows: Int[np.ndarray, " query"]
) -> Float[np.ndarray, "head query key"]:
    """Rows of the bias, which is held whole or by offset."""
    if bias.ndim == 3:
        return bias[:, rows]
    queries, keys = size
    return bias[:, np.arange(keys)[None, :] - rows[:, None] + queries - 1]


def _packed_size(array: np.ndarray) -> int:
    # The quickest level: only the ratio of two sizes matters here.
    return len(gzip.compress(array.tobytes(), compresslevel=1))
