"""Records that are finished before their turn, and the memory that they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from headscope.record import Record


class WaitingRecords:
    """Records that are finished before their turn, with their size and estimates for others."""

    def __init__(self, config: Any) -> None:
        self._records: dict[int, Record | None] = {}
        self._taken = 0
        # A large guess for widths and counts that are not known; the first record corrects it.
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
        """Number of inputs of this length for which there is room; at least 1, for the next in
        turn.
        """
        return max(1, (held - self._taken) // max(1, self._most(length)))

    def _most(self, length: int) -> int:
        """Upper bound of the size of a record with so many tokens: it grows at least with the
        length, and at most with its square.
        """
        if not self._known:
            return self._linear * length + self._square * length**2
        # Compared with a known record, a longer one is larger by at most the square of the ratio of
        # lengths, and a shorter one is smaller by at least this ratio.
        bounds = (
            size * max((length / known) ** 2, 1) * min(length / known, 1)
            for known, size in self._known
        )
        return int(min(bounds))


def bytes_of(record: Record) -> int:
    """Bytes of the arrays of a record; of an array that it views, only the visible part counts."""
    return sum(_bytes_in(layer) for stack in record.stacks.values() for layer in stack)


def _bytes_in(part: Any) -> int:
    if isinstance(part, np.ndarray):
        return part.nbytes
    if is_dataclass(part) and not isinstance(part, type):
        return sum(_bytes_in(vars(part).get(each.name)) for each in fields(part))
    if isinstance(part, Mapping):
        return sum(map(_bytes_in, part.values()))
    return 0
