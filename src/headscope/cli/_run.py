"""Options of commands that run a model, and what these commands print."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import CycloptsError, Group, Parameter
from cyclopts.validators import Number

from headscope.errors import FileError, HeadscopeError, TextError

if TYPE_CHECKING:
    from headscope.capturing import ParsedInput
    from headscope.record import Record

MODEL = Group("Model")
"""The group of a model's options in the help of every command."""
ran: ContextVar[str] = ContextVar("ran", default="")
"""Where and how the model of this command ran."""
DEVICE = re.compile(r"auto|cpu|(cuda|mps|xpu)(:\d+)?")
Count = Annotated[int | None, Parameter(validator=Number(gte=1))]


def _device(_: Any, given: str | None) -> None:
    """Refuse an impossible name of a device before torch is imported; whether the device exists is
    known only to torch.
    """
    if given is not None and not DEVICE.fullmatch(given):
        raise ValueError(f"Expected auto, cpu, cuda, cuda:1, mps or xpu, got {given!r}.")


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True)
class MachineOptions:
    """Where and how the model runs."""

    device: Annotated[str, Parameter(validator=_device)] = "auto"
    """Device that the model runs on: auto (the first CUDA GPU if there is one, else the CPU), cpu,
    cuda, cuda:1, mps, xpu.
    """
    dtype: Literal["auto", "float32", "bfloat16", "float16", "float64"] = "auto"
    """Precision of the model's weights: auto is that of its files; on a CPU, half precision is
    loaded as float32.
    """
    revision: str | None = None
    """Branch, tag or commit of the model on the hub; by default the main branch."""
    batch_size: Count = None
    """Maximum number of texts that run at once; by default as many as have 4096 tokens
    (support: 2).
    """
    trust_remote_code: bool = False
    """Run code that comes with the model's files."""

    @property
    def loading(self) -> dict[str, Any]:
        """The options of `headscope.capturing.LoadOptions`."""
        names = ("device", "dtype", "revision", "trust_remote_code")
        return {name: getattr(self, name) for name in names}

    def read_many(self) -> dict[str, Any]:
        """The options of `headscope.capture_many` that say how many texts run at once."""
        return {} if self.batch_size is None else {"batch_size": self.batch_size}


def check_model(name: str | None, revision: str | None = None) -> None:
    """Raise where no model or tokenizer can have this name, a revision has no model, or the hub
    cannot be reached, before torch is imported.

    Raises:
        ModelError: naming the form of a model's name, or what could not be reached.
    """
    from headscope.capturing import check_name, check_revision, reached

    if name is not None:
        check_name(name)
    if revision is not None:
        check_revision(name, revision)
    if name is not None:
        reached(name, revision)


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True)
class FitOptions(MachineOptions):
    """Where a model runs, and which models do."""

    allow_unfit: bool = False
    """Run a model or texts that do not fit the question anyway: an untrained head, a model that
    sees the word it predicts, texts of mostly unknown tokens.
    """

    @property
    def fitting(self) -> dict[str, Any]:
        """The options of loading, and whether an unfit model is taken."""
        return self.loading | {"allow_unfit": self.allow_unfit}


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True)
class ModelOptions(FitOptions):
    """Which model runs, where, and what it reads."""

    model: str | None = None
    """Hub name or folder; by default all-MiniLM-L6-v2, from the extra "demo"."""
    target: str | None = None
    """Text for the decoder of an encoder-decoder; by default what the model generates."""
    target_tokenizer: str | None = None
    """Hub name or folder of the tokenizer of the target side, if it has its own."""
    truncate: bool = False
    """Truncate texts that are too long for the model, instead of stopping."""

    def check(self) -> None:
        """Raise where no model can have this name, before torch is imported.

        Raises:
            ModelError: naming the form of a model's name.
        """
        check_model(self.model, self.revision)
        check_model(self.target_tokenizer)

    def for_many(self) -> dict[str, Any]:
        """How many texts are read, as studies take it."""
        return {"truncate": self.truncate, "allow_unfit": self.allow_unfit} | self.read_many()

    def tokenizer_of_target(self) -> Any:
        """The tokenizer of the target side, loaded; None where it has none of its own."""
        name, trusted = self.target_tokenizer, self.trust_remote_code
        return name and load("load_tokenizer", name, trust_remote_code=trusted)


@Parameter(name="*")
@dataclass(frozen=True)
class Media:
    """Pictures, video and sound that the model reads, with a text or without."""

    image: Annotated[tuple[Path, ...], Parameter(consume_multiple=False)] = ()
    """A picture; give it several times if the text has a place for each."""
    video: Path | None = None
    """A video: a folder of pictures, a GIF, a .npy file, or a film (headscope[video])."""
    sound: Path | None = None
    """A sound file (.wav), at the sampling rate of the model."""

    @property
    def given(self) -> dict[str, Any]:
        """The options of `headscope.capture`."""
        image = self.image[0] if len(self.image) == 1 else list(self.image)
        given = {"image": image or None, "video": self.video, "sound": self.sound}
        return {name: value for name, value in given.items() if value is not None}

    def parsed(self, text: Any, text_b: str | None, target: str | None = None) -> ParsedInput:
        """The input, parsed, and its pictures and sound read, before anything is loaded.

        Raises:
            CycloptsError: where nothing was given, which is wrong usage.
            FileError: a file that does not exist.
            TextError: saying what cannot be combined.
        """
        from headscope.capturing import parse_call

        if text is None and not self.given:
            raise CycloptsError(
                msg="Expected a text, or a picture, video or sound with --image, --video or --sound"
            )
        if text_b is not None and self.given:
            raise TextError(f"A picture, video or sound goes with one text only; remove {text_b!r}")
        return parse_call(text, text_b, {"target": target} | self.given).in_memory()


@dataclass(frozen=True)
class Input:
    """What a command reads that runs a model on one input; the fields of its command line."""

    text: str | None = None
    """The text to read; leave it out for models of pictures or sounds alone."""
    text_b: str | None = None
    """The second text of a sentence pair."""
    chat: Path | None = None
    """A conversation to read in place of a text: a .json file with a list of messages, each with
    role and content.
    """
    media: Media = Media()
    model: ModelOptions = ModelOptions()

    def written(self, *others: object) -> Any:
        """The text, or the messages of the conversation; see `text_or_chat`."""
        return text_or_chat(self.text, self.chat, self.text_b, *others)

    def parsed(self) -> ParsedInput:
        """The input, parsed; see `Media.parsed`."""
        return self.media.parsed(self.written(), self.text_b, self.model.target)


def text_or_chat(text: str | None, chat: Path | None, *others: object) -> Any:
    """The text of a command, or the messages of a file, which may hold them in a field "messages".

    Args:
        text: that was given, or None.
        chat: the file, or None.
        *others: what else was given in its place.

    Raises:
        TextError: where a text is given with the file.
        FileError: where the file cannot be read, or holds something else.
    """
    if chat is None:
        return text
    if text is not None or any(others):
        raise TextError("Expected --chat alone, got a text with it; leave one of them out")
    from headscope.capturing.inputs.parse import is_conversation

    held = read_json(chat, "--chat")
    held = held.get("messages") if isinstance(held, dict) else held
    if not is_conversation(held):
        raise FileError(
            f"Expected a conversation in {chat}: a list such as "
            '[{"role": "user", "content": "Hello"}]'
        )
    return held


def read_json(file: Path, option: str) -> Any:
    """What a file of JSON holds that an option names.

    Raises:
        FileError: where it cannot be read.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise FileError(f"{option} is {file}: {error.strerror}") from None
    except ValueError as error:
        raise FileError(f"{option} is {file}, which is not JSON: {error}") from None


def captured(given: ParsedInput, options: ModelOptions, out: Any = None, **more: Any) -> Record:
    """The record of an input, which is parsed already.

    Args:
        given: the input.
        options: the model and how it runs.
        out: file that the record goes to layer by layer, after a line that says what will be
            stored; None for none.
        **more: options of `headscope.capture`.

    Raises:
        HeadscopeError: errors of the input, the model or the file to write.
    """
    options.check()
    model, tokenizer = load("load_for", options.model, given, **options.loading)
    from headscope.capturing import budget, capture

    more |= {"truncate": options.truncate, "target_tokenizer": options.tokenizer_of_target()}
    if out is not None:
        with status("Counting what is kept"), quiet():
            counted = budget(model, tokenizer, given, **more)
        say(f"This {counted}")
        more["out"] = out
    with status("Capturing"), quiet():
        return capture(model, tokenizer, given, **more)


def say(line: str) -> None:
    """Print one line of results to standard output."""
    print(line)  # noqa: T201


def say_written(path: Path, after: str = "") -> None:
    """Print which file was written, and its size."""
    say(f"Wrote {path.resolve()} ({path.stat().st_size / 1e6:.2f} MB){after}")


def say_what(record: Record) -> None:
    """Print what a record holds, whether some of its positions have no names, whether some layers
    were not seen, and what it was checked against.
    """
    say(record.summary)
    if record.model.ran:
        say(f"Ran on {record.model.ran}")
    if record.numbered:
        say(f"Some positions have no token and are numbered: {record.numbered}")
    if record.unseen:
        say(f"Layers whose attention could not be captured are left out: {record.unseen}")
    if record.verification:
        say(record.verification)


def load(how: str, name: str | None, *given: Any, **options: Any) -> Any:
    """A model or tokenizer that was loaded; where and how a model runs is noted for `say_where`.

    Args:
        how: function of `headscope.capturing`.
        name: of what is loaded.
        *given: further arguments.
        **options: of the function.
    """
    with status("Loading PyTorch and transformers"):
        capturing = import_module("headscope.capturing")
        function = getattr(capturing, how)
    with status(f"Loading {name or 'the demo model'}"), quiet():
        loaded = function(name, *given, **options)
    model = loaded[0] if isinstance(loaded, tuple) else loaded
    if how != "load_tokenizer":
        facts = capturing.facts_of(model)
        ran.set(f"{facts.name} ran on {facts.ran}")
    return loaded


def say_where() -> None:
    """Print where and how the model of a study ran, where one did."""
    if ran.get():
        say(ran.get())


@contextmanager
def status(what: str) -> Generator[None]:
    """Show a status line on stderr where it is a terminal; print nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def quiet() -> Generator[None]:
    """Keep transformers and the hub's client from writing bars, reports and retries between our
    lines.

    That positions are numbered, or layers not seen, is printed as a line of its own (`say_what`),
    not as a warning.
    """
    from huggingface_hub.utils import logging as hub
    from transformers.utils import logging as transformers

    levels = [(library, library.get_verbosity()) for library in (hub, transformers)]
    for library, _ in levels:
        library.set_verbosity_error()
    transformers.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            for told in ("Some positions have no names", "The attention of some layers was not"):
                warnings.filterwarnings("ignore", message=told)
            yield
    finally:
        for library, level in levels:
            library.set_verbosity(level)
        transformers.enable_progress_bar()


PARTLY = 3
"""Exit code of a command that did its work except for some of the texts."""
NAMED = 10


class LeftOut:
    """Texts that a run of the command line left out."""

    def __init__(self) -> None:
        self.begin()

    def begin(self, what: str = "text", of: int = 0, where: str = "") -> None:
        """Start counting from zero.

        Args:
            what: the noun for one of them, such as text.
            of: how many there are; 0 where that is not known.
            where: what they belong to, for messages.
        """
        self.what, self.of, self.where, self.listed = what, of, where, ""
        self.names: dict[str, str] = {}

    def note(self, name: object, error: HeadscopeError | str) -> None:
        """Report one that is left out, on stderr.

        Args:
            name: its name, or its number, counted from 1.
            error: the reason.
        """
        if str(name) in self.names:
            return
        self.names[str(name)] = str(error)
        why = " ".join(str(error).split())
        sys.stderr.write(f"headscope: {self.what} {name}{self.where} was left out: {why}\n")

    def number(self, index: int, error: HeadscopeError) -> None:
        """Report one by its number, counted from 0, as `headscope.capture_many` gives it."""
        self.note(index + 1, error)

    def losing(self, lost: dict[int, HeadscopeError], *, alone: bool = False) -> Any:
        """What reports one by its number and keeps it in ``lost``; one alone is raised."""

        def lose(index: int, error: HeadscopeError) -> None:
            if alone:
                raise error
            lost[index] = error
            self.number(index, error)

        return lose

    def end(self) -> int:
        """Print how many were left out as the last line of stderr, and return the exit code."""
        if not self.names:
            return 0
        count = len(self.names)
        listed = [self.listed] if self.listed else list(self.names)[:NAMED]
        more = f" and {count - NAMED} more" if count > NAMED and not self.listed else ""
        of = f" of {self.of}" if self.of else ""
        s, were = ("s", "were") if self.of > 1 or count > 1 else ("", "was")
        told = f"{count}{of} {self.what}{s}{self.where} {were} left out: {', '.join(listed)}{more}"
        sys.stderr.write(f"headscope: {told}\n")
        return PARTLY


left_out = LeftOut()
"""The texts that this command left out: one process runs one command, and `run` sets its exit
code.
"""
