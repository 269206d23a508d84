"""Results as files: numbers as arrays, and all else as one JSON document.

The format is that of records: a ``.safetensors`` file whose metadata hold the document under
``headscope``, with CRC-32 of each array. Its ``kind`` is that of the result, ``version`` the
version of that kind's document.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from headscope._version import __version__
from headscope.errors import FileError
from headscope.storage._file_array import FileArray, checksum_of
from headscope.storage._record_path import check_path
from headscope.storage._safetensors import FORMAT, RecordFile, document_with_sums, write_tensors
from headscope.storage.atomic import written_whole
from headscope.storage.npz import reading

VERSION = 1
RECORD = "record"
STATISTIC = "statistic"
AGAIN = "run the study again, or take a copy"


def save_kept(
    path: str | os.PathLike[str],
    kind: str,
    document: dict[str, Any],
    arrays: dict[str, np.ndarray],
    *,
    left_out: str = "",
) -> Path:
    """Write a result, whole or not at all.

    Args:
        path: of the file, a ``.safetensors`` file.
        kind: what it holds, such as ``"relations"``; a file of one kind is not read as another.
        document: written into the file as JSON.
        arrays: by name.
        left_out: how many texts were left out, in words.

    Raises:
        FileError: where the file cannot be written, or has a name of another kind of file.
    """
    path = Path(path)
    check_path(path, "result")
    header = {
        "format": FORMAT,
        "kind": kind,
        "version": VERSION,
        "headscope": __version__,
        "left_out": left_out,
        "said": document,
    }
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    sums = {name: checksum_of(array) for name, array in tensors.items()}
    with written_whole(path) as temporary:
        # Not by the library of the format: it puts a file of its own in place of this one, which
        # no longer holds the lock that tells other writers of the same result to leave it alone.
        write_tensors(temporary, tensors, document_with_sums(header, sums))
    return path


def load_kept(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The document and the arrays of a file that `save_kept` wrote; every array is compared with
    its checksum.

    What is put together from them belongs inside `reading`, too.

    Raises:
        FileError: where the file does not exist, is cut, is damaged, is of another kind, or was
            written by a newer headscope.
    """
    with reading(path, kind):
        file = _opened(path, kind)
        arrays = {name: _checked(file, name) for name in file.arrays}
        document, version = file.document["said"], file.document["version"]
        if not isinstance(document, dict):
            raise TypeError(f"its document is {str(document)[:40]!r}")
        if not isinstance(version, int):
            raise TypeError(f"format {version!r} is none")
    if version > VERSION:
        raise FileError(
            f"{path} was written by a newer headscope (format {version}, this one reads {VERSION})"
        )
    return document, arrays


def load_stored(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, FileArray]]:
    """What `load_kept` reads, with arrays that stay in the file; every one is compared with its
    checksum, some MB at once.

    Args:
        path: of a ``.safetensors`` file.
        kind: what it holds.

    Raises:
        FileError: where the file does not exist, is cut, is damaged, or is of another kind.
    """
    with reading(path, kind):
        file = _opened(path, kind)
        for name, array in file.arrays.items():
            if array.checksum() != file.checksums.get(name):
                raise FileError(f"{path} is damaged: {name} is not what was written; {AGAIN}")
        return dict(file.document["said"]), file.arrays


def kind_of(path: str | os.PathLike[str], what: str = "result") -> str:
    """What a file holds: ``"record"``, the kind of a result such as ``"relations"``, or
    ``"statistic"``.

    Args:
        path: of the file.
        what: it should hold, for the message where it holds nothing of ours.

    Raises:
        FileError: where the file does not exist, is cut, or is none of ours.
    """
    with reading(path, what):
        return str(RecordFile(Path(path)).document.get("kind", RECORD))


def _opened(path: str | os.PathLike[str], kind: str) -> RecordFile:
    file = RecordFile(Path(path), again=AGAIN)
    if file.document.get("kind") != kind:
        raise FileError(f"{path} holds no {kind}")
    return file


def _checked(file: RecordFile, name: str) -> np.ndarray:
    """An array that can be written to, since studies go on counting in what was read.

    Raises:
        FileError: where it is not what was written.
    """
    array = np.array(file.arrays[name].read())
    if checksum_of(array) != file.checksums.get(name):
        raise FileError(f"{file.path} is damaged: {name} is not what was written; {AGAIN}")
    return array
