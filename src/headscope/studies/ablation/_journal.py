"""What was computed already, line by line in a file, so that a run that was killed resumes where it
was.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import FileError
from headscope.storage import check_document
from headscope.storage.atomic import fcntl, reason, regular_or_none
from headscope.storage.npz import UNREADABLE

FORMAT = "headscope ablation"
VERSION = 1
SUM = ', "sum": '
ANEW = "remove the line, and it is computed again, or name another file"

Cell = tuple[str, int, int]

ROW: dict[str, Any] = {
    "batch": int,
    "cell": ([str, int, int], None),
    "values": [[float]],
    "sum": int,
}


class Journal:
    """Values by batch and cell; kept in a file, where there is one, each on a line of its own with
    its checksum.

    Several runs may share a file: a line is written, and a cut one removed, while nobody else
    writes.

    Args:
        path: of the file; made where it does not exist.
        header: what the values belong to: model, task, and how heads are disabled.

    Raises:
        FileError: where the file belongs to something else, is none of ours, was changed by hand,
            or cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str] | None, header: Mapping[str, Any]) -> None:
        self._found: dict[tuple[int, Cell | None], np.ndarray] = {}
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._file: Any = None
        if path is None:
            return
        self._path = Path(path)
        header = {"format": FORMAT, "version": VERSION, **header, "has_sums": True}
        try:
            regular_or_none(path)
            self._file = self._path.open("a+b", buffering=0)
            with self._alone():
                self._take(self._whole(), header)
        except BaseException as error:
            self.close()
            if isinstance(error, FileError) or not isinstance(error, UNREADABLE):
                raise
            if isinstance(error, OSError):
                raise FileError(f"Cannot resume {path}: {reason(error)}") from error
            raise FileError(
                f"{path} is not a journal of an ablation; use another file to resume"
            ) from None

    def __contains__(self, key: tuple[int, Cell | None]) -> bool:
        return key in self._found

    def __getitem__(self, key: tuple[int, Cell | None]) -> Float[np.ndarray, "example column"]:
        return self._found[key]

    @property
    def changed(self) -> int:
        """How many values of a changed model there are."""
        return sum(cell is not None for _, cell in self._found)

    def add(
        self, batch: int, cell: Cell | None, values: Float[np.ndarray, "example column"]
    ) -> None:
        """Note the values of a batch without a cell; None for the intact model. In the file when
        this returns.

        Raises:
            FileError: where the file holds values of another shape for this batch, or cannot be
                written.
        """
        self._note(batch, cell, values, "")
        if self._file is not None:
            try:
                with self._alone():
                    self._cut_off_part()
                    self._write(
                        _with_sum({"batch": batch, "cell": cell, "values": values.tolist()})
                    )
            except OSError as error:
                raise FileError(f"Cannot write {self._path}: {reason(error)}") from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _take(self, kept: bytes, header: dict[str, Any]) -> None:
        """Take what earlier runs found; begin the file where there was none."""
        if not kept:
            self._write(_with_sum(header))
            return
        first, *lines = kept.splitlines()
        if b'"headscope ablation"' not in first:
            raise ValueError(f"{self._path} begins with another line")
        before = _row(first, f"Line 1 of {self._path}")
        _check(before, header, self._path)
        for number, line in enumerate(lines, 2):
            place = f"Line {number} of {self._path}"
            row = _row(line, place)
            check_document(row, ROW)
            cell = None if row["cell"] is None else tuple(row["cell"])
            values = np.array(row["values"], np.float64)
            # Rows of NaN are those of examples whose score was not finite.
            if values.ndim != 2 or np.isinf(values).any():
                raise FileError(f"{place} holds no finite numbers [example column]; {ANEW}")
            self._note(row["batch"], cell, values, place)

    def _note(self, batch: int, cell: Any, values: np.ndarray, place: str) -> None:
        shape = self._shapes.setdefault(batch, values.shape)
        if values.shape != shape:
            where = place or f"A line of {self._path}" if self._file is not None else "A value"
            raise FileError(
                f"{where} has {list(values.shape)} values where {list(shape)} belong; {ANEW}"
            )
        self._found[batch, cell] = values

    def _whole(self) -> bytes:
        """All whole lines; the last one is cut where a run was killed in it, and is removed."""
        self._file.seek(0)
        kept = self._file.read()
        whole = kept[: kept.rfind(b"\n") + 1]
        if len(whole) < len(kept):
            # A cut first line must at least begin as ours do, or somebody's notes would be cut off.
            if not whole and not kept.startswith(b'{"format": "headscope ablation'[: len(kept)]):
                raise ValueError("not ours, and not to be removed")
            self._file.truncate(len(whole))
        return whole

    def _cut_off_part(self) -> None:
        """Remove what another run that was killed left behind the last whole line."""
        end = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(0, end - 1))
        if self._file.read(1) not in (b"", b"\n"):
            self._whole()

    def _write(self, line: bytes) -> None:
        """Write one line whole or not at all."""
        end = self._file.seek(0, os.SEEK_END)
        try:
            left = memoryview(line)
            while left:
                left = left[self._file.write(left) :]
        except BaseException:
            # Also where the user stops the run in the middle of a line.
            self._file.truncate(end)
            raise
        os.fsync(self._file.fileno())

    @contextmanager
    def _alone(self) -> Generator[None]:
        """While this is open no other run writes to the file."""
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks: as good as it gets there
                fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            if fcntl is not None:
                with suppress(OSError):
                    fcntl.flock(self._file, fcntl.LOCK_UN)


def _with_sum(row: Mapping[str, Any]) -> bytes:
    """A line that ends with CRC-32 of all that stands before it."""
    text = json.dumps(row)[:-1]
    return f"{text}{SUM}{zlib.crc32(text.encode())}}}\n".encode()


def _row(line: bytes, place: str) -> dict[str, Any]:
    """One line, compared with its sum.

    Raises:
        FileError: where it was changed.
    """
    row = json.loads(line)
    text, _, _ = line.rpartition(SUM.encode())
    if not isinstance(row, dict):
        raise TypeError(f"{place} is not an object")
    if row.get("sum") != zlib.crc32(text):
        raise FileError(f"{place} was changed: its sum is not that of its values; {ANEW}")
    return row


def _check(header: Mapping[str, Any], wanted: Mapping[str, Any], path: Path) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError
    other = [name for name in wanted if header.get(name) != wanted[name]]
    if other:
        raise FileError(
            f"{path} holds an ablation with another {' and '.join(other)}; give the same again, "
            "or name another file"
        )
