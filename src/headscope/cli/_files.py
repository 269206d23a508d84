"""What commands print and write; and heads, layers and tokens as they are written on the command
line.

Files are checked before any long work, and never take the place of a file of another kind: a page
must not replace a record that took an hour by a mistyped name.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cyclopts import Parameter

from headscope.errors import (
    CaptureError,
    FigureError,
    FileError,
    HeadscopeError,
    RecordError,
    TextError,
)

FORCE = "--force"
overwriting: ContextVar[bool] = ContextVar("overwriting", default=False)
"""Whether a file of another kind may be replaced, in the command that runs."""
STARTS = {b"%PDF": ".pdf", b"\x89PNG": ".png", b"PK\x03\x04": ".npz", b"PAR1": ".parquet"}
"""First bytes of files of known kinds."""
RECORD = ".safetensors"
PAGE = ".html"
PAGES = (PAGE, ".htm", ".xhtml")
TABLES = (".csv", ".json", ".parquet")
PICTURES = (".svg", ".pdf", ".png")
KINDS = {RECORD: "a record", PAGE: "a page", "": "a file of another kind"}
READ = 512


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

    def begin(self, what: str = "text", of: int = 0) -> None:
        """Start counting from zero.

        Args:
            what: the noun for one of them, such as text.
            of: how many there are; 0 where that is not known.
        """
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
        why = " ".join(str(error).split())
        sys.stderr.write(f"headscope: {self.what} {name} was left out: {why}\n")

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


@Parameter(name="*")
@dataclass(frozen=True)
class Results:
    """Where a result is written."""

    out: Path | None = None
    """Write the table of the result to this file (.csv, .json or .parquet), or its page (.html),
    besides printing it.
    """
    plot: Path | None = None
    """Draw the result to this file (.svg, .pdf or .png)."""
    save: Path | None = None
    """Save the result with all its numbers to this file (.safetensors), for headscope.load."""

    @property
    def folder(self) -> Path | None:
        """The folder of a run that ``--out`` names; None for a file."""
        return self.out if is_folder(self.out) else None

    @property
    def file(self) -> Path | None:
        """The file of a table or page that ``--out`` names; None for a folder."""
        return None if is_folder(self.out) else self.out

    def check(self, *, folder: bool = False) -> None:
        """Raise where a result could not be written.

        Args:
            folder: whether ``--out`` may be the folder of a run.

        Raises:
            FileError: saying why.
            FigureError: where figures cannot be drawn.
        """
        check_suffix("--out", self.file if folder else self.out, (*TABLES, PAGE))
        check_suffix("--plot", self.plot, PICTURES)
        check_suffix("--save", self.save, (RECORD,))
        if str(self.file).endswith(".parquet") and find_spec("pyarrow") is None:
            raise FileError(
                f"{self.file} needs pyarrow, which is not installed: pip install "
                "'headscope[tables]', or use .csv"
            )
        if self.plot is not None and find_spec("matplotlib") is None:
            raise FigureError("--plot needs matplotlib: pip install 'headscope[figures]'")

    def write(self, result: Any, **look: Any) -> None:
        """Write the table or page of a result, draw it, and save it, where files are given.

        Args:
            result: a `headscope.results.Result`.
            **look: options of its figure.
        """
        if self.file is not None:
            with status("Writing"):
                if self.file.suffix == PAGE:
                    result.view().save(self.file)
                else:
                    write_table(self.file, result.columns(), result.to_arrow)
        if self.plot is not None:
            with status("Drawing"):
                result.plot(self.plot, **look)
        if self.save is not None:
            result.save(self.save)
        for path in filter(None, (self.file, self.plot, self.save)):
            say(f"Wrote {path.resolve()}")


@Parameter(name="*")
@dataclass(frozen=True)
class RunResults(Results):
    """Where the result of a study of many texts is written."""

    out: Path | None = None
    """Write the table of the result to this file (.csv, .json or .parquet), or its page (.html),
    besides printing it; or keep the finished parts of a run in this folder, so that the same
    command resumes after them.
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


def without_force(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments without ``--force``, and whether it was among them; after ``--`` all are
    values.
    """
    listed = list(arguments)
    end = listed.index("--") if "--" in listed else len(listed)
    kept = [each for each in listed[:end] if each != FORCE]
    return kept + listed[end:], len(kept) < end


def check_suffix(option: str, out: Path | None, kinds: Sequence[str]) -> None:
    """Raise where a file of one of these kinds could not be written, before any long work.

    Raises:
        FileError: saying why.
    """
    if out is not None:
        check_writable(out, PAGE if kinds == PAGES else None)
    if out is not None and out.suffix.lower() not in kinds:
        use = f"; use {out.with_suffix(kinds[0])}" if kinds in ((RECORD,), PAGES) else ""
        wanted = f"a {kinds[0]} file" if use else ", ".join(kinds)
        raise FileError(f"Expected {wanted} for {option}, got {out}{use}")


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
    if folder.suffix == RECORD:
        raise FileError(f"Expected a folder for --out of several, got the name of a file, {folder}")
    if folder.exists() and not folder.is_dir():
        raise FileError(f"Expected a folder for --out, got the file {folder}")
    if not folder.exists():
        check_writable(folder)
    elif not os.access(folder, os.W_OK):
        raise FileError(f"Cannot write {folder}: no permission to write to the folder")


def check_writable(out: Path, kind: str | None = None) -> None:
    """Raise where a file could not be written, or would replace one of another kind, before any
    long work.

    Args:
        out: the file.
        kind: its kind, as a suffix; by default that of its name.

    Raises:
        FileError: saying why.
    """
    if out.is_dir():
        raise FileError(f"Expected a file for --out, got the folder {out}")
    hs.storage.check_parent(out)
    there, kind = kind_of(out), out.suffix.lower() if kind is None else kind
    if not overwriting.get() and there not in (None, kind):
        old, new = (KINDS.get(each, f"a file {each}") for each in (there or "", kind))
        raise FileError(
            f"{out} already exists and is {old}; add {FORCE} to replace it with {new}, or choose "
            "another name"
        )


def kind_of(path: Path) -> str | None:
    """The kind of a file, as a suffix, by its first bytes or else by its name; None where it does
    not exist or is empty.
    """
    try:
        with path.open("rb") as file:
            start = file.read(READ)
    except OSError:
        return None
    if not start or not path.is_file():
        return None
    for mark, kind in STARTS.items():
        if start.startswith(mark):
            return kind
    # A .safetensors file begins with the length of its header in eight bytes, and the header is
    # JSON. The limit excludes text whose ninth character happens to be a brace.
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 2**40:
        return RECORD
    is_page = start.lstrip().lower().startswith((b"<!doctype html", b"<html"))
    return PAGE if is_page else path.suffix.lower()


LAYER_AND_HEADS = re.compile(r"(\d+)(?:-(\d+(?:,\d+)*))?")
HEAD = re.compile(r"(?:(.+):)?(\d+)-(\d+)")


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
        match = LAYER_AND_HEADS.fullmatch(each.strip())
        if match is None:
            where = f" for {option}" if option else ""
            raise RecordError(
                f"Expected layer and heads{where}, such as 2-0, 2-0,3,5, or 2 for all heads, "
                f"got {each!r}"
            )
        layer, heads = match.groups()
        places.append((int(layer), [int(head) for head in heads.split(",")] if heads else []))
    return places


def parse_heads(written: Iterable[str]) -> list[tuple] | None:
    """Heads as they are given for ``--keep-heads``: 12-7, or cross:3-0; None for all.

    Raises:
        CaptureError: where one is no head.
    """
    heads: list[tuple] = []
    for each in written:
        match = HEAD.fullmatch(each)
        if match is None:
            raise CaptureError(
                f"Expected layer and head for --keep-heads, such as 12-7 or cross:3-0, got {each!r}"
            )
        stack, layer, head = match.groups()
        heads.append((*([stack] if stack else []), int(layer), int(head)))
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
