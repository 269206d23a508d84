"""Scores and baselines of every pattern and head, as sums over texts by document."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.corpus import ALONE, EXAMPLE, WHOLE, Counted, Sums, key_of
from headscope.errors import RecordError
from headscope.evidence import effect_size, group_of, interval_of_sums, median_of, wilson
from headscope.measures import head_distances
from headscope.patterns._batch_values import BASELINES, BatchValues
from headscope.patterns._head_measures import CLASSES, MEASURES
from headscope.patterns._pattern import PATTERNS, Pattern
from headscope.record import BatchStack, Record, Stack, TextBatch, Tokens

MEASURE = "measure "
"""Prefix of the names of rows of measures."""
TOKENS = "tokens"
"""The row that holds the length of each text."""
JUDGED, HIGHEST, EXCESS = "judged ", "highest baseline of ", "excess of "
"""Prefixes of the names of rows that are computed from the others for each text."""
EXACT_LENGTHS, IN_OCTAVE = 512, 8
"""Texts of up to 512 tokens are counted by their length, longer ones by eighths of an octave."""


@dataclass(frozen=True, eq=False)
class TokenRuns:
    """What was measured on runs of repeated random tokens.

    Args:
        patterns: that are judged by them.
        cells: layer and head of every value.
        values: rows as of `Tally` of these patterns.
    """

    patterns: tuple[Pattern, ...]
    cells: list[tuple[int, int]]
    values: Float[np.ndarray, "run row head"]


class Tally:
    """The counts of `heads`: update it with records, add tallies of other machines, save it and
    resume later.

    Args:
        patterns: the patterns to score.
        stack: a stack of the records; by default the first.
        position_mean: `headscope.evidence.mean_map` of heads of all layers, for the baseline by
            position of patterns of content; without it they do not have that baseline.
        distances: whether to add up the distances of heads, for their map.
        levels: mean score of each pattern on a model with random weights, as one baseline more.

    Example:
        >>> from headscope.testing import random_record
        >>> tally = Tally()
        >>> tally.update("a", random_record())
        >>> tally.cells[:4], tally.texts
        ([(0, 0), (0, 1), (0, 2), (1, 0)], 1)
    """

    def __init__(
        self,
        patterns: tuple[Pattern, ...] = PATTERNS,
        *,
        stack: str | None = None,
        position_mean: Float[np.ndarray, "head length length"] | None = None,
        distances: bool = False,
        levels: Mapping[str, float] | None = None,
    ) -> None:
        self.patterns: tuple[Pattern, ...] = tuple(patterns)
        self.stack: str | None = stack
        self.adds_distances: bool = distances
        self.levels: dict[str, float] = dict(levels or {})
        self.rows: tuple[str, ...] = row_names(self.patterns)
        self.sums: Sums = Sums()
        self.runs: TokenRuns | None = None
        """Runs of repeated random tokens; patterns that were counted on them are judged by them."""
        self._batch_values = BatchValues(self.patterns, position_mean)
        self._names = [pattern.name for pattern in self.patterns]
        compared = {f"{name}:{baseline}" for name in self._names for baseline in BASELINES}
        self._plain = [at for at, row in enumerate(self.rows) if row not in compared]
        made = [f"{kind}{name}" for kind in (JUDGED, HIGHEST, EXCESS) for name in self._names]
        self._counted = [*(self.rows[at] for at in self._plain), *made]
        self._scored = [self.rows.index(name) for name in self._names]
        self._against = [
            [self.rows.index(f"{name}:{baseline}") for baseline in BASELINES]
            for name in self._names
        ]

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
        (counted,) = self.counted(record)
        self._count(text, counted, group)

    def measured(
        self, source: Record | TextBatch
    ) -> tuple[BatchStack, Float[np.ndarray, "text row head"]]:
        """The stack of a record or batch, and the values of its texts, rows as of `rows` and heads
        as of `BatchStack.cells`; nothing is counted.
        """
        # Only this stack is read: reading others from a file may take long.
        stack = source[self.stack or next(iter(source.stacks))]
        stack = BatchStack.of([stack]) if isinstance(stack, Stack) else stack
        return stack, self._batch_values.of(stack)

    def counted(self, source: Record | TextBatch) -> Iterator[Counted]:
        """What is counted of each text of a record or a batch; it is not added."""
        return self.counts_of(source, *self.measured(source))

    def counts_of(
        self,
        source: Record | TextBatch,
        stack: BatchStack,
        values: Float[np.ndarray, "text row head"],
    ) -> Iterator[Counted]:
        """The same of texts that were measured."""
        facts = model_facts(source) | {"heads": [*map(list, stack.cells)], "stack": stack.name}
        for index, own in enumerate(values):
            counts = self._counts_of(own, said_of(stack.query[index], stack.key[index]))
            if self.adds_distances:
                weights = np.concatenate([layer.weights[index] for layer in stack.layers])
                counts[f"{WHOLE}distances"] = head_distances(weights)
                counts[f"{WHOLE}distances of"] = np.array([1])
            yield Counted(counts, _length(own), facts)

    def add(
        self, text: str, values: Float[np.ndarray, "row head"], facts: Mapping[str, Any]
    ) -> None:
        """Add a text whose values are known.

        Args:
            text: its identifier.
            values: rows as of `rows`.
            facts: that all texts share; with ``heads``, layer and head of every value.

        Raises:
            RecordError: in the cases of `update`.
        """
        counted = Counted(self._counts_of(values, text), _length(values), dict(facts))
        self._count(text, counted, None)

    def _count(self, text: str, counted: Counted, group: Any) -> None:
        counted.add_to(self.sums, text, group_of(group) or f"{ALONE}{text}")
        for name in ("_sums", "_known", "examples"):
            self.__dict__.pop(name, None)

    def _counts_of(self, values: Float[np.ndarray, "row head"], says: str) -> dict[str, np.ndarray]:
        """What is counted of one text, and what is kept of it where it is in the sample of examples
        (see `headscope.corpus.Sums`).

        A pattern is not judged on a text where uniform rows already reach more than half its
        threshold, because almost any head would come near it there. This happens on short texts,
        above all with causal models.
        """
        scores, against = values[self._scored], values[self._against]
        limits = np.array([pattern.threshold / 2 for pattern in self.patterns])[:, None]
        uniform = against[:, BASELINES.index("uniform")]
        judged = np.where(uniform > limits, np.nan, scores)
        highest = np.fmax.reduce(against, axis=1)
        if self.levels:
            levels = np.array([self.levels.get(name, np.nan) for name in self._names])
            highest = np.fmax(highest, levels[:, None])
        compared = np.where(np.isnan(judged), np.nan, highest)
        rows = np.concatenate([values[self._plain], judged, compared, judged - highest])
        is_judged = ~np.isnan(judged)
        shows, shown = is_judged.any(axis=1), (~np.isnan(scores)).any(axis=1)
        known = np.nan_to_num(judged)
        bin_ = bin_of(_length(values))
        counts: dict[str, Any] = {
            "sums": np.nan_to_num(rows),
            "known": (~np.isnan(rows)).astype(np.int64),
            "squares": np.square(np.nan_to_num(judged - highest)),
            "no shares": (is_judged & (known != 0) & (known != 1)).astype(np.int64),
            f"{WHOLE}seen": (~np.isnan(against)).any(axis=2).astype(np.int64),
            f"{WHOLE}not judged": (shown & ~shows).astype(np.int64),
            f"{WHOLE}texts of {bin_}": shows.astype(np.int64),
            f"{WHOLE}known of {bin_}": is_judged.astype(np.int64),
            f"{WHOLE}scores of {bin_}": known,
            f"{EXAMPLE}key": np.array([key_of("example", says)], np.uint64).view(np.int64),
            f"{EXAMPLE}says": np.frombuffer(says.encode("utf-8", "replace"), np.uint8),
            f"{EXAMPLE}scores": scores.astype(np.float32),
        }
        return counts

    def __add__(self, other: Tally) -> Tally:
        """The tally of the texts of both.

        Raises:
            RecordError: where they share a text, or have different patterns or heads.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        if (self.rows, self.levels) != (other.rows, other.levels):
            raise RecordError("Tallies of other patterns cannot be added up")
        both = Tally(self.patterns, stack=self.stack, levels=self.levels)
        both.adds_distances = self.adds_distances
        both.sums = self.sums + other.sums
        both.runs = self.runs or other.runs
        return both

    @staticmethod
    def of_values(
        patterns: tuple[Pattern, ...],
        cells: Sequence[tuple[int, int]],
        values: Float[np.ndarray, "text row head"],
        *,
        levels: Mapping[str, float] | None = None,
    ) -> Tally:
        """A tally of texts that are named by their number.

        Raises:
            RecordError: where the values have other rows or heads.
        """
        tally = Tally(patterns, levels=levels)
        if values.shape[1:] != (len(tally.rows), len(cells)):
            raise RecordError(
                f"Expected values of {len(tally.rows)} rows and {len(cells)} heads, got "
                f"{values.shape[1:]}"
            )
        facts = {"heads": [list(cell) for cell in cells]}
        for number, each in enumerate(values):
            tally.add(f"{number:06}", each, facts)
        return tally

    @property
    def model(self) -> str:
        """Name of the model; empty where it is unknown."""
        return self.sums.facts.get("model", "")

    @property
    def cells(self) -> list[tuple[int, int]]:
        """Layer and head of every value."""
        return [(layer, head) for layer, head in self.sums.facts.get("heads", ())]

    @property
    def texts(self) -> int:
        """Number of texts."""
        return len(self.sums)

    @property
    def documents(self) -> int:
        """Number of documents that the texts belong to; a text without one counts as its own."""
        return self.sums.documents

    @property
    def counted_rows(self) -> int:
        """How many rows of a head are added up."""
        return len(self._counted)

    @property
    def median_length(self) -> float:
        """Median length of the texts in tokens; NaN where none is known."""
        return median_of({tokens: count for tokens, count in self.sums.lengths.items() if tokens})

    @property
    def distances(self) -> Float[np.ndarray, "head other_head"] | None:
        """Mean distance of every two heads; None where it was not added up of all texts."""
        if f"{WHOLE}distances" not in self.sums.names:
            return None
        count = self.sums.total(f"{WHOLE}distances of")
        return self.sums.total(f"{WHOLE}distances") / count if count == self.texts else None

    @cached_property
    def examples(self) -> list[tuple[str, Float[np.ndarray, "pattern head"]]]:
        """A uniform sample of the texts: what each says, and the score of each pattern and head."""
        kept = self.sums.examples
        says = [each.tobytes().rstrip(b"\0").decode() for each in kept.get("says", ())]
        return list(zip(says, kept.get("scores", ()), strict=True))

    @cached_property
    def battery(self) -> Tally | None:
        """The runs of repeated tokens, judged as texts are; None where there are none."""
        if self.runs is None:
            return None
        runs = self.runs
        return Tally.of_values(runs.patterns, runs.cells, runs.values, levels=self.levels)

    def named(self, names: Collection[str]) -> tuple[Pattern, ...]:
        """The patterns of these names."""
        return tuple(each for each in self.patterns if each.name in names)

    def is_by_battery(self, pattern: Pattern) -> bool:
        """Whether a pattern is judged by runs of repeated random tokens."""
        return self.battery is not None and pattern.name in self.battery.rows

    def not_judged(self, pattern: Pattern) -> int:
        """Number of texts that could show a pattern, but on which it is not judged."""
        if self.is_by_battery(pattern):
            return 0
        return int(self.sums.total(f"{WHOLE}not judged")[self._names.index(pattern.name)])

    def mean_of(self, row: str) -> Float[np.ndarray, " head"]:
        """Mean over texts of a row."""
        return self._mean(*self._of(row))

    def evidence(self, pattern: Pattern, confidence: float) -> dict[str, Any]:
        """The numbers of a `Label` for every head, by name; ``"asked"`` is what p is made of."""
        if self.battery is not None and self.is_by_battery(pattern):
            return self.battery.evidence(pattern, confidence)
        name = pattern.name
        at = self._names.index(name)
        sums, known = self._of(f"{JUDGED}{name}")
        excess, compared = self._of(f"{EXCESS}{name}")
        beyond = interval_of_sums(excess, compared, confidence=confidence)
        seen = self.sums.total(f"{WHOLE}seen")[at] > 0
        against = [baseline for baseline, there in zip(BASELINES, seen, strict=True) if there]
        if name in self.levels:
            against.append("random weights")
        numbers = {
            "score": self._mean(sums, known),
            "baseline": self._mean(*self._of(f"{HIGHEST}{name}")),
            "against": [", ".join(against)] * len(self.cells),
            "excess": self._mean(excess, compared),
            "excess_low": beyond[:, 0],
            "excess_high": beyond[:, 1],
            "effect": effect_size(excess, self.sums.total("squares")[at], compared),
            "texts": known.sum(axis=0).astype(int),
            "asked": (excess, compared),
        }
        ends = self._interval(sums, known, self.sums.total("no shares")[at], confidence)
        return numbers | {"low": ends[:, 0], "high": ends[:, 1]}

    def _interval(
        self, sums: np.ndarray, known: np.ndarray, others: Int[np.ndarray, " head"], level: float
    ) -> Float[np.ndarray, "head 2"]:
        """Interval of the mean score: Wilson's where all are 0 or 1 and some 1; see `interval`."""
        shares: Bool[np.ndarray, " head"] = (others == 0) & (sums.sum(axis=0) > 0)
        ends = interval_of_sums(sums, known, confidence=level)
        if shares.any():
            grouped = len(self.sums.rows) < self.texts
            parts = sums[:, shares], known[:, shares]
            ends[shares] = wilson(*parts, confidence=level, grouped=grouped)
        return np.where((known > 0).sum(axis=0)[:, None] > 1, ends, np.nan)

    def at_lengths(
        self, pattern: Pattern
    ) -> list[tuple[int, int, Int[np.ndarray, " head"], Float[np.ndarray, " head"]]]:
        """For each length from the shortest: tokens, the number of texts that show a pattern, and
        for every head the number and the sum of its scores.
        """
        if self.battery is not None and self.is_by_battery(pattern):
            return self.battery.at_lengths(pattern)
        at, begin = self._names.index(pattern.name), f"{WHOLE}texts of "
        lengths = []
        for name in self.sums.names:
            texts = int(self.sums.total(name)[at]) if name.startswith(begin) else 0
            number = int(name.removeprefix(begin)) if texts else 0
            # Texts of which nobody knows how long they are have bin 0.
            if number:
                known = self.sums.total(f"{WHOLE}known of {number}")[at]
                scores = self.sums.total(f"{WHOLE}scores of {number}")[at]
                lengths.append((length_of(number), texts, known, scores))
        return sorted(lengths, key=lambda entry: entry[0])

    def save(self, path: str | os.PathLike[str]) -> Path | str:
        """Save the counts as one .safetensors file, to be resumed with `load_tally`; the texts
        themselves are not saved.

        Raises:
            FileError: where the file cannot be written.
        """
        from headscope.patterns._heads import Heads

        return Heads(self).save(path)

    @cached_property
    def _sums(self) -> Float[np.ndarray, "group row head"]:
        return self.sums["sums"]

    @cached_property
    def _known(self) -> Float[np.ndarray, "group row head"]:
        return self.sums["known"].astype(np.float64)

    def _of(self, row: str) -> tuple[np.ndarray, np.ndarray]:
        """Sums of a row by document, and how many texts have a value."""
        at = self._counted.index(row)
        return self._sums[:, at], self._known[:, at]

    @staticmethod
    def _mean(sums: np.ndarray, known: np.ndarray) -> Float[np.ndarray, " head"]:
        count = known.sum(axis=0)
        nothing = np.full(count.shape, np.nan)
        return np.divide(sums.sum(axis=0), count, out=nothing, where=count > 0)


def said_of(query: Tokens, key: Tokens) -> str:
    """What a text says, or its tokens where nothing is known but these."""
    texts = query.texts if query.texts == key.texts else (*query.texts, *key.texts)
    return " / ".join(texts) or " ".join(query.labels)


def model_facts(source: Record | TextBatch) -> dict[str, str]:
    """The model of a study, its name with what was changed of it."""
    model, changed = source.model, getattr(source, "changed", "")
    name = f"{model.name or 'a model'} ({changed})" if changed else model.name
    return {"model": name, "class": model.class_name, "weights": model.weights}


def _length(values: Float[np.ndarray, "row head"]) -> int:
    """Tokens of a text, which the last row holds; 0 where that is not known."""
    # Heads whose layer did not see the text have no length.
    return int(np.nan_to_num(np.fmax.reduce(values[-1], initial=np.nan)))


def _checked(pattern: Pattern) -> Pattern:
    if not isinstance(pattern, Pattern):
        raise RecordError(f"patterns holds {pattern!r}; give a list of Pattern")
    return pattern


def row_names(patterns: tuple[Pattern, ...]) -> tuple[str, ...]:
    """Names of the rows of values of one text.

    Raises:
        RecordError: where two patterns share a name.
    """
    names = [_checked(pattern).name for pattern in patterns]
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


def bin_of(length: int) -> int:
    """The number of the bin that a length belongs to.

    Example:
        >>> bin_of(512), bin_of(513), bin_of(1024), bin_of(1100)
        (512, 512, 520, 520)
    """
    if length <= EXACT_LENGTHS:
        return length
    return EXACT_LENGTHS + int(np.floor(IN_OCTAVE * np.log2(length / EXACT_LENGTHS)))


def length_of(number: int) -> int:
    """The smallest length of a bin."""
    if number <= EXACT_LENGTHS:
        return number
    return int(np.ceil(EXACT_LENGTHS * 2 ** ((number - EXACT_LENGTHS) / IN_OCTAVE)))
