"""Which head looks from a mention at what it means, compared with rules that look at nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
from jaxtyping import Bool, Float

from headscope.corpus import Counts
from headscope.errors import RecordError
from headscope.evidence import p_text
from headscope.linguistics import Mention, Passage, Question, read_coreference, source_name
from headscope.linguistics.mentions import RULES, mention_answers, rule_hits
from headscope.record import Record
from headscope.results import TextTable
from headscope.studies.shared._fold import Fold, Item, maps_of_words, stack_of, taken
from headscope.studies.shared._folded import folded
from headscope.studies.shared._head_answers import (
    DEFAULTS,
    ChosenHead,
    EvidenceOptions,
    HeadAnswers,
    percent,
)

CANDIDATES = ("mentions", "words")
"""What a mention chooses among: the heads of its candidates, or all other words of the passage."""
ALL = "all"


def counts_of(
    passage: Passage, record: Record, *, rows: str = "mean", stack: str | None = None
) -> Counts:
    """What every head, and every rule, answers right in one passage, by kind of question.

    Args:
        passage: its words and questions.
        record: of its text.
        rows: how rows of a word's tokens become one; see `headscope.linguistics.word_attention`.
        stack: which stack of the record; by default the first.

    Raises:
        RecordError: where its words and the tokens cannot be aligned.
    """
    maps = maps_of_words(stack_of(record, stack), passage.spans, rows=rows)
    rules = rule_hits(passage)
    groups = (passage.group,) if passage.group else ()
    counts: dict[str, np.ndarray] = {}
    for number, question in enumerate(passage.questions or ()):
        hits = _head_hits(question, maps[:, question.mention.head].copy())
        for kind in (ALL, question.mention.kind, *groups):
            asked = {f"asked/{kind}": np.int64(1)}
            for candidates in CANDIDATES:
                asked[f"hits/{candidates}/{kind}"] = hits[candidates]
                asked[f"rules/{candidates}/{kind}"] = rules[:, number]
            for name, right in asked.items():
                counts[name] = counts.get(name, 0) + np.asarray(right, np.int64)
    return counts


def _head_hits(
    question: Question, row: Float[np.ndarray, "head word"]
) -> dict[str, Bool[np.ndarray, " head"]]:
    """Which heads answer a question right; the row of its mention is changed."""
    hits = {"mentions": np.array(question.right)[mention_answers(row, question)]}
    # The mention's own word is taken out of the choice among all words.
    row[:, question.mention.head] = -1
    pairs = zip(question.candidates, question.right, strict=True)
    heads = [each.head for each, is_right in pairs if is_right]
    return hits | {"words": np.isin(row.argmax(axis=1), heads)}


@dataclass(frozen=True, kw_only=True)
class AntecedentHead(ChosenHead):
    """The head that answers most questions of one kind right; see `ChosenHead` for its numbers. The
    question is what a mention means; the rule without a head takes the nearest mention.

    Args:
        kind: of the mentions that ask: all, pronoun, proper, nominal, or a group of passages.
        candidates: one of `CANDIDATES`.
        nearest: share that taking the nearest mention answers right.
        head_match: the nearest with the same head word, where there is one.
        sieves: see `headscope.linguistics.sieves`.
        held_out_nearest: share that the nearest mention answers right.
    """

    kind: str
    candidates: str
    nearest: float
    head_match: float
    sieves: float
    held_out_nearest: float


class Coreference(HeadAnswers[AntecedentHead]):
    """Which questions every head answers right; prints itself, is added to others of the same
    model, and kept.

    Args:
        rows: how rows of a word's tokens become one; see `headscope.linguistics.word_attention`.
        stack: which stack of the records; by default the first.
        **options: ``confidence`` of the intervals (0.95); ``correction`` for trying many things,
            ``"holm"`` or ``"benjamini-hochberg"``; ``seed`` (0) and number (10) of the ``splits``
            of documents into halves.

    Raises:
        RecordError: where confidence, correction or splits are not what they may be.

    Example:
        >>> Coreference()
        <Coreference of 0 passages>
    """

    KIND: ClassVar[str] = "coreference"
    HOW: ClassVar[dict[str, Any]] = {"rows": str, "stack": (str, None)}
    HEAD: ClassVar[type[ChosenHead]] = AntecedentHead
    FIRST: ClassVar[tuple[str, ...]] = ("kind", "candidates")
    BEST: ClassVar[str] = "mention=kind count head=place accuracy nearest head_match sieves"
    SAYS: ClassVar[dict[str, str]] = {
        "count": "how many were asked for",
        "accuracy": "% of mentions whose head word looks most at the right one",
        "nearest": "% for which the nearest mention is right",
        "head match": "% for which the nearest mention with the same head word is",
        "sieves": "% for which rules are, one after the other",
        "above": "points of head less nearest mention",
        "p": "of being no better than the nearest mention, corrected",
    }
    NOTE: ClassVar[str] = "the head is chosen | . p: {correction} over kinds"
    RULE_COUNT: ClassVar[int] = len(RULES)
    BASELINES: ClassVar[slice] = slice(1)  # the nearest mention

    control: Coreference | None

    def __init__(
        self, *, rows: str = "mean", stack: str | None = None, **options: Unpack[EvidenceOptions]
    ) -> None:
        super().__init__({"rows": rows, "stack": stack}, options)

    def check_text(self, passage: Passage, record: Record) -> None:
        """Raise where a record is of another text than a passage.

        Raises:
            RecordError: naming the passage.
        """
        if stack_of(record, self.how["stack"]).query.texts[:1] != (passage.text,):
            raise RecordError(f"The record is of another text than the passage {passage.name!r}")

    @property
    def passages(self) -> int:
        """Number of passages counted."""
        return len(self.sums)

    @property
    def questions(self) -> int:
        """Number of mentions asked for."""
        return self.counts.get(ALL, 0)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What can be asked for: all questions, kinds of mentions, groups of passages."""
        return self.ordered(self.counts)

    @property
    def ways(self) -> tuple[str, ...]:
        """What a mention chooses among."""
        return CANDIDATES

    def ordered(self, counts: Mapping[str, int], /) -> tuple[str, ...]:
        """Kinds of questions in the order of a table."""
        order = [name for name in (ALL, "pronoun", "proper", "nominal") if name in counts]
        return (*order, *sorted(set(counts) - set(order)))

    def accuracy(self, kind: str = ALL, candidates: str = "mentions") -> Float[np.ndarray, " head"]:
        """Share of questions that each head answers right; heads as in ``cells``.

        Raises:
            RecordError: where there is no such kind of mention or candidates.
        """
        return self.shares(candidates, kind)

    def rule(self, name: str, kind: str = ALL) -> float:
        """Share of questions that a rule answers right: ``"nearest"``, ``"head match"`` or
        ``"sieves"``.

        Raises:
            RecordError: where there is no such rule or kind.
        """
        if name not in RULES:
            raise RecordError(f"There is no rule {name!r}; there are {', '.join(RULES)}")
        return float(self.shares(CANDIDATES[0], kind, "rules")[list(RULES).index(name)])

    def __repr__(self) -> str:
        return f"<Coreference of {self.passages} passages>"

    @property
    def summary(self) -> str:
        """How often the best head, and how often the nearest mention, is what a mention means."""
        if not self.questions:
            return repr(self)
        best, passages = self.best(), f"{self.passages} passages ({self.length_text})"
        first = (
            f"{self.model or 'a model'}, {self.source or 'texts'}: {len(self.cells)} heads, "
            f"{passages}, {self.questions} questions"
        )
        if self.too_few:
            return f"{first}. {self.too_few}"
        share, nearest = percent(best.held_out_accuracy), percent(best.held_out_nearest)
        return (
            f"{first}. On documents it was not chosen on, the best head looks most at what a "
            f"mention means for {share} % of mentions; the nearest mention is right for {nearest} "
            f"% (p {p_text(best.p_corrected)})"
        )

    def _shown(self) -> tuple[list[TextTable], list[str]]:
        tables = []
        for way in CANDIDATES:
            among = "all other words" if way == "words" else "the heads of the candidate mentions"
            titles = f"among {among}:", f"among {among}, held out:"
            tables += self._tables(self.heads_of(way), *titles)
        return tables, []

    def _named(self, kind: str, numbers: dict[str, Any]) -> dict[str, Any]:
        rules = {name.replace(" ", "_"): self.rule(name, kind) for name in RULES}
        return rules | {"held_out_nearest": numbers["held_out_rule"]}


def _passage_of(given: Mapping[str, Any]) -> Passage:
    """The passage that a mapping says."""
    fields: dict[str, Any] = dict(given) | {"spans": tuple(map(tuple, given["spans"]))}
    fields["mentions"] = _mentions(given["mentions"])
    if given["questions"] is not None:
        questions = []
        for each in given["questions"]:
            own = {"mention": Mention(**each["mention"]), "right": tuple(each["right"])}
            own["candidates"] = _mentions(each["candidates"])
            questions.append(Question(**(each | own)))
        fields["questions"] = tuple(questions)
    return Passage(**fields)


def _mentions(given: Sequence[Mapping[str, Any]]) -> tuple[Mention, ...]:
    return tuple(Mention(**each) for each in given)


def _text_of(passage: Passage, _: Mapping[str, Any]) -> str:
    return passage.text


FOLD = Coreference.FOLD = Fold(
    name="coref",
    what="passage",
    counts_of=counts_of,
    result_of=Coreference.of_sums,
    given_of=asdict,
    item_of=_passage_of,
    input_of=_text_of,
)


def coref(
    model: Any,
    tokenizer: Any = None,
    passages: Iterable[Passage] | str | os.PathLike[str] | None = None,
    *,
    rows: Literal["mean", "first", "max"] = "mean",
    random_weights: bool = False,
    reading: dict[str, Any] | None = None,
    **options: Any,
) -> Coreference:
    """Which head looks from a mention at what it means, compared with the nearest mention and
    simple rules.

    Of every head the share of mentions whose head word (the last) looks most at the head word of an
    antecedent: among the head words of the candidates, those that end before it, and among all
    other words of the passage. Of candidates that share a head word the one that starts later is
    taken, as by the rules. A passage that cannot be read, or whose words and tokens cannot be
    aligned, is left out, counted and named.

    Source: Clark et al. 2019, section 4.2, which does not say among which tokens the largest is
    sought; there the best head is chosen and measured on the same texts.

    Args:
        model: loaded, its name or folder, or None for the demo model.
        tokenizer: of the model; may be left out where that is named.
        passages: a file or folder that `headscope.linguistics.read_coreference` reads, or passages.
        rows: how rows of a word's tokens become one: ``"mean"``, ``"first"`` or ``"max"``.
        random_weights: whether the same architecture with random weights reads them, too:
            ``control`` of the result.
        reading: options of `headscope.linguistics.read_coreference` for a file.
        **options: ``groups``, the document of each passage where it is another than its own;
            ``stack``, ``confidence``, ``correction``, ``seed`` and ``splits`` of `Coreference`;
            ``truncate``, ``batch_tokens`` and ``progress`` of `headscope.capture_many`; ``out``,
            ``workers``, ``executor`` and ``part_size`` of `headscope.corpus.RunOptions`, for a run
            in parts, see docs page "Over many texts".

    Raises:
        FileError: where the file cannot be read, with the line and the reason.
        RecordError: where no passage is left, or an option is not what it may be.
        ModelError: where a named model cannot be loaded.
        RunError: of a run, see `headscope.corpus.run`.

    Example:
        >>> coref("bert-base-uncased", passages="litbank/coref/tsv").best("pronoun").place
        '4-3'
    """
    source, listed = _parsed(passages, reading or {})
    stack, judging = options.pop("stack", None), taken(options, DEFAULTS)
    items = [Item(each.name, each.document, each) for each in listed]
    asked, options = Coreference(rows=rows, stack=stack, **judging), options | {"source": source}
    return folded(asked, (model, tokenizer), items, options, random_weights=random_weights)


def _parsed(passages: Any, reading: dict[str, Any]) -> tuple[str, tuple[Passage, ...]]:
    """What the passages are called together, and the passages."""
    if isinstance(passages, str | os.PathLike):
        data, listed = source_name(passages, **reading), read_coreference(passages, **reading)
    else:
        data, listed = "passages", tuple(passages if isinstance(passages, Iterable) else ())
    if not listed or not all(isinstance(each, Passage) for each in listed):
        raise RecordError(
            f"Passages were given as {type(passages).__name__}; expected a file, a folder, or a "
            "list of Passage"
        )
    return data, listed
