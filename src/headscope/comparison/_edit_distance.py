"""The fewest edits that make one list of another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Int

from headscope.errors import RecordError

Pair = tuple[int | None, int | None]
LARGEST = 2**26
"""Products of two lengths up to which lists are compared; the table of costs then has 256 MiB."""


def edit_pairs(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    """The pairs of places of an alignment with the fewest insertions, deletions and replacements.

    Of several with as few, one with the fewest replacements, which has the most equal pairs; of
    several of those, the one that pairs as late as possible. ``(i, None)`` is a deletion, ``(None,
    j)`` an insertion.

    Source: Levenshtein 1966; Wagner and Fischer 1974. Equal beginnings and ends are paired first,
    which costs nothing.

    Args:
        a: one list.
        b: the other.

    Raises:
        RecordError: where the part in which they differ is too long to compare.

    Example:
        >>> edit_pairs("abc", "adc")
        [(0, 0), (1, 1), (2, 2)]
        >>> edit_pairs("ab", "b")
        [(0, None), (1, 0)]
    """
    head = _equal(a, b)
    tail = _equal(a[head:][::-1], b[head:][::-1])
    inner = a[head : len(a) - tail], b[head : len(b) - tail]
    pairs: list[Pair] = [(index, index) for index in range(head)]
    for first, second in _traced(*inner):
        one = None if first is None else head + first
        other = None if second is None else head + second
        pairs.append((one, other))
    return pairs + [(len(a) - tail + index, len(b) - tail + index) for index in range(tail)]


def edit_distance(pairs: Sequence[Pair], a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Number of edits of an alignment."""
    return sum(first is None or second is None or a[first] != b[second] for first, second in pairs)


def _equal(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """How many entries are the same from the beginning on."""
    count = 0
    for first, second in zip(a, b, strict=False):
        if first != second:
            break
        count += 1
    return count


def _traced(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    costs = _costs(a, b)
    one = len(a) + len(b) + 1
    i, j = len(a), len(b)
    pairs: list[Pair] = []
    # From the ends back, a pair being tried before a deletion: so pairs stand as late as they can.
    while i and j:
        step = 0 if a[i - 1] == b[j - 1] else one + 1
        if costs[i, j] == costs[i - 1, j - 1] + step:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif costs[i, j] == costs[i - 1, j] + one:
            i -= 1
            pairs.append((i, None))
        else:
            j -= 1
            pairs.append((None, j))
    # One list is used up; what is left of the other has nothing to be paired with.
    pairs += [(index, None) for index in range(i - 1, -1, -1)]
    pairs += [(None, index) for index in range(j - 1, -1, -1)]
    return pairs[::-1]


def _costs(a: Sequence[Hashable], b: Sequence[Hashable]) -> Int[np.ndarray, "first second"]:
    """Cost of making the first j of b out of the first i of a: an edit has more than all
    replacements together.
    """
    if len(a) * len(b) > LARGEST:
        raise RecordError(
            f"The records differ in a stretch of {len(a)} and {len(b)} tokens, which is too long "
            "to be aligned; compare shorter texts, or texts that differ in fewer words"
        )
    # A deletion or insertion costs `one`, a replacement `one + 1`. As there are fewer than `one`
    # replacements, the least sum has the fewest edits, and among those the fewest replacements.
    one = len(a) + len(b) + 1
    number: dict[Hashable, int] = {}
    first, second = (
        np.array([number.setdefault(entry, len(number)) for entry in of], int) for of in (a, b)
    )
    line = one * np.arange(len(b) + 1)
    # The largest cost is below 2 * one^2; half the memory where that fits.
    whole = np.int32 if 2 * one * one < 2**31 else np.int64
    costs = np.empty((len(a) + 1, len(b) + 1), whole)
    costs[0] = line
    for i, entry in enumerate(first):
        row = costs[i] + one
        np.minimum(row[1:], costs[i][:-1] + np.where(second == entry, 0, one + 1), out=row[1:])
        # Insertions run along the row, each adding `one`: with j * one taken off first, the least
        # cost up to each place is a running minimum.
        costs[i + 1] = np.minimum.accumulate(row - line) + line
    return costs
