"""Two atlases side by side: heads matched one to one, and what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float

from headscope.atlases._atlas import Atlas
from headscope.atlases._counts import CLASSES, LINKS
from headscope.atlases._examples import SampledText
from headscope.errors import RecordError
from headscope.evidence import difference_interval
from headscope.patterns import Label
from headscope.results import Result, TextTable

Cell = tuple[int, int]
PARTS = ("distance", "classes", "map", "scores", "links")
"""What is compared of two heads; their similarity is the mean of these parts."""
Similarity = Float[np.ndarray, "head other_head"]
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


@dataclass(frozen=True)
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
        both: list[tuple[Label, Label]] = []
        for at, to in self.matched:
            mine, theirs = self._labels[0][self.a.cells[at]], self._labels[1][self.b.cells[to]]
            both += [(mine[name], theirs[name]) for name in mine if name in theirs]
        both = [pair for pair in both if not np.isnan(pair[0].score + pair[1].score)]
        known = [[(each.score, each.low, each.high) for each in pair] for pair in both]
        one, other = np.array(known, np.float64).reshape(-1, 2, 3).swapaxes(0, 1)
        limits = difference_interval(one[:, 0], one[:, 1:], other[:, 0], other[:, 1:])
        differences = []
        for (mine, theirs), ends in zip(both, limits.tolist(), strict=True):
            heads = mine.layer, mine.head, theirs.layer, theirs.head
            scores = mine.score, theirs.score, theirs.score - mine.score
            differences.append(ScoreDifference(*heads, mine.pattern, *scores, *ends))
        differences.sort(key=lambda each: (not each.is_clear, -abs(each.difference)))
        return tuple(differences)

    def columns(self) -> dict[str, list[Any]]:
        """One row for each pair of heads and pattern, with the similarity of the pair."""
        of_pair = {pair.a: pair for pair in self.pairs}
        columns: dict[str, list[Any]] = {field.name: [] for field in fields(ScoreDifference)}
        columns |= {name: [] for name in ("similarity", "chance", "next_best")}
        for each in self.differences:
            row = vars(of_pair[each.layer, each.head]) | vars(each)
            for name, column in columns.items():
                column.append(row[name])
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
                "matching does not show which heads are the same"
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
        return [_labels_of(each) for each in (self.a, self.b)]


def _matched_with_others(atlas: Atlas, known: Sequence[str]) -> float:
    if len(atlas.cells) < 2:
        return float("nan")
    parts = part_similarities(atlas, atlas)
    own = mean_similarity({name: parts[name] for name in known})
    # Below all similarities, so that no head is matched with itself.
    np.fill_diagonal(own, -1.0)
    return float(np.mean([own[pair] for pair in one_to_one(own)]))


def _labels_of(atlas: Atlas) -> dict[Cell, dict[str, Label]]:
    """The evidence of each head, by pattern."""
    by_head: dict[Cell, dict[str, Label]] = {cell: {} for cell in atlas.cells}
    for label in atlas.heads.all_labels:
        by_head[label.layer, label.head][label.pattern] = label
    return by_head


def _held(labels: Mapping[str, Label]) -> list[str]:
    return [label.pattern for label in labels.values() if label.holds]


def part_similarities(a: Atlas, b: Atlas) -> dict[str, Similarity]:
    """How similar each head of one atlas is to each head of another, by each of `PARTS`.

    Distances, classes of keys (query class by query class) and the rows of mean maps are
    distributions of attention: of two of them the sum of the square roots of products is taken, 1
    where they are equal and 0 where they share nothing (Bhattacharyya 1943). Of the scores of
    patterns it is 1 less their mean absolute difference. Links are the strongest between tokens
    that are not special, on the texts that both samples hold with the same tokens; the same sum is
    taken over links, mean over these texts. NaN where an atlas does not know a part.
    """
    distances, classes, queries = [], [], []
    for atlas in (a, b):
        # Behind the heads stand maps of uniform attention.
        heads, rows = len(atlas.cells), len(CLASSES)
        distances.append(atlas.counts["distance"][:heads, None, :].astype(np.float64))
        of_classes = atlas.counts["classes"][:heads].astype(np.float64)
        classes.append(of_classes.reshape(heads, rows, rows))
        queries.append(atlas.counts["queries"] / max(1, atlas.tokens))
    return {
        "distance": _shared(*distances),
        # Query classes weigh as often as they are there, mean of both atlases.
        "classes": _shared(*classes, sum(queries) / 2),
        "map": _shared(a.maps, b.maps),
        "scores": _alike_scores(a, b),
        "links": _shared_links(a, b),
    }


def mean_similarity(parts: Mapping[str, Similarity]) -> Similarity:
    """The mean of the parts that are known of two heads; 0 where none is."""
    stacked = np.stack(list(parts.values()))
    known = ~np.isnan(stacked)
    count = known.sum(axis=0)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    return np.divide(total, count, out=np.zeros(total.shape), where=count > 0)


def one_to_one(similarity: Similarity) -> list[tuple[int, int]]:
    """Pairs of heads, none of them in two pairs, with the largest sum of similarities that can be
    had (the assignment problem: Kuhn 1955); as many pairs as the side with fewer heads has.

    Example:
        >>> one_to_one(np.array([[0.9, 0.8, 0.1], [0.8, 0.2, 0.1]]))
        [(0, 1), (1, 0)]
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _shared(
    one: Float[np.ndarray, "head row key"],
    other: Float[np.ndarray, "other_head row key"],
    weights: Float[np.ndarray, " row"] | None = None,
) -> Similarity:
    """Bhattacharyya coefficient of rows, mean over those that both sides know."""
    known = _known_rows(one) & _known_rows(other)
    if not known.any():
        return np.full((len(one), len(other)), np.nan)
    parts = np.ones(len(known)) if weights is None else weights
    parts = np.where(known, parts, 0.0)
    parts = parts / parts.sum()
    roots = []
    for given in (one, other):
        rows = np.nan_to_num(given)
        whole = rows.sum(axis=2, keepdims=True)
        shares = np.divide(rows, whole, out=np.zeros(rows.shape), where=whole > 0)
        # The root of a row's part on both sides is its part in the product.
        roots.append(np.sqrt(shares * parts[:, None]).reshape(len(rows), -1))
    return roots[0] @ roots[1].T


def _known_rows(rows: Float[np.ndarray, "head row key"]) -> Bool[np.ndarray, " row"]:
    return (np.nan_to_num(rows).sum(axis=2) > 0).any(axis=0)


def _alike_scores(a: Atlas, b: Atlas) -> Similarity:
    total, count = np.zeros((2, len(a.cells), len(b.cells)))
    sides = [_labels_of(each).values() for each in (a, b)]
    ours, theirs = (set().union(*side) for side in sides)
    for name in sorted(ours & theirs):
        one, other = (
            np.array([labels[name].score if name in labels else np.nan for labels in side])
            for side in sides
        )
        apart = np.abs(one[:, None] - other)
        count += ~np.isnan(apart)
        total += np.nan_to_num(apart)
    return 1.0 - np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _shared_links(a: Atlas, b: Atlas) -> Similarity:
    """How much both heads link the same words on the same texts."""
    theirs = {text.name: text for text in b.sample}
    both = [(text, theirs[text.name]) for text in a.sample if text.name in theirs]
    both = [(one, other) for one, other in both if one.words == other.words]
    total = np.zeros((len(a.cells), len(b.cells)))
    for one, other in both:
        roots = [_link_roots(text) for text in (one, other)]
        total += roots[0] @ roots[1].T
    return total / len(both) if both else np.full(total.shape, np.nan)


def _link_roots(text: SampledText) -> Float[np.ndarray, "head pair"]:
    """The root of the share of each pair of tokens in a head's strongest links between words."""
    heads, length = len(text.links), len(text.words)
    links, weights = text.links[:, LINKS:], text.weights[:, LINKS:].astype(np.float64)
    # Links that are missing have a weight of 0, and may be added anywhere.
    pairs = np.maximum(links[..., 0], 0) * length + np.maximum(links[..., 1], 0)
    shares = np.zeros((heads, length * length))
    np.add.at(shares, (np.arange(heads)[:, None], pairs), weights)
    whole = shares.sum(axis=1, keepdims=True)
    return np.sqrt(np.divide(shares, whole, out=np.zeros(shares.shape), where=whole > 0))


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
