"""Examples from files: rows with named fields."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope.errors import FileError

SUFFIXES = (".txt", ".jsonl", ".csv", ".tsv", ".parquet")
FIRST = ("text", "sentence1", "sentence", "premise", "question", "question1", "sentence_good", "source", "#1 String")
SECOND = ("text_b", "sentence2", "hypothesis", "question2", "sentence_bad", "target", "summary", "#2 String")
LABEL = ("label", "gold_label", "score", "similarity_score", "category", "Quality")

Row = Mapping[str, Any]


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file with their fields: .jsonl, .csv, .tsv, .parquet; of .txt the field "text" of each line.

    Empty lines are left out. In .tsv quotation marks are letters, as GLUE writes them.

    Raises:
        FileError: where the file cannot be read or holds nothing.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise FileError(f"{path} is no table; examples are read from {', '.join(SUFFIXES)}")
    try:
        found = list(_READERS[path.suffix](path))
    except FileNotFoundError:
        raise FileError(f"{path} is not there") from None
    except ImportError:
        raise FileError(
            f"{path} needs pyarrow, which is not installed: pip install 'headscope[tables]', or take .csv"
        ) from None
    except (OSError, ValueError, csv.Error) as error:
        raise FileError(f"{path} cannot be read: {error}") from error
    if not found:
        raise FileError(f"{path} holds no example")
    return found


def read_pairs(rows: Sequence[Row], place: str) -> list[str | tuple[str, str]]:
    """The text of each row, or the pair where there is a second one.

    Args:
        rows: see `read_rows`.
        place: of the rows, for messages.

    Raises:
        FileError: where a row has no text.
    """
    first, second = _field(rows, FIRST, place), _field(rows, SECOND, "")
    found: list[str | tuple[str, str]] = []
    for number, row in enumerate(rows, 1):
        parts = [row.get(name) for name in (first, second) if name]
        if not isinstance(parts[0], str) or not parts[0].strip():
            raise FileError(f'{place}, row {number} has no text in the field "{first}"')
        given = [part for part in parts if isinstance(part, str) and part]
        found.append((given[0], given[1]) if len(given) == 2 else given[0])
    return found


def read_labelled(rows: Sequence[Row], place: str, names: Mapping[str, int] | None = None) -> list[float]:
    """The label of each row: a number, or the number of its name.

    Args:
        rows: see `read_rows`.
        place: of the rows, for messages.
        names: numbers of named classes, whichever case they are written in, such as a model's ``label2id``.

    Raises:
        FileError: where a row has no label, or one that is neither a number nor a name.
    """
    field, known = _field(rows, LABEL, place), {name.lower(): number for name, number in (names or {}).items()}
    return [_number(row.get(field), known, f"{place}, row {number}") for number, row in enumerate(rows, 1)]


def _number(given: Any, known: Mapping[str, int], place: str) -> float:
    if isinstance(given, str) and given.strip().lower() in known:
        return float(known[given.strip().lower()])
    try:
        return float(given)
    except (TypeError, ValueError):
        classes = f"one of {', '.join(known)}" if known else "a number"
        raise FileError(f"{place} has the label {given!r}; wanted is {classes}") from None


def _field(rows: Sequence[Row], names: Sequence[str], place: str) -> str:
    """The first of the names that is a field; empty where none is and nothing is said of a place."""
    there = dict.fromkeys(name for row in rows[:100] for name in row)
    found = next((name for name in names if name in there), "")
    if not found and place:
        raise FileError(f"{place} has the fields {', '.join(there)}; wanted is one of {', '.join(names)}")
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    yield from ({"text": line.strip()} for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {number}: {error}") from None
        if isinstance(row, str):
            row = {"text": row}
        elif isinstance(row, list):
            if len(row) > 2:
                raise ValueError(f"line {number} is a list of {len(row)}; wanted is a text, or a pair of two")
            row = dict(zip((FIRST[0], SECOND[0]), row, strict=False))
        elif not isinstance(row, dict):
            raise ValueError(f"line {number} is neither an object, a text nor a list")
        yield row


def _csv(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


def _tsv(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    from pyarrow import parquet

    yield from parquet.read_table(path).to_pylist()


_READERS = {".txt": _lines, ".jsonl": _jsonl, ".csv": _csv, ".tsv": _tsv, ".parquet": _parquet}
