"""Which head looks from a mention at what it means: what was counted, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Unpack

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.linguistics import Passage, words_at
from headscope.linguistics.mentions import RULES
from headscope.record import Record
from headscope.results import Kept, TextTable
from headscope.studies.coreference._head import FIELDS, AntecedentHead
from headscope.studies.coreference._table import blocks_of, summary_of
from headscope.studies.coreference._tally import ALL, CANDIDATES, PassageHits, answers_of
from headscope.studies.shared._answer_sums import PartAnswers
from headscope.studies.shared._chosen_head import places_of
from headscope.studies.shared._head_study import EvidenceOptions, HeadStudy
from headscope.studies.shared._held_out import DocumentHits


class Coreference(HeadStudy):
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
    TEXT: ClassVar[str] = "passage"
    SOURCE: ClassVar[str] = "data"
    ASKED_BY: ClassVar[tuple[str, str]] = ("kind", "candidates")

    control: Coreference | None
    _read: dict[str, PassageHits]

    def __init__(
        self,
        *,
        rows: str = "mean",
        stack: str | None = None,
        **options: Unpack[EvidenceOptions],
    ) -> None:
        super().__init__(rows=rows, stack=stack, **options)
        self.data = ""

    def update(self, passage: Passage, record: Record) -> None:
        """Count one passage; it goes to ``left_out`` where its words and the tokens cannot be
        aligned.

        Args:
            passage: its words and questions.
            record: of its text.

        Raises:
            RecordError: where it was counted before, the record is of another text, or has other
                layers and heads.
        """
        stack = self._stack_of(passage.name, record)
        if stack.query.texts[:1] != (passage.text,):
            raise RecordError(f"The record is of another text than the passage {passage.name!r}")
        try:
            words = words_at(stack.query, passage.spans)
            words.check()
        except RecordError as error:
            self.left_out[passage.name] = str(error)
            return
        self._keep(passage.name, answers_of(passage, self._word_maps(stack, words)), record, stack)

    @property
    def passages(self) -> int:
        """Number of passages counted."""
        return len(self._read) if self.summed is None else self.summed.texts

    @property
    def questions(self) -> int:
        """Number of mentions asked for."""
        return len(self._documents) if self.summed is None else self.summed.counts["questions"]

    @property
    def kinds(self) -> tuple[str, ...]:
        """What can be asked for: all questions, kinds of mentions, groups of passages."""
        if self.summed is not None:
            return self.summed.asked(CANDIDATES[0])
        names: dict[str, int] = {}
        for each in self._listed:
            names |= dict.fromkeys((kind for kinds in each.kinds for kind in kinds), 0)
        return self.ordered(names)

    def ordered(self, counts: Mapping[str, int], /) -> tuple[str, ...]:
        """Kinds of questions in the order of a table."""
        order = [name for name in (ALL, "pronoun", "proper", "nominal") if name in counts]
        return (*order, *sorted(set(counts) - set(order)))

    def accuracy(self, kind: str = ALL, candidates: str = "mentions") -> Float[np.ndarray, " head"]:
        """Share of questions that each head answers right; heads as in ``cells``.

        Raises:
            RecordError: where there is no such kind of mention or candidates.
        """
        index = _index(candidates)
        if self.summed is not None:
            return self._share_of_sums(candidates, kind)
        return self._hits[index][:, self._asked(kind)].mean(axis=-1)

    def rule(self, name: str, kind: str = ALL) -> float:
        """Share of questions that a rule answers right: ``"nearest"``, ``"head match"`` or
        ``"sieves"``.

        Raises:
            RecordError: where there is no such rule or kind.
        """
        if name not in RULES:
            raise RecordError(f"There is no rule {name!r}; there are {', '.join(RULES)}")
        if self.summed is not None:
            self._asked(kind)
            right = self.summed.others[kind][list(RULES).index(name)]
            return float(right / self.summed.wholes[CANDIDATES[0], kind])
        return float(self._rules[list(RULES).index(name), self._asked(kind)].mean())

    def heads_of(self, candidates: str = "mentions") -> tuple[AntecedentHead, ...]:
        """The best head for every kind of mention, on the same data and held out, with interval,
        baselines and test.

        Raises:
            RecordError: where there are no such candidates, or nothing was counted.
        """
        _index(candidates)
        return self._best_heads(candidates)

    def best(self, kind: str = ALL, candidates: str = "mentions") -> AntecedentHead:
        """The best head for one kind of mention.

        Raises:
            RecordError: where there is no such kind of mention or candidates.
        """
        self._asked(kind)
        return next(each for each in self.heads_of(candidates) if each.kind == kind)

    def columns(self) -> dict[str, list[Any]]:
        """The best head for every kind and both candidate sets as a table, one list for each
        column.

        If a model with random weights was measured too, ``random_accuracy`` and
        ``random_held_out_accuracy`` are its own.
        """
        listed = [each for candidates in CANDIDATES for each in self.heads_of(candidates)]
        return self._table(FIELDS, listed)

    def _kept(self) -> Kept:
        from headscope.studies.coreference._file import kept_of

        return kept_of(self)

    def __repr__(self) -> str:
        return f"<Coreference of {self.passages} passages>"

    @property
    def summary(self) -> str:
        """How often the best head, and how often the nearest mention, is what a mention means."""
        return summary_of(self)

    def _blocks(self) -> list[TextTable | str]:
        return blocks_of(self)

    def _heads_of(self, candidates: str, /) -> tuple[AntecedentHead, ...]:
        if self.summed is None:
            numbers = self._measured([self._kind_hits(candidates, kind) for kind in self.kinds])
        else:
            numbers = [dict(self.summed.numbers[candidates, kind]) for kind in self.kinds]
        return tuple(
            self._head(kind, candidates, each)
            for kind, each in zip(self.kinds, numbers, strict=True)
        )

    def _head(self, kind: str, candidates: str, numbers: dict[str, Any]) -> AntecedentHead:
        best, held = numbers.pop("best"), numbers.pop("held_best")
        for name in ("rule", "held_rule", "rule_share"):
            # There is one rule alone, the nearest mention, so that its number says nothing.
            numbers.pop(name)
        return AntecedentHead(
            kind=kind,
            candidates=candidates,
            nearest=self.rule("nearest", kind),
            head_match=self.rule("head match", kind),
            sieves=self.rule("sieves", kind),
            held_out_nearest=numbers.pop("held_out_rule"),
            **places_of(self.cells, best, held),
            **numbers,
        )

    def answers(self) -> PartAnswers:
        """What was counted, as a part of many."""
        asked, others = {}, {}
        for kind in self.kinds:
            others[kind] = self._rules[:, self._asked(kind)].sum(axis=1)
            for candidates in CANDIDATES:
                asked[candidates, kind] = self._kind_hits(candidates, kind)
        # As the documents of hits are numbered, see `_documents`.
        documents = sorted({each.document for each in self._listed if each.kinds})
        return PartAnswers(
            texts=self.passages,
            documents=tuple(documents),
            lengths=tuple(self._lengths.values()),
            asked=asked,
            others=others,
            counts={"questions": self.questions},
        )

    def _kind_hits(self, candidates: str, kind: str) -> DocumentHits:
        return self._asked_of(self._hits[_index(candidates)], self._rules[:1], self._asked(kind))

    def _asked_of(self, hits: np.ndarray, nearest: np.ndarray, asked: np.ndarray) -> DocumentHits:
        every = np.ones((1, len(self._documents)), bool)
        wholes, heads, rules = (self._by_document(each, asked) for each in (every, hits, nearest))
        return DocumentHits(wholes=wholes[0], hits=heads, baselines=rules)

    def _by_document(self, hits: np.ndarray, asked: np.ndarray) -> np.ndarray:
        counts = np.zeros((len(hits), self.documents))
        # Not +=, which would count one question of each document.
        np.add.at(counts.T, self._documents[asked], hits[:, asked].T)
        return counts

    @property
    def documents(self) -> int:
        """Number of documents that questions are of."""
        if self.summed is not None:
            return self.summed.documents
        return int(self._documents.max()) + 1 if len(self._documents) else 0

    @cached_property
    def _listed(self) -> list[PassageHits]:
        if not self._read:
            raise RecordError("No passage was counted")
        return [self._read[name] for name in self.names]

    @cached_property
    def _documents(self) -> np.ndarray:
        """The document of every question."""
        names = [each.document for each in self._listed for _ in each.kinds]
        return np.unique(names, return_inverse=True)[1] if names else np.empty(0, int)

    @cached_property
    def _hits(self) -> Bool[np.ndarray, "candidates head question"]:
        return np.concatenate([each.heads for each in self._listed], axis=-1)

    @cached_property
    def _rules(self) -> Bool[np.ndarray, "rule question"]:
        return np.concatenate([each.rules for each in self._listed], axis=-1)

    def _asked(self, kind: str) -> np.ndarray:
        if self.summed is not None:
            self._share_of_sums(CANDIDATES[0], kind)
            return np.empty(0, int)
        kinds = [names for each in self._listed for names in each.kinds]
        columns = np.array([index for index, names in enumerate(kinds) if kind in names], int)
        if not len(columns):
            raise RecordError(
                f"There is no question of the kind {kind!r}; there are {', '.join(self.kinds)}"
            )
        return columns


def _index(candidates: str) -> int:
    if candidates not in CANDIDATES:
        raise RecordError(
            f"candidates is {candidates!r}; it may be {' or '.join(map(repr, CANDIDATES))}"
        )
    return CANDIDATES.index(candidates)
