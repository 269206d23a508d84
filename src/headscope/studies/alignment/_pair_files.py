"""Sentences with their translations and word alignments from files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headscope.errors import FileError, RecordError
from headscope.studies.alignment._pair import AlignedPair
from headscope.tasks import read_rows

FIELDS = ("source", "target", "links")
BETWEEN = "|||"


def read_aligned_pairs(
    path: str | Path, *, first: int = 0, on_error: Callable[[str, FileError], None] | None = None
) -> list[AlignedPair]:
    """The pairs of a file: fields ``source``, ``target`` and ``links`` of .jsonl, .csv, .tsv or
    .parquet.

    A line of .txt is ``source ||| target ||| links``. Links are written ``0-1`` (sure) and ``0p1``
    (possible), the source word first. A field ``group`` names the document of a pair. Each pair is
    named by the file and its row, from 1, so that studies of several files add up.

    Args:
        path: of the file.
        first: the number of a sentence's first word in this file, 0 or 1.
        on_error: is called with the name and error of a row that lacks a field or whose links are
            none: it is left out. By default that is a warning.

    Raises:
        FileError: where the file cannot be read, or none of its rows can.
    """
    path, report = Path(path), on_error or _warn
    pairs: list[AlignedPair] = []
    errors: dict[str, FileError] = {}
    for number, row in enumerate(read_rows(path), 1):
        try:
            pairs.append(_pair(row, number, path, first))
        except FileError as error:
            errors[f"{path.stem}:{number}"] = error
    # Reported at the end: where no row can be read, one error says more than a list of warnings.
    if not pairs:
        raise next(iter(errors.values()))
    for name, error in errors.items():
        report(name, error)
    return pairs


def _pair(row: Mapping[str, Any], number: int, path: Path, first: int) -> AlignedPair:
    """The pair of one row.

    Raises:
        FileError: where it is none.
    """
    where = f"{path}, row {number}"
    fields = _split(row["text"], where) if path.suffix == ".txt" else row
    lacking = [
        name for name in FIELDS if not isinstance(fields.get(name), str) or not fields[name].strip()
    ]
    if lacking:
        raise FileError(f'{where} has no "{lacking[0]}"; expected the fields {", ".join(FIELDS)}')
    try:
        pair = AlignedPair.of(
            *(fields[name] for name in FIELDS), name=f"{path.stem}:{number}", first=first
        )
        return replace(pair, group=row.get("group"))
    except (RecordError, ValueError) as error:
        # Python refuses to read numbers of thousands of digits with a ValueError.
        raise FileError(f"{where}: {error}") from None


def _warn(name: str, error: FileError) -> None:
    warnings.warn(f"{name} was left out: {error}", stacklevel=3)


def _split(line: str, where: str) -> dict[str, str]:
    parts = [part.strip() for part in line.split(BETWEEN)]
    if len(parts) != len(FIELDS):
        raise FileError(
            f"{where} has {len(parts)} parts; expected: source {BETWEEN} target {BETWEEN} links"
        )
    return dict(zip(FIELDS, parts, strict=True))
