"""Which heads look along dependency relations: what was counted, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Unpack

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError, TextError
from headscope.linguistics import DIRECTIONS, NEAREST_STANFORD, OFFSETS, Sentence, words_at
from headscope.patterns import Heads
from headscope.record import Record
from headscope.results import Kept, TextTable
from headscope.studies.dependencies._head import FIELDS, RelationHead
from headscope.studies.dependencies._table import GROUPS, blocks_of, summary_of
from headscope.studies.dependencies._tally import (
    SCORES,
    AllSentences,
    SentenceHeads,
    asked_of,
    corpus_of,
    read_heads,
)
from headscope.studies.shared._answer_sums import PartAnswers
from headscope.studies.shared._chosen_head import places_of
from headscope.studies.shared._head_answers import EvidenceOptions
from headscope.studies.shared._head_study import HeadStudy
from headscope.studies.shared._held_out import DocumentHits

COMMON = 100
"""How many words a relation has that is a label of heads."""


class Relations(HeadStudy):
    """What every head says about the heads of words; prints itself, is added to others of the same
    model, and kept.

    Args:
        rows: how rows of a word's tokens become one; see `headscope.linguistics.word_attention`.
        trees: whether the best trees are decoded, too.
        universal: whether subtypes of relations are left off.
        stack: which stack of the records; by default the first.
        **options: ``confidence`` of the intervals (0.95); ``correction`` for trying many things,
            ``"holm"`` or ``"benjamini-hochberg"``; ``seed`` (0) and number (10) of the ``splits``
            of documents into halves.

    Raises:
        RecordError: where confidence, correction or splits are not what they may be.

    Example:
        >>> Relations()
        <Relations of 0 sentences>
    """

    KIND: ClassVar[str] = "relations"
    TEXT: ClassVar[str] = "sentence"
    SOURCE: ClassVar[str] = "treebank"
    ASKED_BY: ClassVar[tuple[str, str]] = ("relation", "score")
    READING: ClassVar[tuple[str, ...]] = ("rows", "trees", "universal", "stack")
    LEAST_WORDS: ClassVar[int] = 20
    """How many words a relation has that is printed and drawn; tables to export hold them all."""

    control: Relations | None
    _read: dict[str, SentenceHeads]

    def __init__(
        self,
        *,
        rows: str = "mean",
        trees: bool = True,
        universal: bool = False,
        stack: str | None = None,
        **options: Unpack[EvidenceOptions],
    ) -> None:
        super().__init__(rows=rows, stack=stack, **options)
        self.trees: bool = trees
        self.universal: bool = universal
        self.treebank: str = ""

    def update(self, sentence: Sentence, record: Record) -> None:
        """Count one sentence; it goes to ``left_out`` where its words and the tokens cannot be
        aligned.

        Args:
            sentence: its words and tree.
            record: of the sentence's `text`, or of the text as it was `written`.

        Raises:
            RecordError: where it was counted before, the record is of another text, or has other
                layers and heads.
        """
        stack = self._stack_of(sentence.name, record)
        _check_text(sentence, stack.query.texts)
        try:
            # Words joined by single spaces, or the text as it was written, with "don't" in one.
            is_text = stack.query.texts[0] == sentence.text
            spans = sentence.spans if is_text else sentence.written_spans()
            words = words_at(stack.query, spans)
            words.check()
        except (RecordError, TextError) as error:
            self.left_out[sentence.name] = str(error)
            return
        read = read_heads(sentence, self._word_maps(stack, words), trees=self.trees)
        self._keep(sentence.name, read, record, stack)

    @property
    def sentences(self) -> int:
        """Number of sentences counted."""
        return len(self._read) if self.summed is None else self.summed.texts

    @property
    def documents(self) -> int:
        """Number of documents that the sentences are of; one that nobody says counts as its own."""
        if self.summed is not None:
            return self.summed.documents
        return self.corpus.documents if self._read else 0

    @property
    def words(self) -> int:
        """Number of words counted."""
        if self.summed is not None:
            return self.summed.counts["words"]
        return sum(len(each.heads) for each in self._read.values())

    @property
    def relations(self) -> tuple[str, ...]:
        """All that can be asked for: groups of words, then relations, the most frequent first."""
        return tuple(self.corpus.groups) if self.summed is None else self.summed.asked("max")

    def ordered(self, counts: Mapping[str, int], /) -> tuple[str, ...]:
        """Groups of words, then relations, the most frequent first."""
        groups = [name for name in GROUPS if name in counts]
        rest = sorted(set(counts) - set(groups), key=lambda name: (-counts[name], name))
        return (*groups, *rest)

    def accuracy(self, relation: str, score: str = "max") -> Float[np.ndarray, "direction head"]:
        """Share of a relation's words whose head each head names, for both `DIRECTIONS`; heads as
        in ``cells``.

        Raises:
            RecordError: where there is no such relation or score.
        """
        self._check_score(score)
        if self.summed is not None:
            return self._share_of_sums(score, relation).reshape(len(DIRECTIONS), -1)
        return self._hits(score)[:, :, self._words(relation)].mean(axis=-1)

    def heads_of(self, score: str = "max") -> tuple[RelationHead, ...]:
        """The best head of every relation, on the same data and held out, with interval, baseline
        and test.

        Raises:
            RecordError: where there is no such score, or nothing was counted.
        """
        self._check_score(score)
        return self._best_heads(score)

    def best(self, relation: str, score: str = "max") -> RelationHead:
        """The best head of one relation.

        Raises:
            RecordError: where there is no such relation or score.
        """
        self._words(relation)
        return next(each for each in self.heads_of(score) if each.relation == relation)

    def columns(self) -> dict[str, list[Any]]:
        """The best head of every relation by every score as a table, one list for each column.

        If a model with random weights was measured too, ``random_accuracy`` and
        ``random_held_out_accuracy`` are its own.
        """
        listed = [each for score in self.scores for each in self.heads_of(score)]
        return self._table(FIELDS, listed)

    def as_heads(self, *, least: int | None = None, threshold: float = 0.3) -> Heads:
        """Relations as labels of heads, in the direction of the best head: ``hs.view(record,
        evidence=...)``.

        A label holds where the share of words, mean over the sentences that have some, reaches the
        threshold and lies above that of the best offset (and of the best head with random weights),
        corrected for all heads and relations. Means over sentences are near the accuracies of all
        words, not equal to them.

        Args:
            least: how many words a relation has; by default 100, of few sentences a twentieth of
                all words.
            threshold: least share, of 1.

        Raises:
            RecordError: where no relation has so many words, or nothing was counted.
        """
        from headscope.studies.dependencies._evidence import heads_of

        if self.summed is not None:
            raise RecordError(
                f"Labels are means over sentences, and of these {self.sentences} sums over "
                "documents alone are known; read fewer, or leave out=, workers= and executor= out"
            )
        fewest = min(COMMON, max(1, self.words // 20)) if least is None else least
        return heads_of(self, least=fewest, threshold=threshold)

    @property
    def named(self) -> tuple[str, ...]:
        """The relations alone, without groups of words and the root."""
        return tuple(name for name in self.relations if name not in (*GROUPS, "root"))

    def _kept(self) -> Kept:
        from headscope.studies.dependencies._file import kept_of

        return kept_of(self)

    def __repr__(self) -> str:
        return f"<Relations of {self.sentences} sentences>"

    @property
    def summary(self) -> str:
        """How many relations some head follows better than any fixed offset."""
        return summary_of(self)

    def _blocks(self) -> list[TextTable | str]:
        return blocks_of(self)

    def _heads_of(self, score: str, /) -> tuple[RelationHead, ...]:
        if self.summed is None:
            numbers = self._measured(list(self._asked(score).values()))
        else:
            numbers = [dict(self.summed.numbers[score, name]) for name in self.relations]
        return tuple(
            self._head(relation, score, each)
            for relation, each in zip(self.relations, numbers, strict=True)
        )

    def _asked(self, score: str) -> dict[str, DocumentHits]:
        """What heads and offsets get right in each document, by relation."""
        corpus, hits = self.corpus, (self._hits(score), self.corpus.offset_hits(score))
        return {name: asked_of(corpus, hits, words) for name, words in corpus.groups.items()}

    def answers(self) -> PartAnswers:
        """What was counted, as a part of many."""
        asked = {}
        for score in self.scores:
            asked |= {(score, name): each for name, each in self._asked(score).items()}
        # As the documents of hits are numbered, see `AllSentences.document_of_sentence`.
        documents = []
        for name in self.names:
            document = self._read[name].document
            documents.append(f"document {document}" if document else f"sentence {name}")
        return PartAnswers(
            texts=self.sentences,
            documents=tuple(dict.fromkeys(documents)),
            lengths=tuple(self._lengths.values()),
            asked=asked,
            counts={"words": self.words},
        )

    def _head(self, relation: str, score: str, numbers: dict[str, Any]) -> RelationHead:
        # Choices are numbered by direction first, then by head, see `asked_of`.
        heads = len(self.cells)
        best, held = numbers.pop("best"), numbers.pop("held_best")
        offset, held_offset = numbers.pop("rule"), numbers.pop("held_rule")
        return RelationHead(
            relation=relation,
            score=score,
            stanford=NEAREST_STANFORD.get(relation, ""),
            direction=DIRECTIONS[best // heads],
            offset=OFFSETS[offset],
            baseline=numbers.pop("rule_share"),
            held_out_direction=None if held is None else DIRECTIONS[held // heads],
            held_out_offset=None if held_offset is None else OFFSETS[held_offset],
            held_out_baseline=numbers.pop("held_out_rule"),
            **places_of(self.cells, best % heads, None if held is None else held % heads),
            **numbers,
        )

    @property
    def scores(self) -> tuple[str, ...]:
        """How heads were read, of `SCORES`."""
        return tuple(score for score in SCORES if self.trees or not score.startswith("tree"))

    @cached_property
    def corpus(self) -> AllSentences:
        """All words of all sentences in one row.

        Raises:
            RecordError: where nothing was counted.
        """
        if not self._read:
            raise RecordError("No sentence was counted")
        return corpus_of((self._read[name] for name in self.names), universal=self.universal)

    # Hits of every score of a treebank are large, and only those that are asked for are made.
    @cached_property
    def _hits_of(self) -> dict[str, np.ndarray]:
        return {}

    def _check_score(self, score: str) -> None:
        if score not in self.scores:
            raise RecordError(f"score is {score!r}; it may be {', '.join(self.scores)}")

    def _hits(self, score: str) -> np.ndarray:
        self._check_score(score)
        if score not in self._hits_of:
            self._hits_of[score] = self.corpus.hits(score)
        return self._hits_of[score]

    def _words(self, relation: str) -> np.ndarray:
        if self.summed is not None:
            self._share_of_sums("max", relation)
            return np.empty(0, int)
        if relation not in self.corpus.groups:
            raise RecordError(
                f"No word has the relation {relation!r}; there are {', '.join(self.relations)}"
            )
        return self.corpus.groups[relation]


def _check_text(sentence: Sentence, texts: tuple[str, ...]) -> None:
    if texts[:1] not in ((sentence.text,), (sentence.written,)):
        raise RecordError(
            f"The record is of {''.join(texts[:1])[:40]!r}, not of the sentence "
            f"{sentence.name!r}: capture its text, or the text as it was written"
        )
