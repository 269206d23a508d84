"""The atlas of a model: statistics of every head over many texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float

from headscope.atlases._counts import ATLAS, CLASSES, RELATIONS, SIDE, STEP, bin_names
from headscope.atlases._examples import (
    FrequentPair,
    SampledText,
    Stratum,
    frequent_pairs,
    sample_of,
    strata,
)
from headscope.corpus import Sums
from headscope.errors import RecordError
from headscope.patterns import Heads, Label, heads_of_kept, kept_of_heads
from headscope.results import Kept, Result, TextTable
from headscope.storage import Finite, arrays_below

if TYPE_CHECKING:
    from headscope.atlases._comparison import AtlasComparison

CONFIDENCE = "confidence"
"""The score of a head without a label: the largest weight of a query, mean over queries."""
NEIGHBOURS = 8
HEADS = "heads."
"""Before the names of the arrays of the heads in a file."""


@dataclass(frozen=True)
class Neighbour:
    """Another head whose attention is similar.

    Args:
        layer: layer of the other head.
        head: its number.
        alike: similarity: for each query the sum over keys of the square root of the product of
            both weights, 1 where the rows are equal and 0 where they share no key; mean over
            queries.
    """

    layer: int
    head: int
    alike: float


@dataclass(frozen=True)
class AtlasHead:
    """The part of an atlas about one head. Uniform attention, which gives all visible keys the same
    weight, is the baseline of its shares.

    Args:
        layer: its layer, from 0.
        head: its number, from 0.
        labels: every pattern with its evidence, whether the label holds or not.
        score: the name of its score: the pattern of the label that it holds, else ``confidence``.
        spread: number of texts with a score in each of 128 bins from 0 to 1.
        strata: fifths of the texts by its score, with examples.
        pairs: the pairs of words that get most of its attention.
        distance: share of its attention by distance, and the same of uniform attention.
        relations: the same by the relation of key and query.
        classes: for queries of each class, the share of their attention to keys of each class.
        even_classes: the same of uniform attention.
        map: mean weight from and to the first and the last 12 tokens of a text; NaN where no text
            has such a pair.
        neighbours: the most similar heads.
        norms: where what it adds comes from: by class of key and by relation, the share of
            ``weight * ||f(x)||`` and the share of its attention; empty without norms.
    """

    layer: int
    head: int
    labels: tuple[Label, ...]
    score: str
    spread: tuple[int, ...]
    strata: tuple[Stratum, ...]
    pairs: tuple[FrequentPair, ...]
    distance: Mapping[str, tuple[float, float]]
    relations: Mapping[str, tuple[float, float]]
    classes: Float[np.ndarray, "query_class key_class"]
    even_classes: Float[np.ndarray, "query_class key_class"]
    map: Float[np.ndarray, "query key"]
    neighbours: tuple[Neighbour, ...]
    norms: Mapping[str, tuple[float, float]]

    def __str__(self) -> str:
        held = [label.short for label in self.labels if label.holds]
        near = max(self.distance, key=lambda name: self.distance[name][0])
        lines = [
            f"Head {self.layer}-{self.head}: {', '.join(held) or 'no label'}",
            f"Most attention goes {near}: {self.distance[near][0]:.0%} (even {self._even(near)})",
        ]
        for pair in self.pairs[:3]:
            lines.append(f"{pair.query} to {pair.key}: {pair.share:.2%} (even {pair.even:.2%})")
        others = [f"{each.layer}-{each.head} {each.alike:.2f}" for each in self.neighbours[:3]]
        return "\n".join([*lines, f"Most alike: {', '.join(others) or 'none'}"])

    def _even(self, name: str) -> str:
        return f"{self.distance[name][1]:.0%}"


@dataclass(frozen=True, eq=False)
class Atlas(Result):
    """The heads of a model over many texts: labels with evidence, distances and words that they
    attend to, and example texts.

    Args:
        heads: labels and measures of the heads.
        scores: names of the scores whose distribution is known.
        counts: whole numbers over all texts, see `headscope.atlases.text_counts`.
        examples: arrays of a uniform sample of the texts, with the strongest links of each head.
        pairs: for each head, the pairs of words that get most of its attention.
        left_out: why texts of a run were left out, by name.
    """

    KIND: ClassVar[str] = "atlas"
    DOCUMENT: ClassVar[dict[str, Any]] = {
        "heads": {},
        "scores": [str],
        "pairs": [[[str, str, Finite, Finite, bool]]],
    }

    heads: Heads
    scores: tuple[str, ...]
    counts: Mapping[str, np.ndarray]
    examples: Mapping[str, np.ndarray]
    pairs: tuple[tuple[FrequentPair, ...], ...]
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def cells(self) -> list[tuple[int, int]]:
        """Layer and number of each head."""
        return self.heads.cells

    @property
    def model(self) -> str:
        """Name of the model; empty where it is unknown."""
        return self.heads.model

    @property
    def texts(self) -> int:
        """Number of texts."""
        return int(self.counts["totals"][0])

    @property
    def tokens(self) -> int:
        """Number of tokens in all texts."""
        return int(self.counts["totals"][1])

    @cached_property
    def sample(self) -> tuple[SampledText, ...]:
        """A uniform sample of the texts: those with the smallest hashes."""
        return sample_of(self.examples)

    @cached_property
    def alike(self) -> Float[np.ndarray, "head other_head"]:
        """Similarity of every two heads, mean over queries; see `Neighbour`."""
        return self.counts["alike"] / STEP / self._queries

    @cached_property
    def maps(self) -> Float[np.ndarray, "head query key"]:
        """Mean weight from and to the first and the last 12 tokens of a text; NaN where no text has
        such a pair.
        """
        heads, side = len(self.cells), 2 * SIDE
        texts = self.counts["map_texts"]
        sums = self.counts["map"][:heads] / STEP
        mean = np.divide(sums, texts, out=np.full(sums.shape, np.nan), where=texts > 0)
        return mean.reshape(heads, side, side)

    def head(self, layer: int, head: int) -> AtlasHead:
        """The part of the atlas about one head.

        Raises:
            RecordError: where there is no such head.
        """
        if (layer, head) not in self.cells:
            last = self.cells[-1]
            raise RecordError(
                f"There is no head {layer}-{head}; heads go from 0-0 to {last[0]}-{last[1]}"
            )
        at = self.cells.index((layer, head))
        score = self.score_of(at)
        number = self.scores.index(score)
        counts = self.counts["spread"][number, at]
        even = self.even_of(at)
        return AtlasHead(
            layer=layer,
            head=head,
            labels=self.labels_of(at),
            score=score,
            spread=tuple(counts.tolist()),
            strata=strata(counts, self.sample, number, at),
            pairs=self.pairs[at],
            distance=self._both("distance", bin_names(), (at, even)),
            relations=self._both("relations", RELATIONS, (at, even)),
            classes=self._classes(at),
            even_classes=self._classes(even),
            map=self.maps[at],
            neighbours=self.neighbours_of(at),
            norms=self.norms_of(at),
        )

    def compare(
        self,
        other: Atlas,
        *,
        heads: Literal["best", "number"] = "best",
        names: tuple[str, str] = ("A", "B"),
    ) -> AtlasComparison:
        """Another atlas compared with this one, such as that of a later checkpoint, of another seed
        or of another model: heads matched one to one, and what changed.

        Args:
            other: the other atlas; it may have other numbers of layers and heads.
            heads: how heads are matched: ``"best"``, such that the sum of their similarities is the
                largest that can be had, each head in one pair at most; or ``"number"``, by layer
                and number, for checkpoints of one model.
            names: what both are called, such as two steps of a training.

        Raises:
            RecordError: where the other is no atlas.
        """
        from headscope.atlases._comparison import AtlasComparison

        return AtlasComparison(self, other, heads, names)

    def labels_of(self, at: int) -> tuple[Label, ...]:
        """Every pattern with its evidence for the head at an index of `cells`: labels that hold
        first, then by how far the score is above its baseline.
        """
        cell = self.cells[at]
        mine = [label for label in self.heads.all_labels if (label.layer, label.head) == cell]
        # NaN has no order and would make the sorting arbitrary.
        above = {label: np.nan_to_num(label.excess, nan=-np.inf) for label in mine}
        return tuple(sorted(mine, key=lambda label: (not label.holds, -above[label])))

    def score_of(self, at: int) -> str:
        """The name of the score by which the texts of a head are sorted: that of its label farthest
        above its baseline, or `confidence`.
        """
        held = [label.pattern for label in self.labels_of(at) if label.holds]
        return held[0] if held else CONFIDENCE

    @property
    def has_norms(self) -> bool:
        """Whether it was made with ``norms=True``."""
        return "norm_keys" in self.counts

    def norms_of(self, at: int) -> dict[str, tuple[float, float]]:
        """Where what the head at an index of `cells` adds comes from: by class of key and by
        relation, the share of ``weight * ||f(x)||`` (Kobayashi et al. 2020), mean over queries, and
        the share of its attention. Empty where the atlas has no norms.
        """
        if not self.has_norms:
            return {}
        keys = self.counts["classes"][at].reshape(len(CLASSES), len(CLASSES)).sum(axis=0)
        weights = {"norm_keys": keys, "norm_relations": self.counts["relations"][at]}
        norms = {}
        for names, (name, by_weight) in zip((CLASSES, RELATIONS), weights.items(), strict=True):
            norms |= self._pairs(names, self.counts[name][at], by_weight)
        return norms

    def even_of(self, at: int) -> int:
        """The index of uniform attention in the layer of a head, in the counts of maps."""
        return _even_of(self.cells, at)

    def neighbours_of(self, at: int) -> tuple[Neighbour, ...]:
        """The heads that are most similar to the head at an index of `cells`."""
        order = np.argsort(-self.alike[at], kind="stable")
        others = [int(other) for other in order if other != at][:NEIGHBOURS]
        return tuple(Neighbour(*self.cells[one], float(self.alike[at, one])) for one in others)

    def columns(self) -> dict[str, list[Any]]:
        """One row for each head: its label, the head most alike, where its attention goes."""
        columns: dict[str, list[Any]] = {}
        for at, (layer, head) in enumerate(self.cells):
            for name, value in self._row(at, layer, head).items():
                columns.setdefault(name, []).append(value)
        return columns

    @property
    def summary(self) -> str:
        """How many heads hold which label, over how many texts."""
        return f"{self.heads.summary}; {self.tokens:,} tokens"

    def __repr__(self) -> str:
        return f"<Atlas: {len(self.cells)} heads, {self.texts:,} texts>"

    def _blocks(self) -> list[TextTable | str]:
        rows = [("head", "labels", "most alike", "pair", "share", "even")]
        for at, (layer, head) in enumerate(self.cells):
            row = self._row(at, layer, head)
            shares = f"{row['pair share']:.2%}", f"{row['pair even']:.2%}"
            named = row["labels"] or "-", row["most alike"], row["pair"]
            rows.append((f"{layer}-{head}", *named, *shares))
        return [TextTable.of_rows(rows, says=SAYS, wraps=("labels",))]

    def _row(self, at: int, layer: int, head: int) -> dict[str, Any]:
        held = [label.pattern for label in self.labels_of(at) if label.holds]
        row: dict[str, Any] = {
            "layer": layer,
            "head": head,
            "labels": ", ".join(held),
            "most alike": "",
            "alike": float("nan"),
            "pair": "",
            "pair share": float("nan"),
            "pair even": float("nan"),
        }
        for near in self.neighbours_of(at)[:1]:
            row |= {"most alike": f"{near.layer}-{near.head}", "alike": near.alike}
        words = [pair for pair in self.pairs[at] if pair.is_words]
        for pair in words[:1]:
            row["pair"] = f"{pair.query} to {pair.key}"
            row |= {"pair share": pair.share, "pair even": pair.even}
        for name, (share, _) in self._both("relations", RELATIONS, (at, at)).items():
            row[name] = share
        return row

    def _kept(self) -> Kept:
        heads, arrays = kept_of_heads(self.heads)
        places = {HEADS: arrays, "counts.": self.counts, "sample.": self.examples}
        kept = {f"{at}{name}": each for at, own in places.items() for name, each in own.items()}
        return {"heads": heads, "scores": self.scores, "pairs": self.pairs}, kept

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Atlas:
        heads = heads_of_kept(document["heads"], arrays_below(arrays, HEADS))
        pairs = tuple(tuple(FrequentPair(*pair) for pair in own) for own in document["pairs"])
        if len(pairs) != len(heads.cells):
            raise ValueError(f"it has pairs of {len(pairs)} heads, expected {len(heads.cells)}")
        counts, sample = (arrays_below(arrays, place) for place in ("counts.", "sample."))
        atlas = Atlas(heads, tuple(document["scores"]), counts, sample, pairs)
        assert atlas.sample is not None, "whatever does not fit is found here"
        return atlas

    @property
    def _queries(self) -> int:
        return max(1, self.tokens)

    def _both(
        self, counted: str, names: Sequence[str], maps: tuple[int, int]
    ) -> dict[str, tuple[float, float]]:
        """Shares of all attention of a head, and of uniform attention, by name."""
        return self._pairs(names, *self.counts[counted][list(maps)])

    def _pairs(self, names: Sequence[str], *sums: np.ndarray) -> dict[str, tuple[float, float]]:
        """Shares of two sums over all queries, by name."""
        shares = (np.array(sums) / STEP / self._queries).T.tolist()
        return dict(zip(names, ((one, other) for one, other in shares), strict=True))

    def _classes(self, of: int) -> Float[np.ndarray, "query_class key_class"]:
        queries = self.counts["queries"][:, None]
        sums = self.counts["classes"][of].reshape(len(CLASSES), len(CLASSES)) / STEP
        return np.divide(sums, queries, out=np.full(sums.shape, np.nan), where=queries > 0)


def atlas_of(heads: Heads, sums: Sums) -> Atlas:
    """The atlas made from labels and from sums over the same texts, see `text_counts`."""
    counts = {
        name.removeprefix(ATLAS): sums.total(name) for name in sums.names if name.startswith(ATLAS)
    }
    even = [_even_of(heads.cells, at) for at in range(len(heads.cells))]
    pairs = frequent_pairs(counts, sample_of(sums.examples), even)
    # The sketch is not kept: the pairs that were read from it are.
    del counts["pairs"]
    return Atlas(heads, tuple(sums.facts["scores"]), counts, sums.examples, pairs)


def _even_of(cells: Sequence[tuple[int, int]], at: int) -> int:
    """The index of uniform attention in the layer of a head, in the counts of maps."""
    # Maps of heads come first, then one of uniform attention for each layer.
    return len(cells) + list(dict(cells)).index(cells[at][0])


SAYS = {
    "head": "layer-head, both from 0",
    "labels": "patterns that hold, with their evidence in heads",
    "most alike": "the head whose rows are most like its own, mean over queries",
    "pair": "of pairs of words (special tokens left out) the one with most of its attention",
    "share": "of its attention in all texts, at most",
    "even": "the same of a head that attends evenly",
}
"""The legend of the table."""
