"""Results as files: numbers as arrays, and all else as one JSON document.

The format is that of records: a ``.safetensors`` file whose metadata hold the document under
``headscope``, with CRC-32 of each array. Its ``kind`` is that of the result, ``version`` the
version of that kind's document. A path that ends in ``.npz`` gets the format of headscope 0.1, an
.npz file with the document under ``said``; both are read.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from headscope._version import __version__
from headscope.errors import FileError
from headscope.storage._file_array import FileArray, checksum_of
from headscope.storage._safetensors import FORMAT, RecordFile, document_with_sums, write_tensors
from headscope.storage.atomic import regular_or_none, written_whole
from headscope.storage.npz import read_npz, reading, write_npz

VERSION = 1
PROJECT = "headscope "
NPZ = ".npz"
ZIP = b"PK\3\4"
"""How every .npz file begins."""
RECORD = "record"
STATISTIC = "statistic"
OLD_ABLATION = "ablation of headscope 0.1"
OWN_FORMATS = {
    STATISTIC: {"shape", "names", "texts", "values"},
    OLD_ABLATION: {"scores", "intact", "words"},
}
"""Kinds of .npz files that `save_kept` did not write, and the arrays that they are recognised
by."""
AGAIN = "run the study again, or take a copy"


def save_kept(
    path: str | os.PathLike[str],
    kind: str,
    document: dict[str, Any],
    arrays: dict[str, np.ndarray],
    *,
    stacklevel: int = 3,
) -> Path:
    """Write a result, whole or not at all.

    Args:
        path: of the file; one that ends in ``.npz`` gets the format of headscope 0.1.
        kind: what it holds, such as ``"relations"``; a file of one kind is not read as another.
        document: written into the file as JSON.
        arrays: by name.
        stacklevel: of the warning, so that it names the line of the caller.

    Raises:
        FileError: where the file cannot be written.

    Warns:
        DeprecationWarning: of a path that ends in ``.npz``.
    """
    path = Path(path)
    if path.suffix == NPZ:
        warn_of_npz(path, stacklevel + 1)
        words = {"kind": PROJECT + kind, "version": VERSION} | document
        everything: dict[str, Any] = {
            "said": np.frombuffer(json.dumps(words).encode(), np.uint8)
        } | arrays
        with written_whole(path) as temporary:
            write_npz(temporary, everything)
        return path
    header = {
        "format": FORMAT,
        "kind": kind,
        "version": VERSION,
        "headscope": __version__,
        "said": document,
    }
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    sums = {name: checksum_of(array) for name, array in tensors.items()}
    with written_whole(path) as temporary:
        # Not by the library of the format: it puts a file of its own in place of this one, which
        # no longer holds the lock that tells other writers of the same result to leave it alone.
        write_tensors(temporary, tensors, document_with_sums(header, sums))
    return path


def warn_of_npz(path: Path, stacklevel: int) -> None:
    """Say that the format of headscope 0.1 is not written for much longer."""
    warnings.warn(
        f"{path.name}: results are kept as .safetensors; .npz is written for one more version",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


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
        there, document, arrays = _from_npz(path) if is_npz(path) else _from_safetensors(path)
        if there != kind:
            raise FileError(f"{path} holds no {kind}")
        version = document.pop("version")
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
        file = RecordFile(Path(path), again=AGAIN)
        if file.document.get("kind") != kind:
            raise FileError(f"{path} holds no {kind}")
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
        if not is_npz(path):
            return str(RecordFile(Path(path)).document.get("kind", RECORD))
        arrays = read_npz(path)
        for kind, names in OWN_FORMATS.items():
            if names <= arrays.keys():
                return kind
        return str(json.loads(arrays["said"].tobytes())["kind"]).removeprefix(PROJECT)


def is_npz(path: str | os.PathLike[str]) -> bool:
    """Whether a file is of the format of headscope 0.1, whatever it is called.

    Raises:
        FileNotFoundError: where it does not exist.
    """
    if regular_or_none(path) is None:
        raise FileNotFoundError
    # By what it holds: results of headscope 0.1 may be called anything.
    with Path(path).open("rb") as file:
        return file.read(len(ZIP)) == ZIP or Path(path).suffix == NPZ


def _from_npz(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    arrays = read_npz(path)
    document = json.loads(arrays.pop("said").tobytes())
    # No kind is called "", so that this is refused as a file of another kind.
    if not isinstance(document, dict):
        return "", {"version": 0}, {}
    return str(document.pop("kind", "")).removeprefix(PROJECT), document, arrays


def _from_safetensors(
    path: str | os.PathLike[str],
) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    file = RecordFile(Path(path), again=AGAIN)
    kind = str(file.document.get("kind", RECORD))
    if kind == RECORD:
        return kind, {"version": 0}, {}
    arrays = {}
    for name, stored in file.arrays.items():
        # A copy that can be written to: studies go on counting in what was read.
        array = np.array(stored.read())
        if checksum_of(array) != file.checksums.get(name):
            raise FileError(f"{path} is damaged: {name} is not what was written; {AGAIN}")
        arrays[name] = array
    document = file.document["said"]
    if not isinstance(document, dict):
        raise TypeError(f"its document is {str(document)[:40]!r}")
    return kind, document | {"version": file.document["version"]}, arrays
