"""Arrays of a file that are read when they are asked for, and never from a file that was changed
meanwhile.

The file is read, not mapped into memory: a map of a file that is cut kills the process (SIGBUS) and
one of a file that is overwritten changes its numbers.
"""

from __future__ import annotations

import math
import os
import threading
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from headscope.errors import FileError
from headscope.record import StoredArray
from headscope.storage.atomic import reason

MOST_OPEN = 64
"""Files that are kept open, those read last; processes may open 1024 by default, and a study may
load more records.
"""
MOST_AT_ONCE = 2**30
"""Bytes that are asked of the system in one call; Linux gives at most 2^31."""
CHECKED_AT_ONCE = 2**24
"""Bytes of an array that are compared with its checksum at once."""


class OpenFile:
    """A file as it was when it was opened; what is read later is that, or an error.

    Size and time of the last change are compared before and after each reading. Where the file is
    replaced (as `headscope.save` does) or removed, what was opened is still there and read on, but
    for files beyond the 64 read last, which have to be opened anew.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._absolute = path.absolute()
        self._there = os.fstat(self._handle().number)

    @property
    def size(self) -> int:
        """Bytes."""
        return self._there.st_size

    def read(self, start: int, into: memoryview) -> None:
        """Fill a buffer with the bytes from one place on.

        Raises:
            FileError: where the file is no longer what it was, or cannot be read.
        """
        try:
            handle = self._handle()
            # Before and after: what was read in between is of the file as it was opened.
            self._check(handle)
            count = 0
            while count < len(into):
                got = _read_at(handle.number, start + count, into[count : count + MOST_AT_ONCE])
                if not got:
                    raise self._changed()
                count += got
            self._check(handle)
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"Cannot read {self.path}: {reason(error)}") from None

    def _handle(self) -> _Handle:
        """The open file; opened anew where it was closed for others."""
        with _LOCK:
            # Taken out and put back, so that the file used last stands at the end.
            handle = _OPEN.pop(id(self), None)
            if handle is None:
                handle = _Handle(self._absolute)
            _OPEN[id(self)] = handle
            while len(_OPEN) > MOST_OPEN:
                _OPEN.popitem(last=False)
        return handle

    def _check(self, handle: _Handle) -> None:
        now, then = os.fstat(handle.number), self._there
        is_as_it_was = (now.st_size, now.st_mtime_ns) == (then.st_size, then.st_mtime_ns)
        # The same file as well: one that was closed and opened anew may be another of that name.
        if not os.path.samestat(now, then) or not is_as_it_was:
            raise self._changed()

    def _changed(self) -> FileError:
        return FileError(
            f"{self.path} was changed since it was opened, so that its numbers are not those of "
            "the record; load it again, and write over records with headscope.save alone, which "
            "leaves open ones as they are"
        )

    def __del__(self) -> None:
        _OPEN.pop(id(self), None)


class FileArray(StoredArray):
    """One array of a file.

    Args:
        file: that holds it.
        start: its first byte.
        shape: of the array, in the order of C.
        dtype: of its numbers.
    """

    def __init__(self, file: OpenFile, start: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        super().__init__(shape, dtype)
        if start < 0 or start + self._bytes(self.shape) > file.size:
            raise ValueError(
                f"an array of shape {self.shape} from byte {start} on leaves a file of "
                f"{file.size} bytes"
            )
        self._file, self._start = file, start
        self.expected: tuple[int, str] | None = None
        """The checksum of what was written, and what to say where it is another; None once they
        were compared.
        """

    def read(self, *index: Any) -> np.ndarray:
        """The whole array, or the part at an index for each axis. The first reading compares the
        whole with its checksum, later ones read nothing else.
        """
        self.check()
        part = self._part(self._start, self.shape, index)
        part.flags.writeable = False
        return part

    def check(self) -> None:
        """Compare the array with its checksum, once.

        Raises:
            FileError: where it is not what was written.
        """
        expected = self.expected
        if expected is not None and self.checksum() != expected[0]:
            raise FileError(expected[1])
        self.expected = None

    def checksum(self) -> int:
        """See `checksum_of`; no more of the array is in memory at once than some MB."""
        checksum = _checksum_before(self.dtype, self.shape)
        size, done = self._bytes(self.shape), 0
        while done < size:
            piece = np.empty(min(CHECKED_AT_ONCE, size - done), np.uint8)
            self._file.read(self._start + done, piece.data)
            checksum = zlib.crc32(piece.data, checksum)
            done += len(piece)
        return checksum

    def _part(self, start: int, shape: tuple[int, ...], index: tuple[Any, ...]) -> np.ndarray:
        if not index:
            return self._block(start, shape)
        # NumPy itself says which entries an index means, negative ones and steps included.
        chosen, step = np.arange(shape[0])[index[0]], self._bytes(shape[1:])
        if chosen.ndim == 0:
            return self._part(start + int(chosen) * step, shape[1:], index[1:])
        # Neighbours lie behind each other in the file, and are read at once.
        if len(index) == 1 and len(chosen) and (np.diff(chosen) == 1).all():
            return self._block(start + int(chosen[0]) * step, (len(chosen), *shape[1:]))
        parts = [self._part(start + int(number) * step, shape[1:], index[1:]) for number in chosen]
        if not parts:
            return np.empty((0, *shape[1:]), self.dtype)[(slice(None), *index[1:])]
        return np.stack(parts)

    def _block(self, start: int, shape: tuple[int, ...]) -> np.ndarray:
        block = np.empty(shape, self.dtype)
        if block.size:
            self._file.read(start, block.reshape(-1).view(np.uint8).data)
        return block

    def _bytes(self, shape: tuple[int, ...]) -> int:
        return math.prod(shape) * self.dtype.itemsize


def checksum_of(array: np.ndarray) -> int:
    """CRC-32 of an array's dtype, shape and bytes; any damage of up to 32 bits in a row is seen."""
    checksum = _checksum_before(array.dtype, array.shape)
    flat = np.ascontiguousarray(array).reshape(-1)
    return zlib.crc32(flat.view(np.uint8).data, checksum) if flat.size else checksum


def _checksum_before(dtype: np.dtype, shape: tuple[int, ...]) -> int:
    """The checksum before the bytes of an array."""
    return zlib.crc32(f"{dtype.str} {list(shape)}".encode())


class _Handle:
    """A file descriptor that is closed when nobody reads from it any more."""

    def __init__(self, path: Path) -> None:
        # Set first: __del__ runs also where os.open raises.
        self.number = -1
        self.number = os.open(
            path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        )

    def __del__(self) -> None:
        if self.number >= 0:
            os.close(self.number)


_OPEN: OrderedDict[int, _Handle] = OrderedDict()
_LOCK = threading.Lock()


def _read_at(handle: int, start: int, into: memoryview) -> int:
    """How many bytes were read from one place on; the place belongs to no thread or process
    alone.
    """
    if hasattr(os, "preadv"):
        return os.preadv(handle, [into], start)
    with _LOCK:  # Windows
        os.lseek(handle, start, os.SEEK_SET)
        got = os.read(handle, len(into))
    into[: len(got)] = got
    return len(got)
