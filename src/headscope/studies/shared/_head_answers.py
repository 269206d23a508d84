"""What studies share that ask every head about annotated texts: the answers of heads and of rules
as sums by document, the best head of each question, and their file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, TypedDict, TypeVar

import numpy as np
from jaxtyping import Float

from headscope.corpus import Sums
from headscope.errors import RecordError
from headscope.evidence.chance import CORRECTIONS
from headscope.evidence.choice import FEWEST, SPLITS, Choices, chosen
from headscope.evidence.groups import check_confidence, length_text
from headscope.record import Record
from headscope.results import Kept, Result
from headscope.storage import Finite, Seed, array_of
from headscope.studies.shared._fold import Fold, Item

ASKED = "asked/"
"""Prefix of the name of how often something was asked."""
MOST_SPLITS = 10_000
"""Of a file; a damaged number would keep a reader waiting for hours."""
DOCUMENT: dict[str, Any] = {
    "options": {"confidence": Finite, "seed": Seed, "splits": int},
    "source": str,
    "left_out": {str: str},
    "sums": {},
}


class EvidenceOptions(TypedDict, total=False):
    """How intervals are made, and the best head is chosen."""

    confidence: float
    """Of the intervals; 0.95."""
    correction: Literal["holm", "benjamini-hochberg"]
    """For trying many things, ``"holm"`` (by default) or ``"benjamini-hochberg"``."""
    seed: int
    """Of the first split of the documents into halves; 0."""
    splits: int
    """How many splits held-out numbers are means of; 10."""


DEFAULTS: EvidenceOptions = {
    "confidence": 0.95,
    "correction": "holm",
    "seed": 0,
    "splits": SPLITS,
}

Same = TypeVar("Same", bound="HeadAnswers")


class HeadAnswers(Result):
    """The answers of every head on texts of a kind; those of other texts of the same model add up.

    Args:
        how: options that what is counted of a text depends on.
        sums: what was counted; by default of no text.
        options: see `EvidenceOptions`.

    Raises:
        RecordError: where an option is not what it may be.
    """

    FOLD: ClassVar[Fold]
    ASKED_BY: ClassVar[tuple[str, str]]
    """The attributes of a `ChosenHead` that its question is found by, as `best` takes them."""
    CHOICES: ClassVar[int] = 1
    """Choices for each head, such as its directions."""
    RULE_COUNT: ClassVar[int]
    """How many rules without a head there are."""
    DOCUMENT: ClassVar[dict[str, Any]] = DOCUMENT
    RULE_KIND: ClassVar[str] = "i"
    """Whether they answer right or wrong, ``"i"``, or also by chance, ``"f"``."""
    BASELINES: ClassVar[slice] = slice(None)
    """Which of these are the baseline."""

    def __init__(
        self, how: Mapping[str, Any], options: Mapping[str, Any], sums: Sums | None = None
    ) -> None:
        self.how: dict[str, Any] = dict(how)
        self.options: dict[str, Any] = checked_options(options)
        self.sums: Sums = Sums(self.FOLD.what) if sums is None else sums
        self.source: str = ""
        self.left_out: dict[str, str] = {}
        self.control: Any = None

    def update(self, item: Any, record: Record, /) -> None:
        """Count one text; it goes to ``left_out`` where its words and the tokens cannot be aligned.

        Args:
            item: the text, with its annotation.
            record: of it.

        Raises:
            RecordError: where it was counted before, the record is of another text, or of another
                model.
        """
        if item.name in self.left_out:
            raise RecordError(
                f"{self.FOLD.what.capitalize()} {item.name!r} was counted before; each has a name "
                "of its own"
            )
        self.check_text(item, record)
        try:
            counted = self.FOLD.counted(item, record, **self.how)
        except RecordError as error:
            self.left_out[item.name] = str(error)
            return
        counted.add_to(self.sums, item.name, Item(item.name, item.document or None, item).unit)
        # What was computed of fewer texts is forgotten.
        self.__dict__.pop("counts", None)
        self.__dict__.pop("_chosen", None)

    def check_text(self, item: Any, record: Record, /) -> None:
        """Raise where a record is of another text.

        Raises:
            RecordError: naming the text.
        """
        raise NotImplementedError

    def __add__(self: Same, other: Same) -> Same:
        """The texts of both.

        Raises:
            RecordError: where they share a text, or models or options differ.
        """
        if not isinstance(other, type(self)):
            return NotImplemented
        if self.how != other.how:
            raise RecordError("These are of other options; they cannot be added up")
        both = type(self)(**self.how, **self.options)
        both.sums = self.sums + other.sums
        both.left_out = self.left_out | other.left_out
        named = dict.fromkeys(name for name in (self.source, other.source) if name)
        both.source = " + ".join(named)
        if self.control is not None and other.control is not None:
            both.control = self.control + other.control
        return both

    @property
    def names(self) -> tuple[str, ...]:
        """A key of the name of each text that was counted."""
        return self.sums.texts

    @property
    def model(self) -> str:
        """Name of the model; empty where it is unknown."""
        return self.sums.facts.get("model", "")

    @property
    def cells(self) -> tuple[tuple[int, int], ...]:
        """Layer and head of every head."""
        return tuple((layer, head) for layer, head in self.sums.facts.get("heads", ()))

    @property
    def confidence(self) -> float:
        """Of the intervals."""
        return self.options["confidence"]

    @property
    def correction(self) -> Literal["holm", "benjamini-hochberg"]:
        """For trying many things."""
        return self.options["correction"]

    @property
    def splits(self) -> int:
        """How many splits held-out numbers are means of."""
        return self.options["splits"]

    @property
    def documents(self) -> int:
        """Number of documents that something was asked in."""
        return self.sums.documents

    @property
    def too_few(self) -> str:
        """That there are too few documents to judge any head; empty where there are enough."""
        if self.documents >= FEWEST:
            return ""
        count = f"{self.documents} document{'s' * (self.documents != 1)}"
        return f"Too few to judge any head: {count}, and p can be below 0.05 from {FEWEST} on"

    @property
    def length_text(self) -> str:
        """How long the texts are, as tables print it."""
        return length_text(self.sums.lengths)

    @cached_property
    def counts(self) -> dict[str, int]:
        """How often everything was asked."""
        names = (name for name in self.sums.names if name.startswith(ASKED))
        return {name.removeprefix(ASKED): int(self.sums.total(name)) for name in names}

    def asked(self, what: str) -> int:
        """How often something was asked.

        Raises:
            RecordError: where it was not.
        """
        if not self.counts:
            raise RecordError(f"No {self.FOLD.what} was counted")
        if what not in self.counts:
            there = ", ".join(self.ordered(self.counts))
            raise RecordError(f"Nothing was asked about {what!r}; there are {there}")
        return self.counts[what]

    @property
    def ways(self) -> tuple[str, ...]:
        """How heads were asked."""
        raise NotImplementedError

    def ordered(self, counts: Mapping[str, int], /) -> Sequence[str]:
        """What was asked, in the order of a table."""
        raise NotImplementedError

    def shares(self, how: str, what: str) -> Float[np.ndarray, " choice"]:
        """Share that every head, or head and direction, answers right.

        Raises:
            RecordError: where that was not asked.
        """
        asked = self.asked(what)
        return self.sums.total(f"hits/{how}/{what}") / asked

    def rule_shares(self, how: str, what: str) -> Float[np.ndarray, " rule"]:
        """Share that every rule without a head answers right.

        Raises:
            RecordError: where that was not asked.
        """
        asked = self.asked(what)
        return self.sums.total(f"rules/{how}/{what}") / asked

    def _measured(self, how: str, asked: Iterable[str]) -> list[dict[str, Any]]:
        """The numbers of `ChosenHead`, of everything that was asked in one way."""
        questions = [
            Choices(
                wholes=self.sums[f"{ASKED}{what}"].astype(np.float64),
                scores=self.sums[f"hits/{how}/{what}"].T.astype(np.float64),
                baselines=self.sums[f"rules/{how}/{what}"].T[self.BASELINES].astype(np.float64),
            )
            for what in asked
        ]
        return chosen(questions, **self.options)

    @cached_property
    def _chosen(self) -> dict[str, tuple[Any, ...]]:
        """The best heads, by how they were asked; worked out when they are wanted."""
        return {}

    def _best_heads(self, how: str) -> tuple[Any, ...]:
        """The best head for everything that was asked in one way.

        Raises:
            RecordError: where nothing was counted.
        """
        if not self.counts:
            raise RecordError(f"No {self.FOLD.what} was counted")
        if how not in self._chosen:
            asked = self.ordered(self.counts)
            numbers = zip(asked, self._measured(how, asked), strict=True)
            self._chosen[how] = tuple(self._head(what, how, each) for what, each in numbers)
        return self._chosen[how]

    def _head(self, what: str, how: str, numbers: dict[str, Any], /) -> Any:
        raise NotImplementedError

    def best(self, what: str, how: str, /) -> Any:
        """The best head for one question, asked in one way."""
        raise NotImplementedError

    def _table(self, fields: tuple[str, ...], listed: Sequence[Any]) -> dict[str, list[Any]]:
        """These heads as columns, with the numbers of the model with random weights, if any."""
        twins = None
        if self.control is not None:
            what, how = self.ASKED_BY
            twins = [self.control.best(getattr(each, what), getattr(each, how)) for each in listed]
        return columns_of(fields, listed, twins)

    def _kept(self) -> Kept:
        sums, arrays = self.sums.kept()
        known = {"source": self.source, "left_out": self.left_out, "sums": sums}
        return known | {"options": self.how | self.options}, arrays

    @classmethod
    def _of_kept(cls: type[Same], document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Same:
        if document["options"]["splits"] > MOST_SPLITS:
            raise ValueError(f"splits is {document['options']['splits']}")
        study = cls(**document["options"])
        study.sums = Sums.of_kept((document["sums"], arrays), study.FOLD.what)
        study.source, study.left_out = document["source"], document["left_out"]
        rows, heads = len(study.sums.rows), study.CHOICES * len(study.cells)
        for what in study.counts:
            array_of(arrays, f"counts.{ASKED}{what}", "i", (rows,))
            for how in study.ways:
                array_of(arrays, f"counts.hits/{how}/{what}", "i", (rows, heads))
                rules = f"counts.rules/{how}/{what}"
                array_of(arrays, rules, study.RULE_KIND, (rows, study.RULE_COUNT))
        return study


def checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """These `EvidenceOptions`, with those that were not given.

    Raises:
        RecordError: where one is not what it may be.
    """
    unknown = [name for name in options if name not in DEFAULTS]
    if unknown:
        raise RecordError(
            f"There is no option {unknown[0]!r}; there are {', '.join(DEFAULTS)}; to count fewer "
            "texts, give fewer"
        )
    all_: dict[str, Any] = {**DEFAULTS, **options}
    confidence, correction, splits = (
        all_["confidence"],
        all_["correction"],
        all_["splits"],
    )
    if isinstance(splits, bool) or not isinstance(splits, int) or splits < 1:
        raise RecordError(f"splits is {splits!r}; expected a number from 1 on")
    check_confidence(confidence)
    if correction not in tuple(CORRECTIONS):
        raise RecordError(f"correction is {correction!r}; give one of {', '.join(CORRECTIONS)}")
    if not isinstance(all_["seed"], int | np.integer) or all_["seed"] < 0:
        raise RecordError(f"Expected a whole number from 0 on for seed, got {all_['seed']!r}")
    return all_


def taken_options(options: dict[str, Any]) -> dict[str, Any]:
    """The `EvidenceOptions` among options, which are taken out of them.

    Raises:
        RecordError: where one is not what it may be.
    """
    return checked_options({name: options.pop(name) for name in DEFAULTS if name in options})


NAMED_WITH_REASON = 20


def left_out_lines(left_out: Mapping[str, str], what: str) -> list[str]:
    """Lines that count and name what was left out."""
    if not left_out:
        return []
    listed = list(left_out.items())
    lines = [f"  {name}: {reason}" for name, reason in listed[:NAMED_WITH_REASON]]
    more = [name for name, _ in listed[NAMED_WITH_REASON:]]
    return [
        f"{len(left_out)} {what} left out:",
        *lines,
        *([f"  and {', '.join(more)}"] if more else []),
    ]


def percent(value: float, ends: Sequence[float] | None = None) -> str:
    """A share as printed, with its interval."""
    if math.isnan(value):
        return "-"
    shown = f"{100 * value:.1f}"
    if ends is None or math.isnan(ends[0]):
        return shown
    return f"{shown} [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"


def above_of(each: Any) -> tuple[str, str]:
    """How far what was chosen is above its baseline, with its interval, and its spread over splits;
    as printed.
    """
    if math.isnan(each.held_out_above):
        return "-", "-"
    ends = ", ".join(
        f"{100 * end:+.1f}" for end in (each.held_out_above_low, each.held_out_above_high)
    )
    interval = "" if math.isnan(each.held_out_above_low) else f" [{ends}]"
    return f"{100 * each.held_out_above:+.1f}{interval}", f"{100 * each.held_out_above_spread:.1f}"


def shown(layer: int | None, head: int | None) -> str:
    """A head as printed, layer first, both from 0."""
    return "-" if layer is None else f"{layer}-{head}"


@dataclass(frozen=True, kw_only=True)
class ChosenHead:
    """The best head of one kind of question: on all documents, and held out.

    Shares lie between 0 and 1; NaN, or None, where there is nothing to tell.

    Args:
        count: how many questions.
        layer: of the head that is best on all documents, measured on them too, as published numbers
            are.
        head: its number.
        accuracy: share of questions that it answers right.
        low: lower end of the interval over documents; texts where these are not known.
        high: its upper end.
        held_out_layer: of the head that is best on one half of the documents, most often over all
            splits.
        held_out_head: its number.
        held_out_count: how many questions are measured in each split: all, each by the head of the
            other half.
        held_out_accuracy: share of these that what was chosen on the other half answers right, mean
            over splits.
        held_out_low: lower end of its interval over documents, which allows for the choice.
        held_out_high: upper end.
        held_out_spread: standard deviation of the share over splits.
        held_out_chosen: how often that head was chosen, of two choices a split.
        held_out_above: how far the chosen heads are above the rule that takes no head, mean over
            splits.
        held_out_above_low: lower end of the interval of that difference over documents.
        held_out_above_high: upper end.
        held_out_above_spread: standard deviation of the difference over splits.
        p: of the chosen heads not being above the rule, see `headscope.evidence.choice.chosen`.
        p_corrected: the same, corrected for everything that was asked.
    """

    count: int
    layer: int
    head: int
    accuracy: float
    low: float
    high: float
    held_out_layer: int | None
    held_out_head: int | None
    held_out_count: int
    held_out_accuracy: float
    held_out_low: float
    held_out_high: float
    held_out_spread: float
    held_out_chosen: float
    held_out_above: float
    held_out_above_low: float
    held_out_above_high: float
    held_out_above_spread: float
    p: float
    p_corrected: float

    @property
    def place(self) -> str:
        """The head as printed, layer first, both from 0."""
        return shown(self.layer, self.head)

    @property
    def held_out_place(self) -> str:
        """The head that was chosen on the other half, as printed."""
        return shown(self.held_out_layer, self.held_out_head)


def fields_of(kind: type[ChosenHead], first: Sequence[str]) -> tuple[str, ...]:
    """Names of the columns of a kind of head: those that say what was asked first."""
    # Fields of a class that inherits come after those that it inherits, which tell less.
    names = [field.name for field in fields(kind)]
    return (*first, *(name for name in names if name not in first))


def places_of(cells: Sequence[tuple[int, int]], best: int, held: int | None) -> dict[str, Any]:
    """Layer and head by their names in results, of two numbers in ``cells``; None where none was
    chosen.
    """
    layer, head = cells[best]
    held_layer, held_head = (None, None) if held is None else cells[held]
    return {"layer": layer, "head": head, "held_out_layer": held_layer, "held_out_head": held_head}


def columns_of(
    fields: Sequence[str], listed: Sequence[Any], twins: Sequence[Any] | None
) -> dict[str, list[Any]]:
    """Heads as a table, one list for each column.

    Args:
        fields: names of the columns.
        listed: a line each.
        twins: the same of a model with random weights, for ``random_accuracy`` and
            ``random_held_out_accuracy``.
    """
    columns = {name: [getattr(each, name) for each in listed] for name in fields}
    if twins is not None:
        for name in ("accuracy", "held_out_accuracy"):
            columns[f"random_{name}"] = [getattr(each, name) for each in twins]
    return columns
