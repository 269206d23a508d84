"""What a page can show beside weights and scores, with the same layout and the same selection.

The weight is not all that a key does: its value may be long or short, residual connections and layers below take
part. A quantity is one number for each query and key, per head or for all heads of a layer together. To have one more
of them in every page, return it from `quantities_of`, and say in `KNOWN` what it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from headscope.axes import HEAD, KEY, QUERY
from headscope.errors import PageError
from headscope.record import Layer, Record, Stack
from headscope.views._contract import PageArray, PageLayer, PageQuantity, PageStack
from headscope.views._payload import Chunks


class Words(NamedTuple):
    """How a quantity is called and explained."""

    label: str
    explanation: str


CONTRIBUTION = "contribution"
KNOWN = {
    CONTRIBUTION: Words("contribution", "weight × ‖f(x)‖: the length of the vector that a key adds through a head"),
    "contribution-heads": Words(
        "contribution of all heads", "‖Σ a f(x)‖: the length of the vector that a key adds over all heads"
    ),
    "contribution-residual": Words(
        "contribution with residual", "length of what a token adds, the residual and a layer norm that follows included"
    ),
    "alti": Words("ALTI", "a token's share of the layer's output, by how near what it adds comes to the whole"),
    "rollout": Words(
        "rollout", "part of the first layer's tokens in the output of this one, weights multiplied through"
    ),
    "difference": Words("difference", "weight of this record less that of another"),
    "effect": Words("effect", "what changes in the model's output when this pair is taken away"),
}
BUILT_IN = ("weight", "score")
NAME = re.compile(r"[a-z][a-z0-9-]*")

Given = Mapping[str, Mapping[int, np.ndarray]]
"""Arrays by name and number of the layer."""


CONTRIBUTIONS = {
    "contribution-heads": ("attention",),
    "contribution-residual": ("output", "residual"),
    "alti": ("alti",),
}
"""The maps of a layer's contributions that stand for a quantity: the first of them that is there."""


# ASKED FOR BY NAME until every Layer has these two attributes: value_norms and contributions
def value_norms_of(layer: Layer) -> Float[np.ndarray, "head key"] | None:
    """The length of what each key adds when it has all the weight, where the record holds it."""
    return getattr(layer, "value_norms", None)


def quantities_of(layer: Layer, given: Given) -> Mapping[str, np.ndarray]:
    """The further quantities of a layer, ``[query key]`` or ``[head query key]``.

    What the record holds of the layer's contributions, and what a caller gave, which goes before. The one place where
    more of them are plugged in.

    Args:
        layer: the layer.
        given: what came with the call, by `given_quantities`.
    """
    found: dict[str, np.ndarray] = {}
    kept = getattr(layer, "contributions", None)
    for name, kinds in CONTRIBUTIONS.items():
        maps = (getattr(kept, kind, None) for kind in kinds)
        first = next((array for array in maps if array is not None), None)
        if first is not None:
            found[name] = np.asarray(first, np.float64)
    return found | {name: arrays[layer.layer] for name, arrays in given.items() if layer.layer in arrays}


def given_quantities(record: Record, wanted: Mapping[str, Any]) -> dict[str, dict[str, dict[int, np.ndarray]]]:
    """The option ``quantities``, by stack, name and layer, all of it checked.

    Raises:
        PageError: a name that cannot be one, a stack that there is not, or an array that does not fit its layer.
    """
    found: dict[str, dict[str, dict[int, np.ndarray]]] = {name: {} for name in record.stacks}
    for name, arrays in wanted.items():
        if not NAME.fullmatch(name) or name in BUILT_IN:
            raise PageError(
                f"quantities={{{name!r}: ...}}: a name has small letters, digits and dashes, and is none of "
                f"{', '.join(BUILT_IN)}"
            )
        kept = {stack: _checked(name, record[stack], of) for stack, of in _by_stack(record, name, arrays).items()}
        if len({array.ndim for of in kept.values() for array in of.values()}) > 1:
            raise PageError(f"quantities={{{name!r}: ...}}: give all layers with heads, or all without")
        for stack, of in kept.items():
            found[stack][name] = of
    return found


def put_quantities(
    header: PageLayer, layer: Layer, heads: list[int], given: Given, *, stack: str, chunks: Chunks
) -> None:
    """Put a layer's value norms and further quantities into the chunks, and name them in its header."""
    place = f"{stack}/{layer.layer}"
    norms = value_norms_of(layer)
    if norms is not None:
        chosen = np.asarray(norms)[heads].astype(np.float32)
        header["value_norms"] = chunks.add(f"value_norms/{place}", chosen, (HEAD, KEY))
    arrays = {
        name: _stored(f"{name}/{place}", array if array.ndim == 2 else array[heads], chunks)
        for name, array in quantities_of(layer, given).items()
    }
    if arrays:
        header["quantities"] = arrays


def further_quantities(stacks: list[PageStack]) -> list[PageQuantity]:
    """What the page says of its quantities, in the order of `KNOWN`, others last."""
    layers = [layer for stack in stacks for layer in stack["layers"]]
    arrays: dict[str, list[PageArray]] = {}
    for layer in layers:
        for name, array in layer.get("quantities", {}).items():
            arrays.setdefault(name, []).append(array)
    if any("value_norms" in layer for layer in layers):
        arrays.setdefault(CONTRIBUTION, [])
    order = list(KNOWN)
    names = sorted(arrays, key=lambda name: order.index(name) if name in KNOWN else len(order))
    return [_described(name, arrays[name]) for name in names]


def quantity_names(stacks: list[PageStack], further: Sequence[PageQuantity]) -> list[str]:
    """The quantities that a page can show."""
    scored = any(layer["scores"] for stack in stacks for layer in stack["layers"])
    return ["weight", *(["score"] if scored else []), *(quantity["name"] for quantity in further)]


def check_quantity(wanted: str, held: Sequence[str]) -> None:
    """Raise where a page does not hold a quantity.

    Raises:
        PageError: naming what it holds.
    """
    if wanted not in held:
        listed = ", ".join(map(repr, held))
        more = "" if len(held) > 1 else "; capture with keep='qk' to have scores"
        raise PageError(f"quantity={wanted!r}: this record has {listed}{more}")


def _described(name: str, arrays: list[PageArray]) -> PageQuantity:
    words = KNOWN.get(name, Words(name, "as it was given"))
    return {
        "name": name,
        "label": words.label,
        "explanation": words.explanation,
        "signed": any(array["encoding"] == "signed" for array in arrays),
        "per": "layer" if arrays and HEAD not in arrays[0]["axes"] else "head",
    }


def _stored(name: str, array: np.ndarray, chunks: Chunks) -> PageArray:
    """One byte a number, on a square-root scale that ends at the largest size."""
    if not np.isfinite(array).all():
        raise PageError(f"{name} holds what is no finite number; the record is damaged, capture it again")
    most = float(np.abs(array).max(initial=0)) or 1.0
    part = array / most
    signed = bool((array < 0).any())
    roots = np.sign(part) * np.sqrt(np.abs(part))
    stored = np.rint(128 + 127 * roots if signed else 255 * roots).astype(np.uint8)
    described = chunks.add(name, stored, (QUERY, KEY) if array.ndim == 2 else (HEAD, QUERY, KEY))
    return {**described, "encoding": "signed" if signed else "sqrt", "most": most}


def _by_stack(record: Record, name: str, arrays: Any) -> Mapping[str, Sequence]:
    if isinstance(arrays, Mapping):
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


def _checked(name: str, stack: Stack, layers: Sequence) -> dict[int, np.ndarray]:
    if len(layers) != len(stack.layers):
        raise PageError(
            f"quantities={{{name!r}: ...}} has {len(layers)} layers, and stack {stack.name!r} has {len(stack.layers)}"
        )
    found = {}
    for layer, array in zip(stack.layers, layers, strict=True):
        if array is None:
            continue
        numbers = np.asarray(array, np.float64)
        sizes = (layer.size, (layer.heads, *layer.size))
        if numbers.shape not in sizes or not np.isfinite(numbers).all():
            raise PageError(
                f"quantities={{{name!r}: ...}} of layer {layer.layer} has shape {numbers.shape}; wanted are finite "
                f"numbers [query key] {sizes[0]} or [head query key] {sizes[1]}"
            )
        if name == CONTRIBUTION and numbers.ndim == 2:
            raise PageError(f"{name} is per head, [head query key]; name a map for all heads {name}-heads")
        found[layer.layer] = numbers
    return found
