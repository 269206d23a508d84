"""Answers to the requests of a live page, prepared when it asks and not before.

The page opens with the tokens and the facts about each layer that need no computing. It then asks
for the thumbnails, one layer at a time, and for the heads that it shows. Where whole heads are more
than it needs (one query and one key in all heads of all layers) it asks for rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import prod
from threading import Lock

import numpy as np

from headscope.axes import HEAD, KEY, QUERY
from headscope.patterns import COLUMNS, text_facts
from headscope.record import Layer, Record
from headscope.record.recompute import scores_of
from headscope.views import _payload
from headscope.views._grouped import blocks_of, in_groups, source_of
from headscope.views._head_pictures import MEASURED_QUERIES, head_pictures
from headscope.views._page import check_shown, later_stack, page_header
from headscope.views._quantity_arrays import (
    CONTRIBUTION,
    Given,
    LazyArray,
    given_quantities,
    put_norms,
    quantities_of,
    stored_quantities,
)
from headscope.views._thumbs import quantise
from headscope.views._tray import PREFIX, options_beside, records_beside
from headscope.views.contract import Page, PageLayer, PageStack
from headscope.views.options import PageOptions

BYTE_ERROR = 1 - (254.5 / 255) ** 2
"""Largest error of a weight as one byte: half a step of the square-root scale, just below 1."""

MEASURED = 2**24
"""Number of weights in a layer up to which the error of half precision is measured. The queries and
keys of larger layers stay in single precision.
"""
OPENING = 600_000
"""Bytes of a layer's heads up to which a page opens with all of them; else with one."""

KEPT = 6
"""Number of prepared layers that are kept, besides what the record itself holds."""

MOST_DIGITS = 9
"""Number of digits of an index in a chunk's name."""

ENTIRE = ("layer", "visible", "value_norms", "quantity", "thumbs", "kinds")
"""Kinds of chunks that are requested in one piece; all others are requested one part at a time."""


@dataclass(frozen=True)
class PreparedLayer:
    """A layer as it is sent: its part of the header, and the arrays that the header names."""

    layer: Layer
    heads: list[int]
    header: PageLayer
    half: _payload.HalfScores | None
    chunks: dict[str, bytes]

    def part(self, kind: str, at: int) -> bytes | None:
        """The bytes of one entry of an array's outermost axis; None where it does not exist."""
        if kind == "weights":
            is_there = self.header["weights"] and at in _payload.held_positions(
                self.layer, self.heads
            )
            weights = quantise(self.layer.weights_of(self.heads[at])) if is_there else None
            return None if weights is None else weights.tobytes()
        if self.half is None or kind not in ("queries", "keys", "bias"):
            return None
        array = getattr(self.half, kind)
        is_there = array is not None and at < len(array)
        return np.ascontiguousarray(array[at]).tobytes() if is_there else None


@dataclass
class OnDemand:
    """The answers to one live page. Safe to be asked from several threads.

    Args:
        record: the record that is shown.
        options: options of the page as the user gave them.

    Raises:
        PageError: an unknown option or value.
        RecordError: a layer without weights.
    """

    record: Record
    options: PageOptions
    header: Page = field(init=False)
    _given: dict[str, dict[str, dict[int, np.ndarray | LazyArray]]] = field(init=False)
    sent: dict[str, bytes] = field(init=False)
    """The chunks that were made together with the header: evidence and pictures."""
    _stacks: dict[str, PageStack] = field(init=False)
    _kept: dict[tuple[str, int], PreparedLayer] = field(init=False, default_factory=dict)
    _lock: Lock = field(init=False, default_factory=Lock)
    _small: dict[tuple[object, ...], dict[str, bytes]] = field(init=False, default_factory=dict)
    _making: Lock = field(init=False, default_factory=Lock)
    _beside: dict[str, OnDemand] = field(init=False)

    def __post_init__(self) -> None:
        check_shown(self.record, self.options)
        self.record = in_groups(self.record, self.options)
        records = records_beside(self.options.get("beside"))
        self._beside = {
            name: OnDemand(record, options_beside(self.options)) for name, record in records.items()
        }
        self._given = given_quantities(self.record, self.options.get("quantities", {}))
        chunks = _payload.Chunks()
        self.header = page_header(
            self.record,
            self.options,
            lambda *of: later_stack(*of, self._given),
            given=self._given,
            chunks=chunks,
            beside={name: of.header for name, of in self._beside.items()},
        )
        self.sent = chunks.by_name
        self._stacks = {stack["name"]: stack for stack in self.header["stacks"]}
        # Heads that the user chose are sent, however many they are.
        if "heads" not in self.options and "head" not in self.options:
            self._open_small()

    def chunk(self, name: str) -> bytes | None:
        """The bytes of a chunk; None where there is no such chunk."""
        if name in self.sent:
            return self.sent[name]
        kind, _, rest = name.partition("/")
        if kind == PREFIX:
            of, _, chunk = rest.partition("/")
            return self._beside[of].chunk(chunk) if of in self._beside else None
        kind, _, quantity = kind.partition("-")
        # Read from the end, because the name of a stack may hold slashes itself.
        parts = 1 if kind in ENTIRE else 2
        stack, *numbers = rest.rsplit("/", parts)
        # int() raises for digits beyond some thousands; anyone with the token could send those.
        are_indices = all(of.isdecimal() and len(of) <= MOST_DIGITS for of in numbers)
        if stack not in self._stacks or len(numbers) != parts or not are_indices:
            return None
        if bool(quantity) != (kind in ("quantity", "row")):
            return None
        number, *part = map(int, numbers)
        return self._answer(kind, quantity, self._stacks[stack], number, part=sum(part))

    def _answer(
        self, kind: str, quantity: str, stack: PageStack, number: int, *, part: int
    ) -> bytes | None:
        """The bytes of a chunk called KIND/STACK/NUMBER, KIND/STACK/NUMBER/PART, or
        KIND-QUANTITY/...
        """
        if kind in ("thumbs", "kinds"):
            return self._thumbs(stack, number, slice(None)).get(kind)
        if kind in ("thumb", "kind"):
            return self._thumbs(stack, number, slice(part, part + 1)).get(f"{kind}s")
        prepared = None if kind == "row" else self.prepared(stack, number)
        if prepared is None:
            return self._row(quantity, stack, number, part) if kind == "row" else None
        name = stack["name"]
        if kind == "layer":
            return json.dumps(prepared.header).encode()
        if kind == "quantity":
            of = (prepared.layer, prepared.heads, self._given[name])
            stored = stored_quantities(*of, prefix=f"{name}/{number}", only=quantity)
            return stored[quantity].numbers.tobytes() if stored else None
        if kind in ENTIRE:
            return prepared.chunks.get(f"{kind}/{name}/{number}")
        return prepared.part(kind, part)

    def prepared(self, stack: PageStack, number: int) -> PreparedLayer | None:
        """A layer in the form in which it is sent, made at the first request; None where the page
        does not hold it.
        """
        if not any(layer["layer"] == number for layer in stack["layers"]):
            return None
        at = name, _ = stack["name"], number
        # Requests of one layer come at the same time: whoever holds the lock prepares it for all.
        with self._lock:
            if at not in self._kept:
                layer = self.record[name].layer(number)
                heads = _payload.own_heads(layer, stack["head_numbers"])
                self._kept[at] = _prepare(name, layer, heads, self._given[name])
                while len(self._kept) > KEPT:
                    del self._kept[next(iter(self._kept))]
            # The last is the one that was asked for last.
            self._kept[at] = self._kept.pop(at)
            return self._kept[at]

    def _thumbs(self, stack: PageStack, row: int, some: slice) -> dict[str, bytes]:
        """Thumbnails and kinds of some heads of the layer in this row, made at the first request in
        one pass over their weights; empty where the page has no such row or head.
        """
        if row >= len(stack["layers"]) or (some.start or 0) >= stack["heads"]:
            return {}
        at = (stack["name"], row, some.start)
        # Thumbnails and kinds are requested at the same time, and made only once.
        with self._making:
            if at not in self._small:
                whole = self.record[stack["name"]]
                layer = whole.layer(stack["layers"][row]["layer"])
                heads = _payload.own_heads(layer, stack["head_numbers"])[some]
                made = head_pictures(layer, heads, text_facts(whole), blocks=blocks_of(whole))
                thumbs = np.zeros(stack["thumbs"]["shape"][1:], np.uint8)[some]
                kinds = np.full((len(thumbs), len(COLUMNS)), np.nan, np.float32)
                # A layer with fewer heads than its stack leaves its last entries empty.
                thumbs[: len(heads)], kinds[: len(heads)] = made.thumbs, made.kinds
                self._small[at] = {"thumbs": thumbs.tobytes(), "kinds": kinds.tobytes()}
            return self._small[at]

    def _row(self, quantity: str, stack: PageStack, number: int, query: int) -> bytes | None:
        """The exact numbers of one query with every key, axes head, key; one head for a quantity of
        all heads together.
        """
        name = stack["name"]
        if not any(layer["layer"] == number for layer in stack["layers"]):
            return None
        layer = self.record[name].layer(number)
        if query >= layer.size[0]:
            return None
        heads = _payload.own_heads(layer, stack["head_numbers"])
        further = quantities_of(layer, self._given[name], quantity).get(quantity)
        if further is not None:
            values = further[None, query] if further.ndim == 2 else further[heads, query]
        else:
            values = _row_in(quantity, layer, heads, query)
        return None if values is None else values.astype(np.float32).tobytes()

    def _open_small(self) -> None:
        """Let the page open with one head where all of them are too many bytes to send."""
        first = self.header["selection"]
        layer = self.record[first["stack"]].layer(first["layer"])
        # What groups are made of is what takes time.
        layer = getattr(source_of(layer), "layer", layer)
        queries, keys = layer.size
        weights = len(layer.head_numbers) * queries * keys
        scores = weights
        if layer.has("queries") and layer.has("keys"):
            # Two bytes for each number in half precision; a weight takes one.
            scores = 2 * (prod(layer.shape_of("queries")) + prod(layer.shape_of("keys")))
        if min(weights, scores) > OPENING:
            first["heads"] = self._stacks[first["stack"]]["head_numbers"][:1]


def _prepare(stack: str, layer: Layer, heads: list[int], given: Given) -> PreparedLayer:
    chunks, prefix = _payload.Chunks(), f"{stack}/{layer.layer}"
    header = _payload.layer_facts(stack, layer, heads, chunks)
    # Measuring the error means recomputing all weights: for large layers single precision, whose
    # error is known, is quicker.
    count = len(heads) * layer.size[0] * layer.size[1]
    many = count > MEASURED or layer.size[0] > MEASURED_QUERIES
    half = _payload.HalfScores.of(layer, heads, single=many)
    error = _payload.ROUNDING if half is None or many else half.measured(layer, heads)
    if half is not None:
        # The chunks made here are thrown away: the page requests these arrays head by head.
        header["scores"] = _payload.scores_part(prefix, layer, half, _payload.Chunks(), error=error)
        for name in ("queries", "keys", "bias"):
            array = header["scores"][name]
            if array is not None:
                array["chunk"] = f"{name}/{prefix}"
                array["split"] = 1
    if (
        half is None
        or error > _payload.MOST_ERROR
        or len(_payload.held_positions(layer, heads)) < len(heads)
    ):
        shape, more = [len(heads), *layer.size], {"encoding": "sqrt", "split": 1}
        axes = (HEAD, QUERY, KEY)
        header["weights"] = _payload.described(f"weights/{prefix}", axes, shape, "uint8", **more)
        error = BYTE_ERROR
    header["error"] = error
    put_norms(header, layer, heads, stack=stack, chunks=chunks)
    further = stored_quantities(layer, heads, given, prefix=prefix)
    if further:
        header["quantities"] = {
            name: stored.facts(f"{name}/{prefix}") for name, stored in further.items()
        }
    return PreparedLayer(layer, heads, header, half, chunks.by_name)


def _row_in(quantity: str, layer: Layer, heads: list[int], query: int) -> np.ndarray | None:
    """The row of each head; NaN for heads that the record does not hold."""
    positions = _payload.held_positions(layer, heads)
    held = [heads[at] for at in positions]
    rows = _score_row(layer, held, query) if quantity == "score" else None
    if quantity == "weight" or (quantity == CONTRIBUTION and layer.has("value_norms")):
        rows = np.stack([layer.weights_of(head, queries=[query])[0] for head in held])
        rows = rows if quantity == "weight" else rows * layer.part("value_norms", held)
    if rows is None or len(held) == len(heads):
        return rows
    values = np.full((len(heads), rows.shape[1]), np.nan)
    values[positions] = rows
    return values


def _score_row(layer: Layer, heads: list[int], query: int) -> np.ndarray | None:
    if not layer.has("queries") or not layer.has("keys"):
        return None
    bias = None
    if layer.has("bias"):
        shared = layer.shape_of("bias")[0] == 1
        # One query alone: a record on disk then reads one row and not the whole matrix.
        bias = layer.part("bias", [0] if shared else heads, slice(query, query + 1))
    return scores_of(
        layer.part("queries", heads, slice(query, query + 1)),
        layer.part("keys", layer.kv_head_of[heads]),
        scale=layer.scale,
        soft_cap=layer.soft_cap,
        bias=bias,
        visible=None if layer.visible.is_full else layer.visible.dense(slice(query, query + 1)),
    )[:, 0]
