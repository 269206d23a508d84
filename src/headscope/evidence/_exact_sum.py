"""Sums without rounding: the same in any order, in any parts."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import RecordError

BITS = 40
"""Of each of the two lower numbers of a sum."""
PLACES = (2.0**20, 2.0**-20, 2.0**-60)
"""What one stands for in each of the three whole numbers of a sum, so that values from 2^-60 to
2^62 add up, 2^21 of the largest.
"""
LARGEST = 2.0**62
SMALL, FEW = 2.0**19, 2.0**12
"""Values below, and texts fewer, whose sums are exact in double precision."""


def whole_numbers(values: Float[np.ndarray, "..."]) -> Int[np.ndarray, "3 ..."]:
    """Values as three whole numbers each; what is below 2^-60 is rounded away.

    Raises:
        RecordError: where a value is too large.
    """
    if np.abs(values).max(initial=0.0) >= LARGEST:
        raise RecordError("A value of 2^62 or more cannot be added up over a run")
    # Each step is exact: dividing by a power of two, and taking away the part that was rounded off.
    top = np.rint(values / PLACES[0])
    rest = values - top * PLACES[0]
    middle = np.rint(rest / PLACES[1])
    rest = rest - middle * PLACES[1]
    low = np.rint(rest / PLACES[2])
    return np.stack([top, middle, low]).astype(np.int64)


def sums_of(
    values: Float[np.ndarray, "text ..."], weights: Float[np.ndarray, "sum text"]
) -> Int[np.ndarray, "sum 3 ..."]:
    """Weighted sums of values, as of `whole_numbers`.

    Args:
        values: to be added up over texts.
        weights: how often each text counts, whole numbers, of each sum.

    Raises:
        RecordError: where a value is too large.
    """
    flat = values.reshape(len(values), -1)
    shape = (len(weights), 3, *values.shape[1:])
    largest = max(flat.max(initial=0.0), -flat.min(initial=0.0))
    if largest >= SMALL or weights.sum(axis=1).max(initial=0) >= FEW:
        numbers = whole_numbers(flat)
        sums = np.tensordot(weights.astype(np.int64), numbers, axes=(1, 1))
        return sums.reshape(shape)
    # Nothing is left for the first number, and sums of the others are whole numbers below 2^53:
    # exact in double precision, whatever order a product adds them in.
    # A power of two: times its inverse is exact, and faster than divided by it.
    low = flat * (1 / PLACES[1])
    middle = np.rint(low)
    low -= middle
    low *= 2.0**BITS
    np.rint(low, out=low)
    sums = [np.zeros((len(weights), flat.shape[1])), weights @ middle, weights @ low]
    return np.stack(sums, axis=1).astype(np.int64).reshape(shape)


def carried(numbers: Int[np.ndarray, "3 ..."]) -> Int[np.ndarray, "3 ..."]:
    """The same sum with lower numbers within 0..2^40, of which there is one way only."""
    top, middle, low = numbers
    over = low >> BITS
    middle, low = middle + over, low - (over << BITS)
    over = middle >> BITS
    return np.stack([top + over, middle - (over << BITS), low])


def floats(numbers: Int[np.ndarray, "3 ..."]) -> Float[np.ndarray, "..."]:
    """The sum as one number each."""
    # Of a sum a little below 0 the lower numbers are nearly 2^20, to whose last digit they would be
    # rounded: a negative sum is turned first.
    is_negative = carried(numbers)[0] < 0
    top, middle, low = carried(np.where(is_negative, -numbers, numbers))
    sums = top * PLACES[0] + (middle * PLACES[1] + low * PLACES[2])
    return np.where(is_negative, -sums, sums)
