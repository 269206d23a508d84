"""What `probe` learns from, read over a corpus: in parts, by one process or by many."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from headscope.capturing import MOST_UNKNOWN, parse_input
from headscope.capturing.facts import facts_of
from headscope.capturing.run import unwrapped
from headscope.corpus import CorpusText, FinishedRun, Kept
from headscope.errors import HeadscopeError, RecordError
from headscope.linguistics import Sentence
from headscope.record import Record
from headscope.storage import FileArray
from headscope.studies.probes._items import ARRAYS, ProbeItem
from headscope.studies.probes._on_demand import LazySequence
from headscope.studies.probes._read_sentences import mapped, with_embeddings, with_states
from headscope.studies.shared._corpus_job import check_measured, check_unique
from headscope.studies.shared._corpus_run import RunSettings, checked_job
from headscope.studies.shared._counted_texts import CountingMeasurer, OneByOneJob
from headscope.studies.shared._sentences import given_of, sentence_of


@dataclass(frozen=True, eq=False)
class ReadSentences:
    """Sentences of a part by name with what a model made of them; two of them add up.

    Args:
        model: its name.
        items: by name.
    """

    model: str
    items: Mapping[str, ProbeItem]

    def __add__(self, other: ReadSentences) -> ReadSentences:
        """The sentences of both."""
        return replace(self, items={**self.items, **other.items})


class PartOfSentences:
    """The sentences that the file of a part holds, which are read from it when they are asked for.

    Args:
        document: by `ProbeJob.kept`.
        arrays: of all sentences one after the other, in the file.
    """

    def __init__(self, document: Mapping[str, Any], arrays: Mapping[str, FileArray]) -> None:
        self.names: tuple[str, ...] = tuple(given["name"] for given in document["sentences"])
        self._arrays = arrays
        # Numbers of some bytes: lists and tuples of a sentence would take thousands.
        self._shapes: dict[str, np.ndarray] = {}
        self._firsts: dict[str, np.ndarray] = {}
        for name, shapes in document["shapes"].items():
            self._shapes[name] = np.array(shapes, np.int32)
            self._firsts[name] = _starts([math.prod(shape) for shape in shapes])
        pieces = document["pieces"]
        all_words = list(chain.from_iterable(pieces))
        self._pieces = np.array(list(chain.from_iterable(all_words)), np.int32)
        self._counts = np.array(list(map(len, all_words)), np.int32)
        self._first_words = _starts([len(words) for words in pieces])
        self._first_pieces = _starts([sum(map(len, words)) for words in pieces])

    def item(self, row: int, sentence: Sentence) -> ProbeItem:
        """One of the sentences, whose arrays stay in the file."""
        arrays: dict[str, Any] = {}
        for name, shapes in self._shapes.items():
            first, shape = int(self._firsts[name][row]), tuple(shapes[row].tolist())
            arrays[name] = self._arrays[name].within(first, shape)
        return ProbeItem(sentence=sentence, pieces=self._pieces_of(row), **arrays)

    def _pieces_of(self, row: int) -> tuple[tuple[int, ...], ...]:
        words = slice(self._first_words[row], self._first_words[row + 1])
        pieces = self._pieces[self._first_pieces[row] : self._first_pieces[row + 1]].tolist()
        of_words, start = [], 0
        for count in self._counts[words].tolist():
            of_words.append(tuple(pieces[start : start + count]))
            start += count
        return tuple(of_words)


@dataclass(frozen=True, eq=False)
class StoredSentences:
    """All sentences of a run, in the files of its parts.

    Args:
        model: its name.
        parts: the files.
        left_out: names of those that could not be read, and why.
        control: the same of random weights.
    """

    model: str
    parts: tuple[PartOfSentences, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    control: StoredSentences | None = None

    def both(
        self, sentences: Sequence[Sentence]
    ) -> tuple[LazySequence[ProbeItem], LazySequence[ProbeItem] | None]:
        """The items of sentences in their order, and those of random weights, of the sentences that
        both could read.
        """
        own = self._places(sentences)
        theirs = own if self.control is None else self.control._places(sentences)
        there = np.flatnonzero((own[:, 0] >= 0) & (theirs[:, 0] >= 0))
        kept = [sentences[number] for number in there]
        twin = None if self.control is None else self.control._items(theirs[there], kept)
        return self._items(own[there], kept), twin

    def _items(self, places: np.ndarray, sentences: Sequence[Sentence]) -> LazySequence[ProbeItem]:
        def item(number: int) -> ProbeItem:
            part, row = places[number].tolist()
            return self.parts[part].item(row, sentences[number])

        return LazySequence(len(places), item)

    def _places(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """Part of each sentence and place in it, -1 where it was left out; axes sentence, 2."""
        numbers = {sentence.name: number for number, sentence in enumerate(sentences)}
        places = np.full((len(sentences), 2), -1, np.int32)
        for at, part in enumerate(self.parts):
            for row, name in enumerate(part.names):
                places[numbers[name]] = at, row
        return places


def _starts(sizes: Sequence[int]) -> np.ndarray:
    """Where each of so many begins, one after the other, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class ProbeJob(OneByOneJob):
    """What a run of `probe` does to each sentence: it is read, and nothing is learnt.

    Args:
        reads: ``"maps"`` of attention, or hidden ``"states"``.
        has_embeddings: whether words have the model's input embeddings.
    """

    STUDY: ClassVar[str] = "probe"
    reads: str = "maps"
    has_embeddings: bool = False

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        return super().options() | {"reads": self.reads, "embeddings": self.has_embeddings}

    def texts_of(self, text: CorpusText) -> Sequence[str]:
        """What the tokenizer reads of a sentence."""
        return [sentence_of(text.given).text]

    def studies_of(
        self,
        measurer: CountingMeasurer,
        texts: Sequence[CorpusText],
        failed: Callable[[int, Exception], None],
    ) -> Iterator[tuple[int, ReadSentences]]:
        """Each sentence with what the model made of it; attention of sentences of as many tokens at
        once. See `headscope.corpus.Measurer`.
        """
        if self.reads == "states":
            yield from super().studies_of(measurer, texts, failed)
            return
        from headscope.capturing import capture_batches

        sentences = [sentence_of(text.given) for text in texts]
        given = [sentence.text for sentence in sentences]
        batches = capture_batches(
            measurer.model,
            measurer.tokenizer,
            given,
            keep="weights",
            on_error=failed,
            **self.reading,
        )
        for together in batches:
            number = together.numbers[0]
            assert isinstance(together.batch, Record), "as keep= makes them"
            try:
                item = mapped(sentences[number], together.batch)
            except RecordError as error:
                failed(number, error)
            else:
                yield number, self._read(measurer, item)

    def study_of(self, measurer: CountingMeasurer, text: CorpusText) -> ReadSentences:
        """One sentence with its hidden states."""
        sentence = sentence_of(text.given)
        unknown = 1.0 if self.allow_unfit else MOST_UNKNOWN
        given = [parse_input(sentence.text)]
        read = with_states(
            measurer.model,
            measurer.tokenizer,
            [sentence],
            given,
            on_error=_stop,
            max_unknown=unknown,
        )
        return self._read(measurer, dict(read)[0])

    def _read(self, measurer: CountingMeasurer, item: ProbeItem) -> ReadSentences:
        model = measurer.model
        if self.has_embeddings:
            item = with_embeddings(model, measurer.tokenizer, {0: item})[0]
        return ReadSentences(facts_of(unwrapped(model)).name, {item.sentence.name: item})

    def renamed(self, study: ReadSentences, text: CorpusText, number: int) -> ReadSentences:
        """The same: a sentence has a name of its own, and says what document it is of."""
        return study

    def kept(self, study: ReadSentences) -> Kept:
        """What the file of a part holds: arrays of all sentences one after the other."""
        items = [study.items[name] for name in sorted(study.items)]
        pieces = []
        for item in items:
            pieces.append([list(each) for each in item.pieces])
        document: dict[str, Any] = {
            "model": study.model,
            "sentences": [given_of(item.sentence) for item in items],
            "pieces": pieces,
            "shapes": {},
        }
        arrays = {}
        for name in ARRAYS:
            of = [getattr(item, name) for item in items]
            if any(array is not None for array in of):
                document["shapes"][name] = [list(array.shape) for array in of]
                arrays[name] = np.concatenate([array.ravel() for array in of])
        return document, arrays

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> StoredSentences:
        """The sentences of all parts, which stay in their files."""
        model, parts = "", []
        for state, arrays in finished.stored_parts():
            if "none" not in state:
                model = state["model"]
                parts.append(PartOfSentences(state, arrays))
        check_measured(finished, any_text=bool(parts))
        left_out = {each["text"]["name"]: each["error"] for each in finished.failed}
        return StoredSentences(model, tuple(parts), left_out)

    def with_control(self, result: StoredSentences, control: StoredSentences) -> StoredSentences:
        """The sentences with what random weights made of them."""
        result.left_out.update(control.left_out)
        return replace(result, control=control)

    def write(self, result: Any, path: Path) -> None:
        """Nothing: what is learnt of the sentences is the result, and the parts hold them."""


@contextmanager
def read_over(
    given: tuple[Any, Any],
    sentences: Iterable[Sentence],
    options: dict[str, Any],
    *,
    how: Mapping[str, Any],
    random_weights: bool,
) -> Generator[StoredSentences]:
    """Sentences read as a run, for the length of a block: where no folder was given, what was read
    goes with it.

    Args:
        given: model and tokenizer.
        sentences: to be read.
        options: of runs and of reading.
        how: of `ProbeJob`.
        random_weights: whether random weights read them, too.

    Raises:
        RunError: as of `headscope.corpus.run`.
    """
    with RunSettings.taken(options).with_folder() as running:
        job = checked_job(ProbeJob, given, options, running, how=how)
        run_ = running.with_control if random_weights else running.result
        yield run_(job, _texts(sentences), {})


def by_name(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
    """Sentences in an order that does not depend on that of their file.

    Raises:
        RecordError: where two have one name.
    """
    listed = sorted(sentences, key=lambda sentence: sentence.name)
    check_unique((sentence.name for sentence in listed), "sentence")
    return tuple(listed)


def _texts(sentences: Iterable[Sentence]) -> Iterator[CorpusText]:
    for sentence in sentences:
        yield CorpusText(given_of(sentence), sentence.document or None)


def _stop(_: int, error: HeadscopeError) -> None:
    raise error
