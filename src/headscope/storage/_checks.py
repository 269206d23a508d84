"""What files must hold: documents of JSON, arrays, and one kind of error for what they do not."""

from __future__ import annotations

import math
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


LARGEST = 2**53
"""Whole numbers that JavaScript has, too; nothing that is counted here comes near."""


class Finite:
    """A number that is neither infinite nor NaN."""


class Seed:
    """A whole number of 64 bits."""


PAIR = [int, int]
PLACED = ([(PAIR, None)], None)


def _each(kind: Any, *names: str) -> dict[str, Any]:
    """Entries of one kind."""
    return dict.fromkeys(names, kind)


TOKENS = (
    _each([str], "pieces", "texts", "labels")
    | _each(PLACED, "offsets", "places")
    | _each(([(int, None)], None), "words", "pictures")
    | {"ids": ([int], None), "special": [bool], "segments": [int], "grids": [PAIR]}
    | {"times": ([([float, float], None)], None), "roles": ([(str, None)], None)}
    | {"frames": [(PAIR, None)]}
    | {"parts": [_each(str, "name", "kind") | {"level": int, "spans": [PAIR], "tokens": [int]}]}
)
MODEL = _each(str, "name", "weights", "model_type", "class_name", "implementation", "dtype")
MODEL |= {"positions": str, "revision": (str, None), "versions": {str: str}}
ROTARY = {"frequencies": [float], "style": str, "first": int, "start": int}
CONTRIBUTIONS = _each((float, None), "expansion", "verified")
CONTRIBUTIONS |= {"decomposes": str, "missing": {str: str}}
LAYER = (
    _each(str, "module", "projection", "route", "norm", "turned")
    | {"layer": int, "scale": Finite, "soft_cap": (Finite, None), "verified": (float, None)}
    | {"latent": (int, None), "changes": [str], "statistics": (int, None)}
    | {"held_heads": {"numbers": [int], "heads": int, "kv_heads": int}}
    | {"contributions": CONTRIBUTIONS, "rotary": (ROTARY, None)}
)
STACK: dict[str, Any] = {"name": str, "layers": [LAYER], "others": {str: str}, "routers": [int]}
STACK |= {"query": TOKENS, "key": (str, TOKENS)}
CANDIDATE = {"id": int, "piece": str, "probability": float}
GENERATION = (
    _each([float], "probabilities", "entropies")
    | _each([int], "reads", "ranks")
    | _each(str, "stack", "text", "stop")
    | {"prompt": int, "tokens": TOKENS, "alternatives": [[CANDIDATE]], "sampled": bool}
    | {"seed": (Seed, None)}
)
DOCUMENT = _each(int, "format", "pictures")
DOCUMENT |= {"model": MODEL, "stacks": [STACK], "generation": GENERATION}
"""Of `headscope.storage.save`. A tuple names alternatives; ``[kind]`` is a list, ``[kind, kind]``
one of just these; ``{str: kind}`` an object with any names. Names that are not here, of a later
version perhaps, are passed over.
"""


def check_document(document: Any, wanted: dict[str, Any] = DOCUMENT) -> None:
    """Raise where something is of a wrong kind.

    Args:
        document: as JSON gave it.
        wanted: what is known of it, such as `DOCUMENT`.

    Raises:
        TypeError: naming the place and what is there.
    """
    wrong = _wrong(document, wanted, "document")
    if wrong:
        raise TypeError(wrong)


def _wrong(value: Any, wanted: Any, where: str) -> str:
    """What is wrong with a value; empty where nothing is."""
    if isinstance(wanted, tuple):
        reasons = [_wrong(value, each, where) for each in wanted]
        # The longest reason is mostly that of the innermost place: of what came nearest.
        return "" if "" in reasons else max(reasons, key=len)
    if isinstance(wanted, list):
        return _wrong_list(value, wanted, where)
    if isinstance(wanted, dict):
        return _wrong_object(value, wanted, where)
    return "" if _is_plain(value, wanted) else f"its {where} is {str(value)[:40]!r}"


def _wrong_list(value: Any, wanted: list, where: str) -> str:
    if not isinstance(value, list):
        return f"its {where} is not a list"
    is_each, kinds = len(wanted) > 1, wanted
    if not is_each:
        kinds = wanted * len(value)
    elif len(value) != len(wanted):
        return f"its {where} has {len(value)} entries, expected {len(wanted)}"
    for number, (each, kind) in enumerate(zip(value, kinds, strict=True)):
        wrong = _wrong(each, kind, where if is_each else f"{where}[{number}]")
        if wrong:
            return wrong
    return ""


def _wrong_object(value: Any, wanted: dict, where: str) -> str:
    if not isinstance(value, dict):
        return f"its {where} is not an object"
    for name, each in value.items():
        kind = wanted.get(str, wanted.get(name, Any))
        if kind is not Any:
            wrong = _wrong(each, kind, f"{where}.{name}")
            if wrong:
                return wrong
    return ""


def _is_plain(value: Any, wanted: Any) -> bool:
    if wanted is None:
        return value is None
    # True is an int to Python, but not a number in JSON.
    if wanted in (int, Seed):
        most = LARGEST if wanted is int else 2**64
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= most
    if wanted in (float, Finite):
        if isinstance(value, float):
            return wanted is float or math.isfinite(value)
        return _is_plain(value, int)
    return isinstance(value, wanted)
