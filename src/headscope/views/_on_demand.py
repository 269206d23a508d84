"""What a live page asks for, prepared when it asks and not before.

The page opens with the tokens and what is known of each layer without computing anything. It then asks for the
thumbnails, a layer at a time, and for the heads that it shows. Where whole heads are more than it needs (one query and
one key in all heads of all layers) it asks for rows.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from headscope.axes import HEAD, KEY, LAYER, QUERY
from headscope.record import Layer, Record, Stack
from headscope.record._recompute import scores_of, softmax_of
from headscope.views._contract import Page, PageLayer, PageStack
from headscope.views._options import PageOptions
from headscope.views._page import page_header, page_tokens
from headscope.views._payload import MOST_ERROR, ROUNDING, Chunks, HalfScores, layer_facts, scores_part
from headscope.views._quantise import quantise
from headscope.views._thumbs import MOST, max_pooled

BYTE_ERROR = 1 - (254.5 / 255) ** 2
"""What a weight as one byte may be off by."""
MEASURED = 2**24
"""Weights of a layer up to which the error of half precision is measured; beyond, queries and keys stay in single."""
OPENING = 600_000
"""Bytes of a layer's heads up to which a page opens with all of them; else with one."""
KEPT = 6
"""Prepared layers that are kept, beside what the record itself holds."""

NAME = re.compile(r"(?P<kind>[a-z-]+)/(?P<stack>.+?)/(?P<number>\d+)(?:/(?P<part>\d+))?")


@dataclass(frozen=True)
class Prepared:
    """A layer as it is sent: its part of the header, and the bytes of what that names, by chunk or made when asked."""

    layer: Layer
    heads: list[int]
    header: PageLayer
    half: HalfScores | None
    chunks: dict[str, bytes]

    def part(self, kind: str, at: int) -> bytes | None:
        """The bytes of one entry of an array's outermost axis; None where there is none."""
        half = self.half
        arrays = {} if half is None else {"queries": half.queries, "keys": half.keys, "bias": half.bias}
        if kind == "weights" and self.header["weights"] is not None and at < len(self.heads):
            return quantise(self.layer.weights_of(self.heads[at])).tobytes()
        found = arrays.get(kind)
        return None if found is None or at >= len(found) else np.ascontiguousarray(found[at]).tobytes()


@dataclass
class OnDemand:
    """The answers to one live page. Safe to be asked from several threads.

    Args:
        record: what is shown.
        options: as the user gave them.

    Raises:
        PageError: an unknown option, or a value that there is not.
        RecordError: a stack or layer that the record does not have.
    """

    record: Record
    options: PageOptions
    header: Page = field(init=False)
    _stacks: dict[str, PageStack] = field(init=False)
    _kept: OrderedDict[tuple[str, int], Prepared] = field(init=False, default_factory=OrderedDict)
    _lock: Lock = field(init=False, default_factory=Lock)

    def __post_init__(self) -> None:
        self.header = page_header(self.record, self.options, self._stack)
        self._stacks = {stack["name"]: stack for stack in self.header["stacks"]}
        if "heads" not in self.options and "head" not in self.options:
            self._open_small()

    def chunk(self, name: str) -> bytes | None:
        """The bytes of a chunk; None where there is no such chunk."""
        found = NAME.fullmatch(name)
        stack = found and self._stacks.get(found["stack"])
        if not found or not stack:
            return None
        part = None if found["part"] is None else int(found["part"])
        return ANSWERS.get(found["kind"], _part)(self, Asked(found["kind"], stack, int(found["number"]), part))

    def prepared(self, stack: PageStack, number: int) -> Prepared | None:
        """A layer in the form in which it is sent, made when first asked for; None where there is none."""
        if not any(layer["layer"] == number for layer in stack["layers"]):
            return None
        at = (stack["name"], number)
        with self._lock:
            if at not in self._kept:
                layer = self.record[stack["name"]].layer(number)
                self._kept[at] = _prepare(stack["name"], layer, _held(stack, layer))
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(at)
            return self._kept[at]

    def _stack(self, stack: Stack, layers: list[Layer], heads: list[int]) -> PageStack:
        sides = [min(MOST, len(side)) for side in (stack.query, stack.key)]
        return {
            "name": stack.name,
            "heads": len(heads),
            "head_numbers": heads,
            "query": page_tokens(stack.query),
            "key": page_tokens(stack.key),
            "layers": [
                layer_facts(stack.name, layer, [head for head in heads if head < layer.heads], Chunks())
                | {"later": True, "visible": None}
                for layer in layers
            ],
            "thumbs": {
                "chunk": f"thumbs/{stack.name}",
                "axes": [LAYER, HEAD, QUERY, KEY],
                "shape": [len(layers), len(heads), *sides],
                "dtype": "uint8",
                "encoding": "sqrt",
                "split": True,
            },
        }

    def _open_small(self) -> None:
        """Let the page open with one head where all are much to send."""
        first = self.header["selection"]
        layer = self.record[first["stack"]].layer(first["layer"])
        queries, keys = layer.size
        weights = layer.heads * queries * keys
        scores = weights if layer.queries is None or layer.keys is None else 2 * (layer.queries.size + layer.keys.size)
        if min(weights, scores) > OPENING:
            first["heads"] = self._stacks[first["stack"]]["head_numbers"][:1]


def _prepare(stack: str, layer: Layer, heads: list[int]) -> Prepared:
    chunks = Chunks()
    header = layer_facts(stack, layer, heads, chunks)
    many = len(heads) * layer.size[0] * layer.size[1] > MEASURED
    half = HalfScores.of(layer, heads, single=many)
    error = ROUNDING if half is None or many else _measured(half, layer, heads)
    if half is not None:
        header["scores"] = scores_part(f"{stack}/{layer.layer}", layer, half, Chunks(), error=error)
        for name in ("queries", "keys", "bias"):
            array = header["scores"][name]
            if array is not None:
                array["chunk"] = f"{name}/{stack}/{layer.layer}"
                array["split"] = True
    if half is None or error > MOST_ERROR:
        header["weights"] = {
            "chunk": f"weights/{stack}/{layer.layer}",
            "axes": [HEAD, QUERY, KEY],
            "shape": [len(heads), *layer.size],
            "dtype": "uint8",
            "encoding": "sqrt",
            "split": True,
        }
        error = BYTE_ERROR
    header["error"] = error
    return Prepared(layer, heads, header, half, chunks.found)


def _measured(half: HalfScores, layer: Layer, heads: list[int]) -> float:
    """The largest error of a weight that is recomputed from half precision."""
    off = [np.abs(half.weights(layer, at) - layer.weights_of(head)).max(initial=0) for at, head in enumerate(heads)]
    return float(max(off, default=0)) + ROUNDING


def _held(stack: PageStack, layer: Layer) -> list[int]:
    return [head for head in stack["head_numbers"] if head < layer.heads]


@dataclass(frozen=True)
class Asked:
    """A chunk's name, taken apart: KIND/STACK/NUMBER, or KIND/STACK/NUMBER/PART."""

    kind: str
    stack: PageStack
    number: int
    part: int | None

    @property
    def name(self) -> str:
        return self.stack["name"]


Answer = Callable[[OnDemand, Asked], "bytes | None"]


def _layer(given: OnDemand, asked: Asked) -> bytes | None:
    found = None if asked.part is not None else given.prepared(asked.stack, asked.number)
    return None if found is None else json.dumps(found.header).encode()


def _visible(given: OnDemand, asked: Asked) -> bytes | None:
    found = None if asked.part is not None else given.prepared(asked.stack, asked.number)
    return None if found is None else found.chunks.get(f"visible/{asked.name}/{asked.number}")


def _part(given: OnDemand, asked: Asked) -> bytes | None:
    found = None if asked.part is None else given.prepared(asked.stack, asked.number)
    return None if found is None or asked.part is None else found.part(asked.kind, asked.part)


def _thumbs(given: OnDemand, asked: Asked) -> bytes | None:
    """The thumbnails of all heads of the layer in this row."""
    row, stack = asked.number, asked.stack
    if asked.part is not None or row >= len(stack["layers"]):
        return None
    layer = given.record[stack["name"]].layer(stack["layers"][row]["layer"])
    made = np.zeros(stack["thumbs"]["shape"][1:], np.uint8)
    for at, head in enumerate(_held(stack, layer)):
        made[at] = quantise(max_pooled(layer.weights_of(head)))
    return made.tobytes()


def _row(given: OnDemand, asked: Asked) -> bytes | None:
    """What one query has with each key in each head, exactly: axes head, key."""
    stack, query = asked.stack, asked.part
    if query is None or not any(layer["layer"] == asked.number for layer in stack["layers"]):
        return None
    layer = given.record[asked.name].layer(asked.number)
    if query >= layer.size[0]:
        return None
    wanted = _held(stack, layer)
    if asked.kind == "row" and layer.weights is not None:
        return np.asarray(layer.weights[wanted, query], np.float32).tobytes()
    if layer.queries is None or layer.keys is None:
        return None
    bias = layer.bias
    if bias is not None:
        bias = bias[:, query : query + 1] if bias.shape[0] == 1 else bias[wanted, query : query + 1]
    scores = scores_of(
        layer.queries[wanted, query : query + 1],
        layer.keys[layer.kv_head_of[wanted]],
        scale=layer.scale,
        soft_cap=layer.soft_cap,
        bias=bias,
        visible=None if layer.visible is None else layer.visible.dense(slice(query, query + 1)),
    )
    if asked.kind == "row":
        scores = softmax_of(scores, None if layer.sinks is None else np.asarray(layer.sinks)[wanted])
    return scores[:, 0].astype(np.float32).tobytes()


ANSWERS: dict[str, Answer] = {
    "layer": _layer,
    "visible": _visible,
    "thumbs": _thumbs,
    "row": _row,
    "score-row": _row,
}
"""By the first word of a chunk's name; all others are a part of an array."""
