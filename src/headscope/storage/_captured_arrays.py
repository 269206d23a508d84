"""Arrays of a record that is being captured: on disk as soon as each is complete."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, Any

import numpy as np

from headscope.errors import FileError
from headscope.record import StoredArray
from headscope.storage._file_array import checksum_of
from headscope.storage._record_path import check_record_path
from headscope.storage._remote import is_address
from headscope.storage.atomic import reason, regular_or_none


class CapturedArray(StoredArray):
    """An array that was written down while its record is still being captured.

    Args:
        file: the temporary file, and the lock of its one position.
        start: its first byte there.
        array: what was written.
    """

    def __init__(self, file: tuple[IO[bytes], Lock], start: int, array: np.ndarray) -> None:
        super().__init__(array.shape, array.dtype)
        self._file, self._start = file, start
        self.checksum: int = checksum_of(array)

    def read(self, *index: Any) -> np.ndarray:
        """The whole array, or the part at an index for each axis."""
        whole = np.empty(self.shape, self.dtype)
        file, lock = self._file
        if whole.size:
            with lock:
                file.seek(self._start)
                file.readinto(whole.reshape(-1).view(np.uint8).data)  # ty: ignore[missing-attribute]
        return whole[index or ...]


class CapturedArrays:
    """A context that takes arrays and gives them back as ones in a temporary file; the file has no
    name, and is gone with the context, however it ends.

    Args:
        path: where the record is to be written; the temporary file is on the same disk.

    Raises:
        FileError: where no record can be written there, before anything was captured.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        folder = None
        if not is_address(path):
            check_record_path(Path(path))
            regular_or_none(path)
            folder = Path(path).absolute().parent
        try:
            # Without a buffer: an array is written in one go.
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._failed(error) from None
        self._lock, self._end = Lock(), 0

    def __enter__(self) -> CapturedArrays:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def put(self, array: np.ndarray) -> CapturedArray:
        """The same array, in the file and no longer in memory.

        Raises:
            FileError: where the disk is full.
        """
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        written = CapturedArray((self._file, self._lock), self._end, array)
        data = array.reshape(-1).view(np.uint8).data
        try:
            with self._lock:
                self._file.seek(self._end)
                done = 0
                # A call writes 2 GiB at most, and less where a signal comes.
                while done < len(data):
                    done += self._file.write(data[done:])
        except OSError as error:
            raise self._failed(error) from None
        self._end += len(data)
        return written

    def _failed(self, error: OSError) -> FileError:
        return FileError(f"Cannot write {self._path}: {reason(error)}; choose another place")
