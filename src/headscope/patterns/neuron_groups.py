"""What a mechanism shows: single neurons of a head, and heads by their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.measures import carriers
from headscope.patterns.neurons import Units
from headscope.results import Kept, Result, TextTable
from headscope.storage import Finite

SHOWN = 8
"""Number of neurons in the card of one head."""
SAYS = {
    "head": "layer-head, both from 0",
    "mass": "weight on what is looked at",
    "neurons (margin)": (
        "the fewest that make up most of the positive score of a query, mean over queries and "
        "texts [interval], where the margin is the score less its mean over all keys"
    ),
    "Jaccard (chance)": (
        "how alike their sets are at two positions of a text, and how alike sets of that size "
        "are by chance"
    ),
    "neurons (score)": "the same of the score itself",
}
"""The legend of the table."""


@dataclass(frozen=True)
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
        name = f"pair {self.unit} {self.features}"
        if len(self.features) == 1:
            name = f"neuron {self.features[0]}"
        return (
            f"{name} adds {self.adds:+.2f} [{self.low:+.2f}, {self.high:+.2f}], {self.share:.0%} "
            f"of what is positive, carries it for {self.carries:.0%} of queries and in "
            f"{self.stable:.0%} of texts"
        )


def neurons_of(
    cell: tuple[int, int],
    units: Units,
    means: Float[np.ndarray, "number unit"],
    ends: Float[np.ndarray, "unit 2"],
    *,
    share: float,
) -> tuple[Neuron, ...]:
    """The neurons of a head, of the means over texts of `OF_UNITS` and the interval of the first;
    the largest contribution first.
    """
    adds, carries, stable = means
    positive = np.maximum(adds, 0)
    shares = positive / positive.sum() if positive.any() else positive
    holds = carriers(adds, share=share) & (ends[:, 0] > 0)
    numbers = np.stack([adds, *ends.T, shares, carries, stable], axis=1).tolist()
    rows = zip(units.members, units.frequencies, numbers, holds.tolist(), strict=True)
    neurons = []
    for unit, (features, frequency, own, is_held) in enumerate(rows):
        neurons.append(Neuron(*cell, unit, features, frequency, *own, is_held))
    return tuple(sorted(neurons, key=lambda neuron: -neuron.adds))


def card_of(layer: int, head: int, neurons: Sequence[Neuron]) -> list[str]:
    """The neurons that certainly carry the score of a head, in lines; nothing of none."""
    if not neurons:
        return []
    held = [str(neuron) for neuron in neurons if neuron.holds]
    lines = [f"  {neuron}" for neuron in held[:SHOWN]] or ["  no neuron adds to it for certain"]
    more = [f"  and {len(held) - SHOWN} more"] if len(held) > SHOWN else []
    return [f"Head {layer}-{head}:", *lines, *more]


def table_of(
    margins: Sequence[Mapping[str, Any]], scores: Sequence[Mapping[str, Any]]
) -> TextTable:
    """How many neurons carry each head, by margin and by score."""
    rows = [(*SAYS, "Jaccard (chance) by score")]
    for margin, score in zip(margins, scores, strict=True):
        cells = [f"{margin['layer']}-{margin['head']}", f"{margin['mass']:.2f}"]
        for row in (margin, score):
            neurons = f"{row['neurons']:.1f} [{row['neurons_low']:.1f}, {row['neurons_high']:.1f}]"
            overlap = f"[{row['overlap_low']:.2f}, {row['overlap_high']:.2f}]"
            cells += [f"{neurons} of {row['units']}"]
            cells += [f"{row['overlap']:.2f} {overlap} ({row['chance']:.2f})"]
        rows.append(tuple(cells))
    return TextTable.of_rows(rows, says=SAYS)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Heads of one label: the number of neurons that carry them, and how fixed these are.

    Args:
        label: the label that all of them hold.
        heads: number of heads.
        neurons: number of neurons that carry the score of a query, mean over heads and texts.
        neurons_low: lower end of its interval over texts, or over their documents.
        neurons_high: upper end.
        fixed: mean Jaccard index of the sets of two positions above chance, where 0 is chance and 1
            the same set: ``(J - J_chance) / (1 - J_chance)``.
        fixed_low: lower end.
        fixed_high: upper end.
    """

    label: str
    heads: int
    neurons: float
    neurons_low: float
    neurons_high: float
    fixed: float
    fixed_low: float
    fixed_high: float


NUMBERS = ("neurons", "neurons_low", "neurons_high", "fixed", "fixed_low", "fixed_high")
GROUP: dict[str, Any] = {"label": str, "heads": int, **dict.fromkeys(NUMBERS, float)}


@dataclass(frozen=True, eq=False)
class Groups(Result):
    """Heads by their labels; prints itself as a table.

    Args:
        all: the groups.
        confidence: confidence level of the intervals.
    """

    KIND: ClassVar[str] = "mechanism groups"
    DOCUMENT: ClassVar = {"confidence": Finite, "groups": [GROUP]}

    all: tuple[Group, ...]
    confidence: float = 0.95

    def __getitem__(self, label: str) -> Group:
        for group in self.all:
            if group.label == label:
                return group
        raise RecordError(
            f"No head holds {label!r}; labels held are "
            f"{', '.join(group.label for group in self.all)}"
        )

    def columns(self) -> dict[str, list[Any]]:
        """One row for each label."""
        return {
            field.name: [getattr(group, field.name) for group in self.all]
            for field in fields(Group)
        }

    def _kept(self) -> Kept:
        return {"confidence": self.confidence, "groups": [*map(asdict, self.all)]}, {}

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Groups:
        groups = tuple(Group(**each) for each in document["groups"])
        return Groups(groups, document["confidence"])

    @property
    def summary(self) -> str:
        """The number of neurons that carry the heads of each label."""
        groups = [
            f"{group.label} ({group.heads} heads): {group.neurons:.1f} neurons"
            for group in self.all
        ]
        return (
            "Neurons that carry a query's score, by label: "
            f"{', '.join(groups) or 'no head holds a label'}"
        )

    def _blocks(self) -> list[TextTable | str]:
        rows = [
            (
                group.label,
                str(group.heads),
                f"{group.neurons:.1f} [{group.neurons_low:.1f}, {group.neurons_high:.1f}]",
                f"{group.fixed:.2f} [{group.fixed_low:.2f}, {group.fixed_high:.2f}]",
            )
            for group in self.all
        ]
        says = {
            "heads": "how many hold the label",
            "neurons": "the fewest that carry the score of a query, mean",
            "fixed": (
                "Jaccard above chance, 1 the same neurons at all positions "
                f"[{self.confidence:.0%} over texts]"
            ),
        }
        return [TextTable.of_rows([("label", "heads", "neurons", "fixed"), *rows], says=says)]
