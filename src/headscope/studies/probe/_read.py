"""What `probe` learns from, read by a model: in parts, by one process or by many."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float

from headscope.capturing import capture_batches, check_known, parse_input
from headscope.capturing.device import device_of
from headscope.capturing.facts import facts_of
from headscope.capturing.inputs.inputs import encode
from headscope.capturing.inputs.tokens import tokens_from_encoding
from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.capturing.run import at_rest, unwrapped
from headscope.corpus import CorpusText, FinishedRun, Kept, PartTally, this_process
from headscope.errors import CaptureError, RecordError
from headscope.linguistics import Sentence, Words, word_attention, words_at
from headscope.record import Record, Tokens, held
from headscope.studies.probe._data import ARRAYS, ProbeItem
from headscope.studies.shared._corpus_job import ModelJob, check_measured, check_unique
from headscope.studies.shared._corpus_model import one_thread
from headscope.studies.shared._corpus_run import RunSettings, checked_job
from headscope.studies.shared._sentences import given_of, sentence_of

STATES_AT_ONCE = 32
"""How many sentences of like length are read together for their hidden states."""

Failed = Callable[[int, Exception], None]
"""Is called with number and error of a sentence that is left out."""
Encodings = dict[int, dict[str, list[int]]]


def with_states(
    model: Any,
    tokenizer: Any,
    sentences: Sequence[Sentence],
    failed: Failed,
    *,
    max_unknown: float = 1.0,
) -> Iterator[tuple[int, ProbeItem]]:
    """The hidden states of each sentence as transformers returns them, in half precision.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        sentences: to be read, the words with a space between them.
        failed: is called with number and error of a sentence that is left out.
        max_unknown: largest share of unknown tokens in a sentence; one with more of them is left
            out.

    Yields:
        The number of each sentence that could be read, and the sentence.

    Raises:
        CaptureError: where the model returns none.
    """
    model, encodings, pieces = unwrapped(model), {}, {}
    for number, sentence in enumerate(sentences):
        try:
            encoding, pieces[number] = _read(model, tokenizer, sentence)
            check_known(tokenizer, encoding["input_ids"], "the sentence", max_unknown)
            encodings[number] = encoding
        except OF_ONE_INPUT as error:
            failed(number, reason_of(error))
    order = sorted(encodings, key=lambda number: len(encodings[number]["input_ids"]))
    with at_rest(model):
        for first in range(0, len(order), STATES_AT_ONCE):
            batch = {number: encodings[number] for number in order[first : first + STATES_AT_ONCE]}
            for number, states in _batch_states(model, batch, failed):
                yield (
                    number,
                    ProbeItem(sentence=sentences[number], states=states, pieces=pieces[number]),
                )


def with_embeddings(model: Any, tokenizer: Any, item: ProbeItem) -> ProbeItem:
    """The same with word vectors: the mean of the model's own input embeddings of a word's pieces.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        item: the sentence.
    """
    table = unwrapped(model).get_input_embeddings().weight
    encoding, pieces = _read(unwrapped(model), tokenizer, item.sentence)
    rows = table[torch.tensor(encoding["input_ids"], device=table.device)]
    rows = rows.detach().float().cpu().numpy()
    return item.with_arrays(vectors=np.stack([rows[list(own)].mean(axis=0) for own in pieces]))


def _read(model: Any, tokenizer: Any, sentence: Sentence) -> tuple[dict[str, list[int]], Any]:
    """What the tokenizer makes of a sentence, and which pieces each word is made of."""
    encoding = encode(model, tokenizer, parse_input(sentence.text))
    tokens = tokens_from_encoding(tokenizer, encoding, (sentence.text,))
    return dict(encoding), _words(sentence, tokens).tokens


def _words(sentence: Sentence, tokens: Tokens) -> Words:
    words = words_at(tokens, sentence.spans)
    words.check()
    return words


def mapped(sentence: Sentence, record: Record) -> ProbeItem:
    """Attention between words, and between words and the special tokens at both ends."""
    stack = next((stack for stack in record.stacks.values() if stack.query == stack.key), None)
    if stack is None:
        raise RecordError("The model has no self-attention, in which words look at words")
    words = _words(sentence, stack.query)
    columns = list(words.places)
    maps, ends = [], []
    for layer in stack:
        among = word_attention(np.asarray(layer.weights_of(), np.float64), words)
        maps.append(among[:, columns][:, :, columns])
        ends.append(_ends(among, columns))
    return ProbeItem(
        sentence=sentence,
        maps=np.concatenate(maps).astype(np.float32),
        ends=np.concatenate(ends).astype(np.float32),
    )


def _ends(
    among: Float[np.ndarray, "head unit unit"], columns: list[int]
) -> Float[np.ndarray, "head direction end word"]:
    """Attention of the first and last special token to words, and of words to these."""
    last = among.shape[1] - 1
    ends = np.zeros((len(among), 2, 2, len(columns)))
    # A model may have a special token at one end alone, or none: what is not there stays 0.
    if columns[0] > 0:
        ends[:, 0, 0], ends[:, 1, 0] = among[:, 0, columns], among[:, columns, 0]
    if columns[-1] < last:
        ends[:, 0, 1], ends[:, 1, 1] = among[:, last, columns], among[:, columns, last]
    return ends


def _batch_states(
    model: Any, encodings: Encodings, failed: Failed
) -> Iterator[tuple[int, np.ndarray]]:
    """The hidden states of a batch by number; one that fails as a whole is run again one by one.

    Raises:
        CaptureError: where the model returns none, which no sentence is to blame for.
    """
    try:
        states = _states(model, list(encodings.values()))
    except CaptureError:
        raise
    except OF_ONE_INPUT as error:
        for number, encoding in encodings.items():
            if len(encodings) == 1:
                failed(number, reason_of(error))
            else:
                yield from _batch_states(model, {number: encoding}, failed)
        return
    for number, own in zip(encodings, states, strict=True):
        if np.isfinite(own).all():
            yield number, own
        else:
            said = "the hidden states of the sentence are not finite in half precision"
            failed(number, RecordError(said))


def _states(model: Any, encodings: Sequence[dict[str, list[int]]]) -> list[np.ndarray]:
    """Hidden states ``[layer piece feature]`` of each, padding cut off."""
    sizes = [len(encoding["input_ids"]) for encoding in encodings]
    longest, arguments = max(sizes), {}
    filled = [each | {"attention_mask": [1] * len(each["input_ids"])} for each in encodings]
    for name in filled[0]:
        rows = [each[name] + [0] * (longest - len(each[name])) for each in filled]
        arguments[name] = torch.tensor(rows, device=device_of(model))
    outputs = model(**arguments, output_hidden_states=True)
    states = getattr(outputs, "hidden_states", None)
    if states is None:
        raise CaptureError(
            f"{type(model).__name__} returns no hidden_states; a probe of hidden states needs them"
        )
    # Half precision: states of all layers of a treebank would not fit into memory else.
    together = torch.stack([layer.half() for layer in states]).cpu().numpy()
    return [together[:, number, :size] for number, size in enumerate(sizes)]


@dataclass(frozen=True, eq=False)
class StoredSentences:
    """All sentences of a run, whose arrays are in the files of its parts.

    Args:
        model: its name.
        items: what was read, by name of the sentence.
        left_out: names of those that could not be read, and why.
        control: the same of random weights.
    """

    model: str
    items: dict[str, ProbeItem]
    left_out: dict[str, str] = field(default_factory=dict)
    control: StoredSentences | None = None

    def both(self, sentences: Sequence[Sentence]) -> tuple[list[ProbeItem], list[ProbeItem] | None]:
        """The items of sentences in their order, and those of random weights, of the sentences that
        both could read.
        """
        theirs = self.items if self.control is None else self.control.items
        names = [each.name for each in sentences if each.name in self.items.keys() & theirs.keys()]
        twin = None if self.control is None else [theirs[name] for name in names]
        return [self.items[name] for name in names], twin


@dataclass(frozen=True, kw_only=True)
class ProbeJob(ModelJob):
    """What a run of `probe` does to each sentence: it is read, and nothing is learnt.

    Args:
        reads: ``"maps"`` of attention, or hidden ``"states"``.
        has_embeddings: whether words have the model's input embeddings.
        has_workers: whether others share the machine.
    """

    STUDY: ClassVar[str] = "probe"
    reads: str = "maps"
    has_embeddings: bool = False
    has_workers: bool = True

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        return super().options() | {"reads": self.reads, "embeddings": self.has_embeddings}

    def texts_of(self, text: CorpusText) -> Sequence[str]:
        """What the tokenizer reads of a sentence."""
        return [sentence_of(text.given).text]

    def begin(self) -> ProbeMeasurer:
        """The model, loaded once in a process, which reads sentences."""
        return ProbeMeasurer(self, *self.model.load())

    def tally(self, measurer: ProbeMeasurer) -> PartTally:
        """No sentence."""
        return ReadPart(facts_of(unwrapped(measurer.model)).name)

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> StoredSentences:
        """The sentences of all parts, whose arrays stay in their files."""
        model, items = "", {}
        for state, arrays in finished.stored_parts():
            model, first = state["model"] or model, dict.fromkeys(arrays, 0)
            rows = zip(state["sentences"], state["pieces"], state["shapes"], strict=True)
            for given, pieces, shapes in rows:
                own: dict[str, Any] = {}
                for name, shape in shapes.items():
                    own[name] = arrays[name].within(first[name], tuple(shape))
                    first[name] += math.prod(shape)
                of_words = tuple(map(tuple, pieces))
                item = ProbeItem(sentence=sentence_of(given), pieces=of_words, **own)
                items[item.sentence.name] = item
        check_measured(finished, any_text=bool(items))
        left_out = {each["text"]["name"]: each["error"] for each in finished.failed}
        return StoredSentences(model, items, left_out)

    def with_control(self, result: StoredSentences, control: StoredSentences) -> StoredSentences:
        """The sentences with what random weights made of them."""
        result.left_out.update(control.left_out)
        return replace(result, control=control)

    def write(self, result: Any, path: Path) -> None:
        """Nothing: what is learnt of the sentences is the result, and the parts hold them."""


class ProbeMeasurer:
    """A model, and what it makes of sentences.

    Args:
        job: says what is read.
        model: loaded.
        tokenizer: its tokenizer.
    """

    def __init__(self, job: ProbeJob, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        self._job = job

    def values_of(
        self, texts: Sequence[CorpusText], failed: Failed
    ) -> Iterator[tuple[int, ProbeItem]]:
        """Each sentence with what the model made of it; see `headscope.corpus.Measurer`."""
        sentences = [sentence_of(text.given) for text in texts]
        read = self._states if self._job.reads == "states" else self._maps
        with one_thread() if self._job.has_workers else nullcontext():
            for number, item in read(sentences, failed):
                if self._job.has_embeddings:
                    yield number, with_embeddings(self.model, self.tokenizer, item)
                else:
                    yield number, item

    def _states(
        self, sentences: Sequence[Sentence], failed: Failed
    ) -> Iterator[tuple[int, ProbeItem]]:
        unknown = self._job.reading["max_unknown"]
        return with_states(self.model, self.tokenizer, sentences, failed, max_unknown=unknown)

    def _maps(
        self, sentences: Sequence[Sentence], failed: Failed
    ) -> Iterator[tuple[int, ProbeItem]]:
        given = [sentence.text for sentence in sentences]
        how: dict[str, Any] = self._job.reading | {"keep": "weights", "on_error": failed}
        for together in capture_batches(self.model, self.tokenizer, given, **how):
            number = together.numbers[0]
            assert isinstance(together.batch, Record), "as keep= makes them"
            try:
                yield number, mapped(sentences[number], together.batch)
            except RecordError as error:
                failed(number, error)


class ReadPart:
    """The sentences of a part with what a model made of them.

    Args:
        model: its name.
    """

    def __init__(self, model: str) -> None:
        self._model, self._items = model, {}

    def update(self, text: CorpusText, values: ProbeItem) -> None:
        """Add a sentence, which has a name of its own."""
        self._items[values.sentence.name] = values

    def kept(self) -> Kept:
        """Arrays of all sentences one after the other."""
        items = [self._items[name] for name in sorted(self._items)]
        shapes, arrays = _joined(items)
        document = {
            "model": self._model,
            "sentences": [given_of(item.sentence) for item in items],
            "pieces": [list(map(list, item.pieces)) for item in items],
            "shapes": shapes,
        }
        return document, arrays or {"none": np.zeros(0)}


def _joined(items: Sequence[ProbeItem]) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Sizes of the arrays of each sentence, and these one after the other."""
    shapes, arrays = [{} for _ in items], {}
    # All sentences have the same arrays.
    for name in [name for name in ARRAYS if items and held(items[0], name) is not None]:
        of = [getattr(item, name) for item in items]
        for own, array in zip(shapes, of, strict=True):
            own[name] = array.shape
        arrays[name] = np.concatenate(list(map(np.ravel, of)))
    return shapes, arrays


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
        has_workers = running.engine.name != this_process().name
        own = {**how, "has_workers": has_workers}
        job = checked_job(ProbeJob, given, options, running, how=own)
        run_ = running.with_control if random_weights else running.result
        texts = (CorpusText(given_of(each), each.document or None) for each in sentences)
        yield run_(job, texts, {})


def named(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
    """Sentences that all have a name of their own.

    Raises:
        RecordError: where two have one name.
    """
    listed = []
    for number, sentence in enumerate(sentences, 1):
        listed.append(replace(sentence, name=sentence.name or f"sentence {number}"))
    check_unique((sentence.name for sentence in listed), "sentence")
    return tuple(listed)
