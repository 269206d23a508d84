"""Scores and baselines of every pattern and head, text by text."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.evidence import MapSum, Statistic, load_beside, load_statistic, position_map, rng_of, uniform_map
from headscope.measures import confidence, entropy, head_distances, mass_at_offsets, mass_on, mean_distance
from headscope.patterns._kovaleva import CLASSES, kovaleva_class
from headscope.patterns._maps import Maps, Sides, maps_of
from headscope.patterns._pattern import PATTERNS, Pattern
from headscope.record import Record, Stack

SHUFFLES = 8
BASELINES = ("uniform", "shuffled", "position")
MEASURES: Mapping[str, Callable[[Maps], np.ndarray]] = {
    "entropy": lambda maps: entropy(maps.weights, queries=maps.seeing),
    "confidence": lambda maps: confidence(maps.weights, queries=maps.seeing),
    "distance": lambda maps: mean_distance(maps.weights, signed=False) if maps.sides.is_self else _none(maps),
    "self": lambda maps: mass_at_offsets(maps.weights, [0])[:, 0] if maps.sides.is_self else _none(maps),
    "special": lambda maps: mass_on(maps.weights, ~maps.sides.key_words, queries=maps.seeing),
}


class Tally:
    """What `heads` counts: update it with records, add tallies of other machines, keep it and go on later.

    Values do not depend on the order of texts or on how they were shared out.

    Args:
        patterns: what to look for.
        stack: which stack of the records; by default the first.
        position_mean: `MapSum.mean` over heads of all layers, for the position-only baseline of patterns of content;
            without it that baseline is not made.
        distances: whether to add up how unlike the heads are, for their map.

    Example:
        >>> from headscope.testing import random_record
        >>> tally = Tally()
        >>> tally.update("a", random_record())
        >>> tally.cells[:4], tally.statistic.count.shape[1]
        ([(0, 0), (0, 1), (0, 2), (1, 0)], 6)
    """

    def __init__(
        self,
        patterns: tuple[Pattern, ...] = PATTERNS,
        *,
        stack: str | None = None,
        position_mean: Float[np.ndarray, "head length length"] | None = None,
        distances: bool = False,
    ) -> None:
        self.patterns, self.stack, self.position_mean = patterns, stack, position_mean
        self.adds_distances = distances
        self.distances: MapSum | None = None
        self.rows = _row_names(patterns)
        self.model = ""
        self.cells: list[tuple[int, int]] = []
        self.statistic = Statistic((len(self.rows), 0))
        self.shown: dict[str, str] = {}

    def update(self, text: str, record: Record) -> None:
        """Count one text.

        Args:
            text: what tells it from all others.
            record: its attention.

        Raises:
            RecordError: where the text was counted before, or the record has other layers and heads.
        """
        stack = record[self.stack or next(iter(record.stacks))]
        cells = [(layer.layer, head) for layer in stack for head in range(layer.heads)]
        if self.cells and cells != self.cells:
            raise RecordError(
                f"Text {text!r} has {len(cells)} heads, the texts before it {len(self.cells)}; heads of one model are "
                "counted together"
            )
        values = self._values(text, stack)
        if not self.cells:
            self.cells, self.model = cells, record.model.name
            self.statistic = Statistic((len(self.rows), len(cells)), _names(self.rows, cells))
        if self.adds_distances:
            # a matrix of heads by heads is added up as exactly as a map of tokens by tokens
            self.distances = self.distances or MapSum(1, len(cells))
            self.distances.update(text, head_distances(np.concatenate([layer.weights_of() for layer in stack]))[None])
        self.statistic.update(text, values)
        self.shown[text] = " / ".join(record.texts) or " ".join(stack.query.labels)

    def __add__(self, other: Tally) -> Tally:
        """The texts of both.

        Raises:
            RecordError: where they share a text, or counted other patterns or heads.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        if not other.cells or not self.cells:
            return self if self.cells else other
        found = Tally(self.patterns, stack=self.stack, position_mean=self.position_mean, distances=self.adds_distances)
        if self.distances is not None and other.distances is not None:
            found.distances = self.distances + other.distances
        found.statistic = self.statistic + other.statistic
        found.cells, found.model, found.shown = self.cells, self.model, self.shown | other.shown
        return found

    def save(self, path: str | os.PathLike) -> Path:
        """Keep the values as one .npz file, to be resumed with `load_tally`; texts themselves are not kept.

        Raises:
            FileError: where the file cannot be written.
        """
        return self.statistic.save(path, **({} if self.distances is None else self.distances.arrays))

    def _values(self, text: str, stack: Stack) -> Float[np.ndarray, "row head"]:
        sides = Sides(stack.query, stack.key)
        wanted = {pattern.name: pattern.wanted(sides) for pattern in self.patterns if pattern.pairs is not None}
        rng = rng_of(text)
        drawn = [sides.shuffled(rng) for _ in range(SHUFFLES)] if wanted else []
        heeding = [pattern for pattern in self.patterns if pattern.name in wanted and not pattern.by_place]
        shuffled = {pattern.name: [pattern.wanted(each) for each in drawn] for pattern in heeding}
        parts = []
        first = 0
        for layer in stack:
            maps = maps_of(stack, layer, sides)
            mean = None if self.position_mean is None else self.position_mean[first : first + layer.heads]
            parts.append(self._layer_values(maps, wanted, shuffled, mean))
            first += layer.heads
        return np.concatenate(parts, axis=1)

    def _layer_values(
        self, maps: Maps, wanted: Mapping, shuffled: Mapping, mean: np.ndarray | None
    ) -> Float[np.ndarray, "row head"]:
        heads = len(maps.weights)
        even = Maps(uniform_map(maps.visible), maps.sides, maps.visible)
        placed = None if mean is None else Maps(position_map(mean, maps.visible), maps.sides, maps.visible)
        found = []
        for pattern in self.patterns:
            pairs = wanted.get(pattern.name)
            found += [pattern.of(maps), np.broadcast_to(pattern.of(even), (heads,))]
            if pairs is None or pattern.by_place:
                found += [_none(maps), _none(maps) if pattern.by_position is None else pattern.by_position(maps)]
                continue
            drawn = np.stack([pattern.on_pairs(maps, each) for each in shuffled[pattern.name]])
            found.append(_mean_of_known(drawn))
            found.append(_none(maps) if placed is None else pattern.on_pairs(placed, pairs))
        classes = kovaleva_class(maps)
        found += [(classes == number).astype(np.float64) for number in range(len(CLASSES))]
        found += [measure(maps) for measure in MEASURES.values()]
        return np.stack(found)


def load_tally(path: str | os.PathLike, patterns: tuple[Pattern, ...] = PATTERNS, *, stack: str | None = None) -> Tally:
    """A tally that was kept, to go on with.

    Raises:
        FileError: where the file is not there or is none of ours.
        RecordError: where it was made of other patterns.
    """
    found = Tally(patterns, stack=stack)
    statistic = load_statistic(path)
    rows = tuple(name for name in statistic.names if not name.startswith("head "))
    if rows != found.rows:
        raise RecordError(f"{path} was made of other patterns; give those it was made of")
    heads = (name.removeprefix("head ").split("-") for name in statistic.names if name.startswith("head "))
    found.cells = [(int(layer), int(head)) for layer, head in heads]
    found.statistic = statistic
    found.shown = {text: text for text in statistic.texts}
    beside = load_beside(path)
    if beside:
        found.adds_distances, found.distances = True, MapSum.of_arrays(beside, statistic.texts)
    return found


def _row_names(patterns: tuple[Pattern, ...]) -> tuple[str, ...]:
    names = [pattern.name for pattern in patterns]
    if len(set(names)) < len(names):
        raise RecordError(f"Patterns need names of their own; given were {', '.join(names)}")
    scores = [f"{name}{kind}" for name in names for kind in ("", *(f":{baseline}" for baseline in BASELINES))]
    return (*scores, *(f"class {name}" for name in CLASSES), *(f"measure {name}" for name in MEASURES))


def _names(rows: tuple[str, ...], cells: list[tuple[int, int]]) -> tuple[str, ...]:
    return (*rows, *(f"head {layer}-{head}" for layer, head in cells))


def _mean_of_known(drawn: Float[np.ndarray, "draw head"]) -> Float[np.ndarray, " head"]:
    known = ~np.isnan(drawn)
    count = known.sum(axis=0)
    sums = np.where(known, drawn, 0.0).sum(axis=0)
    return np.divide(sums, count, out=np.full(drawn.shape[1], np.nan), where=count > 0)


def _none(maps: Maps) -> np.ndarray:
    return np.full(len(maps.weights), np.nan)
