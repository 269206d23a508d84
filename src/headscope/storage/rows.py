"""Texts and examples from files: rows with named fields."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope.errors import FileError, RecordError
from headscope.storage._checks import MOST_PACKED_RATIO, MOST_UNPACKED, UNREADABLE

ROWS_AT_ONCE = 1024
"""Rows of a .parquet file that are unpacked together."""
SUFFIXES = (".txt", ".jsonl", ".csv", ".tsv", ".parquet")
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
OTHERS = (".json", ".xlsx", ".xls", ".ods", ".docx", ".pdf", *PACKED)
"""Endings of files that hold texts and are not read here."""
FIRST = ("text", "sentence1", "sentence", "premise", "question", "question1", "prompt", "messages")
SECOND = ("text_pair", "text_b", "sentence2", "hypothesis", "question2", "context")
"""What the texts are called in rows of data sets; the first that is there counts."""
FIRST_OF_FILES = (*FIRST, "sentence_good", "source", "#1 String")
SECOND_OF_FILES = (*SECOND, "sentence_bad", "target", "summary", "#2 String")
GROUP = "group"
EXAMPLE = Path(__file__).parents[1] / "example.txt"
"""The sentences that ship with headscope, read where a file ``example`` is asked for."""
LABEL = ("label", "gold_label", "score", "similarity_score", "category", "Quality")

Row = Mapping[str, Any]


class PlacedRow(dict[str, Any]):
    """A row of a file, and the number of the line that it ends on, from 1."""

    line: int

    def __init__(self, fields: Row, line: int) -> None:
        super().__init__(fields)
        self.line = line


def names_file(text: str) -> bool:
    """Whether a text is rather the name of a file of texts: there is such a file, or it is one word
    that ends like one, whichever case it is written in.
    """
    name = text.strip()
    ends_so = Path(name).suffix.lower() in SUFFIXES + OTHERS
    # Path.is_file raises where a text is longer than a name may be.
    is_there = os.path.isfile(text) or (ends_so and os.path.isfile(name))  # noqa: PTH113
    return is_there or (ends_so and len(name.split()) == 1)


def read_texts(path: Path) -> list[Any]:
    """The texts of a file: each line of .txt; in tables the field "text", and "text_b" for a pair.

    Fields may also be named as in GLUE (``sentence1``, ``sentence2``). A line of .jsonl may be a
    string, or a list of two. Empty lines are skipped. A row without a text is returned as it is, so
    that it is left out later and reported with its number.

    Raises:
        FileError: where the file cannot be read or holds no text.
    """
    return given_pairs(read_rows(path), str(path))


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file with their fields: .jsonl, .csv, .tsv, .parquet; of .txt the field "text"
    of each line.

    Empty lines are left out. In .tsv quotation marks are letters, as GLUE writes them. Where there
    is no file ``example``, that name means the sentences that ship with headscope.

    Raises:
        FileError: where the file cannot be read or holds nothing.
    """
    path = Path(path)
    if not path.exists():
        path = EXAMPLE if str(path) == EXAMPLE.stem else Path(str(path).strip())
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        advice = "; unpack it first" if suffix in PACKED else ""
        raise FileError(f"{path} is not a file of texts{advice}; expected {', '.join(SUFFIXES)}")
    try:
        rows = list(_READERS[suffix](path))
    except FileNotFoundError:
        # Behind the letter of a drive a colon is that of an address, of which a path has one slash.
        why = "is an address; save it as a file" if ":/" in str(path)[2:] else "does not exist"
        raise FileError(f"{path} {why}") from None
    except ImportError:
        advice = "pip install 'headscope[tables]', or use .csv"
        raise FileError(f"{path} needs pyarrow: {advice}") from None
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not written in UTF-8 ({error}); save it as UTF-8") from None
    except (*UNREADABLE, csv.Error) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} cannot be read: {error}") from error
    if not rows:
        raise FileError(f"{path} holds no example")
    return rows


def given_pairs(rows: Sequence[Row], where: str) -> list[Any]:
    """The text of each row, or the pair where there is a second one; and the error in place of one
    with a number, null or the like there, for those who leave out such rows.

    Args:
        rows: see `read_rows`.
        where: of the rows, for messages.

    Raises:
        FileError: where no row has a text.
    """
    first, second = _field(rows, FIRST_OF_FILES, where), _field(rows, SECOND_OF_FILES, "")
    texts: list[Any] = []
    for number, row in enumerate(rows, 1):
        text, other = row.get(first), row.get(second) if second else None
        place = place_of(row, where, number)
        if not _is_text(text):
            texts.append(wrong_field(row, first, place, "a string, or a list of messages"))
        elif not isinstance(other, str | None):
            texts.append(wrong_field(row, second, place, "a string"))
        else:
            texts.append((text, other) if other else text)
    return texts


def _is_text(given: Any) -> bool:
    """Whether this may be read: a string, a conversation, or one or two strings."""
    if not isinstance(given, list):
        return isinstance(given, str)
    are_messages = bool(given) and all(isinstance(each, dict) for each in given)
    return are_messages or (len(given) in (1, 2) and all(isinstance(each, str) for each in given))


def place_of(row: Row, where: str, number: int) -> str:
    """Where a row stands, for messages: its line where it is of a file, else its number from 1."""
    line = getattr(row, "line", None)
    return f"{where}, row {number}" if line is None else f"{where}, line {line}"


def wrong_field(row: Row, field: str, place: str, wanted: str) -> FileError:
    """The error about a field that is missing or of another type than wanted."""
    given = row.get(field)
    if given is None:
        return FileError(f"{place} has no {field!r}; expected {wanted}")
    shown, kind = repr(given)[:60], type(given).__name__
    return FileError(f"{place} has {shown} ({kind}) for {field!r}; expected {wanted}")


def read_groups(rows: Sequence[Row]) -> tuple[Any, ...] | None:
    """The document that each row is of, its field "group"; None where no row has one.

    Example:
        >>> read_groups([{"text": "a", "group": "novel"}, {"text": "b"}])
        ('novel', None)
    """
    for number, row in enumerate(rows, 1):
        if isinstance(row.get(GROUP), list | dict):
            place = place_of(row, "The file of texts", number)
            raise wrong_field(row, GROUP, place, "a name or number of a document")
    groups = tuple(row.get(GROUP) for row in rows)
    return groups if any(group is not None and group != "" for group in groups) else None


def given_labels(
    rows: Sequence[Row], where: str, names: Mapping[str, int] | None = None
) -> list[Any]:
    """The label of each row: a number, or the number of its name; and the error in place of one
    that is neither, for those who leave out such rows.

    Args:
        rows: see `read_rows`.
        where: of the rows, for messages.
        names: numbers of named classes, whichever case they are written in, such as a model's
            ``label2id``.

    Raises:
        FileError: where no row has a label.
    """
    field = _field(rows, LABEL, where)
    known = {name.lower(): number for name, number in (names or {}).items()}
    labels: list[Any] = []
    for number, row in enumerate(rows, 1):
        try:
            labels.append(_number(row.get(field), known))
        except (TypeError, ValueError):
            wanted = f"one of {', '.join(known)}" if known else "a number"
            labels.append(wrong_field(row, field, place_of(row, where, number), wanted))
    return labels


def _number(given: Any, known: Mapping[str, int]) -> float:
    if isinstance(given, str) and given.strip().lower() in known:
        return float(known[given.strip().lower()])
    number = float(given)
    if not math.isfinite(number):
        raise ValueError
    return number


def _field(rows: Sequence[Row], names: Sequence[str], where: str) -> str:
    """The first of the names that is a field; empty where none is and nothing is known of a
    place.
    """
    # Rows of .jsonl need not have the same fields; the first hundred are enough to know them.
    there = dict.fromkeys(name for row in rows[:100] for name in row)
    field = next((name for name in names if name in there), "")
    if not field and where:
        given, wanted = ", ".join(there), ", ".join(names)
        raise FileError(f"{where} has the fields {given}; expected one of {wanted}")
    return field


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if line.strip():
            yield PlacedRow({"text": line.strip()}, number)


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=fields_of)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number}: {error}") from None
        if isinstance(row, str):
            row = {"text": row}
        elif isinstance(row, list) and dict in map(type, row):
            row = {"messages": row}
        elif isinstance(row, list):
            if len(row) > 2:
                raise ValueError(f"line {number} is a list of {len(row)}; expected 1 or 2 texts")
            row = dict(zip((FIRST[0], SECOND[0]), row, strict=False))
        elif not isinstance(row, dict):
            raise ValueError(f"line {number} is neither an object, a text nor a list")
        yield PlacedRow(row, number)


def fields_of(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a row, or of an object of JSON, by their names.

    Raises:
        RecordError: where two have one name; columns without a name are left aside.
    """
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name and name in fields:
            raise RecordError(f"Two fields are called {name!r}; give each a name of its own")
        fields[name] = value
    return fields


def _cells(path: Path) -> Iterator[dict[str, Any]]:
    own = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    how: dict[str, Any] = own if path.suffix.lower() == ".tsv" else {"strict": True}
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, **how)
        names = rows.fieldnames or ()
        fields_of([(name, None) for name in names])
        while True:
            began = rows.line_num + 1
            try:
                row = next(rows, None)
            except csv.Error as error:
                raise ValueError(
                    f"the row from line {began} on: {error}; close each quotation mark, and write "
                    'one inside a text twice ("")'
                ) from None
            if row is None:
                return
            # DictReader puts cells beyond the header under None: a comma in a text that is not
            # quoted would cut it silently.
            if None in row:
                raise ValueError(
                    f"line {rows.line_num} has more cells than the {len(names)} fields"
                )
            yield PlacedRow(row, rows.line_num)


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    from pyarrow import parquet

    # Batch by batch, so that a small file that unpacks to much is noticed on the way: its own
    # sizes, looked at first, may be wrong.
    most, unpacked = max(MOST_UNPACKED, MOST_PACKED_RATIO * path.stat().st_size), 0
    with parquet.ParquetFile(path) as file:
        fields_of([(name, None) for name in file.schema_arrow.names])
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > most:
            raise ValueError("it unpacks to more than 100 times its size")
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
            unpacked += batch.nbytes
            if unpacked > most:
                raise ValueError("it unpacks to more than 100 times its size")
            yield from batch.to_pylist()


_READERS = {".txt": _lines, ".jsonl": _jsonl, ".csv": _cells, ".tsv": _cells, ".parquet": _parquet}
