"""Kinds of heads over many texts, with the evidence for each label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float

from headscope.errors import HeadscopeError, RecordError, check_option_names
from headscope.evidence.chance import check_correction
from headscope.evidence.groups import check_confidence
from headscope.measures import head_map
from headscope.patterns._head_measures import CLASSES, MEASURES
from headscope.patterns._pattern import PATTERNS, Pattern
from headscope.patterns._tally import MEASURE, Tally
from headscope.patterns.label import FIELDS, MARGIN, RUNS, HeadCard, Label, labels_of, texts_needed
from headscope.patterns.records import named_records
from headscope.results import Kept, Result, TextTable
from headscope.storage import Finite

DOCUMENT: dict[str, Any] = {
    "options": {"confidence": Finite, "alpha": Finite, "correction": str, "margin": Finite},
    "levels": {str: Finite},
    "stack": (str, None),
    "patterns": [{}],
    "sums": {},
    "battery": ([str], None),
}


@dataclass(frozen=True, eq=False)
class Heads(Result):
    """The heads of a model with their measures and labels; prints itself as a table.

    Args:
        tally: what was counted of all texts.
        confidence: confidence level of the intervals.
        alpha: significance level, over all heads and patterns that were tested.
        correction: for multiple tests: ``"holm"`` (family-wise error rate) or
            ``"benjamini-hochberg"`` (false discovery rate).
        margin: for a label, score less baseline must be above it, beyond chance.
        left_out: why texts of a run were left out, by name.

    Raises:
        RecordError: where one of the four options is not what it may be.
    """

    KIND: ClassVar[str] = "heads"
    DOCUMENT: ClassVar[dict[str, Any]] = DOCUMENT

    tally: Tally
    confidence: float = 0.95
    alpha: float = 0.05
    correction: Literal["holm", "benjamini-hochberg"] = "holm"
    margin: float = MARGIN
    left_out: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        check_confidence(self.alpha, "alpha")
        check_correction(self.correction)
        if not isinstance(self.margin, Real) or not 0 <= self.margin < 1:
            raise RecordError(
                f"margin is {self.margin!r}; give what the excess over the baseline must be above, "
                "0..1"
            )

    @property
    def texts(self) -> int:
        """Number of texts."""
        return self.tally.texts

    @property
    def levels(self) -> dict[str, float]:
        """Mean score of each pattern on a model with random weights, where there is one."""
        return self.tally.levels

    @property
    def documents(self) -> int:
        """Number of documents that the texts belong to; a text without one counts as its own."""
        return self.tally.documents

    @cached_property
    def all_labels(self) -> tuple[Label, ...]:
        """Every pattern of every head with its evidence, whether the label holds or not."""
        return labels_of(
            self.tally,
            confidence=self.confidence,
            alpha=self.alpha,
            correction=self.correction,
            margin=self.margin,
        )

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels that hold."""
        return tuple(label for label in self.all_labels if label.holds)

    @property
    def candidates(self) -> tuple[Label, ...]:
        """Patterns that score high enough for a label, but on too few texts to be sure."""
        return tuple(label for label in self.all_labels if label.candidate)

    @property
    def tokens(self) -> float:
        """Median length of the texts in tokens; NaN for a tally saved before lengths were."""
        return self.tally.median_length

    @property
    def summary(self) -> str:
        """Number of heads with each label, of all heads, and the length of the texts."""
        listed = _counted(self.labels) or "no label"
        if self.candidates:
            listed += f" (candidates: {_counted(self.candidates)})"
        length = "length not known" if np.isnan(self.tokens) else f"median {self.tokens:.0f} tokens"
        model = self.tally.model or "a model"
        return f"{model}: {listed} of {len(self.cells)} heads; {length}, {self.tally.sums.counted}"

    @property
    def model(self) -> str:
        """Name of the model; empty where it is unknown."""
        return self.tally.model

    @cached_property
    def measures(self) -> dict[str, Float[np.ndarray, " head"]]:
        """Mean over texts of each measure, one value for each of `cells`."""
        return {name: self._mean(f"{MEASURE}{name}") for name in MEASURES}

    @cached_property
    def classes(self) -> dict[str, Float[np.ndarray, " head"]]:
        """Share of texts on which each head's map belongs to each of Kovaleva's classes."""
        return {name: self._mean(f"class {name}") for name in CLASSES}

    @property
    def cells(self) -> list[tuple[int, int]]:
        """Layer and head of every value."""
        return self.tally.cells

    def classes_of_layers(self) -> dict[int, dict[str, float]]:
        """Share of maps of each class in every layer: Kovaleva's bar chart, layer by layer."""
        layers = np.array([layer for layer, _ in self.cells])
        return {
            int(number): {
                name: float(shares[layers == number].mean())
                for name, shares in self.classes.items()
            }
            for number in np.unique(layers)
        }

    def head(self, layer: int, head: int) -> HeadCard:
        """The card of one head: labels, evidence, measures, best examples.

        Raises:
            RecordError: where there is no such head.
        """
        if (layer, head) not in self.cells:
            last = self.cells[-1]
            raise RecordError(
                f"There is no head {layer}-{head}; heads go from 0-0 to {last[0]}-{last[1]}"
            )
        cell = self.cells.index((layer, head))
        labels = [label for label in self.all_labels if (label.layer, label.head) == (layer, head)]
        names = [pattern.name for pattern in self.tally.patterns]
        return HeadCard(
            layer=layer,
            head=head,
            labels=tuple(labels),
            measures=_at(self.measures, cell),
            classes=_at(self.classes, cell),
            scores={name: self._scores(at, cell) for at, name in enumerate(names)},
        )

    @cached_property
    def distances(self) -> Float[np.ndarray, "head other_head"]:
        """Distance of every two heads: Jensen-Shannon divergence summed over rows, mean over texts
        (Clark et al. 2019).

        Raises:
            RecordError: where they were not added up.
        """
        distances = self.tally.distances
        if distances is None:
            raise RecordError(
                "The distances of heads were not added up; give heads(..., distances=True)"
            )
        return distances

    @cached_property
    def map(self) -> Float[np.ndarray, "head 2"]:
        """Heads as points in a plane, like heads close together: see `headscope.measures.head_map`.

        Raises:
            RecordError: where the distances were not added up.
        """
        return head_map(self.distances)

    def ranked(self, by: str) -> list[Label] | list[HeadCard]:
        """All heads, ranked by a column of the table, the largest first.

        Args:
            by: a pattern, for its labels by their score; or a measure such as ``"entropy"``, or a
                class such as ``"vertical"``, for the cards of heads.

        Raises:
            RecordError: where there is no such column, or no text can show the pattern.
        """
        labels = [label for label in self.all_labels if label.pattern == by]
        if labels:
            return sorted(labels, key=lambda label: -label.score)
        known = self.measures | self.classes
        if by not in known:
            names = dict.fromkeys(label.pattern for label in self.all_labels)
            raise RecordError(
                f"No text shows anything of {by!r}; there are scores of {', '.join(names)}, and "
                f"{', '.join(known)}"
            )
        order = np.argsort(-known[by], kind="stable")
        return [self.head(*self.cells[cell]) for cell in order]

    def columns(self) -> dict[str, list[Any]]:
        """Every label as a table, one list for each column; `to_pandas` and so on are made from it.

        Each row also has the measures of the head (``entropy``, ``confidence``, ``distance``,
        ``self``, ``special``) and the share of texts on which its map belongs to each class
        (``class vertical`` ...).
        """
        columns = {name: [getattr(label, name) for label in self.all_labels] for name in FIELDS}
        indices = [self.cells.index((label.layer, label.head)) for label in self.all_labels]
        for name, values in self.measures.items():
            columns[name] = [float(values[index]) for index in indices]
        for name, shares in self.classes.items():
            columns[f"class {name}"] = [float(shares[index]) for index in indices]
        return columns

    def by_label(self) -> dict[str, list[tuple[int, int]]]:
        """Layer and head of all heads with each label, in the order of patterns."""
        cells: dict[str, list[tuple[int, int]]] = {}
        for label in self.labels:
            cells.setdefault(label.pattern, []).append((label.layer, label.head))
        return cells

    def _kept(self) -> Kept:
        from headscope.patterns._heads_file import kept_of_heads

        return kept_of_heads(self)

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Heads:
        from headscope.patterns._heads_file import heads_of_kept

        return heads_of_kept(document, arrays)

    def __repr__(self) -> str:
        return f"<Heads: {len(self.cells)} heads, {self.texts} texts, {len(self.labels)} labels>"

    def _blocks(self) -> list[TextTable | str]:
        once = ["Seen on one text only: nothing is known of others"] if self.texts == 1 else []
        columns = [
            *HEADER,
            *(["labels"] if self.texts > 1 or self.labels else []),
            *(["candidates"] if self.candidates else []),
        ]
        rows = [tuple(columns), *(self._row(cell, columns) for cell in range(len(self.cells)))]
        table = TextTable.of_rows(rows, says=SAYS, wraps=("labels", "candidates"))
        notes = [*once, *self._legend(), *self._not_judged(), *self._too_few()]
        return [table, "\n".join([*notes, self.summary])]

    @property
    def caution(self) -> str:
        """Why nothing can be concluded: one text only, or too few texts; empty where labels can be
        given.
        """
        if self.texts == 1:
            return "Seen on one text only: nothing is known of others"
        return "".join(self._too_few())

    def _legend(self) -> list[str]:
        """Explanations of the columns of labels."""
        if self.texts == 1 and not self.labels:
            return []
        interval = f"{self.confidence:.0%} interval over {self._over}"
        lines = [
            f"Labels: score [{interval}], more than {self.margin:g} above the baseline, "
            f"{self.correction} over all heads and patterns"
        ]
        by_battery = [
            pattern.name for pattern in self.tally.patterns if self.tally.is_by_battery(pattern)
        ]
        if by_battery and self.tally.battery is not None:
            lines.append(
                f"{', '.join(by_battery)}: of {self.tally.battery.texts} {RUNS}, not of the texts"
            )
        if self.candidates:
            lines.append(
                "Candidates: scores as high, on too few texts to separate them from chance"
            )
        return lines

    def _not_judged(self) -> list[str]:
        """A note about patterns that are not judged on some of the texts, and why."""
        listed = []
        for pattern in self.tally.patterns:
            count = self.tally.not_judged(pattern)
            if count:
                listed.append(f"{pattern.name} on {count}")
        if not listed:
            return []
        return [
            f"Not judged, since even rows reach half the threshold: {', '.join(listed)} of "
            f"{self.texts} texts"
        ]

    def _too_few(self) -> list[str]:
        """A note where there are too few texts for any label."""
        tests = len([label for label in self.all_labels if label.texts > 1])
        wanted = texts_needed(tests, self.alpha, self.correction)
        if self.texts == 1 or not tests or self.documents >= wanted:
            return []
        count = f"{self.documents} {self._over} are"
        if self.documents == 1:
            count = f"1 {self._over.removesuffix('s')} is"
        return [f"{count} too few to tell {tests} scores from chance; give {wanted} or more"]

    @property
    def _over(self) -> str:
        """The units that intervals are over: texts or documents."""
        return "texts" if self.documents == self.texts else "documents"

    def _row(self, cell: int, columns: list[str]) -> tuple[str, ...]:
        layer, head = self.cells[cell]
        mine = [label for label in self.all_labels if (label.layer, label.head) == (layer, head)]
        kind = max(CLASSES, key=lambda name: self.classes[name][cell])
        numbers = [f"{self.measures[name][cell]:.2f}" for name in MEASURES]
        row = [f"{layer}-{head}", *numbers, f"{kind} {self.classes[kind][cell]:.0%}"]
        if "labels" in columns:
            row.append(_listed(label for label in mine if label.holds))
        if "candidates" in columns:
            row.append(_listed(label for label in mine if label.candidate))
        return tuple(row)

    def _mean(self, row: str) -> np.ndarray:
        return self.tally.mean_of(row)

    def _scores(self, pattern: int, cell: int) -> list[tuple[str, float]]:
        """Score of each text that can show the pattern, the highest first."""
        known = []
        for says, scores in self.tally.examples:
            if not np.isnan(scores[pattern, cell]):
                known.append((says, float(scores[pattern, cell])))
        return sorted(known, key=lambda entry: -entry[1])


def _listed(labels: Iterable[Label]) -> str:
    return ", ".join(label.short for label in labels) or "-"


HEADER = ("head", *MEASURES, "class")
SAYS = {
    "head": "layer-head, both from 0",
    **{name: measure.legend for name, measure in MEASURES.items()},
    "class": "of Kovaleva's kinds of maps the most frequent, and its share of the texts",
}
"""The legend of the table."""


def _counted(labels: tuple[Label, ...]) -> str:
    counts = Counter(label.pattern for label in labels)
    return ", ".join(f"{count} {pattern}" for pattern, count in counts.items())


def heads(
    records: Any,
    *,
    groups: Iterable[Any] | None = None,
    patterns: tuple[Pattern, ...] = PATTERNS,
    stack: str | None = None,
    position_mean: Float[np.ndarray, "head length length"] | None = None,
    random_weights: Heads | None = None,
    distances: bool = False,
    **options: Any,
) -> Heads:
    """The kinds of heads of a model, over some texts, with the evidence for each label.

    For one text, ``heads(capture(...))``; for many, ``heads(capture_many(model, tokenizer,
    texts))``: records are read once and not kept. A label holds where the mean score over texts
    reaches the pattern's threshold and is above its baselines by a margin, beyond chance (tested
    over texts, corrected for all heads and patterns). A pattern is not judged on a text where
    uniform rows already reach half its threshold. A pattern that scores as high on too few texts is
    a candidate; one text alone gives no label.

    Args:
        records: one record, or one for each text, all of one model; or a `Tally` of them.
        groups: the document of each text, by name or number: intervals and tests are then over
            documents.
        patterns: the patterns to score.
        stack: a stack of the records, such as ``"decoder"``; by default the first.
        position_mean: the average map, for one more baseline; see `Tally`.
        random_weights: `heads` of the same texts on the same architecture with random weights, for
            one more baseline.
        distances: whether to add up the distances of every two heads, for `Heads.map`; this takes
            a while for many heads.
        **options: ``confidence``, ``alpha``, ``correction`` and ``margin`` of `Heads`.

    Raises:
        RecordError: where there is no record, or an option is unknown.
        HeadscopeError: where SciPy is not installed; raised before any record is read.

    Example:
        >>> from headscope.testing import random_record
        >>> heads([random_record(seed=seed) for seed in range(3)])
        <Heads: 6 heads, 3 texts, 0 labels>
    """
    check_heads_options(options)
    if isinstance(records, Tally):
        tally = records
    else:
        levels = None if random_weights is None else levels_of(random_weights)
        tally = Tally(
            patterns, stack=stack, position_mean=position_mean, distances=distances, levels=levels
        )
        for name, record, document in named_records(records, groups, "heads"):
            tally.update(name, record, group=document)
    if not tally.cells:
        raise RecordError("heads was given no record; capture at least one text")
    return Heads(tally, **options)


def check_heads_options(options: Mapping[str, Any]) -> None:
    """Raise where `Heads` has no such option, or SciPy is missing, before any work.

    Raises:
        RecordError: naming the options.
        HeadscopeError: where SciPy is not installed.
    """
    check_option_names("heads", options, ("confidence", "alpha", "correction", "margin"))
    check_confidence(options.get("alpha", 0.05), "alpha")
    check_correction(options.get("correction", "holm"))
    if find_spec("scipy") is None:
        raise HeadscopeError(
            "heads needs SciPy, which is not installed: pip install 'headscope[statistics]'"
        )


def levels_of(random_weights: Heads) -> dict[str, float]:
    """Mean score of each pattern over all heads and texts of a model with random weights."""
    # One number for all heads: with random weights, which head it is has no meaning.
    tally = random_weights.tally
    means = {pattern.name: random_weights._mean(pattern.name) for pattern in tally.patterns}
    return {
        name: float(values[~np.isnan(values)].mean())
        for name, values in means.items()
        if not np.isnan(values).all()
    }


def _at(values: Mapping[str, np.ndarray], cell: int) -> dict[str, float]:
    """The value of one head in each measure or class."""
    return {name: float(each[cell]) for name, each in values.items()}
