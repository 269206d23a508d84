"""One neuron of a head, and its contribution to the score over texts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Neuron:
    """One neuron of a head, or one frequency pair, and its contribution to the score over texts.

    Args:
        layer: number of the layer, from 0.
        head: number of the head, from 0.
        unit: its number within the head.
        features: its features of queries and keys: two where positions are rotary.
        frequency: radians per position by which these are rotated; None where they are not.
        adds: contribution to the score of the attended keys, mean over texts.
        low: lower end of the interval of that mean; NaN for one text.
        high: upper end.
        share: share of the positive part of the mean score.
        carries: share of queries whose smallest carrying set it belongs to, mean over texts.
        stable: share of texts in whose mean score it belongs to that set.
        holds: whether the interval is above 0 and it belongs to that set for the mean over all
            texts.
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
