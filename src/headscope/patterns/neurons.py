"""What the neurons of a head add to the scores of one text, and which of them carry a query."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float

from headscope.corpus import WHOLE, Sums
from headscope.errors import ModelError, RecordError
from headscope.measures import carriers, neuron_scores, set_overlap
from headscope.patterns._maps import AttentionMaps
from headscope.patterns._pattern import PATTERNS, MissingFunction, Pattern
from headscope.patterns._sketch import sketch
from headscope.record import Layer, Stack
from headscope.storage import PAIR, Finite, array_of, check_document

Reading = Literal["margin", "score"]
READINGS: tuple[Reading, ...] = get_args(Reading)
NUMBERS = ("mass", "neurons", "overlap", "chance", "fixed")
"""Of each head and reading: the weight on what is looked at; how many neurons carry a query; how
alike their sets are at two positions, and by chance; the first of these above the second.
"""
OF_UNITS = ("adds", "carries", "stable")
"""Of each unit: what it adds to the score; the share of queries that it helps to carry; whether it
is among those that carry the mean score of a text.
"""
POSITIONS = 64
"""Number of first positions that are counted one by one."""
RULES = {
    "next": "word -> next in own",
    "previous": "word -> previous in own",
    "positional-next": "word -> next in own",
    "positional-previous": "word -> previous in own",
    "delimiter": "word -> delimiter",
    "bag": "word -> word in own",
    "first-token": "any -> first",
    "sink": "any -> first",
    "previous-token": "any -> previous",
    "sep": "word -> sep",
    "cls": "word -> cls",
}
"""Rules of pairs for patterns that have a score of their own, and for classes of tokens."""


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
        for unit, member in enumerate(self.members):
            if len(member) == 2:
                first[..., unit] += scores[..., member[1]]
        return first


def units_of(layer: Layer) -> Units:
    """The units of a layer's heads; where positions are rotary, pairs first and then the features
    that are not rotated.

    Two features that are rotated together have no separate shares of a score: which of them carries
    it depends on the positions, and only their sum on the distance alone.

    Raises:
        RecordError: where queries and keys were not kept.

    Example:
        >>> units_of(Layer(layer=0, queries=np.ones((1, 2, 3)), keys=np.ones((1, 2, 3)))).members
        ((0,), (1,), (2,))
    """
    if not all(map(layer.has, ("queries", "keys"))):
        raise RecordError(
            f"Queries and keys of layer {layer.layer} were not kept, and neurons are theirs; "
            "capture with keep='qk'"
        )
    size = layer.shape_of("queries")[2]
    if layer.rotary is None:
        return Units(tuple((feature,) for feature in range(size)), (None,) * size)
    pairs = tuple((int(a), int(b)) for a, b in zip(*layer.rotary.pairs, strict=True))
    turned = {feature for pair in pairs for feature in pair}
    rest = tuple((feature,) for feature in range(size) if feature not in turned)
    return Units(pairs + rest, (*map(float, layer.rotary.frequencies), *(None for _ in rest)))


def parse_pattern(pattern: Pattern | str | None) -> Pattern | None:
    """The keys to explain, as a pattern of pairs.

    Raises:
        RecordError: where it is neither a pattern of pairs nor a valid rule.
    """
    if pattern is None:
        return None
    if isinstance(pattern, str):
        named = (each for each in PATTERNS if each.name == pattern and each.pairs is not None)
        return next(named, None) or sketch(RULES.get(pattern, pattern), name=pattern)
    if not isinstance(pattern, Pattern):
        raise RecordError(f"pattern is a rule or a Pattern, not {pattern!r}")
    if pattern.pairs is None and pattern.name in RULES:
        return parse_pattern(pattern.name)
    return pattern


def pattern_of_facts(facts: Mapping[str, Any]) -> Pattern:
    """The pattern of these facts: named, a rule, or one whose functions are missing."""
    try:
        named = parse_pattern(facts.get("name"))
    except RecordError:
        named = None
    if named is not None and named.facts == dict(facts):
        return named
    missing = MissingFunction(facts["name"])
    return replace(Pattern.of_facts(facts), score=None, pairs=missing)


def cells_of(stack: Stack, at: Collection[tuple[int, int]] | None) -> list[tuple[int, int]]:
    """Layer and head of the heads that are analysed.

    Raises:
        ModelError: where the model has no such head, whatever the text.
    """
    there = [(layer.layer, head) for layer in stack for head in range(layer.heads)]
    gone = sorted(set(at or ()) - set(there))
    if gone:
        missing, first, last = (f"{layer}-{head}" for layer, head in (gone[0], there[0], there[-1]))
        raise ModelError(f"There is no head {missing}; heads go from {first} to {last}")
    return there if at is None else [cell for cell in there if cell in at]


def units_by_layer(stack: Stack, cells: Collection[tuple[int, int]]) -> dict[int, Units]:
    """The units of each layer that has one of these heads."""
    wanted = {layer for layer, _ in cells}
    return {layer.layer: units_of(layer) for layer in stack if layer.layer in wanted}


def counts_of_layer(
    maps: AttentionMaps,
    layer: Layer,
    heads: list[int],
    *,
    wanted: Bool[np.ndarray, "query key"] | None,
    units: Units,
    share: float,
    width: int,
) -> dict[str, np.ndarray]:
    """What is counted of some heads of a layer on one text, an axis of heads first."""
    targets, mass, asked = _targets(maps, heads, wanted)
    positions = np.flatnonzero(asked)
    early = positions < POSITIONS
    shape = (len(heads), len(READINGS))
    numbers = np.full((*shape, len(NUMBERS)), np.nan)
    of_units = np.zeros((*shape, len(OF_UNITS), width))
    carried_at = np.zeros((*shape, min(len(asked), POSITIONS), width), np.int64)
    seen_at = np.zeros((len(heads), carried_at.shape[2]), np.int64)
    seen_at[:, positions[early]] = 1
    if len(positions):
        queries = layer.part("queries", heads)[:, asked]
        keys = layer.part("keys", layer.kv_head_of[heads])
        # Uniform weights over the visible keys: subtracting them leaves the margin.
        even = maps.visible[asked] / maps.visible[asked].sum(axis=1, keepdims=True)
        for number, of in enumerate(READINGS):
            rows = targets - even if of == "margin" else targets
            scores = units.summed(neuron_scores(queries, keys, rows, scale=layer.scale))
            carried = carriers(scores, share=share)
            carried_at[:, number][:, positions[early], : len(units)] = carried[:, early]
            numbers[:, number, 0] = mass
            numbers[:, number, 1:] = _numbers_of(carried)
            mean = scores.mean(axis=1)
            parts = (mean, carried.mean(axis=1), carriers(mean, share=share))
            of_units[:, number, :, : len(units)] = np.stack(parts, axis=1)
    return {
        "numbers": np.nan_to_num(numbers),
        "known": (~np.isnan(numbers)).astype(np.int64),
        "shown": np.full(len(heads), int(len(positions) > 0)),
        "units": of_units,
        f"{WHOLE}carried": carried_at,
        f"{WHOLE}seen": seen_at,
    }


def _numbers_of(carried: Bool[np.ndarray, "head query unit"]) -> Float[np.ndarray, "head number"]:
    """How many units carry a query, how alike their sets are, by chance, and above that."""
    sizes = carried.sum(axis=2)
    known = (sizes > 0).sum(axis=1)
    nothing = np.full(len(carried), np.nan)
    neurons = np.divide(sizes.sum(axis=1), known, out=nothing.copy(), where=known > 0)
    overlap, chance = np.array([set_overlap(each) for each in carried]).T
    fixed = np.divide(overlap - chance, 1 - chance, out=nothing, where=chance < 1)
    return np.stack([neurons, overlap, chance, fixed], axis=1)


def _targets(
    maps: AttentionMaps, heads: list[int], wanted: Bool[np.ndarray, "query key"] | None
) -> tuple[
    Float[np.ndarray, "head asked key"], Float[np.ndarray, " head"], Bool[np.ndarray, " query"]
]:
    """The share of each key in its row, the mass on these keys, and the queries that have any."""
    weights = maps.weights[heads]
    if wanted is None:
        asked = maps.seeing & maps.tokens.query_words
        rows = weights[:, asked]
    else:
        wanted = wanted & maps.visible
        asked = wanted.any(axis=1)
        rows = np.where(wanted[asked], weights[:, asked], 0.0)
    sums = rows.sum(axis=2, keepdims=True)
    pairs = (maps.visible if wanted is None else wanted)[asked]
    # A row without any weight on its keys counts them equally.
    even = np.broadcast_to(pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1), rows.shape)
    mass = sums[..., 0].mean(axis=1) if asked.any() else np.full(len(heads), np.nan)
    return np.divide(rows, sums, out=even.copy(), where=sums > 0), mass, asked


def number_of(reading: str) -> int:
    """The place of a reading among `READINGS`.

    Raises:
        RecordError: where there is no such reading.
    """
    if reading not in READINGS:
        raise RecordError(f"There is no reading {reading!r}; there are {' and '.join(READINGS)}")
    return READINGS.index(reading)


def facts_of(stack: Stack, how: Mapping[str, Any]) -> dict[str, Any]:
    """The heads that are analysed, and their units; the same for all texts."""
    cells = cells_of(stack, how["at"])
    units = units_by_layer(stack, cells)
    return {
        "cells": [list(cell) for cell in cells],
        "units": [
            [layer, [list(member) for member in each.members], list(each.frequencies)]
            for layer, each in units.items()
        ],
    }


def units_of_facts(facts: Mapping[str, Any]) -> dict[int, Units]:
    """The units of each layer, as they are kept among the facts of sums."""
    units = {}
    for layer, members, frequencies in facts.get("units", ()):
        units[layer] = Units(tuple(map(tuple, members)), tuple(frequencies))
    return units


def check_counts(sums: Sums, arrays: dict[str, np.ndarray]) -> None:
    """Raise where the arrays of a file do not fit its heads and units.

    Raises:
        TypeError: where something is of another kind.
        ValueError: saying what does not fit.
    """
    check_document(sums.facts, {"cells": [PAIR], "units": [[int, [[int]], [(Finite, None)]]]})
    units, cells = units_of_facts(sums.facts), sums.facts["cells"]
    for each in units.values():
        one_or_two = all(1 <= len(member) <= 2 for member in each.members)
        if len(each.members) != len(each.frequencies) or not one_or_two:
            raise ValueError("its units are none")
    if {layer for layer, _ in cells} != set(units):
        raise ValueError("its heads and units are not of one model")
    shape, width = (len(sums.rows), len(cells)), max(map(len, units.values()))
    of_reading = (*shape, len(READINGS))
    for name, kind in (("numbers", "f"), ("known", "i")):
        array_of(arrays, f"counts.{name}", kind, (*of_reading, len(NUMBERS)))
    array_of(arrays, "counts.shown", "i", shape)
    array_of(arrays, "counts.units", "f", (*of_reading, len(OF_UNITS), width))
    seen = array_of(arrays, f"{WHOLE}seen", "i", (len(cells), None))
    array_of(arrays, f"{WHOLE}carried", "i", (len(cells), len(READINGS), seen.shape[1], width))
