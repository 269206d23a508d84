"""Options of commands that run a model, on one input or as a study of many; and what these commands
print.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import CycloptsError, Group, Parameter
from cyclopts.validators import Number

from headscope.cli._files import Results, RunResults, check_folder, hs, left_out, quiet, say, status
from headscope.errors import FileError, HeadscopeError, RunError, TextError

if TYPE_CHECKING:
    from headscope.capturing import Outcome, ParsedInput
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


def check_model(name: str | None, revision: str | None = None) -> None:
    """Raise where no model or tokenizer can have this name, a revision has no model, or the hub
    cannot be reached, before torch is imported.

    Raises:
        ModelError: naming the form of a model's name, or what could not be reached.
    """
    if revision is not None:
        hs.capturing.check_revision(name, revision)
    if name is not None:
        hs.capturing.check_name(name)
        hs.capturing.reached(name, revision)


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

    @property
    def reading(self) -> dict[str, Any]:
        """How many texts are read, as `headscope.capture_many` and studies take it."""
        many = {} if self.batch_size is None else {"batch_size": self.batch_size}
        return {"allow_unfit": self.allow_unfit} | many


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

    def tokenizer_of_target(self) -> Any:
        """The tokenizer of the target side, loaded; None where it has none of its own."""
        name, trusted = self.target_tokenizer, self.trust_remote_code
        return name and load("load_tokenizer", name, trust_remote_code=trusted)


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
    image: Annotated[tuple[Path, ...], Parameter(consume_multiple=False)] = ()
    """A picture; give it several times if the text has a place for each."""
    video: Path | None = None
    """A video: a folder of pictures, a GIF, a .npy file, or a film (headscope[video])."""
    sound: Path | None = None
    """A sound file (.wav), at the sampling rate of the model."""
    model: ModelOptions = ModelOptions()

    @property
    def media(self) -> dict[str, Any]:
        """Pictures, video and sound, as options of `headscope.capture`."""
        image = self.image[0] if len(self.image) == 1 else list(self.image)
        given = {"image": image or None, "video": self.video, "sound": self.sound}
        return {name: value for name, value in given.items() if value is not None}

    def written(self, *others: object) -> Any:
        """The text, or the messages of the conversation; see `text_or_chat`."""
        return text_or_chat(self.text, self.chat, self.text_b, *others)

    def parsed(self) -> ParsedInput:
        """The input, parsed, and its pictures and sound read, before anything is loaded.

        Raises:
            CycloptsError: where nothing was given, which is wrong usage.
            FileError: a file that does not exist.
            TextError: saying what cannot be combined.
        """
        text, text_b, media = self.written(), self.text_b, self.media
        if text is None and not media:
            raise CycloptsError(
                msg="Expected a text, or a picture, video or sound with --image, --video or --sound"
            )
        if text_b is not None and media:
            raise TextError(f"A picture, video or sound goes with one text only; remove {text_b!r}")
        options = {"target": self.model.target} | media
        return hs.capturing.parse_call(text, text_b, options).in_memory()


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
    held = read_json(chat, "--chat")
    held = held.get("messages") if isinstance(held, dict) else held
    if not hs.capturing.is_conversation(held):
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
    more |= {"truncate": options.truncate, "target_tokenizer": options.tokenizer_of_target()}
    if out is not None:
        with status("Counting what is kept"), quiet():
            counted = hs.capturing.budget(model, tokenizer, given, **more)
        say(f"This {counted}")
        more["out"] = out
    with status("Capturing"), quiet():
        return hs.capturing.capture(model, tokenizer, given, **more)


def say_what(record: Record) -> None:
    """Print what a record holds, whether some of its positions have no names, whether some layers
    were not seen, and what it was checked against.
    """
    for before, told in (
        ("", record.summary),
        ("Ran on ", record.model.ran),
        ("Some positions have no token and are numbered: ", record.numbered),
        ("Layers whose attention could not be captured are left out: ", record.unseen),
        ("", record.verification),
    ):
        if told:
            say(f"{before}{told}")


def load(how: str, name: str | None, *given: Any, **options: Any) -> Any:
    """A model or tokenizer that was loaded; where and how a model runs is noted for `say_where`.

    Args:
        how: function of `headscope.capturing`.
        name: of what is loaded.
        *given: further arguments.
        **options: of the function.
    """
    with status("Loading PyTorch and transformers"):
        function = getattr(hs.capturing, how)
    with status(f"Loading {name or 'the demo model'}"), quiet():
        loaded = function(name, *given, **options)
    model = loaded[0] if isinstance(loaded, tuple) else loaded
    if how != "load_tokenizer":
        facts = hs.capturing.facts_of(model)
        ran.set(f"{facts.name} ran on {facts.ran}")
    return loaded


def tell(result: Any, results: Results, **look: Any) -> None:
    """Print a result, and where the model ran, where one did; and write its files."""
    say(str(result))
    say_where()
    results.write(result, **look)


def say_where() -> None:
    """Print where and how the model of a study ran, where one did."""
    if ran.get():
        say(ran.get())


FAILED = "failed.jsonl"
TEXT = "text"


@Parameter(name="*", group=Group("Many texts"))
@dataclass(frozen=True)
class CorpusOptions:
    """Who measures the texts."""

    workers: Count = None
    """Number of processes that run at once."""
    dask: str | None = None
    """Address of a Dask scheduler that runs the parts, such as tcp://10.0.0.1:8786; local starts
    one on this machine, with --workers processes.
    """
    part_size: Count = None
    """Texts in a part, which is kept when it is done; by default 64 to 1,000."""

    @contextmanager
    def running(self, folder: Path | None) -> Generator[dict[str, Any]]:
        """Options of `headscope.corpus.RunOptions`, for a ``with`` block; what was left out is
        counted at its end.

        Raises:
            RunError: where Dask is not installed, or no scheduler answers.
            FileError: where the folder cannot be written to.
        """
        if folder is not None:
            check_folder(folder)
        reasons: list[HeadscopeError] = []
        options: dict[str, Any] = {"part_size": self.part_size, "out": folder}
        options["on_error"] = lambda _, error: reasons.append(error)
        if self.dask is None:
            yield options | {"workers": self.workers}
        elif self.workers is not None and self.dask != "local":
            raise RunError(
                "--workers is for this machine or --dask local; a cluster has its own workers"
            )
        else:
            with hs.corpus.dask_cluster(self.dask, self.workers) as executor:
                yield options | {"executor": executor}
        if reasons:
            # How many there were, and where they are named, stands on the last line.
            why = " ".join(str(reasons[0]).split())
            sys.stderr.write(f"headscope: the first input that was left out: {why}\n")
            left_out.listed = "see above" if folder is None else f"see {folder / FAILED}"
            # The end counts names: here numbers stand in for them.
            left_out.names |= {str(number): "" for number in range(len(reasons))}


@dataclass(frozen=True)
class Study:
    """What a study is asked, whatever its texts are."""

    results: RunResults = RunResults()
    corpus: CorpusOptions = CorpusOptions()
    model: ModelOptions = ModelOptions()

    def __post_init__(self) -> None:
        self.results.check(folder=True)

    @property
    def in_parts(self) -> bool:
        """Whether the texts are measured as a run in parts: with workers, or with a folder."""
        return self.results.folder is not None or self.corpus != CorpusOptions()

    @contextmanager
    def reading(
        self, groups: Any = None, *, classifies: bool = False
    ) -> Generator[tuple[tuple[Any, Any], dict[str, Any]]]:
        """What a study reads with, for a ``with`` block: the model and its tokenizer, or the name
        of the model where the study runs in parts; and how it reads.

        Args:
            groups: the documents of the texts, where these are known.
            classifies: whether the model must have a trained classifier.
        """
        model = self.model
        if model.target is not None or model.target_tokenizer is not None:
            raise TextError(
                "--target and --target-tokenizer are for commands that read one text; remove them"
            )
        model.check()
        how: dict[str, Any] = {"truncate": model.truncate} | model.reading
        how |= {} if groups is None else {"groups": groups}
        if self.in_parts:
            with self.corpus.running(self.results.folder) as more:
                yield (model.model, None), how | model.loading | more
            return
        loader = "load_classifier" if classifies else "load_model"
        source = load(loader, model.model, **model.loading)
        if classifies:
            source = source, load("load_tokenizer", model.model, **model.loading)
        how["progress"] = True
        if left_out.what == TEXT:
            # One of many texts may be left out; a single one that cannot be read is an error.
            # What is not a plain text is reported by the result.
            how["on_error"] = left_out.losing(left_out.of)[0]
        yield source, how

    def run(
        self, study: str, given: Any, groups: Any = None, *, what: str = "", **options: Any
    ) -> Any:
        """What the function of `headscope.studies` of this name finds in what is given, each of
        which is called ``what`` where it is not a plain text; see `reading`.
        """
        if what:
            left_out.begin(what, len(given))
        with self.reading(groups, classifies=study == "faithfulness") as (source, how):
            return getattr(hs.studies, study)(*source, given, **how | options)

    def tell(self, result: Any, **look: Any) -> None:
        """Print a result, and where the model ran; and write its files.

        Args:
            result: a `headscope.results.Result`.
            **look: options of its figure.
        """
        # Plain texts were reported by their numbers while they were read.
        if not self.in_parts and left_out.what != TEXT:
            left_out.names |= getattr(result, "left_out", None) or {}
        tell(result, self.results, **look)

    def config(self) -> Any:
        """The configuration of the model, or of the part of it that reads text."""
        self.model.check()
        config = hs.capturing.loading.config_of(self.model.model, **self.model.loading)
        return getattr(config, "get_text_config", lambda: config)()


@dataclass(frozen=True)
class TextStudy(Study):
    """What a study of plain texts is asked."""

    text: str | None = None
    """The text to read."""
    text_b: str | None = None
    """The second text of a sentence pair."""
    texts: Path | None = None
    """A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields text,
    text_b and group (the document of a text; intervals are then over documents).
    """
    chat: Path | None = None
    """A conversation to read in place of a text: a .json file with a list of messages, each with
    role and content.
    """

    def given(self) -> tuple[list[Outcome], Any]:
        """The texts, parsed, and the documents that they are of, where these are known."""
        parsed = parse_texts(self.text, self.text_b, self.texts, self.chat)
        return parsed, hs.capturing.groups_in(self.texts)


def parse_texts(
    text: str | None, text_b: str | None, texts: Path | None, chat: Path | None = None
) -> list[Outcome]:
    """One text, a pair, a conversation, or the texts of a file.

    Raises:
        TextError: where both a text and a file are given, or neither.
        FileError: where the file cannot be read.
    """
    text = text_or_chat(text, chat, text_b, texts)
    if (text is None) == (texts is None):
        raise TextError(
            "Expected a text (or a pair), or a file of texts with --texts, or of a conversation "
            "with --chat"
        )
    if texts is None:
        return alone_or_all([hs.capturing.parse_call(text or "", text_b)])
    return alone_or_all(hs.capturing.parse_texts(texts))


def alone_or_all(outcomes: Any, what: str = TEXT) -> list[Outcome]:
    """Parsed texts, which are counted; where there are many, one that cannot be read is left out
    later, with its number.

    Args:
        outcomes: of reading them.
        what: one of them is called.

    Raises:
        HeadscopeError: why a single text cannot be read.
    """
    listed = list(outcomes)
    left_out.begin(what, len(listed))
    if len(listed) == 1 and isinstance(listed[0], HeadscopeError):
        raise listed[0]
    return listed


@contextmanager
def warnings_as_lines(*parts: str) -> Generator[None]:
    """Print our warnings that contain one of these parts each time that they are given."""
    with warnings.catch_warnings():
        for part in parts:
            warnings.filterwarnings("always", message=f".*{part}")
        yield
