"""What an array of a record must be like."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from headscope.errors import RecordError
from headscope.record import _checks
from headscope.record._checks import _widened, check_finite, check_weights


@given(arrays.arrays(np.uint16, st.tuples(st.integers(1, 3), st.integers(1, 9))))
def test_half_precision_is_widened_as_numpy_does(bits):
    """Every pattern of bits: zeros of both signs, numbers below the normal ones, infinities and
    NaN.
    """
    numbers = bits.view(np.float16)
    np.testing.assert_array_equal(_widened(numbers), numbers.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-0.25, "negative weight -0.25"),
        (np.nan, "holds nan"),
        (np.inf, "holds inf"),
        (1.0, r"query 4 sums to 1\.8"),
    ],
)
def test_one_wrong_number_is_found_in_any_block_of_any_precision(
    monkeypatch, dtype, value, message
):
    monkeypatch.setattr(_checks, "BLOCK", 10)
    weights = np.full((2, 7, 5), 0.2, dtype)
    dead = np.zeros(7, bool)
    check_weights(weights, "weights", sinks=False, dead=dead)
    weights[1, 4, 3] = value
    with pytest.raises(RecordError, match=message):
        check_weights(weights, "weights", sinks=False, dead=dead)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("layout", ["whole", "every other"])
def test_a_number_that_is_not_finite_is_found_wherever_it_is(value, layout):
    numbers = np.full((2, 3, 8), 0.5, np.float32)
    array = numbers if layout == "whole" else numbers[..., ::2]
    check_finite(array, "keys")
    array[1, 2, 3] = value
    with pytest.raises(RecordError, match=r"keys holds -?(nan|inf) at \[1, 2, 3\]"):
        check_finite(array, "keys")


def test_numbers_whose_squares_are_not_finite_are_finite():
    check_finite(np.full((2, 3, 5), 3e38, np.float32), "keys")


def test_rows_of_five_weights_are_summed_without_a_warning(rng):
    """What OpenBLAS finds in memory that was used before is nothing to warn of."""
    signals = np.full(4096, 0x7FA00000, np.uint32).view(np.float32)
    for size in rng.integers(1, 400, 300):
        weights = rng.random((1, size, 5), np.float32)
        weights /= weights.sum(-1, keepdims=True)
        with np.errstate(all="ignore"):  # leaves them in memory that the next product uses
            np.ones((3, size), np.float32) @ signals[: 2 * size : 2]
        check_weights(weights, "weights", sinks=False, dead=np.zeros(size, bool))
