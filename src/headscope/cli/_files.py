"""Files that commands write, and heads, layers and tokens as they are written on the command line.

Files are checked before any long work, and never take the place of a file of another kind: a page
must not replace a record that took an hour by a mistyped name.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cyclopts import Parameter

from headscope.cli._run import say, status
from headscope.errors import CaptureError, FigureError, FileError, RecordError, TextError

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
READ = 512


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
            say(f"Wrote {self.file.resolve()}")
        if self.plot is not None:
            with status("Drawing"):
                path = result.plot(self.plot, **look)
            say(f"Wrote {path.resolve()}")
        if self.save is not None:
            say(f"Wrote {Path(result.save(self.save)).resolve()}")


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
    from headscope.storage import written_whole

    with written_whole(out) as temporary:
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
    if out is None:
        return
    check_writable(out, PAGE if kinds == PAGES else None)
    if out.suffix.lower() not in kinds:
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
    from headscope.storage import check_parent

    if out.is_dir():
        raise FileError(f"Expected a file for --out, got the folder {out}")
    check_parent(out)
    there, kind = kind_of(out), out.suffix.lower() if kind is None else kind
    if not overwriting.get() and there not in (None, kind):
        raise FileError(
            f"{out} already exists and is {_named(there)}; add {FORCE} to replace it with "
            f"{_named(kind)}, or choose another name"
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


def _named(kind: str | None) -> str:
    names = {RECORD: "a record", PAGE: "a page", "": "a file of another kind"}
    return names.get(kind or "", f"a file {kind}")


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
    is_from_end = given is not None and -len(numbers) <= given < 0
    return numbers[given] if given is not None and is_from_end else given


def position_or_word(given: str) -> int | str:
    """A token from the command line: a position from 0, or its word."""
    return int(given) if given.lstrip("-").isdecimal() else given
