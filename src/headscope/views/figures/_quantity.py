"""The quantity that a figure shows for every query and key: weight, score, contribution ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.errors import FigureError
from headscope.record import Layer, Record, Stack
from headscope.views._quantity_arrays import Given, given_quantities, quantities_of, seen_names
from headscope.views.figures._combined import Combined
from headscope.views.figures._scale import Scale
from headscope.views.figures._words import short_score, short_weight
from headscope.views.quantities import BUILT_IN, CONTRIBUTION, KNOWN, QuantityWords, is_signed

if TYPE_CHECKING:
    from headscope.views.figures._style import Style


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnQuantity:
    """A quantity with its words and its scale.

    Args:
        name: name of the option's value.
        label: name in the figure.
        explanation: what it is, for quantities that not every reader knows; else empty.
        given: quantities from the call, by `given_quantities`.
        signed: whether some numbers are below 0.
        whole: whether it is one map for all heads together, or of the mean of heads.
        combined: what the numbers are put together from.
    """

    name: str
    label: str
    explanation: str
    given: Given
    signed: bool
    whole: bool
    combined: Combined

    @property
    def weights(self) -> bool:
        """Whether these are weights, whose rows sum to 1."""
        return self.name == "weight"

    @property
    def mass(self) -> str:
        """Words for the sum of all magnitudes."""
        return {"weight": "the attention", "score": "the scores' magnitude"}.get(
            self.name, f"the {self.label}"
        )

    @property
    def received(self) -> str:
        """Words for what a key gets from all queries together."""
        named = {"weight": "Attention received", "score": "Mean score received"}
        return named.get(self.name, f"Mean {self.label} received")

    @property
    def words(self) -> Callable[[float], str]:
        """The function that writes a number in a narrow column."""
        return short_weight if self.weights else short_score

    @property
    def scale_label(self) -> str:
        """Words beside the bar of the scale."""
        return "times the even share" if self.weights else self.label

    def scale(
        self,
        style: Style,
        largest: float,
        keys: int,
        colour: str | None = None,
        *,
        power: float = 0.5,
    ) -> Scale:
        """Colours from 0 to the largest number, or for both signs; of weights, of multiples of the
        even share, from 1 to as often as one of so many keys can have it, between 8 and 64.
        """
        if self.signed:
            return style.score_scale(largest)
        if self.weights:
            return style.lift_scale(float(min(64, max(8, keys))), colour)
        return style.weight_scale(largest, colour, power=power, words=self.words)

    def of(self, layer: Layer, heads: tuple[int, ...]) -> np.ndarray:
        """``[head query key]`` of some heads in float64, or ``[1 query key]`` of all together."""
        of = self.combined
        chosen = of.heads or heads
        values = of.of(
            layer, lambda each: self._of_tokens(each, chosen), scores=self.name == "score"
        )
        return values.mean(axis=0, keepdims=True) if of.heads else values

    def _of_tokens(self, layer: Layer, heads: tuple[int, ...]) -> np.ndarray:
        if self.name in BUILT_IN:
            read = layer.weights_of if self.weights else layer.scores_of
            return np.stack([np.asarray(read(head), np.float64) for head in heads])
        known = quantities_of(layer, self.given)
        if self.name in known:
            array = np.asarray(known[self.name], np.float64)
            return array[None] if array.ndim == 2 else array[list(heads)]
        norms = np.asarray(layer.part("value_norms", list(heads)), np.float64)
        return (
            np.stack([np.asarray(layer.weights_of(head), np.float64) for head in heads])
            * norms[:, None]
        )


def _check_there(stack: Stack, wanted: str, given: Mapping[str, Any]) -> None:
    """Raise where a layer does not have a quantity."""
    if wanted == "score":
        return  # reading scores that were not kept raises, and says what to keep
    for layer in stack:
        names = ["weight", *seen_names(layer, given)]
        if wanted not in names:
            listed = ", ".join(map(repr, names))
            raise FigureError(
                f"quantity={wanted!r}: layer {layer.layer} has {listed}; capture with "
                "keep='norms' to have contributions, or give it with quantities="
            )


def shown_quantity(
    record: Record,
    stack: Stack,
    wanted: str,
    quantities: Mapping[str, Any] | None,
    *,
    combined: Combined,
) -> DrawnQuantity:
    """The quantity of that name.

    Args:
        record: where it comes from.
        stack: the stack that is drawn.
        wanted: its name.
        quantities: arrays that are given, as for a view.
        combined: what the numbers are put together from.

    Raises:
        FigureError: where a layer of the stack does not have it.
        PageError: where given arrays do not fit the record.
    """
    words = KNOWN.get(wanted, QuantityWords(wanted, ""))
    given: Given = {}
    explanation = "" if wanted in BUILT_IN else words.explanation
    # Weights and scores need neither arrays nor a sentence: every figure has them.
    if wanted not in BUILT_IN or quantities:
        given = given_quantities(record, quantities or {})[stack.name]
    _check_there(stack, wanted, given)
    signed, whole = is_signed(wanted), False
    if wanted not in (*BUILT_IN, CONTRIBUTION):
        for layer in stack:
            array = quantities_of(layer, given)[wanted]
            signed = signed or bool((array < 0).any())
            whole = whole or array.ndim == 2
    return DrawnQuantity(
        name=wanted,
        label=words.label,
        explanation=explanation,
        given=given,
        signed=signed,
        whole=whole or bool(combined.heads),
        combined=combined,
    )
