"""A record as one ``.safetensors`` file.

Tensors are named ``STACK.LAYER.ARRAY``; everything else is one JSON document in the metadata under
``headscope``. Format 2. A mask is kept as its runs: ``STACK.LAYER.visible.runs`` and ``.firsts``;
format 1 kept packed bits. ``STACK.LAYER.value_norms`` and ``STACK.LAYER.contributions.KIND`` are
there where norms were kept. The document holds ``generation`` where the model wrote the text
itself. Its last entry, ``checksums``, has the `checksum_of` each tensor by name, and CRC-32 of what
stands before it under "". It holds ``pictures``, how many there are, where they are known:
``pictures.NUMBER`` has the axes height, width, and a number ``red * 65536 + green * 256 + blue``
for each pixel.
"""

from __future__ import annotations

import dataclasses
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from typing import IO, Any, TypeVar

import numpy as np

from headscope.errors import FileError
from headscope.record import (
    ARRAYS,
    CONTRIBUTIONS,
    STATISTICS,
    Candidate,
    Contributions,
    Generation,
    HeldHeads,
    Layer,
    Mask,
    ModelFacts,
    Part,
    Record,
    Rotary,
    Stack,
    Statistics,
    StoredArray,
    StoredArrays,
    Tokens,
    check_finite,
    held,
    part_of,
)
from headscope.storage import _safetensors, atomic
from headscope.storage._checks import arrays_below, check_document, reading
from headscope.storage._file_array import checksum_of

Array = np.ndarray | StoredArray
Made = TypeVar("Made")
MASK_ARRAYS = ("runs", "firsts")
CONTRIBUTION_FACTS = ("expansion", "decomposes", "verified")
FACTS = ("layer", "scale", "soft_cap", "module", "projection", "route", "verified", "norm")
RARE_FACTS = ("changes", "latent", "partial", "turned", "verified_against", "verified_limit")
"""Written only where there is something to tell."""


class NoRecord(FileError):
    """A file of ours that holds the result of a study.

    Args:
        path: of the file.
        kind: of the result.
    """

    def __init__(self, path: Path, kind: str) -> None:
        super().__init__(f"{path} holds a result ({kind}) and no record; headscope.load reads both")
        self.kind: str = kind


def save(record: Record, path: str | os.PathLike[str], *, name: str = "") -> Path | str:
    """Write a record to one ``.safetensors`` file, whole or not at all.

    Args:
        record: what to keep.
        path: where; a file that is there is replaced. Also an address that fsspec knows, such as
            ``"hf://datasets/me/records/run.safetensors"`` or ``"s3://..."``.
        name: which record of a run it is, by which `RecordFolder` knows it again.

    Returns:
        The path, or the address.

    Raises:
        FileError: where it cannot be written, or is not called as a record is (``.safetensors``).

    Example:
        >>> save(record, "run.safetensors")
    """
    if atomic.is_address(path):
        return atomic.saved_at(str(path), partial(save, record, name=name))
    _safetensors.check_path(atomic.local_path(path))
    tensors = _tensors_of(record)
    with atomic.written_whole(path) as temporary:
        # Of what is in memory: a disk that writes something else is found out when it is read.
        sums = {name: _checksum(array) for name, array in tensors.items()}
        document = _document_of(record) | ({"name": name} if name else {})
        _safetensors.write_tensors(
            temporary, tensors, _safetensors.document_with_sums(document, sums)
        )
    return Path(path)


def record_parts(record: Record) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a file of a record holds, alone or as a part of a result: everything but its arrays as
    JSON has it, and the arrays by name.
    """
    tensors = {name: np.ascontiguousarray(part_of(a)) for name, a in _tensors_of(record).items()}
    return _document_of(record), tensors


def _checksum(array: Array) -> int:
    """Of an array in a file, which is read for it unless its checksum is known."""
    return array.checksum if isinstance(array, TemporaryArray) else checksum_of(part_of(array))


def _document_of(record: Record) -> dict[str, Any]:
    document: dict[str, Any] = {
        "format": _safetensors.FORMAT,
        "model": dataclasses.asdict(record.model),
        "stacks": [_stack_facts(stack) for stack in record.stacks.values()],
    }
    if record.generation is not None:
        document["generation"] = dataclasses.asdict(record.generation)
    if record.pictures:
        document["pictures"] = len(record.pictures)
    return document


def _stack_facts(stack: Stack) -> dict[str, Any]:
    return {
        "name": stack.name,
        "layers": [_layer_facts(layer) for layer in stack],
        # JSON has no numbers for names.
        "others": {str(number): what for number, what in stack.others.items()},
        "routers": list(stack.routers),
        "query": _described(stack.query),
        "key": "query" if stack.key == stack.query else _described(stack.key),
    }


def _layer_facts(layer: Layer) -> dict[str, Any]:
    facts, added = {name: getattr(layer, name) for name in FACTS}, layer.contributions
    if added is not None:
        facts["contributions"] = {name: getattr(added, name) for name in CONTRIBUTION_FACTS}
        facts["contributions"]["missing"] = dict(added.missing)
    facts |= {name: getattr(layer, name) for name in RARE_FACTS if getattr(layer, name)}
    if layer.held_heads is not None:
        facts["held_heads"] = dataclasses.asdict(layer.held_heads)
    rotary, facts["rotary"] = layer.rotary, None
    if rotary is not None:
        facts["rotary"] = dataclasses.asdict(rotary) | {"frequencies": rotary.frequencies.tolist()}
    facts["statistics"] = layer.statistics and layer.statistics.queries
    return facts


def _tensors_of(record: Record) -> dict[str, Array]:
    """The arrays of a record by their names in the file; those in a file are not read."""
    tensors: dict[str, Array] = {}
    for stack in record.stacks.values():
        for layer in stack:
            for name, array in _arrays_of(layer).items():
                tensors[f"{stack.name}.{layer.layer}.{name}"] = array
        for number, scores in stack.routers.items():
            tensors[f"{stack.name}.{number}.router"] = scores
    for number, picture in enumerate(record.pictures):
        tensors[f"pictures.{number}"] = picture
    return tensors


def _arrays_of(layer: Layer) -> dict[str, Array]:
    arrays: dict[str, Array] = {name: held(layer, name) for name in ARRAYS if layer.has(name)}
    if not layer.visible.is_full:
        arrays |= {f"visible.{name}": getattr(layer.visible, name) for name in MASK_ARRAYS}
    for name, array in _held(layer.statistics, (*STATISTICS, "rows")).items():
        arrays[f"statistics.{name}"] = array
    for name, array in _held(layer.contributions, CONTRIBUTIONS).items():
        arrays[f"contributions.{name}"] = array
    return arrays


def _held(of: Statistics | Contributions | None, names: Iterable[str]) -> dict[str, Array]:
    named = {} if of is None else {name: held(of, name) for name in names}
    return {name: array for name, array in named.items() if array is not None}


def load(path: str | os.PathLike[str], *, check: bool = False) -> Record:
    """Read a record; an array stays in the file until it is used. What is used first of an array
    is compared with the checksum of the whole of it: afterwards one head is read without the rest.

    A file that is cut or overwritten while the record is open gives an error when more of it is
    read, never other numbers; one that `save` writes again leaves open records as they are.

    Args:
        path: a file that `save` wrote, or its address such as
            ``"hf://datasets/me/records/run.safetensors"``: it is brought to this machine, and is
            there until the process ends.
        check: whether to read all of it now and compare every array with its checksum.

    Raises:
        FileError: where there is no such file, or it is cut, foreign, damaged or of a newer format.

    Example:
        >>> load("run.safetensors", check=True)
    """
    file, record = opened(atomic.fetched(path))
    if check:
        file.check()
        with reading(file.path, "record"):
            _check_values(record)
    return record


def opened(path: Path) -> tuple[_safetensors.RecordFile, Record]:
    """The file of a record and what `load` gives of it."""
    with reading(path, "record"):
        file = _safetensors.RecordFile(path)
        if "kind" in file.document:
            raise NoRecord(path, str(file.document["kind"]))
        return file, record_of(file.document, file.arrays)


def _check_values(record: Record) -> None:
    """Raise where an array holds what it cannot; one at a time, so that no more is in memory."""
    for stack in record.stacks.values():
        for layer in stack:
            # Reading the weights of a head checks that they are finite and that its rows sum to 1.
            if layer.has("weights"):
                for head in layer.head_numbers:
                    layer.weights_of(head)
            for name in ARRAYS:
                if layer.has(name) and name != "weights":
                    check_finite(getattr(layer, name), f"{name} of layer {layer.layer}")


def record_of(document: dict[str, Any], tensors: Mapping[str, Array]) -> Record:
    """The record of what `record_parts` gave.

    Args:
        document: everything but the arrays.
        tensors: by name, in memory or still in a file.

    Raises:
        TypeError: where something of the document is of a wrong kind.
        LookupError: where an array is missing.
        RecordError: where they are no record.
    """
    check_document(document)
    model = _made(ModelFacts, document["model"])
    stacks = [_stack(entry, tensors) for entry in document["stacks"]]
    generation = _generation(document["generation"]) if "generation" in document else None
    # A damaged file may claim any number; one more than there are tensors makes it fail by name.
    numbers = range(min(document.get("pictures", 0), len(tensors) + 1))
    pictures = tuple(part_of(tensors[f"pictures.{number}"]) for number in numbers)
    named = {stack.name: stack for stack in stacks}
    if len(named) < len(stacks):
        raise ValueError(f"two of its stacks are called {stacks[-1].name!r}")
    return Record(stacks=named, model=model, generation=generation, pictures=pictures)


def _stack(entry: dict, tensors: Mapping[str, Array]) -> Stack:
    # In self-attention both sides are one object, which is compared and held once.
    query = _tokens(entry["query"])
    key = query if entry["key"] == "query" else _tokens(entry["key"])
    layers = []
    for facts in entry["layers"]:
        prefix = f"{entry['name']}.{facts['layer']}."
        arrays = {name: tensors[prefix + name] for name in ARRAYS if prefix + name in tensors}
        parts = _parts_of(facts, tensors, prefix) | {"visible": _mask(tensors, prefix, len(key))}
        layers.append(_made(Layer, facts, **arrays, **parts))
    routers = {number: tensors[f"{entry['name']}.{number}.router"] for number in entry["routers"]}
    others = {int(number): what for number, what in entry["others"].items()}
    more = {"others": others, "routers": StoredArrays(routers), "layers": tuple(layers)}
    return Stack(name=entry["name"], query=query, key=key, **more)


def _made(kind: type[Made], facts: dict[str, Any], **parts: Any) -> Made:
    """An object of its fields as JSON has them, lists for tuples, and of parts in place of others.

    A later version may say more; what this one does not know is passed over.
    """
    known = {each.name for each in dataclasses.fields(kind)}  # ty: ignore[invalid-argument-type]
    given = {name: _with_tuples(facts[name]) for name in known & facts.keys()}
    return kind(**given | parts)


def _with_tuples(value: Any) -> Any:
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def _parts_of(facts: dict[str, Any], tensors: Mapping[str, Array], prefix: str) -> dict[str, Any]:
    """The objects that a layer holds."""
    parts: dict[str, Any] = dict.fromkeys(("held_heads", "rotary", "statistics", "contributions"))
    if "held_heads" in facts:
        parts["held_heads"] = _made(HeldHeads, facts["held_heads"])
    if facts["rotary"] is not None:
        frequencies = np.array(facts["rotary"]["frequencies"])
        parts["rotary"] = _made(Rotary, facts["rotary"], frequencies=frequencies)
    if facts["statistics"] is not None:
        arrays = arrays_below(tensors, f"{prefix}statistics.")
        parts["statistics"] = Statistics(**arrays, queries=facts["statistics"])
    if facts.get("contributions") is not None:
        arrays = arrays_below(tensors, f"{prefix}contributions.")
        parts["contributions"] = _made(Contributions, facts["contributions"], **arrays)
    return parts


def _described(tokens: Tokens) -> dict[str, Any]:
    """The fields of tokens; roles, frames, parts and reasons only where there are some."""
    rare = ("roles", "numbered", "frames", "parts")
    fields = dataclasses.asdict(tokens).items()
    return {name: value for name, value in fields if value or name not in rare}


def _tokens(entry: dict[str, Any]) -> Tokens:
    return _made(Tokens, entry, parts=tuple(_made(Part, part) for part in entry.get("parts", ())))


def _generation(entry: dict) -> Generation:
    offers = [tuple(Candidate(**each) for each in offered) for offered in entry["alternatives"]]
    tokens = _tokens(entry["tokens"])
    return _made(Generation, entry, tokens=tokens, alternatives=tuple(offers))


def _mask(tensors: Mapping[str, Array], prefix: str, keys: int) -> Mask | None:
    kept = arrays_below(tensors, f"{prefix}visible.")
    return Mask(keys=keys, **{name: part_of(kept[name]) for name in kept}) if kept else None


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
            FileError: where the disk is full; TMPDIR names it.
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
        return FileError(f"Cannot write {self._what}: {atomic.reason(error)}; choose another place")


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
        if not atomic.is_address(path):
            _safetensors.check_path(atomic.local_path(path))
            atomic.regular_or_none(path)
            folder = Path(path).absolute().parent
        super().__init__(folder, str(path))
