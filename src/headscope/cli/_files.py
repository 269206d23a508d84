"""What commands print and write; and heads, layers and tokens as they are written on the command
line.

Files are checked before any long work. The suffix decides what is written, so a page never takes
the place of a record by a mistyped name.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import CaptureError, FileError, HeadscopeError, RecordError, TextError

if TYPE_CHECKING:
    from headscope.capturing import Outcome
    from headscope.record import Record


RECORD = ".safetensors"
PAGE = ".html"
PAGES = (PAGE, ".htm", ".xhtml")
TABLES = (".csv", ".json", ".parquet")
PICTURES = (".svg", ".pdf", ".png")


class Packages:
    """Our packages, each imported when something of it is used: help and refusals come before NumPy
    and torch are loaded.
    """

    def __getattr__(self, name: str) -> Any:
        return import_module(f"headscope.{name}")


hs = Packages()


def say(line: str) -> None:
    """Print one line of results to standard output."""
    print(line)  # noqa: T201


@contextmanager
def status(what: str) -> Generator[None]:
    """Show a status line on stderr where it is a terminal; print nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def say_written(path: Path, after: str = "") -> None:
    """Print which file was written, and its size."""
    say(f"Wrote {path.resolve()} ({path.stat().st_size / 1e6:.2f} MB){after}")


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

    def begin(self, what: str = "text", of: int = 0, file: Path | None = None) -> None:
        """Start counting from zero.

        Args:
            what: the noun for one of them, such as text.
            of: how many there are; 0 where that is not known.
            file: that they are read of, if any.
        """
        self.file, self.rows = file, []
        self.what, self.of, self.listed = what, of, ""
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
        self.tell(error, name)

    def tell(self, error: HeadscopeError | str, name: object = "", *, text: Any = None) -> None:
        """Say on stderr what is left out, in which line of the file, where that is known, and why.

        Args:
            error: the reason.
            name: as of `note`; empty for a text of a run, which is known by what it says.
            text: what it says.
        """
        why, told, at = " ".join(str(error).split()), f"{name}", name
        if self.file is not None and (text is not None or isinstance(name, int)):
            self.rows = self.rows or hs.storage.read_rows(self.file)
            if text is not None:
                at = next((n for n, row in enumerate(self.rows, 1) if text in row.values()), None)
            if isinstance(at, int):
                place = hs.storage.place_of(self.rows[at - 1], str(self.file), at)
                # The error of a row names its place itself.
                told += f" ({place})" * (place not in why)
        sys.stderr.write(f"headscope: {' '.join([self.what, *told.split()])} was left out: {why}\n")

    def end_run(self, reasons: Sequence[HeadscopeError], kept: Path | None) -> None:
        """Report those of a run in parts; how many there were stands on the last line.

        Args:
            reasons: of each.
            kept: the file that names all of them, if any.
        """
        rows = [] if kept is None else hs.storage.read_rows(kept)
        texts = [row.get(TEXT) for row in rows] or [None] * NAMED
        for reason, text in zip(reasons[:NAMED], texts, strict=False):
            self.tell(reason, text=text)
        self.listed = "see above" if kept is None else f"see {kept}"
        # The end counts names: here numbers stand in for them.
        self.names |= {str(number): "" for number in range(len(reasons))}

    def losing(self, of: int) -> tuple[Any, Iterator[int]]:
        """What reports one by its number, counted from 0, and the numbers, counted from 1, of those
        that were not left out so far; the error of one alone is raised.

        Args:
            of: how many there are.
        """
        lost: set[int] = set()

        def lose(index: int, error: HeadscopeError) -> None:
            if of == 1:
                raise error
            lost.add(index + 1)
            self.note(index + 1, error)

        return lose, (number for number in range(1, of + 1) if number not in lost)

    def end(self) -> int:
        """Print how many were left out as the last line of stderr, and return the exit code."""
        if not self.names:
            return 0
        count = len(self.names)
        listed = [self.listed] if self.listed else list(self.names)[:NAMED]
        more = f" and {count - NAMED} more" if count > NAMED and not self.listed else ""
        of = f" of {self.of}" if self.of else ""
        s, were = ("s", "were") if self.of > 1 or count > 1 else ("", "was")
        told = f"{count}{of} {self.what}{s} {were} left out: {', '.join(listed)}{more}"
        sys.stderr.write(f"headscope: {told}\n")
        return PARTLY


left_out = LeftOut()
"""The texts that this command left out: one process runs one command, and `run` sets its exit
code.
"""


def is_folder(out: Path | None) -> bool:
    """Whether ``--out`` names the folder of a run, and not a file."""
    return out is not None and (out.is_dir() or not out.suffix)


def write_table(out: Path, columns: Mapping[str, Iterable[Any]], to_arrow: Any) -> None:
    """Write a table as .csv, .json or .parquet, whole or not at all."""
    with hs.storage.written_whole(out) as temporary:
        if out.suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(to_arrow(), temporary)
            return
        rows = zip(*columns.values(), strict=True)
        with Path(temporary).open("w", encoding="utf-8", newline="") as file:
            if out.suffix == ".csv":
                csv.writer(file).writerows([columns, *rows])
            else:
                plain = [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]
                file.write(json.dumps(plain, indent=1, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    """A value for JSON, which has no infinity and no NaN: text for the one, null for the other."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)


def check_file(option: str, out: Path | None, kinds: Sequence[str]) -> None:
    """Raise where a file of one of these kinds could not be written, before any long work.

    Raises:
        FileError: saying why.
    """
    if out is None:
        return
    if out.is_dir():
        raise FileError(f"Expected a file for {option}, got the folder {out}")
    if out.suffix.lower() not in kinds:
        use = f"; use {out.with_suffix(kinds[0])}" if kinds in ((RECORD,), PAGES) else ""
        wanted = f"a {kinds[0]} file" if use else ", ".join(kinds)
        raise FileError(f"Expected {wanted} for {option}, got {out}{use}")
    hs.storage.check_parent(out)
    # A .safetensors file begins with the length of its header, in eight bytes, and the header is
    # JSON; the limit excludes a text whose ninth character is a brace.
    if out.is_file() and RECORD not in kinds:
        with out.open("rb") as file:
            start = file.read(9)
        if start[8:] == b"{" and int.from_bytes(start[:8], "little") < 2**40:
            raise FileError(f"{out} holds a record or a result; choose another name for {option}")


def check_absent(given: Mapping[str, object], refusal: str) -> None:
    """Raise where one of these options was given, which do not go with others.

    Raises:
        TextError: with its name in the place of {}.
    """
    for name, value in given.items():
        if value:
            raise TextError(refusal.replace("{}", name))


def check_folder(folder: Path) -> None:
    """Raise where files could not be written into a folder, before any long work.

    Raises:
        FileError: saying why.
    """
    if not is_folder(folder) or folder.is_file():
        raise FileError(f"Expected a folder for --out, got {folder}; give a name without a suffix")
    hs.storage.check_parent(folder / "records" if folder.is_dir() else folder)


PLACE = re.compile(r"(?:(.+):)?(\d+)(?:-(\d+(?:,\d+)*))?")


def parse_places(written: Iterable[str], option: str = "") -> list[tuple[int, list[int]]]:
    """Layer and heads of each ``2-0``, ``2-0,3,5``, or ``2``, which names no heads: all of them.

    Args:
        written: what was given.
        option: the option that it was given for, named in the message.

    Raises:
        RecordError: where one has another form.
    """
    places = []
    for each in written:
        match = PLACE.fullmatch(each.strip())
        if match is None or match[1]:
            where = f" for {option}" if option else ""
            raise RecordError(
                f"Expected layer and heads{where}, such as 2-0, 2-0,3,5, or 2 for all heads, "
                f"got {each!r}"
            )
        places.append((int(match[2]), list(map(int, match[3].split(","))) if match[3] else []))
    return places


def parse_heads(written: Iterable[str]) -> list[tuple] | None:
    """Heads as they are given for ``--keep-heads``: 12-7, 12-7,8, or cross:3-0; None for all.

    Raises:
        CaptureError: where one is no head.
    """
    heads: list[tuple] = []
    for each in written:
        match = PLACE.fullmatch(each)
        if match is None or match[3] is None:
            raise CaptureError(
                f"Expected layer and head for --keep-heads, such as 12-7 or cross:3-0, got {each!r}"
            )
        stack = [match[1]] if match[1] else []
        heads += [(*stack, int(match[2]), int(head)) for head in match[3].split(",")]
    return heads or None


def layer_number(given: int | None, numbers: Sequence[int]) -> int | None:
    """The number of a layer from the command line, which counts from the end where negative.

    Args:
        given: a number from 0, or -1 for the last layer; None for none.
        numbers: numbers of all layers.
    """
    # Numbers out of range are returned as they are: the record or the model then raises.
    return given if given is None or not -len(numbers) <= given < 0 else numbers[given]


def position_or_word(given: str) -> int | str:
    """A token from the command line: a position from 0, or its word."""
    return int(given) if given.lstrip("-").isdecimal() else given


TEXT = "text"
ran: ContextVar[str] = ContextVar("ran", default="")
"""Where and how the model of this command ran."""


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
    return messages_of(chat, "--chat")


def messages_of(chat: Path, option: str) -> Any:
    """The messages of a file, which may hold them in a field "messages".

    Raises:
        FileError: where the file cannot be read, or holds something else.
    """
    held = read_json(chat, option)
    if isinstance(held, dict) and "documents" in held:
        raise FileError(f"{chat} has documents beside its messages; give them the role document")
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


def say_where() -> None:
    """Print where and how the model of a study ran, where one did."""
    if ran.get():
        say(ran.get())


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
    return alone_or_all(hs.capturing.parse_texts(texts), file=texts)


def alone_or_all(outcomes: Any, what: str = TEXT, file: Path | None = None) -> list[Outcome]:
    """Parsed texts, which are counted; where there are many, one that cannot be read is left out
    later, with its number.

    Args:
        outcomes: of reading them.
        what: one of them is called.
        file: that they were read of, if any.

    Raises:
        HeadscopeError: why a single text cannot be read.
    """
    listed = list(outcomes)
    left_out.begin(what, len(listed), file)
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
