"""What studies share that ask every head about annotated texts: options, what was read, adding
up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from inspect import signature
from typing import Any, ClassVar, TypeVar, Unpack

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.evidence import length_text
from headscope.evidence.correction import CORRECTIONS
from headscope.linguistics import Words, word_attention
from headscope.patterns.records import OneModelStudy
from headscope.record import Record, Stack
from headscope.results import Result
from headscope.studies.shared._answer_sums import PartAnswers, SummedAnswers
from headscope.studies.shared._chosen_head import columns_of
from headscope.studies.shared._head_answers import EvidenceOptions
from headscope.studies.shared._held_out import SPLITS, DocumentHits, halves_of, measured
from headscope.studies.shared._printing import cells_of

Same = TypeVar("Same", bound="HeadStudy")


class HeadStudy(OneModelStudy, Result):
    """The answers of every head on texts of a kind, by their names; parts of one model add up.

    Args:
        rows: how rows of a word's tokens become one; see `headscope.linguistics.word_attention`.
        stack: which stack of the records; by default the first.
        **options: see `EvidenceOptions`.

    Raises:
        RecordError: where confidence, correction or splits are not what they may be.
    """

    SOURCE: ClassVar[str]
    """The attribute that names what was read, such as a treebank."""
    ASKED_BY: ClassVar[tuple[str, str]]
    """The attributes of a `ChosenHead` that its question is found by, as `best` takes them."""
    TEXT: ClassVar[str]
    """What a text is called."""
    READING: ClassVar[tuple[str, ...]] = ("rows", "stack")
    """Options that what was read depends on."""
    EVIDENCE_OPTIONS: ClassVar[tuple[str, ...]] = ("confidence", "correction", "seed", "splits")
    """Those that it does not depend on."""

    def __init__(self, *, rows: str, stack: str | None, **options: Unpack[EvidenceOptions]) -> None:
        how: Mapping[str, Any] = {
            "confidence": 0.95,
            "correction": "holm",
            "seed": 0,
            "splits": SPLITS,
        } | options
        confidence, correction, splits = how["confidence"], how["correction"], how["splits"]
        unknown = [name for name in how if name not in self.EVIDENCE_OPTIONS]
        if unknown:
            own = [name for name in signature(type(self)).parameters if name != "options"]
            raise RecordError(
                f"{type(self).__name__} has no option {unknown[0]!r}; it has "
                f"{', '.join((*own, *self.EVIDENCE_OPTIONS))}; to count fewer texts, give fewer"
            )
        if isinstance(splits, bool) or not isinstance(splits, int) or splits < 1:
            raise RecordError(f"splits is {splits!r}; expected a number from 1 on")
        if not 0 < confidence < 1 or correction not in CORRECTIONS:
            raise RecordError(
                f"confidence {confidence} and correction {correction!r}: expected a number "
                f"between 0 and 1, and {' or '.join(CORRECTIONS)}"
            )
        if how["seed"] < 0:
            raise RecordError(f"Expected a whole number from 0 on for seed, got {how['seed']}")
        self.rows: str = rows
        self.stack: str | None = stack
        self.confidence: float = confidence
        self.correction: str = correction
        self.seed: int = how["seed"]
        self.splits: int = splits
        self.model: str = ""
        self.cells: tuple[tuple[int, int], ...] = ()
        self.left_out: dict[str, str] = {}
        self.control: Any = None
        self.summed: SummedAnswers | None = None
        """What is known of a run over more texts than are held; else None."""
        self._read: dict[str, Any] = {}
        self._lengths: dict[str, int] = {}

    def update(self, text: Any, record: Record, /) -> None:
        """Count one text."""
        raise NotImplementedError

    def __add__(self: Same, other: Same) -> Same:
        """The texts of both.

        Raises:
            RecordError: where they share a text, or heads or options differ.
        """
        if not isinstance(other, type(self)):
            return NotImplemented
        both = added(self, other)
        setattr(both, self.SOURCE, joined(getattr(self, self.SOURCE), getattr(other, self.SOURCE)))
        return both

    def answers(self) -> PartAnswers:
        """What was counted, as a part of many; its documents have no texts but these."""
        raise NotImplementedError

    def ordered(self, counts: Mapping[str, int], /) -> Sequence[str]:
        """What was asked, of how often each was, in the order of a table."""
        raise NotImplementedError

    def _share_of_sums(self, how: str, what: str) -> Float[np.ndarray, " choice"]:
        """Share that every head, or head and direction, answers right.

        Raises:
            RecordError: where that was not asked.
        """
        summed = self._known_sums
        if (how, what) not in summed.wholes:
            there = ", ".join(summed.asked(how))
            raise RecordError(f"Nothing of the kind {what!r} was asked; there are {there}")
        return summed.hits[how, what] / summed.wholes[how, what]

    @property
    def _known_sums(self) -> SummedAnswers:
        assert self.summed is not None, "that is asked before"
        return self.summed

    def best(self, question: str, how: str, /) -> Any:
        """The best head for one question, asked in one way."""
        raise NotImplementedError

    @property
    def names(self) -> tuple[str, ...]:
        """The texts that were counted."""
        return tuple(sorted(self._read))

    @property
    def _options(self) -> dict[str, Any]:
        """What it was made with."""
        return {name: getattr(self, name) for name in (*self.READING, *self.EVIDENCE_OPTIONS)}

    def _document(self) -> dict[str, Any]:
        """What is kept of it beside what was read."""
        known = {
            "model": self.model,
            "cells": self.cells,
            "left_out": self.left_out,
            # Sorted, so that files of the same texts are the same whatever their order was.
            "lengths": dict(sorted(self._lengths.items())),
        }
        return {"options": self._options, **known}

    @property
    def documents(self) -> int:
        """Number of documents that what was read is of."""
        raise NotImplementedError

    @cached_property
    def _chosen(self) -> dict[str, tuple[Any, ...]]:
        """The best heads, by how they were asked; worked out when they are wanted."""
        return {}

    def _best_heads(self, how: str) -> tuple[Any, ...]:
        """The best head for everything that was asked in one way."""
        if how not in self._chosen:
            self._chosen[how] = self._heads_of(how)
        return self._chosen[how]

    def _heads_of(self, how: str, /) -> tuple[Any, ...]:
        raise NotImplementedError

    def _table(self, fields: tuple[str, ...], listed: Sequence[Any]) -> dict[str, list[Any]]:
        """These heads as columns, with the numbers of the model with random weights, if any."""
        twins = None
        if self.control is not None:
            question, how = self.ASKED_BY
            twins = [
                self.control.best(getattr(each, question), getattr(each, how)) for each in listed
            ]
        return columns_of(fields, listed, twins)

    def _measured(self, asked: Sequence[DocumentHits]) -> list[dict[str, Any]]:
        """The numbers of `ChosenHead`, of everything that was asked."""
        halves = halves_of(self.documents, self.seed, self.splits)
        return measured(asked, halves, confidence=self.confidence, correction=self.correction)

    @property
    def length_text(self) -> str:
        """How long the texts are, as tables print it."""
        return length_text(self._lengths.values() if self.summed is None else self.summed.lengths)

    def _stack_of(self, name: str, record: Record) -> Stack:
        """The stack that is asked about a text.

        Raises:
            RecordError: where the text was counted before, or the record has other layers and
                heads.
        """
        if self.summed is not None:
            raise RecordError(
                f"Of {self.summed.texts} {self.TEXT}s sums alone are known; count others in a "
                "study of their own"
            )
        stack = record[self.stack or next(iter(record.stacks))]
        cells = cells_of(stack)
        if self.cells and cells != self.cells:
            raise RecordError(
                f"{self.TEXT.capitalize()} {name!r} has {len(cells)} heads, those before it "
                f"{len(self.cells)}; heads of one model are counted together"
            )
        self._check_model(name, record, stack)
        if name in self._read or name in self.left_out:
            raise RecordError(
                f"{self.TEXT.capitalize()} {name!r} was counted before; each has a name of its own"
            )
        return stack

    def _word_maps(self, stack: Stack, words: Words) -> Float[np.ndarray, "head word word"]:
        """The maps of all heads from word to word, without tokens of no word."""
        places = list(words.places)
        weights = np.concatenate([np.asarray(layer.weights_of(), np.float64) for layer in stack])
        return word_attention(weights, words, rows=self.rows)[:, places][:, :, places]

    def _keep(self, name: str, read: Any, record: Record, stack: Stack) -> None:
        """Count what was read of one text."""
        self._read[name] = read
        self._lengths[name] = len(stack.query)
        self.cells, self.model = cells_of(stack), self.model or record.model.name
        # Everything that was computed of fewer texts is forgotten; cached properties of base
        # classes are not in the class's own variables.
        for kind in type(self).__mro__:
            for known, value in vars(kind).items():
                if isinstance(value, cached_property):
                    self.__dict__.pop(known, None)


Study = TypeVar("Study", bound=HeadStudy)


def added(first: Study, second: Study) -> Study:
    """The texts of both.

    Raises:
        RecordError: where they share a text, or heads or options differ.
    """
    first._check_models(second)
    for each in (first, second):
        if each.summed is not None:
            raise RecordError(
                f"Of {each.summed.texts} {each.TEXT}s sums alone are known, and the best heads of "
                "them; give a run all texts that are to be judged together"
            )
    if not _can_be_added(first, second):
        raise RecordError(
            f"These are of other models or options, or share a {first.TEXT}; they cannot be added "
            "up"
        )
    both = type(first)(**first._options)
    both.cells, both.model = first.cells or second.cells, first.model or second.model
    both._read, both.left_out = first._read | second._read, first.left_out | second.left_out
    both._lengths = first._lengths | second._lengths
    if first.control is not None and second.control is not None:
        both.control = first.control + second.control
    return both


def _can_be_added(first: HeadStudy, second: HeadStudy) -> bool:
    if {*first._read, *first.left_out} & {*second._read, *second.left_out}:
        return False
    # Heads are known from the first text on; a study that read none fits any model.
    if first.cells and second.cells and first.cells != second.cells:
        return False
    return all(getattr(first, name) == getattr(second, name) for name in first.READING)


def joined(first: str, second: str) -> str:
    """What two added studies read."""
    return first if first == second else f"{first} + {second}"
