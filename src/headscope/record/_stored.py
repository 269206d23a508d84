"""Arrays that stay in a file until they are asked for, and copies of what is frozen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np


class StoredArray(ABC):
    """An array in a file; each reading gives what the file held when it was opened, or raises.

    Args:
        shape: of the array.
        dtype: of its numbers.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape: tuple[int, ...] = tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.ndim: int = len(shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy holds its numbers itself: the file may be gone where it is read.
        return np.array, (self.read(),)

    @abstractmethod
    def read(self, *index: Any) -> np.ndarray:
        """The whole array, or the part at an index for each axis: a number, a slice or a list of
        numbers.

        Raises:
            FileError: where the file is no longer what it was when it was opened.
        """


if TYPE_CHECKING:
    Array = np.ndarray  # what a field gives
else:
    Array = np.ndarray | StoredArray  # what it may be given


class ArrayField:
    """A field of a dataclass that holds an array or a `StoredArray`, and always gives an array (or
    None).

    Args:
        required: whether the dataclass must be given it; otherwise it is None by default.
    """

    def __init__(self, *, required: bool) -> None:
        self._required = required

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type | None = None) -> np.ndarray | None:
        # Asked of the class itself: dataclasses take what it has for the field's default.
        if owner is None:
            if self._required:
                raise AttributeError(self._name)
            return None
        array = owner.__dict__[self._name]
        return array.read() if isinstance(array, StoredArray) else array

    def __set__(self, owner: Any, array: Any) -> None:
        owner.__dict__[self._name] = array


def array_field(*, required: bool = False) -> Any:
    """See `ArrayField`; type checkers go by the annotation of the field."""
    return ArrayField(required=required)


def held(owner: Any, name: str) -> Any:
    """What a field holds, without reading it: an array, a `StoredArray` one, or None."""
    return owner.__dict__[name]


def part_of(array: Any, *index: Any) -> Any:
    """Part of an array, or of a `StoredArray` one, of which nothing else is read."""
    # An empty index would be array[()], which gives a scalar of an array without axes.
    return array.read(*index) if isinstance(array, StoredArray) else array[index or ...]


class StoredArrays(Mapping[Any, np.ndarray]):
    """Arrays by name, each read when it is asked for; cannot be written to.

    Args:
        kept: arrays, or `StoredArray` ones.
    """

    def __init__(self, kept: Mapping[Any, Any]) -> None:
        self.kept: dict[Any, Any] = dict(kept)

    def __getitem__(self, name: Any) -> np.ndarray:
        return part_of(self.kept[name])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)


class RebuiltWhenCopied:
    """A frozen dataclass that is pickled and copied by what it was made of, and checked again where
    it is made.

    Read-only mappings cannot be pickled, and arrays in a file would be read where that file may be
    another.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Not getattr: it would read arrays that are in a file, see `ArrayField`.
        values: dict[str, Any] = {}
        for each in fields(self):  # ty: ignore[invalid-argument-type]
            if each.init:
                value = vars(self)[each.name]
                values[each.name] = dict(value) if isinstance(value, Mapping) else value
        return made, (type(self), values)


def made(kind: type, values: Mapping[str, Any]) -> Any:
    """One of a kind, of what it is made of."""
    return kind(**values)
