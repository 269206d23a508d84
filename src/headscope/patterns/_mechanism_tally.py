"""The neurons that carry the scores of heads, text by text."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.evidence import Statistic, StatisticSums
from headscope.measures import carriers, neuron_scores, set_overlap
from headscope.patterns._maps import AttentionMaps, QueryKeyTokens, maps_of
from headscope.patterns._pattern import PATTERNS, Pattern
from headscope.patterns._sketch import sketch
from headscope.patterns._units import Units, units_of
from headscope.patterns.records import OneModelStudy
from headscope.record import Layer, Record, Stack

Reading = Literal["margin", "score"]
READINGS: tuple[Reading, ...] = get_args(Reading)
SUMMARY = ("neurons", "overlap", "chance")
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


class MechanismTally(OneModelStudy):
    """The counts of `mechanism`: update it with records, and add tallies of other machines.

    Values do not depend on the order of texts or on how they are divided among tallies.

    Args:
        at: layer and head of the heads to analyse; by default all.
        pattern: the keys to explain: a `Pattern`, the name of one, ``"sep"``, ``"cls"``, or a rule
            of `sketch`; by default all keys, in proportion to their weights.
        stack: a stack of the records; by default the first.
        share: share of the positive score that the set must carry.

    Example:
        >>> MechanismTally([(0, 1)], pattern="sep").pattern.name
        'sep'
    """

    def __init__(
        self,
        at: Collection[tuple[int, int]] | None = None,
        *,
        pattern: Pattern | str | None = None,
        stack: str | None = None,
        share: float = 0.9,
    ) -> None:
        self.at: tuple[tuple[int, int], ...] | None = None
        if at is not None:
            self.at = tuple(dict.fromkeys((int(layer), int(head)) for layer, head in at))
        self.pattern: Pattern | None = parse_pattern(pattern)
        self.stack: str | None = stack
        self.share: float = share
        self.model: str = ""
        self.cells: list[tuple[int, int]] = []
        self.units: dict[int, Units] = {}
        self.statistic: Statistic | StatisticSums = Statistic((0, 0))
        """What was counted of each text; of a run over many texts its sums."""
        self._carried = np.zeros((2, 0, POSITIONS, 0), np.int64)
        self._seen = np.zeros((0, POSITIONS), np.int64)

    @property
    def width(self) -> int:
        """Largest number of units of a head."""
        return max(map(len, self.units.values()), default=0)

    @property
    def _rows(self) -> tuple[str, ...]:
        return row_names(self.width)

    def update(self, text: str, record: Record, *, group: Any = None) -> None:
        """Add one text.

        Args:
            text: its identifier.
            record: its queries and keys.
            group: its document, for intervals; None for a text that is a document of its own.

        Raises:
            RecordError: where the text was counted before, the heads are missing or differ from
                those of the texts before, queries and keys were not kept, or the tally has sums
                alone.
        """
        statistic = self.statistic
        if not isinstance(statistic, Statistic):
            raise RecordError(
                f"Of {len(statistic)} texts sums alone are known; count others in a tally of their "
                "own, and add the two"
            )
        stack = record[self.stack or next(iter(record.stacks))]
        everyone = [(layer.layer, head) for layer in stack for head in range(layer.heads)]
        cells = self._chosen(everyone)
        wanted_layers = {number for number, _ in cells}
        layers = {layer.layer: layer for layer in stack if layer.layer in wanted_layers}
        units = {number: _checked_units(layer) for number, layer in layers.items()}
        if self.cells and (cells != self.cells or _members(units) != _members(self.units)):
            raise RecordError(
                f"Text {text!r} has other heads or neurons than those before it; one model at a "
                "time"
            )
        self._check_model(text, record, stack)
        if text in statistic:
            raise RecordError(
                f"Text {text!r} was counted before; give every text a name of its own, and each "
                "one once"
            )
        if not self.cells:
            statistic = self._begin(cells, units, record.model.name)
        values = self._values_of(stack, layers.values())
        statistic.update(text, values, group=group, length=len(stack.query))

    def _values_of(self, stack: Stack, layers: Iterable[Layer]) -> Float[np.ndarray, "head row"]:
        """The rows of one text, of the heads of all these layers."""
        tokens = QueryKeyTokens(stack.query, stack.key)
        wanted = None if self.pattern is None else self.pattern.wanted(tokens)
        rows = [self._values(maps_of(stack, layer, tokens), layer, wanted) for layer in layers]
        return np.concatenate(rows)

    def __add__(self, other: MechanismTally) -> MechanismTally:
        """The tally of the texts of both.

        Raises:
            RecordError: where they share a text, or have different heads or patterns.
        """
        if not isinstance(other, MechanismTally):
            return NotImplemented
        if not other.cells or not self.cells:
            return self if self.cells else other
        self._check_models(other)
        mine, theirs = (
            (each.at, each.pattern and each.pattern.name, each.stack, each.share)
            for each in (self, other)
        )
        if (
            mine != theirs
            or self.cells != other.cells
            or _members(self.units) != _members(other.units)
        ):
            raise RecordError(
                "These tallies looked into other heads or patterns, and cannot be added up"
            )
        both = MechanismTally(self.at, pattern=self.pattern, stack=self.stack, share=self.share)
        one, two = self, other
        if self.is_summed != other.is_summed:
            one, two = self.in_sums(), other.in_sums()
        both.statistic = one.statistic + two.statistic
        both.cells, both.units, both.model = self.cells, self.units, self.model
        both._carried, both._seen = self._carried + other._carried, self._seen + other._seen
        return both

    @property
    def is_summed(self) -> bool:
        """Whether sums over the texts are all that is known."""
        return isinstance(self.statistic, StatisticSums)

    def in_sums(self) -> MechanismTally:
        """The same without the values of single texts: sums, which do not grow with the texts, and
        Student's intervals.
        """
        statistic = self.statistic
        if not isinstance(statistic, Statistic) or not self.cells:
            return self
        summed = copy(self)
        rows = len(self._rows)
        names = (*statistic.names[:rows], *steady_names(self.width), *statistic.names[rows:])
        summed.statistic = StatisticSums.of(statistic, self._with_steady, names)
        return summed

    def _with_steady(
        self, values: Float[np.ndarray, "text head row"]
    ) -> Float[np.ndarray, "text head more"]:
        """The values of some texts, and whether each unit is among those that carry the mean score
        of a text.
        """
        parts = [values]
        for of in READINGS:
            first = self.place(f"adds {of} 0")
            adds = values[:, :, first : first + self.width]
            steady = np.full(adds.shape, np.nan)
            for cell, (layer, _) in enumerate(self.cells):
                own = adds[:, cell, : len(self.units[layer])]
                known = ~np.isnan(own).any(axis=1)
                steady[known, cell, : own.shape[1]] = carriers(own[known], share=self.share)
            parts.append(steady)
        return np.concatenate(parts, axis=2)

    def place(self, name: str, of: Reading | None = None) -> int:
        """The row of a number; of a reading, unless it is named or the same for both."""
        if of is not None and name != "mass":
            name = f"{name} {of}"
        return (*self._rows, *steady_names(self.width)).index(name)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the counts as one .safetensors file, for `load_mechanism_tally`; the texts
        themselves are not saved.

        Raises:
            FileError: where the file cannot be written.
        """
        from headscope.patterns._mechanism_file import save

        return save(self, Path(path))

    @property
    def kept(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a file of it holds: what JSON can, and arrays by name."""
        from headscope.patterns._mechanism_file import kept_of_tally

        return kept_of_tally(self)

    @classmethod
    def of_kept(
        cls,
        document: dict[str, Any],
        arrays: dict[str, np.ndarray],
        pattern: Pattern | None = None,
    ) -> MechanismTally:
        """What `kept` gave, to be added to others.

        Raises:
            FileError: where these are no tally.
            RecordError: where it was made with a pattern that has to be given, or with another one.
        """
        from headscope.patterns._mechanism_file import tally_of

        return tally_of("a tally", document, arrays, pattern)

    def row(self, name: str, of: Reading) -> Float[np.ndarray, "text head"]:
        """One value of `SUMMARY`, or ``"mass"``, for each text and head."""
        return self._values_held[:, :, self.place(name, of)]

    def by_unit(
        self, name: Literal["adds", "carries"], of: Reading
    ) -> Float[np.ndarray, "text head unit"]:
        """What each unit adds to the score, or the share of queries whose score it helps to
        carry.
        """
        first = self.place(f"{name} {of} 0")
        return self._values_held[:, :, first : first + self.width]

    @property
    def _values_held(self) -> Float[np.ndarray, "text head row"]:
        if not isinstance(self.statistic, Statistic):
            raise RecordError(f"Of {len(self.statistic)} texts sums alone are known")
        return self.statistic.values

    def carried_at(self, cell: int, of: Reading) -> Float[np.ndarray, "position unit"]:
        """Share of texts in which a unit carries the score of the query at a position; NaN where no
        text has a query there.
        """
        counts = self._seen[cell][:, None]
        carried = self._carried[READINGS.index(of), cell, :, : len(self.units[self.cells[cell][0]])]
        return np.divide(carried, counts, out=np.full(carried.shape, np.nan), where=counts > 0)

    def seen_often(self, cell: int) -> int:
        """Number of first positions to show: up to the last one that a tenth of the texts reach."""
        often = np.flatnonzero(self._seen[cell] >= max(1, 0.1 * len(self.statistic)))
        return int(often.max(initial=0)) + 1

    def _chosen(self, there: list[tuple[int, int]]) -> list[tuple[int, int]]:
        gone = sorted(set(self.at or ()) - set(there))
        if gone:
            (layer, head), (first, last) = (
                gone[0],
                (f"{cell[0]}-{cell[1]}" for cell in (there[0], there[-1])),
            )
            raise RecordError(f"There is no head {layer}-{head}; heads go from {first} to {last}")
        return there if self.at is None else [cell for cell in there if cell in self.at]

    def _begin(
        self, cells: list[tuple[int, int]], units: dict[int, Units], model: str
    ) -> Statistic:
        self.cells, self.units, self.model = cells, units, model
        self._carried = np.zeros((2, len(cells), POSITIONS, self.width), np.int64)
        self._seen = np.zeros((len(cells), POSITIONS), np.int64)
        heads = (f"head {layer}-{head}" for layer, head in cells)
        statistic = Statistic((len(cells), len(self._rows)), (*self._rows, *heads))
        self.statistic = statistic
        return statistic

    def _values(
        self, maps: AttentionMaps, layer: Layer, wanted: Bool[np.ndarray, "query key"] | None
    ) -> Float[np.ndarray, "head row"]:
        heads = [head for number, head in self.cells if number == layer.layer]
        first = self.cells.index((layer.layer, heads[0]))
        part = slice(first, first + len(heads))
        targets, mass, asked = _targets(maps, heads, wanted)
        if not layer.has("queries") or not layer.has("keys") or not asked.any():
            return np.full((len(heads), len(self._rows)), np.nan)
        units = self.units[layer.layer]
        queries, keys = (
            layer.part("queries", heads)[:, asked],
            layer.part("keys", layer.kv_head_of[heads]),
        )
        # Uniform weights over the visible keys: subtracting them leaves the margin.
        seen = maps.visible[asked] / maps.visible[asked].sum(axis=1, keepdims=True)
        positions = np.flatnonzero(asked)
        early = positions < POSITIONS
        self._seen[part, positions[early]] += 1
        summary, of_units = [mass], {"adds": [], "carries": []}
        for number, of in enumerate(READINGS):
            rows = targets - seen if of == "margin" else targets
            scores = units.summed(neuron_scores(queries, keys, rows, scale=layer.scale))
            carried = carriers(scores, share=self.share)
            self._carried[number, part][:, positions[early], : len(units)] += carried[:, early]
            sizes = carried.sum(axis=2)
            known = (sizes > 0).sum(axis=1)
            mean = np.divide(
                sizes.sum(axis=1), known, out=np.full(len(heads), np.nan), where=known > 0
            )
            alike = np.array([set_overlap(each) for each in carried])
            summary += [mean, alike[:, 0], alike[:, 1]]
            of_units["adds"].append(self._filled(scores.mean(axis=1)))
            of_units["carries"].append(self._filled(carried.mean(axis=1)))
        return np.concatenate(
            [np.stack(summary, axis=1), *of_units["adds"], *of_units["carries"]], axis=1
        )

    def _filled(self, values: Float[np.ndarray, "head unit"]) -> Float[np.ndarray, "head width"]:
        filled = np.full((len(values), self.width), np.nan)
        filled[:, : values.shape[1]] = values
        return filled


@cache
def row_names(width: int) -> tuple[str, ...]:
    """Names of the numbers of each head and text, where heads have so many units at most."""
    readings = [f"{name} {of}" for name in ("adds", "carries") for of in READINGS]
    of_units = (f"{reading} {unit}" for reading in readings for unit in range(width))
    return ("mass", *(f"{name} {of}" for of in READINGS for name in SUMMARY), *of_units)


def steady_names(width: int) -> tuple[str, ...]:
    """Names of the further numbers of sums: whether a unit is among those that carry a text."""
    return tuple(f"steady {of} {unit}" for of in READINGS for unit in range(width))


def parse_pattern(pattern: Pattern | str | None) -> Pattern | None:
    """The keys to explain, as a pattern of pairs.

    Raises:
        RecordError: where it is neither a pattern of pairs nor a valid rule.
    """
    if pattern is None:
        return None
    if isinstance(pattern, str):
        named = next(
            (each for each in PATTERNS if each.name == pattern and each.pairs is not None), None
        )
        return named or sketch(RULES.get(pattern, pattern), name=pattern)
    return (
        pattern
        if pattern.pairs is not None or pattern.name not in RULES
        else parse_pattern(pattern.name)
    )


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


def _checked_units(layer: Layer) -> Units:
    if not layer.has("queries") or not layer.has("keys"):
        raise RecordError(
            f"Queries and keys of layer {layer.layer} were not kept, and neurons are theirs; "
            "capture with keep='qk'"
        )
    return units_of(layer)


def _members(units: dict[int, Units]) -> dict[int, tuple]:
    return {number: each.members for number, each in units.items()}
