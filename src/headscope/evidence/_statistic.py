"""One value for each text and head, to be added up in any order."""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import FileError, RecordError

VERSION = 1
CONTENTS = ("version", "shape", "names", "texts", "values")


class Statistic:
    """Values of texts, kept one by one: totals and means do not depend on order, batch or machine.

    Sums and means are rounded once (`math.fsum`), so two runs agree to the last bit whatever came first. NaN means
    that a text has nothing to say about a head; it is not counted. Memory is 8 bytes for each text and value.

    Args:
        shape: axes of the values of one text, such as ``(layers, heads)``.
        names: what the values are called, if anything; kept in files, and equal in what is added up.

    Example:
        >>> first, second = Statistic((2,)), Statistic((2,))
        >>> first.update("a", np.array([0.1, 0.5]))
        >>> second.update("b", np.array([0.3, np.nan]))
        >>> (first + second).mean.tolist()
        [0.2, 0.5]
    """

    def __init__(self, shape: tuple[int, ...], names: tuple[str, ...] = ()) -> None:
        self.shape, self.names = tuple(shape), tuple(names)
        self._rows: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, text: str) -> bool:
        return text in self._rows

    def __repr__(self) -> str:
        return f"<Statistic of {len(self)} texts, values {list(self.shape)}>"

    def update(self, text: str, values: Float[np.ndarray, "..."]) -> None:
        """Add the values of one text.

        Args:
            text: what tells it from all others: a number or name.
            values: of the shape that was announced; NaN where there is none.

        Raises:
            RecordError: where the text was counted before, or values are infinite or of another shape.
        """
        values = np.array(values, np.float64)
        if values.shape != self.shape:
            raise RecordError(f"Text {text!r} has values of shape {values.shape}, the texts before it {self.shape}")
        if np.isinf(values).any():
            raise RecordError(f"Text {text!r} has infinite values; a statistic takes finite ones, and NaN for none")
        if text in self._rows:
            raise RecordError(f"Text {text!r} was counted before; give every text a name of its own, and each one once")
        self._rows[text] = values

    def __add__(self, other: Statistic) -> Statistic:
        """The texts of both.

        Raises:
            RecordError: where they share a text or differ in shape or names.
        """
        if not isinstance(other, Statistic):
            return NotImplemented
        if self.names != other.names:
            raise RecordError("Statistics of other names cannot be added up; were they made of the same patterns?")
        found = Statistic(self.shape, self.names)
        for part in (self, other):
            for text, values in part._rows.items():
                found.update(text, values)
        return found

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, sorted by name."""
        return tuple(sorted(self._rows))

    @property
    def values(self) -> Float[np.ndarray, "..."]:
        """All values, axis text first, in the order of `texts`."""
        return np.stack([self._rows[text] for text in self.texts]) if self._rows else np.empty((0, *self.shape))

    @property
    def count(self) -> Int[np.ndarray, "..."]:
        """How many texts have a value."""
        return (~np.isnan(self.values)).sum(axis=0)

    @property
    def total(self) -> Float[np.ndarray, "..."]:
        """Sum over texts, rounded once. A share pooled over texts is the total of parts by the total of wholes."""
        columns = self.values.reshape(len(self), math.prod(self.shape)).T
        sums = [math.fsum(column[~np.isnan(column)].tolist()) for column in columns]
        return np.array(sums, np.float64).reshape(self.shape)

    @property
    def mean(self) -> Float[np.ndarray, "..."]:
        """Mean over texts, each weighing the same; NaN where none has a value."""
        count = self.count
        return np.divide(self.total, count, out=np.full(self.shape, np.nan), where=count > 0)

    def save(self, path: str | os.PathLike, **beside: np.ndarray) -> Path:
        """Keep it as one .npz file, to be resumed with `load_statistic`; written whole or not at all.

        Args:
            path: of the file.
            **beside: arrays that are kept in the same file, for `load_beside`.

        Raises:
            FileError: where the file cannot be written.
        """
        path = Path(path)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as file:
                words = {"names": _packed(self.names), "texts": _packed(self.texts)}
                kept = {"shape": np.array(self.shape, int), **words}
                np.savez(file, version=VERSION, values=self.values, **kept, **beside)  # ty: ignore[invalid-argument-type]
            part.replace(path)
        except OSError as error:
            raise FileError(f"Cannot write {path}: {error.strerror or error}; choose another place") from error
        finally:
            part.unlink(missing_ok=True)
        return path


def load_statistic(path: str | os.PathLike) -> Statistic:
    """A statistic that was kept, to go on with.

    Raises:
        FileError: where the file is not there, is cut, or is none of ours.
    """
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as kept:
            version, shape, names, texts, values = (kept[name] for name in CONTENTS)
            _check_version(path, int(version))
            names, texts = _unpacked(names), _unpacked(texts)
    except FileNotFoundError:
        raise FileError(f"{path} is not there") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} is cut or holds no statistic: {error}") from None
    found = Statistic(tuple(int(size) for size in shape), tuple(names))
    for text, row in zip(texts, values, strict=True):
        found.update(text, row)
    return found


def load_beside(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """The arrays that `Statistic.save` was given beside a statistic, of a file that `load_statistic` could read.

    Example:
        >>> path = Statistic((1,)).save("part.npz", counts=np.array([1, 2]))  # doctest: +SKIP
        >>> load_beside(path)  # doctest: +SKIP
        {'counts': array([1, 2])}
    """
    with np.load(Path(path), allow_pickle=False) as kept:
        return {name: kept[name] for name in kept.files if name not in CONTENTS}


def _check_version(path: str | os.PathLike, version: int) -> None:
    if version > VERSION:
        raise FileError(f"{path} was written by a newer headscope (format {version}, this one reads {VERSION})")


def _packed(words: Iterable[str]) -> np.ndarray:
    """Strings as bytes of JSON: an array of strings would lose zeros at their ends."""
    return np.frombuffer(json.dumps(list(words)).encode(), np.uint8)


def _unpacked(stored: np.ndarray) -> list[str]:
    return json.loads(stored.tobytes())
