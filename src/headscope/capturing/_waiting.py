"""Records that are done before their turn, and the memory that they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from headscope.record import Record


class WaitingRecords:
    """Records that are done before their turn: what they take, and what others would."""

    def __init__(self, config: Any) -> None:
        self._records: dict[int, Record | None] = {}
        self._taken = 0
        # What a record of one token would take at most if a width or a count is not known;
        # corrected by the first one.
        sizes = (
            getattr(config, name, None)
            for name in ("num_hidden_layers", "num_attention_heads", "hidden_size")
        )
        layers, heads, width = (size if isinstance(size, int) else 48 for size in sizes)
        self._linear, self._square = 16 * layers * width, 8 * layers * heads
        self._known: list[tuple[int, int]] = []

    def __contains__(self, index: int) -> bool:
        return index in self._records

    def put(self, index: int, record: Record | None) -> None:
        """Keep a record until its turn; None where its input was left out."""
        self._records[index] = record
        if record is not None:
            size = bytes_of(record)
            self._taken += size
            self._known.append((max(len(stack.query) for stack in record.stacks.values()), size))

    def take(self, index: int) -> Record | None:
        """The record whose turn it is."""
        record = self._records.pop(index, None)
        if record is not None:
            self._taken -= bytes_of(record)
        return record

    def room(self, length: int, held: int) -> int:
        """How many more inputs of this length there is room for, at least the one whose turn it
        is.
        """
        return max(1, (held - self._taken) // max(1, self._most(length)))

    def _most(self, length: int) -> int:
        """What a record of so many tokens takes at most: it grows with the length, and with its
        square at most.
        """
        if not self._known:
            return self._linear * length + self._square * length**2
        # Where a record is known, a longer one takes at most the square of the ratio, a shorter one
        # at most the ratio.
        bounds = (
            size * max((length / known) ** 2, 1) * min(length / known, 1)
            for known, size in self._known
        )
        return int(min(bounds))


def bytes_of(record: Record) -> int:
    """What the arrays of a record take, in bytes; those of which it holds a view count as far as
    they are seen.
    """
    return sum(_bytes_in(layer) for stack in record.stacks.values() for layer in stack)


def _bytes_in(part: Any) -> int:
    if isinstance(part, np.ndarray):
        return part.nbytes
    if is_dataclass(part) and not isinstance(part, type):
        return sum(_bytes_in(vars(part).get(each.name)) for each in fields(part))
    if isinstance(part, Mapping):
        return sum(map(_bytes_in, part.values()))
    return 0
