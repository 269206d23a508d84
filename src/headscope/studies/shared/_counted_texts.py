"""Studies that keep what they counted of each text, as runs over a corpus."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from headscope.corpus import CorpusText, FinishedRun, Kept
from headscope.errors import HeadscopeError, RecordError
from headscope.studies.shared._corpus_job import ModelJob, as_given, check_measured
from headscope.studies.shared._corpus_model import one_thread

MANY = 2000
"""Texts above which a study that has sums keeps these alone, as labels of `heads` come from sums
above so many.
"""
NONE: Kept = {"none": True}, {"none": np.zeros(0)}
"""Kept of a part of which no text could be measured."""


@dataclass(frozen=True, kw_only=True)
class CountingJob(ModelJob):
    """What a run of a study does to each text that keeps what it counted of every one.

    A part is the study itself, of its texts, and the result is their sum: what is counted of all
    texts is held when the parts are put together; of more than `MANY` texts sums alone, where the
    study has them, one part after the other. Rows are in the order of their names, which are made
    of what the texts say.

    Args:
        how: options of the study that what is counted of a text depends on, by name.
    """

    KEEP: ClassVar[Any] = ("weights",)
    """What records of the texts keep."""
    HAS_SUMS: ClassVar[bool] = False
    """Whether `in_sums` leaves the texts of a study out."""
    how: tuple[tuple[str, Any], ...] = ()

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        return super().options() | dict(self.how)

    def begin(self) -> CountingMeasurer:
        """The model, loaded once in a process, and what counts its records."""
        return CountingMeasurer(self, *self.model.load())

    def tally(self, measurer: Any) -> CountedPart:
        """The study, of no text."""
        return CountedPart(self)

    def empty(self, **judging: Any) -> Any:
        """The study, of no text."""
        raise NotImplementedError

    def input_of(self, given: Any) -> Any:
        """What the model reads of a text, as `headscope.capturing.capture_batches` takes it.

        Raises:
            HeadscopeError: where it cannot be read.
        """
        return as_given(given)

    def count(self, study: Any, text: CorpusText, record: Any) -> None:
        """Count one text by its name.

        Raises:
            HeadscopeError: where it cannot be counted.
        """
        study.update(text.name, record)

    def studies_of(
        self,
        measurer: CountingMeasurer,
        texts: Sequence[CorpusText],
        failed: Callable[[int, Exception], None],
    ) -> Iterator[tuple[int, Any]]:
        """The study of each text alone, with its place; see `headscope.corpus.Measurer`."""
        from headscope.capturing import capture_batches

        given: list[Any] = []
        for text in texts:
            try:
                given.append(self.input_of(text.given))
            except HeadscopeError as error:
                # Reported in its turn, as every text that cannot be read.
                given.append(error)
        batches = capture_batches(
            measurer.model,
            measurer.tokenizer,
            given,
            keep=self.KEEP,
            on_error=failed,
            **self.reading,
        )
        for together in batches:
            number = together.numbers[0]
            study = self.empty()
            try:
                self.count(study, texts[number], together.batch)
            except HeadscopeError as error:
                failed(number, error)
            else:
                yield number, study

    def restored(self, kept: Kept) -> Any:
        """The study that a part holds."""
        raise NotImplementedError

    def kept(self, study: Any) -> Kept:
        """What the file of a part holds of the study of its texts."""
        return study._kept()

    def check(self, measurer: Any, texts: Sequence[CorpusText]) -> dict[str, Any]:
        """Raise where the texts are mostly unknown to the tokenizer, or the study has the same
        against each of them, such as that it asks for a head that the model does not have.

        Raises:
            RecordError: what it has against them.
        """
        errors: dict[int, Exception] = {}
        counted = list(measurer.values_of(texts, errors.__setitem__))
        reasons = {str(error) for error in errors.values() if isinstance(error, RecordError)}
        if not counted and len(reasons) == 1 and len(errors) == len(texts):
            raise RecordError(reasons.pop())
        return super().check(measurer, texts)

    def renamed(self, study: Any, text: CorpusText, number: int) -> Any:
        """A study of one text, as of the document that it is of and of its number among its
        copies.
        """
        again = copy(study)
        again.statistic = study.statistic.renamed(row_name(text, number), text.group)
        return again

    def total(self, studies: Sequence[Any], judging: Mapping[str, Any]) -> Any:
        """The sum of the studies of all parts, judged as the user wants."""
        return self.empty(**judging) + added(studies)

    def in_sums(self, study: Any) -> Any:
        """The study of the texts of a part without these, to be added to those of other parts."""
        raise NotImplementedError

    def of_many(self, parts: Callable[[], Iterable[Any]], judging: Mapping[str, Any]) -> Any:
        """The study of more texts than are held.

        Args:
            parts: gives the study of each part, one after the other, so that the texts of one alone
                are in memory.
            judging: see `made`.
        """
        return self.total(summed(self.in_sums(part) for part in parts()), judging)

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> Any:
        """The study of all parts."""

        def parts() -> Iterator[Any]:
            for part in finished.parts():
                if "none" not in part[0]:
                    yield self.restored(part)

        if self.HAS_SUMS and has_many(finished):
            result = self.of_many(parts, judging)
        else:
            studies = list(parts())
            check_measured(finished, any_text=bool(studies))
            result = self.total(studies, judging)
        self.note_left_out(result, finished.failed)
        return result

    def note_left_out(self, result: Any, failed: Sequence[Mapping[str, Any]]) -> None:
        """Tell the result which texts were left out, where it names them."""


@dataclass(frozen=True, kw_only=True)
class OneByOneJob(CountingJob):
    """What a run does to texts that are not captured in batches."""

    def study_of(self, measurer: CountingMeasurer, text: CorpusText) -> Any:
        """The study of one text, by its name.

        Raises:
            HeadscopeError: where it cannot be read or counted.
        """
        raise NotImplementedError

    def studies_of(
        self,
        measurer: CountingMeasurer,
        texts: Sequence[CorpusText],
        failed: Callable[[int, Exception], None],
    ) -> Iterator[tuple[int, Any]]:
        """The study of each text alone, with its place; see `headscope.corpus.Measurer`."""
        from headscope.capturing.many import OF_ONE_INPUT, reason_of

        for number, text in enumerate(texts):
            try:
                study = self.study_of(measurer, text)
            except OF_ONE_INPUT as error:
                failed(number, reason_of(error))
            else:
                yield number, study


class CountingMeasurer:
    """A model, and the job that counts what it does on texts.

    Args:
        job: what counts them.
        model: loaded.
        tokenizer: its tokenizer.
    """

    def __init__(self, job: CountingJob, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        self._job = job

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, CountedText]]:
        """The study of each text alone; see `headscope.corpus.Measurer`."""
        with one_thread():
            for number, study in self._job.studies_of(self, texts, failed):
                yield number, CountedText(study, self._job)


@dataclass(frozen=True, eq=False)
class CountedText:
    """A study of one text.

    Args:
        study: has counted it.
        job: knows what a file of it holds.
    """

    study: Any
    job: CountingJob

    def __eq__(self, other: object) -> bool:
        """Whether the same was counted, to the last bit."""
        if not isinstance(other, CountedText):
            return NotImplemented
        return _bits(self.job.kept(self.study)) == _bits(self.job.kept(other.study))

    __hash__ = None


class CountedPart:
    """The texts of a part.

    Args:
        job: what was counted.
    """

    def __init__(self, job: CountingJob) -> None:
        # Nothing is kept of a document beside its texts, so that all may be open at once.
        self.most_open: int = sys.maxsize
        self._job = job
        self._counted: dict[str, Any] = {}

    def update(self, text: CorpusText, values: CountedText) -> None:
        """Count a text, as often as it is there."""
        for number in range(text.times):
            name = row_name(text, number)
            self._counted[name] = self._job.renamed(values.study, text, number)

    def close(self) -> None:
        """Nothing is open."""

    def kept(self) -> Kept:
        """The study of the part."""
        if not self._counted:
            return NONE
        whole = added([self._counted[name] for name in sorted(self._counted)])
        return self._job.kept(whole)


def _bits(kept: Kept) -> tuple[dict[str, Any], dict[str, bytes]]:
    state, arrays = kept
    return state, {name: array.tobytes() for name, array in arrays.items()}


def row_name(text: CorpusText, number: int) -> str:
    """The name of what is counted of a text: the same in any order of the texts.

    Args:
        text: which may be in several documents.
        number: of its copies in this document, from 0.
    """
    if text.group is None and not number:
        return text.name
    return f"{text.name} of {text.unit}, {number}"


def counted_texts(finished: FinishedRun) -> int:
    """How many texts of a run were counted, each as often as it is there."""
    return finished.corpus.texts - sum(each.get("times", 0) for each in finished.failed)


def has_many(finished: FinishedRun) -> bool:
    """Whether more texts of a run were counted than are held."""
    return counted_texts(finished) > MANY


def summed(studies: Iterable[Any]) -> list[Any]:
    """The sum of studies that come one after the other, alone in a list; nothing of none."""
    whole = None
    for study in studies:
        whole = study if whole is None else whole + study
    return [] if whole is None else [whole]


def added(studies: Sequence[Any]) -> Any:
    """The sum of studies of which each keeps what was counted of every text."""
    # By halves: each sum copies what both have.
    if len(studies) == 1:
        return studies[0]
    middle = len(studies) // 2
    return added(studies[:middle]) + added(studies[middle:])
