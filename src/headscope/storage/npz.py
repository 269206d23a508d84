"""Reading .npz files of anybody: no pickles, no more memory than the file is worth, one kind of
error.
"""

from __future__ import annotations

import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from headscope.errors import FileError, HeadscopeError
from headscope.storage.atomic import reason, regular_or_none

MOST_UNPACKED = 2**26
"""Bytes that any file may unpack to; larger ones must be worth it."""
MOST_PACKED_RATIO = 100
"""How much more than its own size a file may unpack to beyond that."""
UNREADABLE: tuple[type[Exception], ...] = (ArithmeticError, AttributeError, EOFError, LookupError)
UNREADABLE += (MemoryError, OSError, RuntimeError, SyntaxError, TypeError, ValueError)
UNREADABLE += (struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error)
"""What NumPy, zipfile and json raise for files that are damaged (RuntimeError: nested too deep,
encrypted).
"""


@contextmanager
def reading(path: str | os.PathLike[str], what: str) -> Generator[None]:
    """Whatever goes wrong inside because of what a file holds is a FileError that names the file.

    Args:
        path: of the file.
        what: it should hold, such as ``"relations"``.

    Raises:
        FileError: where the file does not exist, is no regular file, is cut, or does not hold what
            it should.
    """
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(f"{path} does not exist") from None
    except HeadscopeError as error:
        raise FileError(f"{path} is damaged: {error}") from None
    except UNREADABLE as error:
        message = f"{type(error).__name__} {error}"
        if isinstance(error, OSError) and error.strerror:
            message = reason(error)
        raise FileError(f"{path} is cut or holds no {what}: {message}") from None


def read_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of a file, by name. To be called inside `reading`.

    Raises:
        FileError: where the file does not exist, is a pipe or a device, or unpacks to much more
            than it is worth.
        ValueError: where it holds Python objects, or arrays that are not as large as they say; and
            others of `UNREADABLE`.
    """
    there = regular_or_none(path)
    if there is None:
        raise FileNotFoundError
    with Path(path).open("rb") as file, zipfile.ZipFile(file) as parts:
        # Sizes are looked at before anything is unpacked: a small file can unpack to any size.
        unpacked = sum(part.file_size for part in parts.infolist())
        if unpacked > max(MOST_UNPACKED, MOST_PACKED_RATIO * there.st_size):
            raise FileError(
                f"{path} has {there.st_size:,} bytes and would unpack to {unpacked:,}; if it is "
                "yours, write it unpacked: numpy.savez(path, **numpy.load(path))"
            )
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def arrays_below(arrays: Mapping[str, Any], beginning: str) -> dict[str, Any]:
    """The arrays whose names begin so, without that beginning: those of one part of a file."""
    return {
        name.removeprefix(beginning): array
        for name, array in arrays.items()
        if name.startswith(beginning)
    }


def array_of(
    arrays: Mapping[str, np.ndarray], name: str, kind: str, shape: tuple[int | None, ...]
) -> np.ndarray:
    """One of the arrays of a file.

    Args:
        arrays: by name.
        name: of the one to read.
        kind: ``"f"``, ``"i"`` or ``"b"``: floating point, whole numbers, true or false.
        shape: None for sizes that nothing is known of.

    Raises:
        ValueError: where it is of another kind or shape.
        KeyError: where there is none.
    """
    array = arrays[name]
    pairs = zip(array.shape, shape, strict=False)
    fits = array.ndim == len(shape) and all(size in (one, None) for one, size in pairs)
    if array.dtype.kind != kind or not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(
            f"{name} is {array.dtype} {list(array.shape)}, and its description makes it [{wanted}]"
        )
    return array


def words_of(given: Any) -> tuple[str, ...]:
    """The strings of a list that a file holds.

    Raises:
        ValueError: where it is not a list of strings.
    """
    if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
        raise ValueError(f"expected a list of strings, not {str(given)[:40]}")
    return tuple(given)
