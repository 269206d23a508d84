import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.views._thumbs import decoded, quantise


def test_every_byte_decodes_to_itself():
    weights = ((np.arange(256) / 255) ** 2).reshape(2, 8, 16)
    stored = quantise(weights)
    assert stored.reshape(-1).tolist() == list(range(256))
    assert np.abs(decoded(stored) - weights).max() < 1e-7


@pytest.mark.parametrize(("top", "bound"), [(1.0, 0.00391), (0.015, 0.0005)])
def test_the_error_stays_below_what_the_docstring_says(top, bound):
    weights = np.linspace(0, top, 30_000).reshape(3, 100, 100)
    error = np.abs(decoded(quantise(weights)) - weights).max()
    assert bound * 0.9 < error <= bound


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_a_stronger_weight_never_has_a_smaller_byte(values):
    stored = quantise(np.array(values))
    order = np.argsort(values)
    assert (np.diff(stored[order].astype(int)) >= 0).all()


def test_weights_that_rounding_put_above_one_become_one():
    assert quantise(np.full((1, 1, 1), 1.0000001)).item() == 255
