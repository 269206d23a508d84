"""Sentences with their translations and word alignments from files."""

from __future__ import annotations

from pathlib import Path

from headscope.errors import FileError, RecordError
from headscope.studies._aligned_pair import AlignedPair
from headscope.tasks import read_rows

FIELDS = ("source", "target", "links")
BETWEEN = "|||"


def read_aligned_pairs(path: str | Path, *, first: int = 0) -> list[AlignedPair]:
    """The pairs of a file: fields ``source``, ``target`` and ``links`` of .jsonl, .csv, .tsv or .parquet.

    A line of .txt is ``source ||| target ||| links``. Links are written ``0-1`` (sure) and ``0p1`` (possible), the
    source word first. Each pair is named by the file and its row, from 1, so that studies of several files add up.

    Args:
        path: of the file.
        first: the number of a sentence's first word in this file, 0 or 1.

    Raises:
        FileError: where the file cannot be read, a field is missing, or links are none, with the row.
    """
    path = Path(path)
    found = []
    for number, row in enumerate(read_rows(path), 1):
        place = f"{path}, row {number}"
        fields = _split(row["text"], place) if path.suffix == ".txt" else row
        lacking = [name for name in FIELDS if not isinstance(fields.get(name), str) or not fields[name].strip()]
        if lacking:
            raise FileError(f'{place} has no "{lacking[0]}"; wanted are the fields {", ".join(FIELDS)}')
        try:
            found.append(AlignedPair.of(*(fields[name] for name in FIELDS), name=f"{path.stem}:{number}", first=first))
        except RecordError as error:
            raise FileError(f"{place}: {error}") from None
    return found


def _split(line: str, place: str) -> dict[str, str]:
    parts = [part.strip() for part in line.split(BETWEEN)]
    if len(parts) != len(FIELDS):
        raise FileError(f"{place} has {len(parts)} parts; wanted is: source {BETWEEN} target {BETWEEN} links")
    return dict(zip(FIELDS, parts, strict=True))
