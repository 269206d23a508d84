"""One neuron of a head, and what it adds to the score over texts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Neuron:
    """One neuron of a head, or one frequency pair, and what it adds to the score over texts.

    Args:
        layer: number of the layer, from 0.
        head: number of the head, from 0.
        unit: its number within the head.
        features: the features of queries and keys it is made of: two where positions are rotary.
        frequency: radians per position by which these are turned; None where they are not.
        adds: mean over texts of what it adds to the score of what is looked at.
        low: lower end of the interval of that mean; NaN for one text.
        high: upper end.
        share: of the positive part of the mean score.
        carries: mean share of queries whose carrying set it is in.
        stable: share of texts in whose mean it is among those that carry the score.
        holds: whether the interval lies above 0, and it is among the fewest that carry the mean
            score.
    """

    layer: int
    head: int
    unit: int
    features: tuple[int, ...]
    frequency: float | None
    adds: float
    low: float
    high: float
    share: float
    carries: float
    stable: float
    holds: bool

    def __str__(self) -> str:
        name = (
            f"neuron {self.features[0]}"
            if len(self.features) == 1
            else f"pair {self.unit} {self.features}"
        )
        return (
            f"{name} adds {self.adds:+.2f} [{self.low:+.2f}, {self.high:+.2f}], {self.share:.0%} "
            f"of what is positive, carries it for {self.carries:.0%} of queries and in "
            f"{self.stable:.0%} of texts"
        )
