"""Two atlases side by side: heads matched one to one, and what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float

from headscope.atlases._atlas import Atlas
from headscope.atlases._similarity import mean_similarity, one_to_one, part_similarities
from headscope.errors import RecordError
from headscope.evidence import difference_interval
from headscope.patterns import Label
from headscope.results import Result, TextTable

Cell = tuple[int, int]
SHOWN = 12
"""Rows of each printed table."""


@dataclass(frozen=True, kw_only=True)
class HeadPair:
    """A head of one atlas and the head of the other that it is matched with.

    Args:
        a: layer and number of the head of A.
        b: of the head of B.
        similarity: mean of `parts`, 1 where both are the same in each of them.
        parts: similarity by each of `headscope.atlases.PARTS`; NaN for what is not known.
        chance: mean similarity of the head of A and all heads of B: that of a partner drawn at
            random.
        next_best: largest similarity of the head of A and another head of B; NaN where B has one.
        gained: labels that only the head of B holds.
        lost: labels that only the head of A holds.
    """

    a: Cell
    b: Cell
    similarity: float
    parts: Mapping[str, float]
    chance: float
    next_best: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ScoreDifference:
    """The score of a pattern in both heads of a pair.

    Args:
        layer: layer of the head of A.
        head: its number.
        other_layer: layer of the head of B.
        other_head: its number.
        pattern: name of the pattern.
        before: score of the head of A, mean over the texts of A.
        after: that of the head of B.
        difference: after less before.
        low: lower end of its interval, see `headscope.evidence.difference_interval`; NaN where a
            score has none.
        high: upper end.
    """

    layer: int
    head: int
    other_layer: int
    other_head: int
    pattern: str
    before: float
    after: float
    difference: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether 0 lies outside of the interval."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, eq=False)
class AtlasComparison(Result):
    """Two atlases side by side, as `Atlas.compare` gives them: each head of one is matched
    with one head of the other. Prints itself as tables of what changed most.

    Args:
        a: the first atlas.
        b: the second.
        matching: how heads are matched, see `Atlas.compare`.
        names: what both are called, such as two steps of a training.
    """

    KIND: ClassVar[str] = "atlas comparison"

    a: Atlas
    b: Atlas
    matching: Literal["best", "number"] = "best"
    names: tuple[str, str] = ("A", "B")

    def __post_init__(self) -> None:
        if not isinstance(self.b, Atlas):
            raise RecordError(
                f"Expected another atlas, got a {type(self.b).__name__}; make one with hs.atlas, "
                "or load one that was kept with hs.load"
            )
        if self.matching not in ("best", "number"):
            raise RecordError(
                f"Expected heads='best' or heads='number', got heads={self.matching!r}"
            )

    @cached_property
    def part_similarities(self) -> dict[str, Float[np.ndarray, "head other_head"]]:
        """Similarity of each head of A to each head of B, by each of `headscope.atlases.PARTS`."""
        return part_similarities(self.a, self.b)

    @cached_property
    def similarity(self) -> Float[np.ndarray, "head other_head"]:
        """The mean of these parts."""
        return mean_similarity(self.part_similarities)

    @cached_property
    def matched(self) -> tuple[tuple[int, int], ...]:
        """Indices of both heads of each pair, in the order of the heads of A."""
        if self.matching == "best":
            return tuple(one_to_one(self.similarity))
        number = {cell: at for at, cell in enumerate(self.b.cells)}
        both = [(at, number[cell]) for at, cell in enumerate(self.a.cells) if cell in number]
        return tuple(both)

    @cached_property
    def pairs(self) -> tuple[HeadPair, ...]:
        """The pairs, in the order of the heads of A."""
        return tuple(self._pair(at, to) for at, to in self.matched)

    @property
    def only_in_a(self) -> tuple[Cell, ...]:
        """Heads of A without a partner."""
        matched = {at for at, _ in self.matched}
        return tuple(cell for at, cell in enumerate(self.a.cells) if at not in matched)

    @property
    def only_in_b(self) -> tuple[Cell, ...]:
        """Heads of B without a partner."""
        matched = {to for _, to in self.matched}
        return tuple(cell for at, cell in enumerate(self.b.cells) if at not in matched)

    @property
    def mean_similarity(self) -> float:
        """Mean similarity of the pairs; NaN where there is none."""
        if not self.matched:
            return float("nan")
        return float(np.mean([self.similarity[pair] for pair in self.matched]))

    @property
    def chance(self) -> float:
        """Mean similarity of pairs that are drawn at random: of all heads of A and all of B."""
        return float(self.similarity.mean())

    @cached_property
    def different_heads(self) -> float:
        """Mean similarity where the heads of one atlas are matched in the same way with *other*
        heads of the same atlas, the larger of both: what a matching gives to heads that are
        certainly not the same. NaN where an atlas has one head.
        """
        # Of the same parts as between A and B: where texts differ, links are not among them.
        known = [name for name, each in self.part_similarities.items() if not np.isnan(each).all()]
        return max(_matched_with_others(atlas, known) for atlas in (self.a, self.b))

    @property
    def in_place(self) -> int:
        """Number of heads that are matched with the head of the same layer and number."""
        return sum(pair.a == pair.b for pair in self.pairs)

    @property
    def same_texts(self) -> bool:
        """Whether both samples hold the same texts, as they do where the atlases were made of the
        same.
        """
        names = [{text.name for text in each.sample} for each in (self.a, self.b)]
        return names[0] == names[1] and self.a.texts == self.b.texts

    @cached_property
    def differences(self) -> tuple[ScoreDifference, ...]:
        """The scores of all pairs in all patterns that both atlases looked for: those whose
        interval does not hold 0 first, the largest difference first.
        """
        differences = list(self._differences())
        return tuple(
            sorted(differences, key=lambda each: (not each.is_clear, -abs(each.difference)))
        )

    def columns(self) -> dict[str, list[Any]]:
        """One row for each pair of heads and pattern, with the similarity of the pair."""
        of_pair = {pair.a: pair for pair in self.pairs}
        columns: dict[str, list[Any]] = {
            field.name: [getattr(each, field.name) for each in self.differences]
            for field in fields(ScoreDifference)
        }
        for name in ("similarity", "chance", "next_best"):
            rows = [of_pair[each.layer, each.head] for each in self.differences]
            columns[name] = [getattr(pair, name) for pair in rows]
        return columns

    @property
    def summary(self) -> str:
        """How many heads are matched, how well, compared with matchings by chance, and what
        changed.
        """
        gained = sum(len(pair.gained) for pair in self.pairs)
        lost = sum(len(pair.lost) for pair in self.pairs)
        clear = sum(each.is_clear for each in self.differences)
        by_chance = (1 - self.a.heads.confidence) * len(self.differences)
        return (
            f"{self._sides()}: {len(self.matched)} heads are matched one to one, "
            f"{self.in_place} of them with the head of the same number; mean similarity "
            f"{self.mean_similarity:.2f} (random pairs {self.chance:.2f}; different heads of one "
            f"atlas, matched in the same way, {self.different_heads:.2f}); {gained} labels gained "
            f"and {lost} lost; {clear} of {len(self.differences)} scores differ, about "
            f"{by_chance:.0f} would by chance"
        )

    def _sides(self) -> str:
        """What A and B are, in words."""
        sides = []
        for side, name, atlas in zip("AB", self.names, (self.a, self.b), strict=True):
            # A name that says no more than the side is left out.
            words = [word for word in (name, atlas.model) if word and word != side]
            words.append(f"{len(atlas.cells)} heads")
            sides.append(f"{side} is {', '.join(words)}")
        return "; ".join(sides)

    @property
    def caution(self) -> str:
        """What limits the comparison; empty where nothing does."""
        notes = []
        if not self.same_texts:
            notes.append(
                "The atlases are of different texts: differences are of models and of texts"
            )
        # NaN compares as false, so that what is not known warns of nothing.
        if self.matching == "best" and self.mean_similarity <= self.different_heads:
            notes.append(
                "Matched heads are not more similar than different heads of one atlas are: the "
                "matching says nothing about which heads are the same"
            )
        return ". ".join(notes)

    def __repr__(self) -> str:
        return (
            f"<AtlasComparison: {len(self.a.cells)} and {len(self.b.cells)} heads, "
            f"{len(self.matched)} matched>"
        )

    def _blocks(self) -> list[TextTable | str]:
        scores = [("A", "B", "pattern", "before", "after", "difference", "interval")]
        for each in self.differences[:SHOWN]:
            cells = f"{each.layer}-{each.head}", f"{each.other_layer}-{each.other_head}"
            numbers = f"{each.before:.2f}", f"{each.after:.2f}", f"{each.difference:+.2f}"
            ends = "" if np.isnan(each.low) else f"[{each.low:+.2f}, {each.high:+.2f}]"
            scores.append((*cells, each.pattern, *numbers, ends))
        pairs = [("A", "B", "similarity", "next best", "chance", "gained", "lost")]
        for pair in sorted(self.pairs, key=lambda pair: pair.similarity)[:SHOWN]:
            cells = f"{pair.a[0]}-{pair.a[1]}", f"{pair.b[0]}-{pair.b[1]}"
            numbers = f"{pair.similarity:.2f}", f"{pair.next_best:.2f}", f"{pair.chance:.2f}"
            labels = ", ".join(pair.gained) or "-", ", ".join(pair.lost) or "-"
            pairs.append((*cells, *numbers, *labels))
        return [
            TextTable.of_rows(scores, says=SAYS, title="Scores that differ most"),
            TextTable.of_rows(pairs, says=SAYS, title="The least similar pairs"),
            *self._notes(),
        ]

    def _notes(self) -> Iterator[str]:
        for side, cells in (("A", self.only_in_a), ("B", self.only_in_b)):
            if cells:
                named = ", ".join(f"{layer}-{head}" for layer, head in cells)
                yield f"Heads of {side} without a partner: {named}"
        if self.caution:
            yield self.caution

    def _pair(self, at: int, to: int) -> HeadPair:
        row = self.similarity[at]
        others = np.delete(row, to)
        cells = self.a.cells[at], self.b.cells[to]
        held = [_held(labels[cell]) for labels, cell in zip(self._labels, cells, strict=True)]
        return HeadPair(
            a=cells[0],
            b=cells[1],
            similarity=float(row[to]),
            parts={name: float(each[at, to]) for name, each in self.part_similarities.items()},
            chance=float(row.mean()),
            next_best=float(others.max()) if len(others) else float("nan"),
            gained=tuple(name for name in held[1] if name not in held[0]),
            lost=tuple(name for name in held[0] if name not in held[1]),
        )

    @cached_property
    def _labels(self) -> list[dict[Cell, dict[str, Label]]]:
        return [_by_head(each) for each in (self.a, self.b)]

    def _differences(self) -> Iterator[ScoreDifference]:
        """Those of all pairs, in their order."""
        both: list[tuple[Label, Label]] = []
        for at, to in self.matched:
            mine, theirs = self._labels[0][self.a.cells[at]], self._labels[1][self.b.cells[to]]
            both += [(mine[name], theirs[name]) for name in mine if name in theirs]
        both = [pair for pair in both if not np.isnan(pair[0].score + pair[1].score)]
        scores, ends = [], []
        for side in (0, 1):
            scores.append(np.array([pair[side].score for pair in both], np.float64))
            of_side = [(pair[side].low, pair[side].high) for pair in both]
            ends.append(np.array(of_side, np.float64).reshape(-1, 2))
        limits = difference_interval(scores[0], ends[0], scores[1], ends[1])
        for (mine, theirs), (low, high) in zip(both, limits.tolist(), strict=True):
            yield ScoreDifference(
                layer=mine.layer,
                head=mine.head,
                other_layer=theirs.layer,
                other_head=theirs.head,
                pattern=mine.pattern,
                before=mine.score,
                after=theirs.score,
                difference=theirs.score - mine.score,
                low=low,
                high=high,
            )


def _matched_with_others(atlas: Atlas, known: Sequence[str]) -> float:
    if len(atlas.cells) < 2:
        return float("nan")
    parts = part_similarities(atlas, atlas)
    own = mean_similarity({name: parts[name] for name in known})
    # Below all similarities, so that no head is matched with itself.
    np.fill_diagonal(own, -1.0)
    return float(np.mean([own[pair] for pair in one_to_one(own)]))


def _by_head(atlas: Atlas) -> dict[Cell, dict[str, Label]]:
    """The evidence of each head, by pattern."""
    by_head: dict[Cell, dict[str, Label]] = {cell: {} for cell in atlas.cells}
    for label in atlas.heads.all_labels:
        by_head[label.layer, label.head][label.pattern] = label
    return by_head


def _held(labels: Mapping[str, Label]) -> list[str]:
    return [label.pattern for label in labels.values() if label.holds]


SAYS = {
    "A": "head of A: layer-head, both from 0",
    "B": "the head of B that it is matched with",
    "before": "score of the head of A, mean over texts",
    "after": "of the head of B",
    "interval": "of the difference, both scores taken as independent",
    "similarity": "mean of five parts (distance, classes, mean map, scores, links); 1 is the same",
    "next best": "similarity of the head of A to the best other head of B",
    "chance": "to all heads of B, on average",
    "gained": "labels that only the head of B holds",
    "lost": "labels that only the head of A holds",
}
"""The legend of both tables."""
