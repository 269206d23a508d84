"""The counts of `heads` for a run over a corpus, without the values of single texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError
from headscope.evidence import GroupSums, MapSum, Statistic, median_of
from headscope.patterns._pattern import Pattern
from headscope.patterns._tally import BASELINES, TOKENS, Tally

JUDGED, HIGHEST, EXCESS = "judged ", "highest baseline of ", "excess of "
"""Prefixes of the names of rows that are computed from the others for each text."""
EXACT_LENGTHS, IN_OCTAVE = 64, 8
"""Texts of up to 64 tokens are counted by their length, longer ones by eighths of an octave."""
MANY = 2000
"""Documents of a `Tally` above which labels come from sums: redrawing 4,000 texts takes twenty
seconds, and gives ends that differ from these by a few hundredths of their width.
"""
TOGETHER = 16
"""Texts of a `Tally` that are added up at once."""
STEP = 2.0**40
"""Steps between 0 and 1 of scores that are added up by length: int64 then holds 2^23 texts."""


class TallySums:
    """The counts of `heads` over a corpus: sums, whose size does not depend on the number of texts.

    The evidence for each head needs rows that are computed for each text: the score where it is
    judged, the highest baseline, and the excess of the one over the other. Intervals are those of
    `GroupSums`.

    Args:
        patterns: the patterns to score.
        cells: layer and head of every value.
        stack: a stack of the records; None for the first.
        levels: mean score of each pattern on a model with random weights, as one more baseline.
        distances: whether distances of heads are added up.
        labels_only: whether to leave out rows that no label needs, such as measures.
    """

    def __init__(
        self,
        patterns: tuple[Pattern, ...],
        cells: Sequence[tuple[int, int]],
        *,
        stack: str | None = None,
        levels: Mapping[str, float] | None = None,
        distances: bool = False,
        labels_only: bool = False,
    ) -> None:
        self.distances: MapSum | None = MapSum(1, len(cells)) if distances else None
        """Of every two heads; not among the `arrays`."""
        self.patterns: tuple[Pattern, ...] = patterns
        self.cells: list[tuple[int, int]] = [(layer, head) for layer, head in cells]
        self.stack: str | None = stack
        self.levels: dict[str, float] = dict(levels or {})
        self.model: str = ""
        self.battery: Tally | None = None
        self.shown: dict[str, str] = {}
        self.left_out: int = 0
        """Inputs of the run that could not be measured; not kept in files."""
        self.rows: tuple[str, ...] = Tally(patterns).rows
        self._names = [pattern.name for pattern in patterns]
        compared = {f"{name}:{baseline}" for name in self._names for baseline in BASELINES}
        plain = [at for at, row in enumerate(self.rows) if row not in compared]
        self._plain = [] if labels_only else plain
        made = [f"{kind}{name}" for kind in (JUDGED, HIGHEST, EXCESS) for name in self._names]
        self._counted = [*(self.rows[at] for at in self._plain), *made]
        self._scores = [self.rows.index(name) for name in self._names]
        self._against = [
            [self.rows.index(f"{name}:{baseline}") for baseline in BASELINES]
            for name in self._names
        ]
        self._limits = np.array([pattern.threshold / 2 for pattern in patterns])[:, None]
        heads, count = len(self.cells), len(patterns)
        self.sums: GroupSums = GroupSums((len(self._counted), heads))
        self._seen = np.zeros((count, len(BASELINES)), np.int64)
        self._not_judged = np.zeros(count, np.int64)
        self._lengths: Counter[int] = Counter()
        self._by_length: dict[int, _LengthGroup] = {}

    @staticmethod
    def of_held(tally: Tally, levels: Mapping[str, float]) -> TallySums:
        """The sums that labels need, of values that are held.

        Args:
            tally: holds them.
            levels: as of `TallySums`.
        """
        sums = TallySums(
            tally.patterns, tally.cells, stack=tally.stack, levels=levels, labels_only=True
        )
        sums.battery, sums.model = tally.battery, tally.model
        for values, groups in tally.statistic.some_at_a_time(TOGETHER):
            sums.update_many(values, [(group, 1) for group in groups])
        sums.close()
        return sums

    def update(
        self, values: Float[np.ndarray, "row head"], *, group: str | None = None, times: int = 1
    ) -> None:
        """Add one text.

        Args:
            values: values with rows as in `Tally`.
            group: its document; None for a text that is a document of its own.
            times: how often the corpus holds the text.

        Raises:
            RecordError: where the values have other rows or heads.
        """
        self.update_many(values[None], [(group, times)])

    def update_many(
        self, values: Float[np.ndarray, "text row head"], given: Sequence[tuple[str | None, int]]
    ) -> None:
        """Add several texts, faster than one by one.

        Args:
            values: values of each, with rows as in `Tally`.
            given: the document of each, and how often the corpus holds it; see `update`.

        Raises:
            RecordError: where the values have other rows or heads.
        """
        if values.shape[1:] != (len(self.rows), len(self.cells)):
            raise RecordError(
                f"Expected values of {len(self.rows)} rows and {len(self.cells)} heads, got "
                f"{values.shape[1:]}"
            )
        times = np.array([often for _, often in given])
        scores, against = values[:, self._scores], values[:, self._against]
        judged = np.where(against[:, :, BASELINES.index("uniform")] > self._limits, np.nan, scores)
        highest = np.fmax.reduce(against, axis=2)
        if self.levels:
            levels = np.array([self.levels.get(name, np.nan) for name in self._names])
            highest = np.fmax(highest, levels[:, None])
        compared = np.where(np.isnan(judged), np.nan, highest)
        rows = [values[:, self._plain], judged, compared, judged - highest]
        self.sums.update_many(np.concatenate(rows, axis=1), given)
        self._seen += np.tensordot(times, (~np.isnan(against)).any(axis=3), axes=1)
        is_judged = np.asarray((~np.isnan(judged)).any(axis=2))
        shown = (~np.isnan(scores)).any(axis=2)
        self._not_judged += times @ (shown & ~is_judged)
        # Heads whose layer did not see the text have no length.
        lengths = np.fmax.reduce(values[:, self.rows.index(TOKENS)], axis=1)
        known = np.unique(lengths[~np.isnan(lengths)])
        # One row for each length: how often each text of that length is there.
        weights = (lengths == known[:, None]) * times
        of_lengths = _sums_by_length(judged, is_judged, weights)
        for length, often, of_length in zip(
            known.astype(int).tolist(), weights.sum(axis=1).tolist(), of_lengths, strict=True
        ):
            self._lengths[length] += often
            group = self._by_length.setdefault(bin_of(length), _LengthGroup(judged.shape[1:]))
            group.update(*of_length)

    def close(self) -> None:
        """Declare that the documents so far have no more texts."""
        self.sums.close()

    def __add__(self, other: TallySums) -> TallySums:
        """The sums over the texts of both, which must not share a document.

        Raises:
            RecordError: where they have different patterns or heads.
        """
        if not isinstance(other, TallySums):
            return NotImplemented
        if (self.rows, self.cells, self.levels) != (other.rows, other.cells, other.levels):
            raise RecordError("Parts of other patterns or heads cannot be added up")
        both = TallySums(self.patterns, self.cells, stack=self.stack, levels=self.levels)
        if self.distances is not None and other.distances is not None:
            both.distances = self.distances + other.distances
        both.model, both.battery = self.model or other.model, self.battery or other.battery
        both.sums = self.sums + other.sums
        for part in (self, other):
            both._seen += part._seen
            both._not_judged += part._not_judged
            both._lengths += part._lengths
            for length, of_length in part._by_length.items():
                empty = _LengthGroup(of_length.count.shape)
                both._by_length[length] = both._by_length.get(length, empty) + of_length
        return both

    @property
    def texts(self) -> int:
        """Number of texts."""
        return self.sums.texts

    @property
    def documents(self) -> int:
        """Number of documents that the texts belong to; a text without one counts as its own."""
        return self.sums.documents

    @property
    def statistic(self) -> Statistic:
        """An empty statistic, because values of single texts are not kept."""
        return Statistic((len(self.rows), len(self.cells)))

    @property
    def median_length(self) -> float:
        """Median length of the texts in tokens; NaN where none is known."""
        return median_of(self._lengths)

    def mean_of(self, row: str) -> Float[np.ndarray, " head"]:
        """Mean over texts of a row."""
        return self._mean(row)

    def is_by_battery(self, pattern: Pattern) -> bool:
        """Whether a pattern is judged by runs of repeated random tokens."""
        return self.battery is not None and pattern.name in self.battery.rows

    def not_judged(self, pattern: Pattern) -> int:
        """Number of texts that could show a pattern, but on which it is not judged."""
        if self.is_by_battery(pattern):
            return 0
        return int(self._not_judged[self._names.index(pattern.name)])

    def evidence(self, pattern: Pattern, confidence: float) -> dict[str, Any]:
        """The numbers of a `Label` for every head, by name."""
        name = pattern.name
        judged, excess = f"{JUDGED}{name}", f"{EXCESS}{name}"
        ends = self._of(judged, self.sums.interval(confidence))
        beyond = self._of(excess, self.sums.interval(confidence, shares=False))
        seen = self._seen[self._names.index(name)] > 0
        known = [baseline for baseline, there in zip(BASELINES, seen, strict=True) if there]
        if name in self.levels:
            known.append("random weights")
        numbers = {
            "score": self._mean(judged),
            "low": ends[:, 0],
            "high": ends[:, 1],
            "baseline": self._mean(f"{HIGHEST}{name}"),
            "against": [", ".join(known)] * len(self.cells),
            "excess": self._mean(excess),
            "excess_low": beyond[:, 0],
            "excess_high": beyond[:, 1],
            "effect": self._of(excess, self.sums.effect),
            "texts": self._of(judged, self.sums.count),
            "p": self._of(excess, self.sums.p_above()),
        }
        return numbers

    def at_lengths(
        self, pattern: Pattern
    ) -> list[tuple[int, int, Int[np.ndarray, " head"], Float[np.ndarray, " head"]]]:
        """For each length from the shortest: tokens, the number of texts that show a pattern, and
        for every head the number and the sum of its scores.
        """
        at = self._names.index(pattern.name)
        lengths = []
        for number in sorted(self._by_length):
            of = self._by_length[number]
            if of.texts[at]:
                entry = length_of(number), int(of.texts[at]), of.count[at], of.steps[at] / STEP
                lengths.append(entry)
        return lengths

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a file, for `fill`; the same for the same texts in any order."""
        numbers = sorted(self._by_length)
        lengths = sorted(self._lengths.items())
        kept = {
            "seen": self._seen,
            "not judged": self._not_judged,
            "lengths": np.array(lengths, np.int64).reshape(-1, 2),
            "bins": np.array(numbers, np.int64),
        }
        for name in ("texts", "count", "steps"):
            stacked = [getattr(self._by_length[number], name) for number in numbers]
            kept[f"bins {name}"] = np.array(stacked, np.int64)
        return kept | {f"sums {name}": array for name, array in self.sums.arrays.items()}

    def fill(self, arrays: Mapping[str, np.ndarray]) -> TallySums:
        """Set the sums from the result of `arrays`; returns itself.

        Raises:
            KeyError: where an array is missing.
            ValueError: where they belong to other patterns or heads.
        """
        marked = {name: array for name, array in arrays.items() if name.startswith("sums ")}
        sums = GroupSums.of_arrays(
            {name.removeprefix("sums "): array for name, array in marked.items()}
        )
        if sums.shape != self.sums.shape or arrays["seen"].shape != self._seen.shape:
            raise ValueError(f"its sums are {list(sums.shape)}, expected {list(self.sums.shape)}")
        self.sums, self._seen, self._not_judged = sums, arrays["seen"], arrays["not judged"]
        self._lengths = Counter({int(length): int(count) for length, count in arrays["lengths"]})
        for index, number in enumerate(arrays["bins"].tolist()):
            of = _LengthGroup((len(self.patterns), len(self.cells)))
            of.texts, of.count, of.steps = (
                arrays[f"bins {name}"][index] for name in ("texts", "count", "steps")
            )
            self._by_length[number] = of
        return self

    def _mean(self, row: str) -> np.ndarray:
        return self._of(row, self.sums.mean)

    def _of(self, row: str, values: np.ndarray) -> np.ndarray:
        return values[self._counted.index(row)]


class _LengthGroup:
    """Sums of judged scores over texts of about the same length."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.texts = np.zeros(shape[0], np.int64)
        self.count, self.steps = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    def update(
        self,
        texts: Int[np.ndarray, " pattern"],
        count: Int[np.ndarray, "pattern head"],
        steps: Int[np.ndarray, "pattern head"],
    ) -> None:
        self.texts = self.texts + texts
        self.count = self.count + count
        self.steps = self.steps + steps

    def __add__(self, other: _LengthGroup) -> _LengthGroup:
        both = _LengthGroup(self.count.shape)
        both.texts, both.count = self.texts + other.texts, self.count + other.count
        both.steps = self.steps + other.steps
        return both


def _sums_by_length(
    judged: Float[np.ndarray, "text pattern head"],
    is_judged: Bool[np.ndarray, "text pattern"],
    weights: Int[np.ndarray, "length text"],
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each length, what `_LengthGroup.update` takes."""
    there = ~np.isnan(judged)
    steps = np.rint(np.where(there, judged, 0.0) * STEP)
    # Products in double precision are exact below 2^53, and many times faster than others.
    largest = max(1.0, steps.max(initial=0.0), -steps.min(initial=0.0))
    kind = np.float64 if largest * weights.sum() < 2.0**53 else np.int64
    factors = weights.astype(kind)
    parts = []
    for part in (is_judged, there, steps):
        sums = factors @ part.reshape(len(part), -1).astype(kind)
        parts.append(sums.astype(np.int64).reshape(len(weights), *part.shape[1:]))
    return zip(*parts, strict=True)


def bin_of(length: int) -> int:
    """The number of the bin that a length belongs to.

    Example:
        >>> bin_of(64), bin_of(65), bin_of(128), bin_of(139)
        (64, 64, 72, 72)
    """
    if length <= EXACT_LENGTHS:
        return length
    return EXACT_LENGTHS + int(np.floor(IN_OCTAVE * np.log2(length / EXACT_LENGTHS)))


def length_of(number: int) -> int:
    """The smallest length of a bin."""
    if number <= EXACT_LENGTHS:
        return number
    return int(np.ceil(EXACT_LENGTHS * 2 ** ((number - EXACT_LENGTHS) / IN_OCTAVE)))
