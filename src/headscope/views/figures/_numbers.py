"""The numbers that a figure draws: quantities, means of layers and heads, whole words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import FigureError
from headscope.record import Layer, Record, Stack, Words, word_maps
from headscope.views._quantity_arrays import Given, given_quantities, quantities_of, seen_names
from headscope.views.constants import SINK_PART, SINK_TIMES
from headscope.views.figures._style import Scale, Style, short_score, short_weight
from headscope.views.quantities import BUILT_IN, CONTRIBUTION, KNOWN, QuantityWords, is_signed

Numbers = Float[np.ndarray, "head query key"]
WORDS_NOTE = "whole words: the sum of what their pieces get, the mean of what these give"
Units = tuple[Words, Words]
"""The words of queries and of keys."""


def joined(values: Numbers, units: Units | None, *, scores: bool = False) -> Numbers:
    """Numbers between words: the sum over the pieces of a key, the mean over those of a query; of
    scores the mean over all pairs that may be seen. Unchanged where tokens are drawn.
    """
    if units is None:
        return values
    query, key = (words.tokens for words in units)
    seen = np.isfinite(values)
    summed = word_maps(np.where(seen, values, 0.0), query, key)
    if not scores:
        return summed
    # Both are sums over the same pairs, divided by the same number of queries.
    counts = word_maps(seen.astype(np.float64), query, key)
    return np.divide(summed, counts, out=np.full_like(summed, -np.inf), where=counts > 0)


def mean_layer(layers: Sequence[Layer]) -> Layer:
    """The mean of layers, head by head, with the number of the first.

    Raises:
        FigureError: where they do not have the same heads.
    """
    if len(layers) == 1:
        return layers[0]
    if len({*map(attrgetter("head_numbers"), layers)}) > 1:
        numbers = ", ".join(map(str, map(attrgetter("layer"), layers)))
        raise FigureError(
            f"Layers {numbers} have no mean head by head: they do not have the same heads; give "
            "mean_layers= others"
        )
    first = layers[0]
    sinks = [layer.has("sinks") for layer in layers]
    return Layer(
        layer=first.layer,
        held_heads=first.held_heads,
        weights=np.mean([layer.held_weights() for layer in layers], axis=0),
        visible=np.any([np.asarray(layer.visible, bool) for layer in layers], axis=0),
        sinks=first.part("sinks") if all(sinks) else None,
        # Rows that are empty, or lose some to a sink, in some of the layers sum to less than 1.
        partial=any(layer.partial or layer.dead.any() for layer in layers)
        or any(sinks) != all(sinks),
    )


def find_sinks(layer: Layer, heads: Collection[int]) -> dict[int, float]:
    """The share of these heads' attention that goes to each sink, the strongest first."""
    weights = [np.asarray(layer.weights_of(head), np.float64) for head in heads]
    received = np.mean([each.sum(axis=0) for each in weights], axis=0)
    total = received.sum()
    if total == 0:
        return {}
    parts = received / total
    # In a short text each key gets much anyway: it must also get several times its even share.
    least = max(SINK_PART, SINK_TIMES / len(parts))
    strongest = np.argsort(-parts, kind="stable").tolist()
    return {key: float(parts[key]) for key in strongest if parts[key] >= least}


def without_keys(
    values: Float[np.ndarray, "head query key"], keys: Collection[int]
) -> Float[np.ndarray, "head query key"]:
    """Weights with some keys left out, each row renormalised to the sum that it had; zero where
    nothing is left.

    Args:
        values: weights, NaN where a query may not look.
        keys: positions of the keys that are left out.
    """
    weights = values.copy()
    weights[:, :, list(keys)] = 0
    before, after = (np.nansum(each, axis=-1, keepdims=True) for each in (values, weights))
    return weights * np.where(after > 0, before / np.where(after > 0, after, 1), 0)


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
        layers: for each layer that is drawn, the layers of the record whose mean it is.
        units: the words of queries and of keys; None where tokens are drawn.
        heads: the heads whose mean is drawn; empty where they are drawn one by one.
    """

    name: str
    label: str
    explanation: str
    given: Given
    signed: bool
    whole: bool
    layers: Mapping[int, tuple[Layer, ...]]
    units: Units | None
    heads: tuple[int, ...]

    @property
    def weights(self) -> bool:
        """Whether these are weights, whose rows sum to 1."""
        return self.name == "weight"

    @property
    def mass(self) -> str:
        """Words for the sum of all magnitudes."""
        named = {"weight": "the attention", "score": "the scores' magnitude"}
        return named.get(self.name, f"the {self.label}")

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
            return replace(style.weight_scale(float(min(64, max(8, keys))), colour), lifts=True)
        return style.weight_scale(largest, colour, power=power, words=self.words)

    def position(self, side: int, token: int) -> int:
        """Where a token of the record stands in what is drawn."""
        runs = self.units[side].tokens if self.units else ()
        return next((at for at, run in enumerate(runs) if token in run), token)

    def numbers(
        self, layer: Layer, heads: tuple[int, ...], without: tuple[int, ...] = ()
    ) -> Numbers:
        """The numbers of some heads in float64, NaN where a query may not look; a single map for a
        quantity of all heads together.

        Args:
            layer: the layer.
            heads: the heads.
            without: keys whose weights are left out, the rest of each row renormalised.

        Raises:
            RecordError: scores of a layer that keeps no queries and keys.
        """
        chosen, layers = self.heads or heads, self.layers[layer.layer]
        values = np.mean([self._of_tokens(each, chosen) for each in layers], axis=0)
        values = joined(values, self.units, scores=self.name == "score")
        values = values.mean(axis=0, keepdims=True) if self.heads else values
        if not layer.visible.is_full:
            values[:, ~np.asarray(layer.visible, bool)] = np.nan
        values[np.isinf(values)] = np.nan
        return without_keys(values, without) if without and self.weights else values

    def even(self, layer: Layer, without: tuple[int, ...] = ()) -> Float[np.ndarray, "query key"]:
        """What even attention gives: each query the same to every key that it sees; NaN where it
        may not look.
        """
        evens = []
        for each in self.layers[layer.layer]:
            seen = np.asarray(each.visible, bool)
            evens.append(seen / np.maximum(seen.sum(axis=-1, keepdims=True), 1))
        even = joined(np.mean(evens, axis=0)[None], self.units)
        even = np.where(np.asarray(layer.visible, bool), even, np.nan)
        return (without_keys(even, without) if without else even)[0]

    def lifts(self, layer: Layer, heads: tuple[int, ...], without: tuple[int, ...] = ()) -> Numbers:
        """The numbers of some heads; of weights, as multiples of what even attention gives."""
        values = self.numbers(layer, heads, without)
        return lifts_of(values, self.even(layer, without)) if self.weights else values

    def _of_tokens(self, layer: Layer, heads: tuple[int, ...]) -> np.ndarray:
        if self.name in BUILT_IN:
            read = layer.weights_of if self.weights else layer.scores_of
            return np.stack([np.asarray(read(head), np.float64) for head in heads])
        known = quantities_of(layer, self.given)
        if self.name in known:
            array = np.asarray(known[self.name], np.float64)
            return array[None] if array.ndim == 2 else array[list(heads)]
        norms = np.asarray(layer.part("value_norms", list(heads)), np.float64)
        return np.stack([layer.weights_of(head) for head in heads]) * norms[:, None]


def shown_quantity(
    record: Record,
    stack: Stack,
    options: Mapping[str, Any],
    *,
    layers: Mapping[int, tuple[Layer, ...]],
    heads: tuple[int, ...],
) -> DrawnQuantity:
    """The quantity that the options of a figure name.

    Args:
        record: where it comes from.
        stack: the stack that is drawn.
        options: of the figure.
        layers: for each layer that is drawn those whose mean it is.
        heads: those whose mean is drawn, if any.

    Raises:
        FigureError: where a layer of the stack does not have it.
        PageError: where given arrays do not fit the record.
    """
    wanted, quantities = str(options.get("quantity", "weight")), options.get("quantities") or {}
    words, is_built_in = KNOWN.get(wanted, QuantityWords(wanted, "")), wanted in BUILT_IN
    given: Given = {}
    # Weights and scores need neither arrays nor a sentence: every figure has them.
    if not is_built_in or quantities:
        given = given_quantities(record, quantities)[stack.name]
    names = {layer.layer: ["weight", *seen_names(layer, given)] for layer in stack}
    lacking = [number for number, known in names.items() if wanted not in known]
    # Reading scores that were not kept raises, and says what to keep.
    if lacking and wanted != "score":
        where = f"stack {stack.name!r}" if len(lacking) == len(names) else f"layer {lacking[0]}"
        raise FigureError(
            f"quantity={wanted!r}: {where} has {', '.join(map(repr, names[lacking[0]]))}; capture "
            "with keep='norms' to have contributions, or give it with quantities="
        )
    arrays = []
    if not is_built_in and wanted != CONTRIBUTION:
        arrays = [quantities_of(layer, given, wanted)[wanted] for layer in stack]
    whole = any(array.ndim == 2 for array in arrays)
    if whole and heads:
        raise FigureError(f"quantity={wanted!r} is of all heads together; leave mean_heads= out")
    return DrawnQuantity(
        name=wanted,
        label=words.label,
        explanation="" if is_built_in else words.explanation,
        given=given,
        signed=is_signed(wanted) or any((array < 0).any() for array in arrays),
        whole=whole or bool(heads),
        layers=layers,
        units=(stack.query.whole_words, stack.key.whole_words) if options.get("words") else None,
        heads=heads,
    )


def lifts_of(values: np.ndarray, even: np.ndarray) -> np.ndarray:
    """Weights as multiples of what even attention gives; 0 where it gives nothing."""
    return np.where(np.isnan(values), np.nan, values / np.where(even > 0, even, np.inf))


def mean_of(values: Float[np.ndarray, "*axes"], axis: int = 0) -> Float[np.ndarray, "*less"]:
    """Mean over an axis without hidden numbers; NaN where all are hidden."""
    # np.nanmean would do the same, but warns where all are hidden.
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    total = np.where(there, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def largest_of(values: np.ndarray) -> float:
    """Largest magnitude, hidden numbers left out; 0 where there is none."""
    return float(np.nanmax(np.abs(values), initial=0.0, where=~np.isnan(values)))


def pooled(
    values: Float[np.ndarray, "query key"], most: int, *, mean: bool = False
) -> Float[np.ndarray, "row column"]:
    """At most so many rows and columns, each cell the number of largest magnitude in its block, or
    the mean of its numbers.
    """
    for axis in (0, 1):
        count = values.shape[axis]
        if count > most:
            starts = np.arange(most) * count // most
            if mean:
                there = np.add.reduceat((~np.isnan(values)).astype(float), starts, axis=axis)
                total = np.add.reduceat(np.nan_to_num(values), starts, axis=axis)
                values = np.where(there > 0, total / np.maximum(there, 1), np.nan)
                continue
            # fmax and fmin skip NaN, so that a block is hidden only where all of it is.
            high = np.fmax.reduceat(values, starts, axis=axis)
            low = np.fmin.reduceat(values, starts, axis=axis)
            values = np.where(np.abs(low) > np.abs(high), low, high)
    return values


def pooling_words(*, mean: bool, signed: bool) -> str:
    """A note about cells that stand for several numbers."""
    if mean:
        return "each cell is the mean of its block"
    return f"each cell is the largest of its block{', by magnitude' if signed else ''}"


def top_share(sizes: Numbers, share: int) -> Bool[np.ndarray, "head query key"]:
    """The strongest keys of each row up to a share of its mass, in percent.

    Those that equal the weakest one kept are kept too, so that nothing depends on the order of the
    keys; what is 0 is never kept.
    """
    ordered = -np.sort(-sizes, axis=-1)
    # A key is needed while those before it do not yet reach the share. The small reduction keeps
    # rounding errors of the sum from adding a last, tiny key.
    before = np.cumsum(ordered, axis=-1) - ordered
    needed = before < share / 100 * sizes.sum(axis=-1, keepdims=True) * (1 - 1e-9)
    weakest = np.where(needed, ordered, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    return (sizes >= weakest) & (sizes > 0)
