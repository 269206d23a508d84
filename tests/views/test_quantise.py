import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headscope.views._thumbs import quantise


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_a_stronger_weight_never_has_a_smaller_byte(values):
    assert (np.diff(quantise(np.array(values))[np.argsort(values)].astype(int)) >= 0).all()


def test_weights_that_rounding_put_above_one_become_one():
    assert quantise(np.full((1, 1, 1), 1.0000001)).item() == 255
