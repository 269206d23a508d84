import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.views._quantise import quantise


def test_every_byte_decodes_to_itself():
    weights = ((np.arange(256) / 255) ** 2).reshape(2, 8, 16)
    stored, error = quantise(weights)
    assert stored.reshape(-1).tolist() == list(range(256))
    assert error < 1e-7


@pytest.mark.parametrize(("top", "bound"), [(1.0, 0.00391), (0.015, 0.0005)])
def test_the_error_stays_below_what_the_docstring_says(top, bound):
    weights = np.linspace(0, top, 30_000).reshape(3, 100, 100)
    stored, error = quantise(weights)
    assert np.abs((stored / 255.0) ** 2 - weights).max() == pytest.approx(error, abs=1e-7)
    assert bound * 0.9 < error <= bound


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_stated_error_is_the_largest(values):
    weights = np.array(values).reshape(1, 1, -1)
    stored, error = quantise(weights)
    assert (np.abs((stored / 255.0) ** 2 - weights) <= error + 1e-7).all()


def test_weights_that_rounding_put_above_one_become_one():
    assert quantise(np.full((1, 1, 1), 1.0000001))[0].item() == 255
