"""What `probe` learns from, read over a corpus: in parts, by one process or by many."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from headscope.capturing import MOST_UNKNOWN, parse_input
from headscope.capturing.facts import facts_of
from headscope.capturing.run import unwrapped
from headscope.corpus import CorpusText, Kept
from headscope.errors import HeadscopeError, RecordError
from headscope.linguistics import Sentence
from headscope.record import Record
from headscope.studies.probes._items import ProbeItem
from headscope.studies.probes._read_sentences import mapped, with_embeddings, with_states
from headscope.studies.shared._corpus_job import check_unique
from headscope.studies.shared._corpus_run import run_study
from headscope.studies.shared._counted_texts import CountingMeasurer, OneByOneJob, added
from headscope.studies.shared._sentence_json import given_of, sentence_of

ARRAYS = ("maps", "ends", "states", "vectors")
"""What a model made of a sentence, of which there is what a probe asks for."""


@dataclass(frozen=True, eq=False)
class ReadSentences:
    """Sentences by name with what a model made of them; two of them add up.

    Args:
        model: its name.
        items: by name.
        left_out: names of those that could not be read, and why.
        control: the same of random weights.
    """

    model: str
    items: Mapping[str, ProbeItem]
    left_out: dict[str, str] = field(default_factory=dict)
    control: ReadSentences | None = None

    def __add__(self, other: ReadSentences) -> ReadSentences:
        """The sentences of both."""
        return replace(self, items={**self.items, **other.items})

    def both(self) -> tuple[dict[int, ProbeItem], dict[int, ProbeItem] | None]:
        """The items in the order of their names, and those of random weights, of the sentences that
        both could read.
        """
        if self.control is None:
            return dict(enumerate(self.items[name] for name in sorted(self.items))), None
        names = sorted(self.items.keys() & self.control.items.keys())
        items = {number: self.items[name] for number, name in enumerate(names)}
        twin = {}
        for number, name in enumerate(names):
            # Vectors of words stay those of the model, so that the twin lacks but its attention.
            twin[number] = replace(self.control.items[name], vectors=items[number].vectors)
        return items, twin


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
        items = with_states(
            measurer.model,
            measurer.tokenizer,
            [sentence],
            given,
            on_error=_stop,
            max_unknown=unknown,
        )
        return self._read(measurer, items[0])

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
        document: dict[str, Any] = {
            "model": study.model,
            "sentences": [given_of(item.sentence) for item in items],
            "pieces": [[list(each) for each in item.pieces] for item in items],
            "shapes": {},
        }
        arrays = {}
        for name in ARRAYS:
            of = [getattr(item, name) for item in items]
            if any(array is not None for array in of):
                document["shapes"][name] = [list(array.shape) for array in of]
                arrays[name] = np.concatenate([array.ravel() for array in of])
        return document, arrays

    def restored(self, kept: Kept) -> ReadSentences:
        """The sentences that a part holds."""
        document, arrays = kept
        read: dict[str, list[np.ndarray]] = {}
        for name, shapes in document["shapes"].items():
            ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
            flat = np.split(arrays[name], ends)
            read[name] = [each.reshape(shape) for each, shape in zip(flat, shapes, strict=True)]
        items = {}
        rows = zip(document["sentences"], document["pieces"], strict=True)
        for number, (given, pieces) in enumerate(rows):
            items[given["name"]] = ProbeItem(
                sentence=sentence_of(given),
                pieces=tuple(map(tuple, pieces)),
                **{name: of[number] for name, of in read.items()},
            )
        return ReadSentences(document["model"], items)

    def total(self, studies: Sequence[Any], judging: Mapping[str, Any]) -> ReadSentences:
        """The sentences of all parts."""
        return added(studies)

    def note_left_out(self, result: Any, failed: Sequence[Mapping[str, Any]]) -> None:
        """Names and reasons of the sentences that were left out."""
        result.left_out.update({each["text"]["name"]: each["error"] for each in failed})

    def with_control(self, result: ReadSentences, control: ReadSentences) -> ReadSentences:
        """The sentences with what random weights made of them."""
        result.left_out.update(control.left_out)
        return replace(result, control=control)

    def write(self, result: Any, path: Path) -> None:
        """Nothing: what is learnt of the sentences is the result, and the parts hold them."""


def read_over(
    given: tuple[Any, Any],
    sentences: Iterable[Sentence],
    options: dict[str, Any],
    *,
    how: Mapping[str, Any],
    random_weights: bool,
) -> ReadSentences:
    """Sentences read as a run.

    Args:
        given: model and tokenizer.
        sentences: to be read.
        options: of runs and of reading.
        how: of `ProbeJob`.
        random_weights: whether random weights read them, too.

    Raises:
        RunError: as of `headscope.corpus.run`.
    """
    return run_study(
        ProbeJob,
        given,
        _texts(sentences),
        options,
        how=how,
        judging={},
        random_weights=random_weights,
    )


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
