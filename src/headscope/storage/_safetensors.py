"""Files of records and results (.safetensors): a document as JSON, arrays, checksums.

The metadata hold the document under ``headscope``, with CRC-32 of each array. In the file of a
result its ``kind`` is that of the result.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headscope._version import __version__
from headscope.errors import FileError
from headscope.record import StoredArray
from headscope.storage._checks import UNREADABLE, reading
from headscope.storage._file_array import FileArray, OpenFile, checksum_of
from headscope.storage.atomic import reason, regular_or_none, written_whole

FORMAT = 2
DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
    "U8": "|u1",
    "BOOL": "|b1",
}
DTYPE_NAMES = {np.dtype(kind): name for name, kind in DTYPES.items()}
MARK = ', "checksums": '
"""No string in the document holds it: quotation marks in strings have a backslash before them."""
AGAIN = "capture the record again"


class RecordFile:
    """The file of a record or result; nothing but its header is read.

    Source of the format: github.com/huggingface/safetensors. Read here and not by that library,
    which maps files into memory: a map dies with the process where the file is cut meanwhile.

    Args:
        path: of the file.
        again: what to do where it cannot be read.

    Raises:
        FileError: where there is no such file, or it is cut, foreign, damaged or of another format.
    """

    def __init__(self, path: Path, *, again: str = AGAIN) -> None:
        self.path: Path = path
        self.again: str = again
        file = _opened(path)
        try:
            start, header = _header(file)
            metadata = header.pop("__metadata__", {})
            text = metadata.get("headscope")
            self.arrays: dict[str, FileArray] = {} if text is None else _arrays(file, start, header)
        except UNREADABLE as error:
            if isinstance(error, FileError):
                raise
            then = f"give one that headscope wrote, or {again}"
            raise FileError(f"{path} is cut or no .safetensors file ({error}); {then}") from None
        if text is None:
            raise FileError(
                f"{path} is a .safetensors file, but not a headscope record (a model's weights, "
                "perhaps?)"
            )
        self.document: dict[str, Any] = self._document(text)
        for name, checksum in self._checksums(text).items():
            damaged = f"{path} is damaged: {name} is not what was written; {again}"
            self.arrays[name].expected = checksum, damaged

    def check(self) -> None:
        """Read every array, some MB at once, and compare it with its checksum.

        Raises:
            FileError: naming the first array that is not what was written.
        """
        for array in self.arrays.values():
            array.check()

    def _document(self, text: str) -> dict[str, Any]:
        try:
            document = json.loads(text)
            version = document["format"]
        except UNREADABLE:
            raise FileError(
                f"{self.path} is damaged: its headscope document cannot be read; {self.again}"
            ) from None
        if version != FORMAT:
            raise FileError(
                f"{self.path} has format {version}, and this headscope reads format {FORMAT}; "
                f"update headscope, or {self.again}"
            )
        return document

    def _checksums(self, text: str) -> dict[str, int]:
        """By array."""
        content, _, sums = text.rpartition(MARK)
        try:
            # Without the bracket that closes the document.
            checksums = json.loads(sums[:-1])
            checksum = checksums.pop("")
            if checksum != zlib.crc32(content.encode()) or checksums.keys() != self.arrays.keys():
                raise ValueError
        except UNREADABLE:
            raise FileError(
                f"{self.path} is damaged: its document is not what was written; {self.again}"
            ) from None
        return checksums


def document_with_sums(document: dict[str, Any], sums: dict[str, int]) -> str:
    """The document as JSON, its last entry the checksums of all arrays and of the text before that
    entry.

    One entry of metadata and not two: safetensors writes several in any order, and the same record
    gives the same file.
    """
    content = json.dumps(document)[:-1]
    return f"{content}{MARK}{json.dumps(sums | {'': zlib.crc32(content.encode())})}}}"


def write_tensors(
    path: Path, tensors: Mapping[str, np.ndarray | StoredArray], document: str
) -> None:
    """Write arrays and their document; of those in a file one at a time is read.

    Written here and not by that library, which takes all arrays in memory.

    Args:
        path: a file that is there; it is overwritten.
        tensors: by name.
        document: by `document_with_sums`.
    """
    # Wide numbers first, as that library has it: then each array begins where its numbers may.
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": {"headscope": document}}
    end = 0
    for name in names:
        array = tensors[name]
        start, end = end, end + math.prod(array.shape) * array.dtype.itemsize
        kind = DTYPE_NAMES[array.dtype.newbyteorder("<")]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in names:
            array = tensors[name]
            whole = array.read() if isinstance(array, StoredArray) else array
            whole = np.ascontiguousarray(whole, whole.dtype.newbyteorder("<"))
            file.write(whole.reshape(-1).view(np.uint8).data)


def _opened(path: Path) -> OpenFile:
    try:
        if regular_or_none(path) is None:
            written = "a file that headscope wrote, with --out of capture or --save of a study"
            raise FileError(f"{path} does not exist; give {written}")
        return OpenFile(path)
    except (OSError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path}: {reason(error)}") from None


def _header(file: OpenFile) -> tuple[int, dict[str, Any]]:
    """Where the arrays begin, and the header that describes them."""
    # 8 bytes with the length of the header, the header as JSON, the arrays.
    (size,) = struct.unpack("<Q", _bytes(file, 0, 8))
    # Before anything is read: a damaged length may ask for more memory than there is.
    if 8 + size > file.size:
        raise ValueError("it does not begin with the header of one")
    header = json.loads(_bytes(file, 8, size))
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__", {}), dict):
        raise ValueError("its header is not an object")
    return 8 + size, header


def _arrays(file: OpenFile, start: int, header: dict[str, Any]) -> dict[str, FileArray]:
    """The arrays, which must follow each other without a gap up to the end of the file."""
    # A gap or an overlap would be room for bytes that no checksum covers.
    arrays, at = {}, 0
    for name, facts in sorted(header.items(), key=lambda each: each[1]["data_offsets"]):
        (begin, end), shape = facts["data_offsets"], facts["shape"]
        if facts["dtype"] not in DTYPES:
            raise ValueError(f"{name} holds numbers of the kind {facts['dtype']}")
        if not all(isinstance(size, int) and size >= 0 for size in shape):
            raise ValueError(f"{name} has the shape {shape}")
        dtype = np.dtype(DTYPES[facts["dtype"]])
        if begin != at or end - begin != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{name} of shape {shape} cannot lie at bytes {begin} to {end}")
        arrays[name] = FileArray(file, start + begin, tuple(shape), dtype)
        at = end
    if start + at != file.size:
        raise ValueError(f"its arrays end at byte {start + at} and the file at {file.size}")
    return arrays


def _bytes(file: OpenFile, start: int, count: int) -> bytes:
    if start + count > file.size:
        raise ValueError(f"{start + count} bytes were requested from a file of {file.size}")
    read = bytearray(count)
    file.read(start, memoryview(read))
    return bytes(read)


RECORD_SUFFIX = ".safetensors"


def check_path(path: Path, what: str = "record") -> None:
    """Raise where a record or result would be called like a file of another kind; devices and links
    have names of their own.

    Args:
        path: of the file.
        what: it will hold.

    Raises:
        FileError: with a name that would do.
    """
    # Unlike those of Path, these do not raise where a name is too long.
    is_free = os.path.isfile(path) or not os.path.exists(path) or not path.name  # noqa: PTH110, PTH113
    if path.suffix != RECORD_SUFFIX and is_free:
        named = Path(path.name.partition(RECORD_SUFFIX)[0] or what).with_suffix(RECORD_SUFFIX)
        raise FileError(
            f"A {what} is a {RECORD_SUFFIX} file, and this is called {path.name!r}; name it {named}"
        )


RUN_AGAIN = "delete it and run the study again, or take a copy"


def save_kept(
    path: str | os.PathLike[str], kind: str, document: dict[str, Any], arrays: dict[str, np.ndarray]
) -> Path:
    """Write a result, whole or not at all.

    Args:
        path: of the file, a ``.safetensors`` file.
        kind: what it holds, such as ``"relations"``; a file of one kind is not read as another.
        document: written into the file as JSON.
        arrays: by name.

    Raises:
        FileError: where the file cannot be written, or has a name of another kind of file.
    """
    path = Path(path)
    check_path(path, "result")
    header = {"format": FORMAT, "kind": kind, "headscope": __version__, "said": document}
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
    its checksum, and can be written to, since studies go on counting in what was read.

    What is put together from them belongs inside `reading`, too.

    Raises:
        FileError: where the file does not exist, is cut, is damaged, is of another kind, or was
            written by a newer headscope.
    """
    document, arrays = load_stored(path, kind)
    with reading(path, kind):
        return document, {name: np.array(array.read()) for name, array in arrays.items()}


def load_stored(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, FileArray]]:
    """What `load_kept` reads, with arrays that stay in the file; every one is compared with its
    checksum, some MB at once.

    Raises:
        FileError: see `load_kept`.
    """
    with reading(path, kind):
        file = RecordFile(Path(path), again=RUN_AGAIN)
        if file.document.get("kind") != kind:
            raise FileError(f"{path} holds no {kind}")
        document = file.document["said"]
        if not isinstance(document, dict):
            raise TypeError(f"its document is {str(document)[:40]!r}")
        file.check()
    return document, file.arrays
