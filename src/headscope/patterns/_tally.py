"""Scores and baselines of every pattern and head, text by text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.evidence import (
    MapSum,
    Statistic,
    load_beside,
    load_statistic,
)
from headscope.measures import head_distances
from headscope.patterns._batch_values import BASELINES, BatchValues
from headscope.patterns._head_measures import MEASURES
from headscope.patterns._kovaleva import CLASSES
from headscope.patterns._pattern import PATTERNS, Pattern
from headscope.patterns.records import OneModelStudy
from headscope.record import BatchStack, Record, TextBatch
from headscope.storage import reading

MEASURE = "measure "
"""Prefix of the names of rows of measures."""
BATTERY = "battery "
"""Prefix of the array of the runs of repeated tokens in a file, before the names of patterns."""
TOKENS = "tokens"
"""The row that holds the length of each text."""


class Tally(OneModelStudy):
    """The counts of `heads`: update it with records, add tallies of other machines, save it and
    resume later.

    Values do not depend on the order of texts or on how they are divided among tallies.

    Args:
        patterns: the patterns to score.
        stack: a stack of the records; by default the first.
        position_mean: `MapSum.mean` over heads of all layers, for the baseline by position of
            patterns of content; without it they do not have that baseline.
        distances: whether to add up the distances of heads, for their map.

    Example:
        >>> from headscope.testing import random_record
        >>> tally = Tally()
        >>> tally.update("a", random_record())
        >>> tally.cells[:4], tally.statistic.count.shape[1]
        ([(0, 0), (0, 1), (0, 2), (1, 0)], 6)
    """

    left_out: int = 0
    """Inputs that could not be measured, as far as a run counted them."""

    def __init__(
        self,
        patterns: tuple[Pattern, ...] = PATTERNS,
        *,
        stack: str | None = None,
        position_mean: Float[np.ndarray, "head length length"] | None = None,
        distances: bool = False,
    ) -> None:
        self.patterns: tuple[Pattern, ...] = patterns
        self.stack: str | None = stack
        self.position_mean: np.ndarray | None = position_mean
        self.adds_distances: bool = distances
        self.distances: MapSum | None = None
        self.rows: tuple[str, ...] = _row_names(patterns)
        self.model: str = ""
        self.cells: list[tuple[int, int]] = []
        self.statistic: Statistic = Statistic((len(self.rows), 0))
        self.shown: dict[str, str] = {}
        self._batch_values = BatchValues(patterns, position_mean)
        self.battery: Tally | None = None
        """Runs of repeated random tokens; patterns that were counted on them are judged by them."""

    def update(self, text: str, record: Record, *, group: Any = None) -> None:
        """Add one text.

        Args:
            text: its identifier.
            record: its attention.
            group: its document, for intervals and tests; None for a text that is a document of its
                own.

        Raises:
            RecordError: where the text was counted before, or the record has other layers and
                heads.
        """
        # Only this stack is read: reading others from a file may take long.
        stack = record[self.stack or next(iter(record.stacks))]
        self._count([text], record, BatchStack.of([stack]), [group])

    def update_batch(
        self, texts: Sequence[str], batch: TextBatch, *, groups: Sequence[Any] | None = None
    ) -> None:
        """Add the texts of a batch, many times faster than one by one; the numbers are the same.

        Args:
            texts: an identifier for each text.
            batch: their attention.
            groups: the document of each text; None where these are unknown.

        Raises:
            RecordError: in the cases of `update`.
        """
        stack = batch[self.stack or next(iter(batch.stacks))]
        self._count(texts, batch, stack, [None] * len(texts) if groups is None else groups)

    def values_of(
        self, texts: Sequence[str], batch: TextBatch
    ) -> Float[np.ndarray, "text row head"]:
        """The values of the texts of a batch, `rows` by `BatchStack.cells`; nothing is counted."""
        return self._batch_values.of(texts, batch[self.stack or next(iter(batch.stacks))])

    def _count(
        self,
        texts: Sequence[str],
        source: Record | TextBatch,
        stack: BatchStack,
        groups: Sequence[Any],
    ) -> None:
        cells = list(stack.cells)
        if self.cells and cells != self.cells:
            raise RecordError(
                f"Text {texts[0]!r} has {len(cells)} heads, the texts before it {len(self.cells)}; "
                "heads of one model are counted together"
            )
        self._check_model(texts[0], source, stack)
        values = self._batch_values.of(texts, stack)
        if not self.cells:
            self.cells, self.model = cells, source.model.name
            self.statistic = Statistic(
                (len(self.rows), len(cells)), rows_and_heads(self.rows, cells)
            )
        for index, (text, group) in enumerate(zip(texts, groups, strict=True)):
            if self.adds_distances:
                # `MapSum` adds maps of tokens by tokens without rounding; it does the same for a
                # matrix of heads by heads.
                self.distances = self.distances or MapSum(1, len(cells))
                weights = np.concatenate([layer.weights[index] for layer in stack.layers])
                self.distances.update(text, head_distances(weights)[None])
            self.statistic.update(text, values[index], group=group)
            query = stack.query[index]
            self.shown[text] = " / ".join(query.texts) or " ".join(query.labels)

    def __add__(self, other: Tally) -> Tally:
        """The tally of the texts of both.

        Raises:
            RecordError: where they share a text, or have different patterns or heads.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        if not other.cells or not self.cells:
            return self if self.cells else other
        self._check_models(other)
        both = Tally(
            self.patterns,
            stack=self.stack,
            position_mean=self.position_mean,
            distances=self.adds_distances,
        )
        if self.distances is not None and other.distances is not None:
            both.distances = self.distances + other.distances
        both.statistic = self.statistic + other.statistic
        both.cells, both.model, both.shown = self.cells, self.model, self.shown | other.shown
        both.battery = self.battery or other.battery
        return both

    def is_by_battery(self, pattern: Pattern) -> bool:
        """Whether a pattern is judged by runs of repeated random tokens."""
        return self.battery is not None and pattern.name in self.battery.rows

    def lengths_for(self, pattern: Pattern) -> Float[np.ndarray, " text"]:
        """Lengths of the texts, or of the runs of repeated tokens, by which a pattern is judged."""
        return self._by_battery.lengths if self.is_by_battery(pattern) else self.lengths

    def groups_for(self, pattern: Pattern) -> tuple[str | None, ...] | None:
        """The document of each text by which a pattern is judged; each run of repeated tokens is a
        document of its own.
        """
        return (
            self._by_battery.statistic.groups
            if self.is_by_battery(pattern)
            else self.statistic.groups
        )

    @property
    def _by_battery(self) -> Tally:
        if self.battery is None:
            raise RecordError("No battery of repeated tokens was run")
        return self.battery

    @staticmethod
    def of_values(
        patterns: tuple[Pattern, ...],
        cells: list[tuple[int, int]],
        values: Float[np.ndarray, "text row head"],
    ) -> Tally:
        """A tally of texts that are named by their number.

        Raises:
            RecordError: where the values have other rows or heads.
        """
        tally = Tally(patterns)
        tally.cells = cells
        tally.statistic = Statistic(
            (len(tally.rows), len(cells)), rows_and_heads(tally.rows, cells)
        )
        for number, each in enumerate(values):
            tally.statistic.update(f"{number:06}", each)
        return tally

    @property
    def texts(self) -> int:
        """Number of texts."""
        return len(self.statistic)

    @property
    def documents(self) -> int:
        """Number of documents that the texts belong to; a text without one counts as its own."""
        return self.statistic.documents

    @property
    def median_length(self) -> float:
        """Median length of the texts in tokens; NaN where none is known."""
        known = self.lengths[~np.isnan(self.lengths)]
        return float(np.median(known)) if len(known) else float("nan")

    @property
    def lengths(self) -> Float[np.ndarray, " text"]:
        """Number of query tokens of every text."""
        return self.statistic.values[:, self.rows.index(TOKENS), 0]

    def judged(
        self, pattern: Pattern
    ) -> tuple[Float[np.ndarray, "text head"], dict[str, Float[np.ndarray, "text head"]]]:
        """Scores and baselines of a pattern; NaN on texts that cannot show it, or on which it is
        not judged.

        A pattern is not judged on a text where uniform rows already reach more than half its
        threshold, because almost any head would come near it there. This happens on short texts,
        above all with causal models.
        """
        if self.is_by_battery(pattern):
            return self._by_battery.judged(pattern)
        values = self.statistic.values
        scores = values[:, self.rows.index(pattern.name)]
        against = {name: values[:, self.rows.index(f"{pattern.name}:{name}")] for name in BASELINES}
        return np.where(against["uniform"] > pattern.threshold / 2, np.nan, scores), against

    def not_judged(self, pattern: Pattern) -> int:
        """Number of texts that could show a pattern, but on which it is not judged."""
        if self.is_by_battery(pattern):
            return 0
        shown = ~np.isnan(self.statistic.values[:, self.rows.index(pattern.name)]).all(axis=1)
        return int((shown & np.isnan(self.judged(pattern)[0]).all(axis=1)).sum())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the values as one .safetensors file, to be resumed with `load_tally`; the texts
        themselves are not saved.

        Raises:
            FileError: where the file cannot be written.
        """
        beside = {} if self.distances is None else dict(self.distances.arrays)
        if self.battery is not None:
            names = [pattern.name for pattern in self.battery.patterns]
            beside |= {f"{BATTERY}{'+'.join(names)}": self.battery.statistic.values}
        return self.statistic.save(path, **beside)


def load_tally(
    path: str | os.PathLike[str],
    patterns: tuple[Pattern, ...] = PATTERNS,
    *,
    stack: str | None = None,
) -> Tally:
    """Read a saved tally, to resume it.

    Raises:
        FileError: where the file does not exist or was not written by headscope.
        RecordError: where it was made with other patterns.
    """
    tally = Tally(patterns, stack=stack)
    statistic = load_statistic(path)
    heads = [
        name.removeprefix("head ").split("-")
        for name in statistic.names
        if name.startswith("head ")
    ]
    with reading(path, "tally"):
        tally.cells = [(int(layer), int(head)) for layer, head in heads]
        if statistic.shape != (len(statistic.names) - len(heads), len(heads)):
            raise ValueError(f"it has values {list(statistic.shape)} for {len(heads)} heads")
    if statistic.names[: len(statistic.names) - len(heads)] != tally.rows:
        raise RecordError(f"{path} was made of other patterns; give those it was made of")
    tally.statistic = statistic
    tally.shown = {text: text for text in statistic.texts}
    beside = load_beside(path)
    for name in [name for name in beside if name.startswith(BATTERY)]:
        tally.battery = _kept_battery(
            name.removeprefix(BATTERY).split("+"), beside.pop(name), tally
        )
    if beside:
        with reading(path, "tally"):
            tally.distances = MapSum.of_arrays(beside, statistic.texts)
            if tally.distances.mean.shape != (1, *2 * (len(tally.cells),)):
                raise ValueError(
                    f"it has distances {list(tally.distances.mean.shape)} of {len(tally.cells)} "
                    "heads"
                )
        tally.adds_distances = True
    return tally


def _kept_battery(names: list[str], values: np.ndarray, tally: Tally) -> Tally | None:
    """The runs of repeated tokens that were saved with a tally; None where their patterns have
    changed since.
    """
    battery = Tally(tuple(pattern for pattern in tally.patterns if pattern.name in names))
    if values.shape[1:] != (len(battery.rows), len(tally.cells)):
        return None
    battery.cells = tally.cells
    battery.statistic = Statistic(values.shape[1:], rows_and_heads(battery.rows, battery.cells))
    for number, run in enumerate(values):
        battery.statistic.update(f"{number:06}", run)
    return battery


def _row_names(patterns: tuple[Pattern, ...]) -> tuple[str, ...]:
    names = [pattern.name for pattern in patterns]
    if len(set(names)) < len(names):
        raise RecordError(f"Patterns need names of their own; given were {', '.join(names)}")
    kinds = ["", *(f":{baseline}" for baseline in BASELINES)]
    scores = [f"{name}{kind}" for name in names for kind in kinds]
    return (
        *scores,
        *(f"class {name}" for name in CLASSES),
        *(f"{MEASURE}{name}" for name in MEASURES),
        TOKENS,
    )


def rows_and_heads(rows: tuple[str, ...], cells: list[tuple[int, int]]) -> tuple[str, ...]:
    return (*rows, *(f"head {layer}-{head}" for layer, head in cells))
