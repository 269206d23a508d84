"""Which texts belong together: those of one document say much the same, and are drawn together or
not at all; and how long they are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import RecordError


def parse_groups(
    groups: Iterable[Any] | None, count: int, what: str = "text"
) -> Int[np.ndarray, " text"] | None:
    """The group of each text as a number from 0; None where none was given.

    Args:
        groups: a name or number for each text, equal for texts of one document; a text whose group
            is None, empty or NaN belongs to nobody and is a group of its own.
        count: how many texts there are.
        what: a text is called, for messages.

    Raises:
        RecordError: where there are not as many groups as texts.

    Example:
        >>> parse_groups(["b", "a", "b", None], 4).tolist()
        [0, 1, 0, 2]
    """
    if groups is None:
        return None
    listed = list(several_groups(groups))
    if len(listed) != count:
        raise RecordError(f"{len(listed)} groups were given for {count} {what}s; give one for each")
    numbers: dict[Any, int] = {}
    # A pair stands for a text of no document: no document's name can be one.
    names = [group_of(each) or ("alone", index) for index, each in enumerate(listed)]
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], int)


def listed_groups(groups: Any, count: int, what: str = "text") -> list[Any]:
    """The groups as they were given, one for each text.

    Raises:
        RecordError: where there are not as many groups as texts.
    """
    listed = list(several_groups(groups))
    parse_groups(listed, count, what)
    return listed


def several_groups(groups: Any) -> Iterable[Any]:
    """The groups as they were given; a name or number alone is one."""
    return (groups,) if isinstance(groups, str) or not isinstance(groups, Iterable) else groups


def group_of(given: Any) -> str | None:
    """The name of a group as it is kept; None for a text that belongs to none.

    Example:
        >>> group_of(7), group_of(""), group_of(float("nan"))
        ('7', None, None)
    """
    # NaN is what pandas has for a missing name.
    if given is None or given == "" or (isinstance(given, float) and math.isnan(given)):
        return None
    return str(given)


def check_confidence(given: Any, name: str = "confidence") -> None:
    """Raise where this is not the confidence of an interval, or another such share.

    Raises:
        RecordError: with what was given.
    """
    if not isinstance(given, Real) or not 0 < given < 1:
        raise RecordError(f"{name} is a number between 0 and 1, not {given!r}")


def summed(
    values: Float[np.ndarray, "text head"], groups: Int[np.ndarray, " text"] | None
) -> tuple[Float[np.ndarray, "group head"], Float[np.ndarray, "group head"]]:
    """Sum of the known values of each group, and how many they are; without groups every text is
    its own.
    """
    there = (~np.isnan(values)).astype(np.float64)
    known = np.nan_to_num(values)
    if groups is None:
        return known, there
    return added(known, groups), added(there, groups)


def added(
    values: Float[np.ndarray, "text head"], groups: Int[np.ndarray, " text"]
) -> Float[np.ndarray, "group head"]:
    """Sums of the values of each group."""
    sums = np.zeros((int(groups.max(initial=-1)) + 1, values.shape[1]))
    # Not sums[groups] += values, which adds one text of each group only.
    np.add.at(sums, groups, values)
    return sums


def effective_groups(sizes: Float[np.ndarray, "group head"]) -> Float[np.ndarray, " head"]:
    """How many groups of one size would say as much as these of various sizes: ``(sum n)^2 / sum
    n^2`` (Kish 1965).

    Example:
        >>> effective_groups(np.array([[10.0], [10.0], [1.0]])).round(2).tolist()
        [2.19]
    """
    squares, total = (sizes**2).sum(axis=0), sizes.sum(axis=0) ** 2
    return np.divide(total, squares, out=np.zeros(sizes.shape[1]), where=squares > 0)


def group_variance(
    sums: Float[np.ndarray, "group head"], sizes: Float[np.ndarray, "group head"]
) -> Float[np.ndarray, " head"]:
    """Variance of ``sum sums / sum sizes``, by leaving out one group after the other (jackknife);
    NaN for one group.

    ``(G - 1) / G sum_g (m_(g) - m)^2``; for groups of one size the usual variance of a mean of G
    values.
    """
    there = sizes > 0
    count = there.sum(axis=0)
    total, whole = sums.sum(axis=0), sizes.sum(axis=0)
    rest = whole - sizes
    # A group without values, and the only one that has any, leave the mean as it is: no variance.
    mean = np.divide(total, whole, out=np.full(whole.shape, np.nan), where=whole > 0)
    without = np.divide(
        total - sums, rest, out=np.broadcast_to(mean, rest.shape).copy(), where=there & (rest > 0)
    )
    squares = ((without - mean) ** 2).sum(axis=0)
    return np.where(count > 1, squares * (count - 1) / np.maximum(count, 1), np.nan)


def length_text(lengths: Iterable[int] | Iterable[float] | Counter[int]) -> str:
    """The length of texts as tables print it.

    Args:
        lengths: tokens of each text; NaN for one whose length is not known. Or how many texts have
            each length.

    Example:
        >>> length_text([12, 13, 40]), length_text([]), length_text(Counter({12: 1, 13: 2}))
        ('median 13 tokens', 'length not known', 'median 13 tokens')
    """
    if isinstance(lengths, Counter):
        middle = median_of({int(length): count for length, count in lengths.items()})
        return "length not known" if np.isnan(middle) else f"median {middle:.0f} tokens"
    known = [length for length in lengths if not np.isnan(length)]
    return f"median {np.median(known):.0f} tokens" if known else "length not known"


def median_of(counts: Mapping[int, int]) -> float:
    """Median of numbers with their frequencies; NaN for an empty mapping.

    Example:
        >>> median_of({3: 2, 9: 2})
        6.0
    """
    total, before = sum(counts.values()), 0
    middle: list[int] = []
    for number in sorted(counts):
        # For an even count the two in the middle; for an odd one the same number twice.
        for wanted in ((total - 1) // 2, total // 2):
            if before <= wanted < before + counts[number]:
                middle.append(number)
        before += counts[number]
    return float(np.mean(middle)) if middle else float("nan")
