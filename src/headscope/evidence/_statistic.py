"""One value for each text and head, to be added up in any order."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import RecordError
from headscope.evidence.groups import added, group_of, parse_groups
from headscope.storage import (
    STATISTIC,
    check_document,
    load_kept,
    reading,
    save_kept,
)

DOCUMENT: dict[str, Any] = {
    "shape": [int],
    "names": [str],
    "texts": [str],
    "groups": {str: str},
    "lengths": {str: int},
}
"""Of a file."""


class Statistic:
    """Values of texts, kept one by one: totals and means do not depend on order, batch or machine.

    Sums and means are rounded once (`math.fsum`), so two runs agree to the last bit whatever came
    first. NaN means that a text has nothing to say about a head; it is not counted. Memory is 8
    bytes for each text and value.

    Args:
        shape: axes of the values of one text, such as ``(layers, heads)``.
        names: what the values are called, if anything; kept in files, and equal in what is added
            up.

    Example:
        >>> first, second = Statistic((2,)), Statistic((2,))
        >>> first.update("a", np.array([0.1, 0.5]))
        >>> second.update("b", np.array([0.3, np.nan]))
        >>> (first + second).mean.tolist()
        [0.2, 0.5]
    """

    def __init__(self, shape: tuple[int, ...], names: tuple[str, ...] = ()) -> None:
        self.shape: tuple[int, ...] = tuple(shape)
        self.names: tuple[str, ...] = tuple(names)
        self._rows: dict[str, np.ndarray] = {}
        self._groups: dict[str, str] = {}
        self._lengths: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, text: str) -> bool:
        return text in self._rows

    def __repr__(self) -> str:
        return f"<Statistic of {len(self)} texts, values {list(self.shape)}>"

    def update(
        self,
        text: str,
        values: Float[np.ndarray, "..."],
        *,
        group: Any = None,
        length: int | None = None,
    ) -> None:
        """Add the values of one text.

        Args:
            text: its identifier: a number or name.
            values: of the shape that was announced; NaN where there is none.
            group: the document that it is of, by name or number; None for a text that belongs to no
                other.
            length: how many tokens it has, where that is known.

        Raises:
            RecordError: where the text was counted before, or values are infinite or of another
                shape.
        """
        # A copy, so that a caller who writes to its array changes nothing that was counted.
        values = np.array(values, np.float64)
        if values.shape != self.shape:
            raise RecordError(
                f"Text {text!r} has values of shape {values.shape}, the texts before it "
                f"{self.shape}"
            )
        if np.isinf(values).any():
            raise RecordError(
                f"Text {text!r} has infinite values; a statistic takes finite ones, and NaN for "
                "none"
            )
        if text in self._rows:
            raise RecordError(
                f"Text {text!r} was counted before; give every text a name of its own, and each "
                "one once"
            )
        self._rows[text] = values
        name = group_of(group)
        if name is not None:
            self._groups[text] = name
        if length is not None:
            self._lengths[text] = int(length)

    def __add__(self, other: Statistic) -> Statistic:
        """The texts of both.

        Raises:
            RecordError: where they share a text or differ in shape or names.
        """
        if not isinstance(other, Statistic):
            return NotImplemented
        if self.names != other.names:
            raise RecordError(
                "Statistics of other names cannot be added up; were they made of the same patterns?"
            )
        both = Statistic(self.shape, self.names)
        for part in (self, other):
            for text, values in part._rows.items():
                both.update(
                    text, values, group=part._groups.get(text), length=part._lengths.get(text)
                )
        return both

    def renamed(self, name: str, group: Any = None) -> Statistic:
        """The values of its one text under another name, and of a document.

        Raises:
            RecordError: where it has not one text.
        """
        if len(self) != 1:
            raise RecordError(f"Expected a statistic of one text to rename, got {len(self)}")
        (text,) = self._rows
        again = Statistic(self.shape, self.names)
        again.update(name, self._rows[text], group=group, length=self._lengths.get(text))
        return again

    @property
    def lengths(self) -> tuple[float, ...]:
        """Tokens of each text, in the order of `texts`; NaN where that was not kept."""
        return tuple(float(self._lengths.get(text, np.nan)) for text in self.texts)

    @property
    def groups(self) -> tuple[str | None, ...] | None:
        """The document of each text, in the order of `texts`; None where none was given for any."""
        return tuple(self._groups.get(text) for text in self.texts) if self._groups else None

    @property
    def documents(self) -> int:
        """How many documents the texts are of; a text that belongs to none counts as one."""
        return len(set(self._groups.values())) + len(self._rows) - len(self._groups)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, sorted by name."""
        # Sorted, so that draws with one seed are the same in whatever order texts came.
        return tuple(sorted(self._rows))

    @property
    def values(self) -> Float[np.ndarray, "..."]:
        """All values, axis text first, in the order of `texts`."""
        if not self._rows:
            return np.empty((0, *self.shape))
        return np.stack([self._rows[text] for text in self.texts])

    def some_at_a_time(
        self, count: int
    ) -> Iterator[tuple[Float[np.ndarray, "..."], tuple[str | None, ...]]]:
        """Values and documents in the order of `texts`, without a copy of all of them.

        Args:
            count: of texts, at most.
        """
        texts = self.texts
        for first in range(0, len(texts), count):
            some = texts[first : first + count]
            groups = tuple(self._groups.get(text) for text in some)
            yield np.stack([self._rows[text] for text in some]), groups

    @property
    def count(self) -> Int[np.ndarray, "..."]:
        """How many texts have a value."""
        return (~np.isnan(self.values)).sum(axis=0)

    @property
    def total(self) -> Float[np.ndarray, "..."]:
        """Sum over texts, rounded once. A share pooled over texts is the total of parts by the
        total of wholes.
        """
        # math.prod and not -1, which is unknown where there is no text.
        columns = self.values.reshape(len(self), math.prod(self.shape)).T
        sums = [math.fsum(column[~np.isnan(column)].tolist()) for column in columns]
        return np.array(sums, np.float64).reshape(self.shape)

    @property
    def mean(self) -> Float[np.ndarray, "..."]:
        """Mean over texts, each weighing the same; NaN where none has a value."""
        count = self.count
        return np.divide(self.total, count, out=np.full(self.shape, np.nan), where=count > 0)

    def save(self, path: str | os.PathLike[str], **beside: np.ndarray) -> Path:
        """Keep it as one .safetensors file, to be resumed with `load_statistic`; written whole or
        not at all.

        Args:
            path: of the file.
            **beside: arrays that are kept in the same file, for `load_beside`.

        Raises:
            FileError: where the file cannot be written.
        """
        document = {
            "shape": self.shape,
            "names": self.names,
            "texts": self.texts,
            "groups": self._groups,
            "lengths": self._lengths,
        }
        return save_kept(path, STATISTIC, document, {"values": self.values, **beside})


def load_statistic(path: str | os.PathLike[str]) -> Statistic:
    """A saved statistic, to resume.

    Raises:
        FileError: where the file does not exist, is cut, damaged, or none of ours.
    """
    with reading(path, STATISTIC):
        document, arrays = load_kept(path, STATISTIC)
        check_document(document, DOCUMENT)
        shape, texts, values = tuple(document["shape"]), document["texts"], arrays["values"]
        if values.shape != (len(texts), *shape):
            raise ValueError(
                f"it has values {list(values.shape)} for {len(texts)} texts of {list(shape)}"
            )
        statistic = Statistic(shape, tuple(document["names"]))
        for text, row in zip(texts, values, strict=True):
            group, length = document["groups"].get(text), document["lengths"].get(text)
            statistic.update(text, row, group=group, length=length)
    return statistic


def load_beside(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays that `Statistic.save` was given beside a statistic, of a file that
    `load_statistic` could read.

    Raises:
        FileError: where the file does not exist, is cut, damaged, or none of ours.

    Example:
        >>> path = Statistic((1,)).save("part.safetensors", counts=np.array([1, 2]))
        ... # doctest: +SKIP
        >>> load_beside(path)  # doctest: +SKIP
        {'counts': array([1, 2])}
    """
    with reading(path, STATISTIC):
        arrays = load_kept(path, STATISTIC)[1]
    return {name: array for name, array in arrays.items() if name != "values"}


ALL_OF = 13
"""Up to so many texts every pattern of signs is tried."""
AT_ONCE = 512


def p_flipped(
    differences: Float[np.ndarray, "text head"],
    *,
    groups: Iterable[Any] | None = None,
    flips: int = 9999,
    seed: int = 0,
) -> Float[np.ndarray, " head"]:
    """Probability of a mean that far from 0 if each text's difference were as likely with the other
    sign; two-sided.

    With up to 13 texts all patterns of signs are tried, with more ``flips`` random ones, the same
    for all heads, and the one that was seen counts among them: ``p = (1 + #{|mean'| >= |mean|}) /
    (1 + flips)``, which is never below ``1 / (1 + flips)`` (`least_p`). Of right and wrong answers
    this is McNemar's test. The texts of one document get one sign. NaN for fewer than two texts, or
    documents.

    Source: Fisher 1935, section 21; Phipson and Smyth 2010 for the 1. SciPy's `permutation_test`
    with ``permutation_type="samples"`` gives the same for few texts.

    Args:
        differences: one for each text and head, none missing.
        groups: the document of each text, see `interval`.
        flips: how many random patterns.
        seed: of the patterns.

    Raises:
        RecordError: where a difference is missing, or there is not a group for each text.

    Example:
        >>> p_flipped(np.array([[1.0], [1.0], [1.0]])).tolist()
        [0.25]
    """
    if not np.isfinite(differences).all():
        raise RecordError("A difference is missing or infinite; give one for each text and head")
    numbers = parse_groups(groups, len(differences))
    differences = differences if numbers is None else added(differences, numbers)
    texts, heads = differences.shape
    if texts < 2:
        return np.full(heads, np.nan)
    # Sums of rounded numbers differ by their order: what is as far to within rounding counts as as
    # far.
    scale = np.abs(differences).sum(axis=0)
    least = np.abs(differences.sum(axis=0)) - 1e-12 * scale
    every = texts <= ALL_OF
    count, rng, reached = 2**texts if every else flips, np.random.default_rng(seed), np.zeros(heads)
    for first in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - first)
        if every:
            bits = (np.arange(first, first + size)[:, None] >> np.arange(texts)) & 1
        else:
            bits = rng.integers(0, 2, (size, texts))
        reached += (np.abs((2.0 * bits - 1.0) @ differences) >= least).sum(axis=0)
    return reached / count if every else (1 + reached) / (1 + count)


def least_p(groups: int, *, flips: int = 9999) -> float:
    """The least that `p_flipped` can give of so many texts, or documents.

    Example:
        >>> least_p(3), least_p(100)
        (0.25, 0.0001)
    """
    return 2.0 ** (1 - groups) if groups <= ALL_OF else 1 / (1 + flips)
