"""Quantities that can be shown for every query and key, each declared once: its name, its
explanation, and where a record holds it.

The weight is not the whole effect of a key: its value may be long or short, and residual
connections and lower layers take part. A quantity is one number for each query and key, per head or
for all heads of a layer together. To add one to every page and figure, add it to `KNOWN`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.norms import maps_of, rollout
from headscope.record import Layer, Stack

Maps = Float[np.ndarray, "*head query key"]


@dataclass(frozen=True)
class QuantityWords:
    """Name and explanation of a quantity."""

    label: str
    explanation: str


@dataclass(frozen=True)
class KnownQuantity(QuantityWords):
    """A quantity that every page knows.

    Args:
        of_layer: reads its numbers from a layer of a record; None where the layer has none.
        of_stack: computes them from several layers, by number of the layer.
        signed: whether it is drawn in two colours (below and above 0) even where no number is below
            0; any other quantity is where one is.
        kept: whether a record may hold it; else it comes with a comparison.
    """

    of_layer: Callable[[Layer], Maps | None] = lambda layer: None
    of_stack: Callable[[Stack], Mapping[int, Maps]] = lambda stack: {}
    signed: bool = False
    kept: bool = True


def _kept(*kinds: str) -> Callable[[Layer], Maps | None]:
    """A function that reads the first of these kinds of contributions that a layer holds."""

    def first(layer: Layer) -> Maps | None:
        for kind in kinds:
            array = getattr(layer.contributions, kind, None)
            if array is not None:
                return array
        return None

    return first


def _rollout(stack: Stack) -> Mapping[int, Maps]:
    """Attention rollout, where contributions of every layer were kept and no layer is missing."""
    numbers = [layer.layer for layer in stack]
    # Rollout multiplies the layers from the first on, so all of them must be known, and the output
    # of one must be the input of the next: queries and keys must be the same tokens.
    followed = numbers == list(range(len(numbers))) and stack.query == stack.key
    if not (followed and all(layer.contributions is not None for layer in stack)):
        return {}
    return dict(zip(numbers, rollout(maps_of(stack, "weights")), strict=True))


CONTRIBUTION = "contribution"
DIFFERENCE = "difference"
OTHER = "other"
BUILT_IN = ("weight", "score")
"""Quantities that every record with queries and keys has; the browser computes them itself."""
KNOWN: Mapping[str, KnownQuantity] = {
    "weight": KnownQuantity("weight", "softmax of the scores"),
    "score": KnownQuantity(
        "score", "what goes into the softmax, which sees differences within a row", signed=True
    ),
    # Has no `of_layer`: the browser multiplies weights and value norms itself.
    CONTRIBUTION: KnownQuantity(
        "contribution", "weight × ‖f(x)‖: the length of the vector that a key adds through a head"
    ),
    "contribution-heads": KnownQuantity(
        "contribution of all heads",
        "‖Σ a f(x)‖: the length of the vector that a key adds over all heads",
        of_layer=_kept("attention"),
    ),
    "contribution-residual": KnownQuantity(
        "contribution with residual",
        "length of what a token adds, the residual and a layer norm that follows included",
        of_layer=_kept("output", "residual"),
    ),
    "alti": KnownQuantity(
        "ALTI",
        "a token's share of the layer's output, by how near what it adds comes to the whole",
        of_layer=_kept("alti"),
    ),
    "rollout": KnownQuantity(
        "rollout",
        "part of each input token in what this layer passes on: the weights of all layers so "
        "far, multiplied",
        of_stack=_rollout,
    ),
    DIFFERENCE: KnownQuantity(
        "difference", "weight of this record less that of another", signed=True, kept=False
    ),
    "effect": KnownQuantity(
        "effect",
        "what the key adds to the Jensen-Shannon distance of this row from that of another "
        "record, in nats",
        kept=False,
    ),
    OTHER: KnownQuantity(
        "other weight", "weight of the record that this one is compared with", kept=False
    ),
}
"""All known quantities, in the order in which they are offered."""
RECORD_QUANTITIES = tuple(name for name, known in KNOWN.items() if known.kept)


def is_signed(name: str) -> bool:
    """Whether a quantity is drawn in two colours whatever its numbers are."""
    return name in KNOWN and KNOWN[name].signed
