"""What can be shown of every query and key, each declared once: its name, its words, and where it
is in a record.

The weight is not all that a key does: its value may be long or short, residual connections and
layers below take part. A quantity is one number for each query and key, per head or for all heads
of a layer together. To have one more in every page and figure, add it to `KNOWN`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.norms import rollout
from headscope.record import Layer, Stack

Maps = Float[np.ndarray, "*head query key"]


@dataclass(frozen=True)
class QuantityWords:
    """How a quantity is called and explained."""

    label: str
    explanation: str


@dataclass(frozen=True)
class KnownQuantity(QuantityWords):
    """A quantity that every page knows.

    Args:
        of_layer: its numbers in a layer of a record; None where they are not there.
        of_stack: where they follow from several layers: its numbers by number of the layer.
        signed: whether some may be below 0.
        kept: whether a record may hold it; else it comes with a comparison.
    """

    of_layer: Callable[[Layer], Maps | None] = lambda layer: None
    of_stack: Callable[[Stack], Mapping[int, Maps]] = lambda stack: {}
    signed: bool = False
    kept: bool = True


def _kept(*kinds: str) -> Callable[[Layer], Maps | None]:
    """The first of these kinds of contributions that a layer holds."""

    def first(layer: Layer) -> Maps | None:
        for kind in kinds:
            array = getattr(layer.contributions, kind, None)
            if array is not None:
                return array
        return None

    return first


def _rollout(stack: Stack) -> Mapping[int, Maps]:
    """Attention rollout, where what tokens add was kept of every layer and layers follow on each
    other.
    """
    numbers = [layer.layer for layer in stack]
    followed = numbers == list(range(len(numbers))) and stack.query == stack.key
    if not (followed and all(layer.contributions is not None for layer in stack)):
        return {}
    return dict(zip(numbers, rollout(stack), strict=True))


CONTRIBUTION = "contribution"
DIFFERENCE = "difference"
OTHER = "other"
BUILT_IN = ("weight", "score")
"""What every record with queries and keys has; the browser computes it itself."""
KNOWN: Mapping[str, KnownQuantity] = {
    "weight": KnownQuantity("weight", "softmax of the scores"),
    "score": KnownQuantity(
        "score", "what goes into the softmax, which sees differences within a row", signed=True
    ),
    # The browser multiplies weights and value norms, so that it is in no layer's maps.
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
        "difference", "weight of this record less that of another", kept=False
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
"""In the order in which they are offered."""
RECORD_QUANTITIES = tuple(name for name, known in KNOWN.items() if known.kept)
