"""The parts of a head's score: neurons, or the frequency pairs of rotary positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.record import Layer


@dataclass(frozen=True)
class Units:
    """The parts that add up to a score: one neuron each, or two that rotary positions turn
    together.

    Args:
        members: the features of each unit, numbered within the head.
        frequencies: radians per position of each pair; None for a neuron that is not rotated.
    """

    members: tuple[tuple[int, ...], ...]
    frequencies: tuple[float | None, ...]

    def __len__(self) -> int:
        return len(self.members)

    def summed(
        self, scores: Float[np.ndarray, "head query feature"]
    ) -> Float[np.ndarray, "head query unit"]:
        """The contribution of each unit, from those of its features."""
        first = scores[..., [member[0] for member in self.members]]
        second = [
            (number, member[1]) for number, member in enumerate(self.members) if len(member) == 2
        ]
        if second:
            numbers, features = zip(*second, strict=True)
            first[..., list(numbers)] += scores[..., list(features)]
        return first

    def name(self, unit: int) -> str:
        """``"neuron 5"``, or ``"pair 3 (features 3, 19)"``."""
        member = self.members[unit]
        return (
            f"neuron {member[0]}"
            if len(member) == 1
            else f"pair {unit} (features {member[0]}, {member[1]})"
        )


def units_of(layer: Layer) -> Units:
    """The units of a layer's heads; where positions are rotary, pairs first and then the features
    that are not rotated.

    Two features that are rotated together have no separate shares of a score: which of them carries
    it depends on the positions, and only their sum on the distance alone.

    Example:
        >>> units_of(Layer(layer=0, queries=np.ones((1, 2, 3)), keys=np.ones((1, 2, 3)))).members
        ((0,), (1,), (2,))
    """
    size = 0 if not layer.has("queries") else layer.shape_of("queries")[2]
    if layer.rotary is None:
        return Units(tuple((feature,) for feature in range(size)), (None,) * size)
    pairs = tuple((int(a), int(b)) for a, b in zip(*layer.rotary.pairs, strict=True))
    turned = {feature for pair in pairs for feature in pair}
    rest = tuple((feature,) for feature in range(size) if feature not in turned)
    return Units(pairs + rest, (*map(float, layer.rotary.frequencies), *(None for _ in rest)))
