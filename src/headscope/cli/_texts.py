"""Texts from files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

from headscope.errors import FileError

Text = str | tuple[str, str]
SUFFIXES = (".txt", ".jsonl", ".csv", ".parquet")
FIRST, SECOND = "text", "text_b"


def read_texts(path: Path) -> list[Text]:
    """The texts of a file: .txt a text a line; .jsonl, .csv, .parquet the field "text", and "text_b" for a pair.

    A line of .jsonl may also be a string, or a list of two. Empty lines are left out.

    Raises:
        FileError: where the file cannot be read or holds no text.
    """
    if path.suffix not in SUFFIXES:
        raise FileError(f"--texts is {path}; texts are read from {', '.join(SUFFIXES)}")
    try:
        found = list(_READERS[path.suffix](path))
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(f"{path} is not there") from None
    except (OSError, ValueError, csv.Error) as error:
        raise FileError(f"{path} cannot be read: {error}") from error
    if not found:
        raise FileError(f"{path} holds no text")
    return found


def _lines(path: Path) -> Iterator[Text]:
    yield from (line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def _jsonl(path: Path) -> Iterator[Text]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise FileError(f"{path}, line {number}: {error}") from None
        yield _text_of(row, f"{path}, line {number}")


def _csv(path: Path) -> Iterator[Text]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from (_text_of(row, f"{path}, row {number}") for number, row in enumerate(csv.DictReader(file), 1))


def _parquet(path: Path) -> Iterator[Text]:
    from pyarrow import parquet

    rows = parquet.read_table(path).to_pylist()
    yield from (_text_of(row, f"{path}, row {number}") for number, row in enumerate(rows, 1))


def _text_of(row: object, place: str) -> Text:
    parts = [row.get(FIRST), row.get(SECOND)] if isinstance(row, dict) else row if isinstance(row, list) else [row]
    given = [part for part in parts if part is not None and part != ""]
    if not given or parts[0] in (None, "") or len(parts) > 2 or not all(isinstance(part, str) for part in given):
        raise FileError(f'{place} holds no text; wanted is a field "{FIRST}", and "{SECOND}" for a pair')
    return given[0] if len(given) == 1 else (given[0], given[1])


_READERS = {".txt": _lines, ".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}
