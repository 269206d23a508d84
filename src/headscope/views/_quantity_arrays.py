"""Further quantities of a page besides weights and scores, with the same layout and selection.

Which quantities there are, and their names, is declared in `headscope.views.quantities`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import UInt8

from headscope.axes import HEAD, KEY, QUERY
from headscope.errors import PageError
from headscope.record import Layer, Record, Stack
from headscope.views._payload import Chunks, described, own_heads
from headscope.views.contract import PageArray, PageLayer, PageQuantity, PageStack
from headscope.views.quantities import BUILT_IN, CONTRIBUTION, KNOWN, QuantityWords, is_signed

NAME = re.compile(r"[a-z][a-z0-9-]*")

Given = Mapping[str, Mapping[int, "np.ndarray | LazyArray"]]
"""Arrays by name and number of the layer."""


LISTED = "give {'name': [array of each layer]}, or {'name': {(layer, head): number}}"


def quantities_of(layer: Layer, given: Given, only: str | None = None) -> dict[str, np.ndarray]:
    """The further quantities of a layer, ``[query key]`` or ``[head query key]``.

    These are the quantities that the record holds, by `KNOWN`, and those that a caller gave, which
    win where both have the same name.

    Args:
        layer: the layer.
        given: quantities from the call, by `given_quantities`.
        only: the name of one, so that lazy ones are not all computed; by default all.
    """
    arrays = _arrays_of(layer, given, only)
    return {name: np.asarray(array, np.float64) for name, array in arrays.items()}


def _arrays_of(
    layer: Layer, given: Given, only: str | None = None
) -> dict[str, np.ndarray | LazyArray]:
    """The same, of which lazy ones are not computed."""
    arrays: dict[str, np.ndarray | LazyArray] = {}
    for name, known in KNOWN.items():
        array = known.of_layer(layer) if only in (None, name) else None
        if array is not None:
            arrays[name] = array
    for name, of in given.items():
        if layer.layer in of and only in (None, name):
            arrays[name] = of[layer.layer]
    return arrays


def given_quantities(
    record: Record, wanted: Mapping[str, Any] | None
) -> dict[str, dict[str, dict[int, np.ndarray | LazyArray]]]:
    """The option ``quantities``, checked, by stack, name and layer; and the rollout where norms
    were kept.

    Raises:
        PageError: an invalid name, an unknown stack, or an array that does not fit its layer.
    """
    if not isinstance(wanted or {}, Mapping):
        raise PageError(f"quantities={str(wanted)[:40]!r}: {LISTED}")
    given: dict[str, dict[str, dict[int, np.ndarray | LazyArray]]] = {}
    for stack in record.stacks.values():
        # Quantities that are computed from several layers, by name and layer.
        made = {name: {**known.of_stack(stack)} for name, known in KNOWN.items()}
        given[stack.name] = {name: {**maps} for name, maps in made.items() if maps}
    for name, arrays in (wanted or {}).items():
        if not NAME.fullmatch(name) or name in BUILT_IN:
            raise PageError(
                f"quantities={{{name!r}: ...}}: a name has small letters, digits and dashes, and "
                f"is none of {', '.join(BUILT_IN)}"
            )
        by_stack = _by_stack(record, name, arrays)
        try:
            kept = {stack: _checked(name, record[stack], by_stack[stack]) for stack in by_stack}
        except (TypeError, ValueError):
            raise PageError(f"quantities={{{name!r}: {str(arrays)[:40]}}}: {LISTED}") from None
        # A page shows a quantity either per head or for all heads together, in all its layers.
        if len({array.ndim for layers in kept.values() for array in layers.values()}) > 1:
            raise PageError(f"quantities={{{name!r}: ...}}: all layers have heads, or none has")
        for stack, layers in kept.items():
            given[stack][name] = layers
    return given


def put_quantities(
    header: PageLayer, layer: Layer, heads: list[int], given: Given, *, stack: str, chunks: Chunks
) -> None:
    """Put a layer's value norms and further quantities into the chunks, and name them in its
    header.
    """
    put_norms(header, layer, heads, stack=stack, chunks=chunks)
    prefix = f"{stack}/{layer.layer}"
    for name, stored in stored_quantities(layer, heads, given, prefix=prefix).items():
        facts = stored.facts(f"{name}/{prefix}")
        kept = chunks.add(facts["chunk"], stored.numbers, facts["axes"])["chunk"]
        header.setdefault("quantities", {})[name] = {**facts, "chunk": kept}


def put_norms(
    header: PageLayer, layer: Layer, heads: list[int], *, stack: str, chunks: Chunks
) -> None:
    """Put a layer's value norms into the chunks, where it has some, and name them in its header."""
    if layer.has("value_norms"):
        chosen = layer.part("value_norms", heads).astype(np.float32)
        header["value_norms"] = chunks.add(
            f"value_norms/{stack}/{layer.layer}", chosen, (HEAD, KEY)
        )


def further_quantities(
    layers: Mapping[str, Sequence[Layer]],
    heads: Mapping[str, Sequence[int]],
    given: Mapping[str, Given],
    words: Mapping[str, QuantityWords],
) -> list[PageQuantity]:
    """Descriptions of the quantities of a page, in the order of `KNOWN`, others last.

    Args:
        layers: layers that the page holds, by stack.
        heads: numbers of the heads that it holds, by stack.
        given: quantities from the call, by `given_quantities`.
        words: names and explanations that differ from `KNOWN` on this page, also of weights.

    Raises:
        PageError: a quantity with numbers that are not finite.
    """
    kept_as: dict[str, list[tuple[bool, int]]] = {}
    for name, of in layers.items():
        for layer in of:
            own = own_heads(layer, list(heads[name]))
            later, now = _later_and_now(layer, given[name])
            for quantity, array in later.items():
                kept_as.setdefault(quantity, []).append((array.signed, array.ndim))
            prefix = f"{name}/{layer.layer}"
            for quantity, stored in stored_quantities(layer, own, now, prefix=prefix).items():
                if quantity not in later:
                    kept_as.setdefault(quantity, []).append((stored.signed, stored.array.ndim))
            if layer.has("value_norms"):
                kept_as.setdefault(CONTRIBUTION, [])
    order = list(KNOWN)
    names = sorted(kept_as, key=lambda name: order.index(name) if name in KNOWN else len(order))
    weight = [_described(BUILT_IN[0], [], words)] if BUILT_IN[0] in words else []
    return weight + [_described(name, kept_as[name], words) for name in names]


def _later_and_now(layer: Layer, given: Given) -> tuple[dict[str, LazyArray], Given]:
    """Quantities of a layer that are computed on request, and all others."""
    arrays = _arrays_of(layer, given)
    later = {name: array for name, array in arrays.items() if isinstance(array, LazyArray)}
    return later, {name: arrays for name, arrays in given.items() if name not in later}


def seen_names(layer: Layer, given: Given) -> list[str]:
    """Names of the quantities that a layer has besides weights."""
    scores = ["score"] if layer.has("queries") and layer.has("keys") else []
    norms = [CONTRIBUTION] if layer.has("value_norms") else []
    return list(dict.fromkeys([*scores, *norms, *_arrays_of(layer, given)]))


def quantity_names(stacks: list[PageStack], further: Sequence[PageQuantity]) -> list[str]:
    """The quantities that a page can show."""
    layers = [layer for stack in stacks for layer in stack["layers"]]
    scored = any(layer["scores"] or "score" in layer.get("has", ()) for layer in layers)
    names = ["weight", *(["score"] if scored else []), *(quantity["name"] for quantity in further)]
    return list(dict.fromkeys(names))


def check_quantity(wanted: str, held: Sequence[str]) -> None:
    """Raise where a page does not hold a quantity.

    Raises:
        PageError: naming what it holds.
    """
    if wanted not in held:
        listed = ", ".join(map(repr, held))
        more = "" if len(held) > 1 else "; capture with keep='qk' to have scores"
        raise PageError(f"quantity={wanted!r}: this record has {listed}{more}")


@dataclass(frozen=True)
class StoredQuantity:
    """A quantity as it is sent: one byte for each number, on a square-root scale up to the largest
    magnitude.

    Args:
        array: finite numbers ``[query key]``, or ``[head query key]`` of the heads of the page.
        both: whether it is signed even where nothing is below 0.
    """

    array: np.ndarray
    both: bool = False

    @cached_property
    def most(self) -> float:
        """The largest magnitude; 1 where all numbers are 0, so that dividing by it is safe."""
        return float(np.abs(self.array).max(initial=0)) or 1.0

    @cached_property
    def signed(self) -> bool:
        """Whether some number is below 0, or could be."""
        return self.both or bool((self.array < 0).any())

    @property
    def numbers(self) -> UInt8[np.ndarray, "..."]:
        """The bytes that are sent."""
        part = self.array / self.most
        roots = np.sign(part) * np.sqrt(np.abs(part))
        # Signed bytes have their middle at 128 and 127 steps to either side, so that 0 stays 0.
        return np.rint(128 + 127 * roots if self.signed else 255 * roots).astype(np.uint8)

    def facts(self, prefix: str) -> PageArray:
        """The description in the header.

        Args:
            prefix: NAME/STACK/LAYER. The chunk is called ``quantity-`` and this, which no other
                chunk begins with.
        """
        axes, shape = (HEAD, QUERY, KEY)[-self.array.ndim :], self.array.shape
        how = {"encoding": "signed" if self.signed else "sqrt", "most": self.most}
        return described(f"quantity-{prefix}", axes, shape, "uint8", **how)


def stored_quantities(
    layer: Layer, heads: Sequence[int], given: Given, *, prefix: str, only: str | None = None
) -> dict[str, StoredQuantity]:
    """The further quantities of some heads of a layer, by name; see `quantities_of`.

    Raises:
        PageError: a quantity with numbers that are not finite.
    """
    stored = {}
    for name, array in quantities_of(layer, given, only).items():
        if not np.isfinite(array).all():
            raise PageError(f"{name}/{prefix} has numbers that are not finite; capture it again")
        stored[name] = StoredQuantity(of_heads(array, heads), both=is_signed(name))
    return stored


def of_heads(array: np.ndarray, heads: Sequence[int]) -> np.ndarray:
    """``[head query key]`` of some heads, ascending; ``[query key]`` unchanged."""
    return array if array.ndim == 2 or len(heads) == len(array) else array[list(heads)]


def _described(
    name: str, arrays: Sequence[tuple[bool, int]], words: Mapping[str, QuantityWords]
) -> PageQuantity:
    described = words.get(name) or KNOWN.get(name, QuantityWords(name, "as it was given"))
    return {
        "name": name,
        "label": described.label,
        "explanation": described.explanation,
        "signed": any(signed for signed, _ in arrays),
        "per": "layer" if arrays and arrays[0][1] == 2 else "head",
    }


def _by_stack(record: Record, name: str, arrays: Any) -> Mapping[str, Sequence]:
    if isinstance(arrays, Mapping) and not _is_of_heads(arrays):
        strange = set(arrays) - set(record.stacks)
        if strange:
            raise PageError(
                f"quantities={{{name!r}: ...}} has the stack {min(strange)!r}; the record has "
                f"{', '.join(map(repr, record.stacks))}"
            )
        return arrays
    if len(record.stacks) > 1:
        raise PageError(
            f"quantities={{{name!r}: ...}} is one list of layers, and the record has the stacks "
            f"{', '.join(map(repr, record.stacks))}; give a list for each by name"
        )
    return {next(iter(record.stacks)): arrays}


def _is_of_heads(arrays: Any) -> bool:
    return isinstance(arrays, Mapping) and all(isinstance(key, tuple) for key in arrays)


def _of_heads(stack: Stack, numbers: Mapping[tuple[int, int], float]) -> list[np.ndarray]:
    """One number for each head as maps of all pairs; 0 for heads that are not named."""
    rest, maps = dict(numbers), []
    for layer in stack.layers:
        own = [rest.pop((layer.layer, head), 0.0) for head in range(layer.heads)]
        maps.append(np.broadcast_to(np.array(own)[:, None, None], (layer.heads, *layer.size)))
    if rest:
        raise PageError(f"Stack {stack.name!r} has no head {next(iter(rest))}; name (layer, head)")
    return maps


def _checked(name: str, stack: Stack, layers: Any) -> dict[int, np.ndarray | LazyArray]:
    if _is_of_heads(layers):
        layers = _of_heads(stack, layers)
    if len(layers) != len(stack.layers):
        raise PageError(
            f"quantities={{{name!r}: ...}} has {len(layers)} layers, and stack {stack.name!r} has "
            f"{len(stack.layers)}"
        )
    checked: dict[int, np.ndarray | LazyArray] = {}
    for layer, array in zip(stack.layers, layers, strict=True):
        if array is None:
            continue
        # A lazy array is checked by its shape alone: reading its numbers would compute them.
        later = isinstance(array, LazyArray)
        numbers = array if later else np.asarray(array, np.float64)
        sizes = (layer.size, (layer.heads, *layer.size))
        if numbers.shape not in sizes or not (later or np.isfinite(numbers).all()):
            raise PageError(
                f"quantities={{{name!r}: ...}} of layer {layer.layer} has shape {numbers.shape}; "
                f"expected finite numbers [query key] {sizes[0]} or [head query key] {sizes[1]}"
            )
        if name == CONTRIBUTION and numbers.ndim == 2:
            raise PageError(
                f"{name} is per head, [head query key]; name a map for all heads {name}-heads"
            )
        checked[layer.layer] = numbers
    return checked


@dataclass(frozen=True, eq=False)
class LazyArray:
    """An array of known shape whose numbers are computed when NumPy converts it.

    Arrays ``[head query key]`` of all layers may take hundreds of megabytes together, and a live
    page needs only the layer that it shows.

    Args:
        shape: shape of the array.
        signed: whether some number may be below 0.
        make: computes the array again at each call.
    """

    shape: tuple[int, ...]
    signed: bool
    make: Callable[[], np.ndarray]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.make(), dtype)
