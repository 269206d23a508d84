"""One loaded model that is asked again and again: runs that can be stopped, and the records that
they left.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from headscope.capturing import ParsedInput, check_known, parse_call
from headscope.capturing.entry import prepared
from headscope.capturing.fitness import ANYWAY
from headscope.capturing.inputs.inputs import Inputs, position_limit
from headscope.capturing.inputs.tokens import tokenized
from headscope.capturing.many import bytes_of
from headscope.capturing.options import keeping_of
from headscope.capturing.run import at_rest, unwrapped
from headscope.comparison import Effect, compare
from headscope.errors import TextError
from headscope.interventions import Intervention
from headscope.interventions.session import intervene
from headscope.live._changes import interventions_of, parse_changes
from headscope.live._facts import LIMITS, live_facts, picture_mark_of, stacks_of, tokenizer_of
from headscope.live._output import ModelAnswer, Reader
from headscope.live._queue import StopSignal, stoppable
from headscope.live.contract import InputField, LiveFacts, LiveLimits, LiveOutput, ModelChange
from headscope.parts import numbered
from headscope.record import Record
from headscope.studies.runs import Ran, run_once, with_changed
from headscope.views import View, view
from headscope.views.answers import PageAnswers

if TYPE_CHECKING:
    from headscope.live._answering import KeptAnswer


MOST_INTACT = 3
"""Inputs of which the run without changes is kept, so that a change needs one pass more and undoing
it none.
"""
MOST_OTHERS = 16
"""Records of the other texts that changes take something from."""
UNCONTROLLED = "rounding alone: no like change was made for comparison"


MOST_RECORDS = 12
MOST_BYTES = 256 * 2**20
"""What all of them may take together; the last one is kept however large it is."""


@dataclass(frozen=True, eq=False)
class KeptRecord:
    """A record that a page may ask for.

    Args:
        answers: to the page.
        output: the prediction of the model; None of a text that it wrote itself.
        changes: that were made.
        timings: what took how long, in milliseconds.
        size: bytes that it takes, about.
        id: its name.
    """

    answers: PageAnswers
    output: LiveOutput | None
    changes: list[ModelChange]
    timings: dict[str, float]
    size: int
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))

    @property
    def record(self) -> Record:
        """The record itself."""
        return self.answers.shown.record


class KeptRecords:
    """Records by id, and by what was asked; those least recently asked for go first.

    Args:
        most_bytes: of all together.
        most: how many.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most: int = MOST_RECORDS) -> None:
        self.most_bytes: int = most_bytes
        self.most: int = most
        self._by_id: OrderedDict[str, KeptRecord] = OrderedDict()
        self._ids: dict[str, str] = {}
        self._lock = Lock()

    def put(self, question: str, kept: KeptRecord) -> None:
        """Keep a record, and let go of others where there are too many."""
        with self._lock:
            self._by_id[kept.id] = kept
            self._ids[question] = kept.id
            while len(self._by_id) > 1 and self._is_full():
                self._by_id.popitem(last=False)
            self._ids = {asked: name for asked, name in self._ids.items() if name in self._by_id}

    def get(self, name: str) -> KeptRecord | None:
        """The record of this id; None where it is not kept."""
        with self._lock:
            if name in self._by_id:
                self._by_id.move_to_end(name)
            return self._by_id.get(name)

    def answer_to(self, question: str) -> KeptRecord | None:
        """The record that answered the same question before; None where it is not kept."""
        name = self._ids.get(question)
        return None if name is None else self.get(name)

    def __len__(self) -> int:
        return len(self._by_id)

    def _is_full(self) -> bool:
        size = sum(kept.size for kept in self._by_id.values())
        return len(self._by_id) > self.most or size > self.most_bytes


@dataclass(frozen=True, eq=False)
class IntactRun:
    """An input, and what the model made of it as it is."""

    inputs: Inputs
    ran: Ran
    answer: ModelAnswer


class Clock:
    """Times the parts of a run, in milliseconds."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """A part is over."""
        now = time.perf_counter()
        self.times[name] = round(1000 * (now - self._last), 2)
        self._last = now


@dataclass(frozen=True)
class Asked:
    """What a request is about, checked."""

    read: ReadInput
    changes: list[ModelChange]

    @property
    def key(self) -> str:
        """The same for the same question."""
        return json.dumps([self.read.key, self.changes], sort_keys=True)


class LiveModel:
    """A model and what it reads with, and what was asked of them.

    Everything but `kept` and `facts` is for one thread at a time.

    Args:
        model: a loaded model.
        reads_with: its tokenizer or processor.
        limits: what a request may ask for; see `LiveLimits`.
        text: that the page begins with.
        records: where they are kept, together with those of another model; by default apart.
    """

    def __init__(
        self,
        model: Any,
        reads_with: Any,
        *,
        limits: LiveLimits = LIMITS,
        text: Any = "",
        records: KeptRecords | None = None,
    ) -> None:
        self.model: Any = unwrapped(model)
        self.reads_with: Any = reads_with
        self.tokenizer: Any = tokenizer_of(reads_with)
        self.facts: LiveFacts = live_facts(self.model, reads_with, limits, text)
        self.reader: Reader = Reader(
            self.model, self.tokenizer, self.facts["kind"], self.facts["untrained"]
        )
        self.records: KeptRecords = KeptRecords() if records is None else records
        self.intact: Callable[[ReadInput], IntactRun] = lru_cache(MOST_INTACT)(self._intact)
        self._other: Callable[[str], Record] = lru_cache(MOST_OTHERS)(self._record_of)
        self.answered: KeptAnswer | None = None

    def parsed(self, given: Any) -> Asked:
        """What a request asks for.

        Raises:
            HeadscopeError: what of it cannot be.
        """
        if not isinstance(given, Mapping):
            raise TextError("A request is a JSON object")
        limits = self.facts["limits"]
        read = parse_input(given.get("input"), self.facts["fields"], limits, self.reads_with)
        return Asked(read, parse_changes(given.get("changes", []), limits["changes"]))

    def ask(self, asked: Asked, signal: StopSignal) -> KeptRecord:
        """The model on an input, intact or changed.

        Raises:
            StoppedError: where it was asked to stop.
            TooLongError: where it took longer than it may.
            HeadscopeError: as of `headscope.capture` and `headscope.effect`.
        """
        question = f"{id(self)} {asked.key}"
        kept = self.records.answer_to(question)
        if kept is not None:
            return kept
        clock = Clock()
        with stoppable(self.model, signal):
            intact = self.intact(asked.read)
            clock.lap("run")
            shown, output = self._shown(intact, asked.changes, clock, signal)
        answers = PageAnswers(shown)
        clock.lap("view")
        try:
            # Places of a picture are one token again and again.
            for tokens in () if asked.read.parsed.has_media else intact.inputs.source:
                check_known(self.tokenizer, tokens.ids or (), "the text")
        except TextError as error:
            told = [answers.header.get("unseen"), str(error).removesuffix(f", or {ANYWAY}")]
            answers.header["unseen"] = ". ".join(filter(None, told))
        size = bytes_of(shown.record) + (bytes_of(intact.ran.record) if asked.changes else 0)
        # How far the heads moved, as the header of a changed record has it.
        moved = {one["name"]: one["moved"] for one in answers.header["stacks"] if "moved" in one}
        output |= {"moved": moved} if moved else {}
        kept = KeptRecord(answers, output, asked.changes, clock.times, size)
        self.records.put(question, kept)
        return kept

    def _intact(self, read: ReadInput) -> IntactRun:
        """The run of an input without changes."""
        inputs = self._inputs(read)
        ran = run_once(self.model, inputs, keeping_of({}))
        if not self.facts["stacks"]:
            self.facts["stacks"] = stacks_of(ran.record)
        # The output of a large vocabulary may be larger than all else together.
        return IntactRun(inputs, Ran(ran.record, None, ran.cells), self.answer(ran, inputs))

    def answer(self, ran: Ran, inputs: Inputs) -> ModelAnswer:
        """What the model said in a run."""
        return self.reader.answer(ran.record, ran.output, inputs.arguments.get("input_ids"))

    @contextmanager
    def changed(self, changes: Sequence[ModelChange]) -> Generator[None]:
        """The model at rest, with these changes and the records of other texts where they take
        them.

        Raises:
            HeadscopeError: where another text cannot be read.
        """
        done = self.interventions(changes)
        with at_rest(self.model), intervene(self.model, *done) if done else nullcontext():
            yield

    def interventions(self, changes: Sequence[ModelChange]) -> list[Intervention]:
        """What is done to the model, with the records of other texts where it takes them.

        Raises:
            HeadscopeError: where another text cannot be read.
        """
        return interventions_of(changes, self._other)

    def keep(self, question: str, shown: View, changes: list[ModelChange]) -> KeptRecord:
        """Keep a record that was made in another way."""
        kept = KeptRecord(PageAnswers(shown), None, changes, {}, bytes_of(shown.record))
        self.records.put(question, kept)
        return kept

    def _shown(
        self, intact: IntactRun, changes: list[ModelChange], clock: Clock, signal: StopSignal
    ) -> tuple[View, LiveOutput]:
        """What is shown of a run, with changes beside the model that is changed."""
        if not changes:
            return view(intact.ran.record), self.reader.output(intact.answer, None)
        ran = run_once(self.model, intact.inputs, keeping_of({}), self.interventions(changes))
        clock.lap("changed")
        after = self.answer(ran, intact.inputs)
        output = self.reader.output(intact.answer, after)
        clock.lap("output")
        signal.check()
        comparison = compare([intact.ran.record], [ran.record], heads="number")
        comparison = with_changed(comparison, ran.cells, (), spread_of=UNCONTROLLED)
        clock.lap("compare")
        signal.check()
        moved = self.reader.change(intact.answer, after)
        if moved is None:
            return view(comparison), output
        done = ran.record.changes
        return view(Effect(comparison=comparison, outputs=(moved,), done=done)), output

    def _record_of(self, text: str) -> Record:
        """The record of another text, which a change takes something from."""
        given, limits = {"text": text}, self.facts["limits"]
        inputs = self._inputs(parse_input(given, self.facts["fields"], limits, self.reads_with))
        return run_once(self.model, inputs, keeping_of({})).record

    def _inputs(self, read: ReadInput) -> Inputs:
        """What the model is run on.

        Raises:
            TextError: where there are more tokens than are read.
        """
        parsed = read.parsed.read_with(self.reads_with)
        if parsed.texts and not parsed.has_media:
            # Before it is run: an encoder-decoder writes its target while its input is made.
            self._check_length(len(tokenized(self.tokenizer, *parsed.texts)["input_ids"]))
        _, inputs = prepared(self.model, self.reads_with, parsed, {})
        # A large picture is many tokens of its text.
        for tokens in inputs.source:
            self._check_length(len(tokens))
        return inputs

    def _check_length(self, tokens: int) -> None:
        most = self.facts["limits"]["tokens"]
        more = "" if most == position_limit(self.model) else ", or allow more with --max-tokens"
        if tokens > most:
            raise TextError(
                f"The text has {tokens} tokens, and at most {most} are read at a time; shorten "
                f"it{more}"
            )


TEXTS: tuple[InputField, ...] = ("text", "text_b", "target")
MOST_PIXELS = 2**24
"""A small file may hold a picture that fills the memory when it is unpacked."""
MOST_SECONDS = 30
"""Of a sound: what Whisper hears at a time; a frame of wav2vec 2.0 is 20 ms."""
MOST_MESSAGES = 64


@dataclass(frozen=True)
class ReadInput:
    """An input that was checked.

    Args:
        parsed: as `headscope.capture` takes it.
        key: tells it from others.
    """

    parsed: ParsedInput = field(compare=False)
    key: str


def parse_input(
    given: Any, fields: Sequence[InputField], limits: LiveLimits, reads_with: Any
) -> ReadInput:
    """The field ``input`` of a request.

    Args:
        given: what came.
        fields: what the model takes.
        limits: what it may be at most.
        reads_with: tokenizer or processor of the model.

    Raises:
        TextError: a field that the model does not take, or a value that cannot be one.
        CaptureError: where there is nothing to read.
        FileError: where a sound cannot be read.
    """
    if not isinstance(given, Mapping) or not given:
        raise TextError("input is a JSON object with a text")
    for name in given:
        if name not in fields:
            raise TextError(
                f"This model takes {', '.join(fields)} and no {str(name)[:40]!r} in its input"
            )
    for name in TEXTS:
        if name in given:
            _check_text(name, given[name], limits["characters"])
    text = given.get("text")
    if "messages" in given:
        if text is not None:
            raise TextError("Give a text or messages, not both")
        text = _messages(given["messages"], limits["characters"])
    elif text is not None and "image" in given:
        mark = picture_mark_of(reads_with)
        text = text if not mark or mark in text else f"{mark} {text}".strip()
    options = _options(given, limits["picture_bytes"])
    key = json.dumps(dict(given), sort_keys=True)
    parsed = parse_call(text or None, given.get("text_b") or None, options)
    return ReadInput(_heard(parsed), key)


def _options(given: Mapping[str, Any], most: int) -> dict[str, Any]:
    """What is given with the texts, as options of `headscope.capture`."""
    options: dict[str, Any] = {}
    if given.get("target"):
        options["target"] = given["target"]
    if "image" in given:
        options["image"] = _picture(given["image"], most)
    if "audio" in given:
        options["sound"] = _sound(given["audio"], most)
    return options


def _check_text(name: str, given: Any, most: int) -> None:
    if not isinstance(given, str):
        raise TextError(f"{name} is a text, not {type(given).__name__}")
    if len(given) > most:
        raise TextError(
            f"{name} has {len(given):,} characters, and at most {most:,} are read at a time; "
            "shorten it"
        )


def _messages(given: Any, most: int) -> list[dict[str, Any]]:
    """The turns of a conversation that are not left out, by the names that they have among all; of
    texts alone: no page names files of this machine.
    """
    listed = given if isinstance(given, list) else []
    if not listed or len(listed) > MOST_MESSAGES or not all(map(_is_message, listed)):
        raise TextError(
            f'messages is a list of up to {MOST_MESSAGES} of {{"role": ..., "content": a text}}'
        )
    _check_text("messages", "".join(each["content"] for each in listed), most)
    named = zip(listed, numbered([str(each["role"]) for each in listed]), strict=True)
    return [{**each, "part": name} for each, name in named if not each.get("off")]


def _is_message(given: Any) -> bool:
    is_turn = isinstance(given, Mapping) and given.keys() - {"off"} == {"role", "content"}
    return is_turn and isinstance(given["content"], str)


def _decoded(given: Any, most: int, what: str) -> bytes:
    """The bytes of a file from its base64."""
    if not isinstance(given, str) or len(given) > most * 4 // 3 + 4:
        raise TextError(f"{what} of at most {most:,} bytes, in base64")
    try:
        return base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError) as error:
        raise TextError(f"{what} in base64, which this is not: {error}") from None


def _picture(given: Any, most: int) -> Any:
    """A picture from its file in base64."""
    from PIL import Image

    data = _decoded(given, most, "image is a PNG or JPEG")
    try:
        picture = Image.open(io.BytesIO(data), formats=("PNG", "JPEG"))
        if picture.width * picture.height > MOST_PIXELS:
            raise TextError(
                f"The image has {picture.width} x {picture.height} pixels; make it smaller than "
                f"{MOST_PIXELS:,} in all"
            )
        return picture.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise TextError(f"The image cannot be read as a PNG or JPEG: {error}") from None


def _sound(given: Any, most: int) -> io.BytesIO:
    """The file of a sound from its base64."""
    return io.BytesIO(_decoded(given, most, "audio is a WAV"))


def _heard(parsed: ParsedInput) -> ParsedInput:
    """The input with its sound read.

    Raises:
        FileError: where it is no sound.
        TextError: where it is too long.
    """
    if parsed.sound is None:
        return parsed
    samples, rate = parsed.sound()
    seconds = len(samples) / rate
    if seconds > MOST_SECONDS:
        raise TextError(
            f"The sound lasts {seconds:.1f} seconds, and at most {MOST_SECONDS} are heard at a "
            "time; cut it"
        )
    return parsed.in_memory()
