"""Records of many texts in a folder: a file each, and an index in the order of the texts."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, overload

from headscope.errors import FileError, RecordError
from headscope.record import Record
from headscope.storage._checks import reading
from headscope.storage._record_file import opened
from headscope.storage._safetensors import RecordFile
from headscope.storage.atomic import written_whole

INDEX = "records.jsonl"
RECORDS = "records"
"""Folder of the files."""


@dataclass(frozen=True)
class IndexLine:
    """The entry of one text in the index.

    Args:
        text: the text, or a list of the two of a pair; None for an input that is no text.
        record: the path of its record in the folder; None where it has none.
        left_out: why it has none.
    """

    text: Any = None
    record: str | None = None
    left_out: str | None = None

    def as_json(self) -> str:
        """One line, without what is None."""
        entry = {name: value for name, value in vars(self).items() if value is not None}
        # Escaped: a line of JSON is then a line of the file, and halves of characters survive.
        return json.dumps(entry)


class RecordFolder(Sequence[Record]):
    """The records of many texts, in the order of the texts; each is read when it is asked for.

    Texts that were left out have no record, and no place among the others. ``numbers`` names which
    text each record is of, and ``left_out`` why the others have none.

    Args:
        path: a folder that `headscope.capture_many` wrote, with the index ``records.jsonl``: one
            line of JSON for each text, with ``text`` and ``record``, the path of a file in the
            folder, or ``left_out``, the reason.

    Raises:
        FileError: where the index is missing or damaged.

    Example:
        >>> records = RecordFolder("run")
        >>> records[3]["self"].weights(layer=0, head=0), records.text(3)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = Path(path)
        self.left_out: dict[int, str] = {}
        """Why texts have no record, by their number from 0."""
        # Numbers and not lines, so that the index of a million texts takes 16 MB.
        self._starts, self._numbers = array("q"), array("q")
        self._read()

    def _read(self) -> None:
        start = 0
        with reading(self.path / INDEX, "index of records"), (self.path / INDEX).open("rb") as file:
            for number, line in enumerate(file):
                entry = IndexLine(**json.loads(line))
                if entry.record is not None:
                    _check_inside(entry.record)
                    self._starts.append(start)
                    self._numbers.append(number)
                else:
                    self.left_out[number] = entry.left_out or ""
                start += len(line)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The number of the text of each record, from 0."""
        return tuple(self._numbers)

    def text(self, index: int) -> Any:
        """The text, or the pair of texts, of a record.

        Args:
            index: of the record among all records, not that of the text among all texts.

        Raises:
            RecordError: where there is no such record.
        """
        given = self._line(index).text
        return tuple(given) if isinstance(given, list) else given

    def file(self, index: int) -> Path:
        """The path of the file of a record.

        Raises:
            RecordError: where there is no such record.
        """
        return self.path / str(self._line(index).record)

    def _line(self, index: int) -> IndexLine:
        if not -len(self) <= index < len(self):
            raise RecordError(f"{self.path} has {len(self)} records, and no record {index}")
        with reading(self.path / INDEX, "index of records"), (self.path / INDEX).open("rb") as file:
            file.seek(self._starts[index])
            return IndexLine(**json.loads(file.readline()))

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        """A record, or those of a slice.

        Raises:
            RecordError: where there is no such record.
            FileError: where its file is missing, damaged or that of another text.
        """
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
        file, record = opened(self.file(index))
        check_own(file)
        return record

    def __iter__(self) -> Iterator[Record]:
        for index in range(len(self)):
            yield self[index]

    def __repr__(self) -> str:
        texts = len(self) + len(self.left_out)
        return f"<RecordFolder: {len(self):,} records of {texts:,} texts in {self.path}>"


def check_own(file: RecordFile) -> None:
    """Raise where a file of a run holds another record than that of its name."""
    if file.document.get("name") != file.path.name:
        raise FileError(f"{file.path} holds another record than its own; remove it and run again")


def _check_inside(record: str) -> None:
    """Raise where the path of a record leads out of its folder: whoever wrote the index may be a
    stranger.
    """
    path = PurePosixPath(record)
    if path.is_absolute() or ".." in path.parts or "\\" in record:
        raise RecordError(f"Expected the path of a record within its folder, got {record!r}")


def write_index(folder: Path, lines: Iterable[IndexLine]) -> None:
    """Write which record is that of which text.

    Args:
        folder: of the records.
        lines: of each text in order.

    Raises:
        FileError: where it cannot be written, as on a full disk.
    """
    with written_whole(folder / INDEX) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(f"{line.as_json()}\n" for line in lines)
