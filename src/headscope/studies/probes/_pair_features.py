"""What is known of pairs of words, in memory or in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.record import part_of
from headscope.storage import BoundedArrays

AT_ONCE = 4096
"""Pairs of one array."""
PREDICTED = 4
"""Arrays of which pairs are predicted at once. One product of matrices: its last bits may depend on
how many there are, so the number is fixed.
"""


class PairFeatures:
    """A row of numbers for each pair of words.

    Args:
        vectors: of each pair.
        arrays: hold them in memory, or in a file where they do not fit.
    """

    def __init__(self, vectors: Iterable[np.ndarray], arrays: BoundedArrays) -> None:
        self._blocks = []
        self.size = 0
        rows = iter(vectors)
        while some := list(islice(rows, AT_ONCE)):
            block = np.array(some, np.float32)
            self.size = block.shape[1]
            self._blocks.append(arrays.put(block))

    def rows(self, chosen: Int[np.ndarray, " row"]) -> Float[np.ndarray, "row feature"]:
        """Those of some pairs."""
        rows = np.empty((len(chosen), self.size), np.float32)
        for number, at in enumerate(chosen.tolist()):
            rows[number] = part_of(self._blocks[at // AT_ONCE], at % AT_ONCE)
        return rows

    def blocks(self, together: int = 1) -> Iterator[Float[np.ndarray, "pair feature"]]:
        """Those of all pairs, of so many arrays at once."""
        for first in range(0, len(self._blocks), together):
            some = self._blocks[first : first + together]
            # No list of them stays behind while the rows are used.
            yield np.concatenate([part_of(block) for block in some])

    def scaled(
        self, train: Bool[np.ndarray, " pair"]
    ) -> Callable[[Float[np.ndarray, "row feature"]], Float[np.ndarray, "row feature"]]:
        """What gives rows mean 0 and deviation 1 over some pairs.

        In single precision and row by row, as NumPy has ``mean(axis=0)`` and ``std(axis=0)`` of
        them all: to the last bit.
        """
        # Of the type that NumPy divides sums of rows by.
        count = np.intp(train.sum())

        def divided(total: np.ndarray) -> np.ndarray:
            return np.true_divide(total, count, out=total, casting="unsafe")

        def of_train() -> Iterator[np.ndarray]:
            for number, block in enumerate(self.blocks()):
                yield block[train[number * AT_ONCE : number * AT_ONCE + len(block)]]

        mean = divided(_sum(of_train()))
        variance = divided(_sum((rows - mean) ** 2 for rows in of_train()))
        deviation = np.sqrt(variance)
        scale = np.where(deviation > 0, deviation, np.float32(1))

        def scaled(rows: np.ndarray) -> np.ndarray:
            moved = rows - mean
            # In place: of many rows another array would be large.
            return np.divide(moved, scale, out=moved)

        return scaled


def _sum(blocks: Iterator[np.ndarray]) -> np.ndarray:
    """Of all rows, added one after the other."""
    total = None
    for block in blocks:
        rows = block if total is None else np.concatenate([total[None], block])
        if len(rows):
            total = np.add.reduce(rows, axis=0)
    assert total is not None, "some pairs are learnt from"
    return total
