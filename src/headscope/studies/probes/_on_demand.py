"""What probes learn from, made when it is asked for: memory does not grow with the sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from torch import Tensor

from headscope.storage import BoundedArrays

HELD = 2**29
"""Bytes of what sentences are read as that are held, and of batches: what is more stays in files,
and is made anew in each epoch.
"""

Made = TypeVar("Made")


class Room:
    """Bytes that several may hold together: `HELD` of them."""

    def __init__(self) -> None:
        self._left = HELD

    def takes(self, size: int) -> bool:
        """Whether there is room for so many bytes, which are then taken."""
        if size > self._left:
            return False
        self._left -= size
        return True


def bounded_arrays() -> BoundedArrays:
    """A context that holds as many bytes of arrays, and puts the others into a file."""
    return BoundedArrays(HELD)


class LazySequence(Sequence[Made]):
    """A sequence whose entries are made when they are asked for.

    Args:
        count: how many there are.
        make: makes one of its number; the same at any time.
        room: for tensors of entries that are held once they are made. Those that are made first
            stay: where every entry is asked for once an epoch, that saves as many as any other
            choice.
    """

    def __init__(self, count: int, make: Callable[[int], Made], room: Room | None = None) -> None:
        self._count, self._make, self._room = count, make, room
        self._held: dict[int, Made] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> Made: ...
    @overload
    def __getitem__(self, number: slice) -> LazySequence[Made]: ...
    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return self.of(range(self._count)[number])
        if not -self._count <= number < self._count:
            raise IndexError(number)
        number %= self._count
        if number in self._held:
            return self._held[number]
        made = self._make(number)
        if self._room is not None and self._room.takes(_bytes_of(made)):
            self._held[number] = made
        return made

    def of(self, numbers: Sequence[int]) -> LazySequence[Made]:
        """Those of some numbers."""
        return LazySequence(len(numbers), lambda at: self[numbers[at]])


def _bytes_of(made: Any) -> int:
    """Of the tensors of a batch."""
    parts = made if isinstance(made, tuple) else vars(made).values()
    return sum(part.nbytes for part in parts if isinstance(part, Tensor))
