"""What studies share that ask every head about annotated texts: the answers of heads and of rules
as sums by document, the best head of each question, and their file.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, TypedDict, TypeVar

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError, check_count, check_option_names
from headscope.evidence import p_text
from headscope.evidence.chance import check_correction
from headscope.evidence.choice import FEWEST, SPLITS, Choices, chosen
from headscope.evidence.groups import group_of
from headscope.record import Record
from headscope.results import TextTable
from headscope.storage import Finite, Seed, array_of
from headscope.studies.shared._fold import FoldResult, Item

ASKED = "asked/"
"""Prefix of the name of how often something was asked."""
MOST_SPLITS = 10_000
"""Of a file; a damaged number would keep a reader waiting for hours."""


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


DEFAULTS: EvidenceOptions = {"confidence": 0.95, "correction": "holm", "seed": 0, "splits": SPLITS}


Chosen = TypeVar("Chosen", bound="ChosenHead")


# Generic first: results that enter their kind would else keep it from knowing its parameter.
class HeadAnswers(Generic[Chosen], FoldResult):
    """The answers of every head on texts of a kind; those of other texts of the same model add up.

    Args:
        how: options that what is counted of a text depends on.
        options: see `EvidenceOptions`.

    Raises:
        RecordError: where an option is not what it may be.
    """

    JUDGING: ClassVar[dict[str, Any]] = {
        "confidence": Finite,
        "correction": str,
        "seed": Seed,
        "splits": int,
    }
    HEAD: ClassVar[type[ChosenHead]]
    """The best head of a question."""
    FIRST: ClassVar[tuple[str, ...]]
    """Its first columns: what was asked, and in which way, as `best` takes them."""
    BEST: ClassVar[str]
    """The printed table of the heads that are best on all documents: titles and attributes. Those
    that are also held out make the table of the heads that were chosen on half of the documents.
    """
    SAYS: ClassVar[dict[str, str]]
    """The legend of both."""
    NOTE: ClassVar[str]
    """What is chosen, and how p is corrected, as it stands below."""
    CHOICES: ClassVar[int] = 1
    """Choices for each head, such as its directions."""
    RULE_COUNT: ClassVar[int]
    """How many rules without a head there are."""
    RULE_KIND: ClassVar[str] = "i"
    """Whether they answer right or wrong, ``"i"``, or also by chance, ``"f"``."""
    BASELINES: ClassVar[slice] = slice(None)
    """Which of these are the baseline."""

    def __init__(self, how: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        check_option_names(type(self).__name__, options, DEFAULTS)
        judging: dict[str, Any] = {**DEFAULTS, **options}
        check_count("splits", judging["splits"])
        check_correction(judging["correction"])
        check_count("seed", judging["seed"], 0)
        super().__init__(how, judging)

    def update(self, item: Any, record: Record, /, *, group: Any = None) -> None:
        """Count one text; it goes to ``left_out`` where its words and the tokens cannot be aligned.

        Args:
            item: the text, with its annotation.
            record: of it.
            group: the document that it is of, where it does not say so itself.

        Raises:
            RecordError: where it was counted before, the record is of another text, or of another
                model.
        """
        self.check_text(item, record)
        document = item.document or group_of(group)
        self._add_text(Item(item.name, document, item), record, or_leave_out=True)

    def check_text(self, item: Any, record: Record, /) -> None:
        """Raise where a record is of another text.

        Raises:
            RecordError: naming the text.
        """
        raise NotImplementedError

    @property
    def names(self) -> tuple[str, ...]:
        """A key of the name of each text that was counted."""
        return self.sums.texts

    @property
    def cells(self) -> tuple[tuple[int, int], ...]:
        """Layer and head of every head."""
        return tuple((layer, head) for layer, head in self.sums.facts.get("heads", ()))

    @property
    def correction(self) -> Literal["holm", "benjamini-hochberg"]:
        """For trying many things."""
        return self.judging["correction"]

    @property
    def splits(self) -> int:
        """How many splits held-out numbers are means of."""
        return self.judging["splits"]

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

    def shares(self, how: str, what: str, of: str = "hits") -> Float[np.ndarray, " choice"]:
        """Share that every head, or head and direction, answers right; or every rule.

        Raises:
            RecordError: where that was not asked.
        """
        self._check_way(how)
        asked = self.asked(what)
        return self.sums.total(f"{of}/{how}/{what}") / asked

    def _check_way(self, how: str) -> None:
        if how not in self.ways:
            raise RecordError(f"{self.FIRST[1]} is {how!r}; it may be {', '.join(self.ways)}")

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
        return chosen(questions, **self.judging)

    @cached_property
    def _chosen(self) -> dict[str, tuple[Any, ...]]:
        """The best heads, by how they were asked; worked out when they are wanted."""
        return {}

    def heads_of(self, how: str | None = None) -> tuple[Chosen, ...]:
        """The best head for everything that was asked, on the same data and held out, with
        interval, baseline and test.

        Args:
            how: heads were asked, one of `ways`; by default the first.

        Raises:
            RecordError: where there is no such way, or nothing was counted.
        """
        how = self.ways[0] if how is None else how
        self._check_way(how)
        if not self.counts:
            raise RecordError(f"No {self.FOLD.what} was counted")
        if how not in self._chosen:
            asked = self.ordered(self.counts)
            numbers = zip(asked, self._measured(how, asked), strict=True)
            self._chosen[how] = tuple(self._head(what, how, each) for what, each in numbers)
        return self._chosen[how]

    def _head(self, what: str, how: str, numbers: dict[str, Any]) -> Any:
        fields: dict[str, Any] = dict(zip(self.FIRST, (what, how), strict=False))
        fields |= self._named(what, numbers)
        for begin, number in (("", "best"), ("held_out_", "held_best")):
            # Choices are numbered by direction first, then by head.
            place = numbers[number]
            cell = (None, None) if place is None else self.cells[place % len(self.cells)]
            fields |= {f"{begin}layer": cell[0], f"{begin}head": cell[1]}
        names = [field.name for field in dataclasses.fields(self.HEAD)]
        fields |= {name: numbers[name] for name in names if name not in fields}
        return self.HEAD(**fields)

    def _named(self, what: str, numbers: dict[str, Any], /) -> dict[str, Any]:
        """Fields of the study's own of the head that was chosen for a question."""
        raise NotImplementedError

    def best(self, what: str = "all", how: str | None = None) -> Chosen:
        """The best head for one question, such as one relation, or one kind of mention.

        Args:
            what: was asked.
            how: see `heads_of`.

        Raises:
            RecordError: where that was not asked, or there is no such way.
        """
        self.asked(what)
        return next(each for each in self.heads_of(how) if getattr(each, self.FIRST[0]) == what)

    def columns(self) -> dict[str, list[Any]]:
        """The best head for everything that was asked, in every way, as a table, one list for each
        column.

        If a model with random weights was measured too, ``random_accuracy`` and
        ``random_held_out_accuracy`` are its own.
        """
        listed = [each for way in self.ways for each in self.heads_of(way)]
        names = [field.name for field in dataclasses.fields(self.HEAD)]
        # Fields of a class that inherits come after those that it inherits, which tell less.
        names = dict.fromkeys([*self.FIRST, *names])
        columns = {name: [getattr(each, name) for each in listed] for name in names}
        if self.control is not None:
            twins = [*map(self._twin, listed)]
            columns["random_accuracy"] = [each.accuracy for each in twins]
            columns["random_held_out_accuracy"] = [each.held_out_accuracy for each in twins]
        return columns

    def _twin(self, each: Any) -> Any:
        """The best head of random weights for the same question."""
        what, way, *_ = self.FIRST
        return self.control.best(getattr(each, what), getattr(each, way))

    def _tables(self, listed: Sequence[Any], best: str, held: str) -> list[TextTable]:
        """The heads that are best on all documents, and those that were chosen on half of them.

        Args:
            listed: a line each.
            best: title of the first.
            held: title of the second.
        """
        columns = _parsed_columns(self.BEST)
        first, *rest = columns
        # How many questions are measured is the same in both.
        chosen = [name for name in rest if name != "count" and _is_held(self.HEAD, name)]
        titles = {f"held_out_{name}": columns[name] for name in chosen} | ABOVE
        tables = [self._table(best, columns, listed, {})]
        return [*tables, self._table(held, {first: columns[first], **titles}, listed, HELD)]

    def _table(
        self, title: str, columns: dict[str, str], listed: Sequence[Any], legend: dict[str, str]
    ) -> TextTable:
        level, says = f" [{self.confidence:.0%}]", SAYS | self.SAYS | legend
        rows = [[cell_of(each, name) for name in columns] for each in listed]
        titles = [*columns.values()]
        if legend and self.control is not None:
            titles.append("random weights")
            for row, each in zip(rows, listed, strict=True):
                row.append(percent(self._twin(each).held_out_accuracy))
        named = {name: f"{name}{level * (name in WITH_INTERVAL)}" for name in titles}
        says = {shown: says[name] for name, shown in named.items() if name in says}
        return TextTable.of_rows([[*named.values()], *rows], title=title, says=says)

    def _blocks(self) -> list[TextTable | str]:
        lines = left_out_lines(self.left_out, f"{self.FOLD.what}s are")
        if not self.counts:
            return ["\n".join(lines)]
        chosen, over = self.NOTE.split(" | ")
        note = (
            f"Held out: {chosen} on one half of the documents and measured on the other, both "
            f"ways; mean over {self.splits} splits. Intervals and p allow for the choice"
            f"{over.format(correction=self.correction)}."
        )
        tables, notes = self._shown()
        return [*tables, "\n".join([*notes, note, *lines])]

    def _shown(self) -> tuple[list[TextTable], list[str]]:
        """The tables, and notes of the study's own."""
        raise NotImplementedError

    def _check_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        if self.splits > MOST_SPLITS:
            raise ValueError(f"splits is {self.splits}")
        rows, heads = len(self.sums.rows), self.CHOICES * len(self.cells)
        for what in self.counts:
            array_of(arrays, f"counts.{ASKED}{what}", "i", (rows,))
            for how in self.ways:
                array_of(arrays, f"counts.hits/{how}/{what}", "i", (rows, heads))
                rules = f"counts.rules/{how}/{what}"
                array_of(arrays, rules, self.RULE_KIND, (rows, self.RULE_COUNT))


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


SAYS = {
    "head": "layer-head, both from 0",
    "splits": "standard deviation of these over splits",
    "random weights": "accuracy of the best head of the same architecture with random weights",
}
"""What the legends of all studies say."""
HELD = {"head": "the one chosen most often"}
WITH_INTERVAL = ("accuracy", "above")
ABOVE = {"held_out_above": "above", "held_out_above_spread": "splits", "p_corrected": "p"}
"""How far what was chosen is above its rule, as every study prints it."""


def _parsed_columns(spec: str) -> dict[str, str]:
    """Titles of columns by attribute."""
    parts = [part.partition("=") for part in spec.split()]
    return {name or title: title.replace("_", " ") for title, _, name in parts}


def _is_held(kind: type[ChosenHead], name: str) -> bool:
    """Whether an attribute is also one of what was chosen on half of the documents."""
    return f"held_out_{name}" in [*kind.__dataclass_fields__, "held_out_place"]


def cell_of(each: ChosenHead, name: str) -> str:
    """A number of a head as printed; a dash where there is none."""
    value = getattr(each, name)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if name == "p_corrected":
        return p_text(value)
    if name.endswith("offset"):
        return f"{value:+d}"
    if name.endswith("accuracy"):
        of = name.removesuffix("accuracy")
        return percent(value, (getattr(each, f"{of}low"), getattr(each, f"{of}high")))
    if name == "held_out_above":
        low, high = each.held_out_above_low, each.held_out_above_high
        ends = "" if math.isnan(low) else f" [{100 * low:+.1f}, {100 * high:+.1f}]"
        return f"{100 * value:+.1f}{ends}"
    return percent(value) if isinstance(value, float) else str(value)


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
