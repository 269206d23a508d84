"""Arrays in a temporary file, as soon as each is complete."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from threading import Lock
from typing import IO, Any

import numpy as np

from headscope.errors import FileError
from headscope.record import StoredArray
from headscope.storage._file_array import checksum_of
from headscope.storage._safetensors import check_path
from headscope.storage.atomic import is_address, local_path, reason, regular_or_none


class TemporaryArray(StoredArray):
    """An array that was written to a temporary file.

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
        start, shape = self._start, self.shape
        # Of the first axes one entry each: nothing else is read.
        while index and isinstance(index[0], int) and 0 <= index[0] < shape[0]:
            start += index[0] * math.prod(shape[1:]) * self.dtype.itemsize
            shape, index = shape[1:], index[1:]
        whole = np.empty(shape, self.dtype)
        file, lock = self._file
        with lock:
            if whole.size:
                file.seek(start)
                file.readinto(whole.reshape(-1).view(np.uint8).data)  # ty: ignore[missing-attribute]
        return whole[index or ...]


class ArraysInFile:
    """A context that takes arrays and gives them back as ones in a temporary file; the file has no
    name, and is gone with the context, however it ends.

    Args:
        folder: where the file is; by default that for temporary files.
        what: cannot be written where the disk is full.
        most: bytes that are held in memory before the file is used.

    Raises:
        FileError: where nothing can be written there.
    """

    def __init__(
        self, folder: Path | None = None, what: str = "a temporary file", *, most: int = 0
    ) -> None:
        self._what, self._left = what, most
        try:
            # Without a buffer: an array is written in one go.
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._failed(error) from None
        self._lock, self._end = Lock(), 0

    def __enter__(self) -> ArraysInFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def put(self, array: np.ndarray) -> np.ndarray | StoredArray:
        """The same array, in the file and no longer in memory unless there is room for it.

        Raises:
            FileError: where the disk is full; TMPDIR says which it is.
        """
        if array.nbytes <= self._left:
            self._left -= array.nbytes
            return array
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        written = TemporaryArray((self._file, self._lock), self._end, array)
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
        return FileError(f"Cannot write {self._what}: {reason(error)}; choose another place")


class CapturedArrays(ArraysInFile):
    """A context that takes arrays of a record and gives them back as ones in a temporary file,
    which is gone with the context.

    Args:
        path: where the record is to be written; the temporary file is on the same disk.

    Raises:
        FileError: where no record can be written there, before anything was captured.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        folder = None
        if not is_address(path):
            check_path(local_path(path))
            regular_or_none(path)
            folder = Path(path).absolute().parent
        super().__init__(folder, str(path))
