import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from headscope.errors import RecordError
from headscope.record import Mask


@given(npst.arrays(bool, st.tuples(st.integers(1, 9), st.integers(1, 11))))
def test_any_mask_comes_back_from_its_runs(dense):
    mask = Mask.of(dense)
    assert mask.shape == dense.shape
    np.testing.assert_array_equal(np.asarray(mask), dense)
    np.testing.assert_array_equal(mask.dense(slice(1, None, 2)), dense[1::2])
    np.testing.assert_array_equal(mask.dead, ~dense.any(axis=1))
    assert mask.is_full == dense.all()
    assert mask == Mask.of(dense.copy())
    assert hash(mask) == hash(Mask.of(dense.copy()))


@pytest.mark.parametrize(("queries", "keys"), [(4, 4), (3, 7), (5, 3)])
def test_causal_is_the_lower_triangle(queries, keys):
    np.testing.assert_array_equal(
        Mask.causal(queries, keys), np.tri(queries, keys, keys - queries, dtype=bool)
    )


def band(queries, keys, before, after):
    places = np.arange(keys - queries, keys)[:, None]
    return (np.arange(keys) >= places - before) & (np.arange(keys) <= places + after)


def chunks(size, length, phase=0):
    number = (np.arange(size) + phase) // length
    return (number[:, None] == number) & np.tri(size, dtype=bool)


@pytest.mark.parametrize(
    ("dense", "kind", "window", "chunk"),
    [
        (np.ones((3, 5), bool), "full", None, None),
        (np.tri(6, dtype=bool), "causal", None, None),
        (np.tri(4, 6, 2, dtype=bool), "causal", None, None),
        (band(9, 9, 2, 0), "sliding", (2, 0), None),
        (band(5, 8, 3, 0), "sliding", (3, 0), None),
        (band(9, 9, 2, 3), "sliding", (2, 3), None),
        (chunks(10, 4), "chunked", None, 4),
        (chunks(10, 4, phase=3), "chunked", None, 4),
        (np.eye(7, dtype=bool)[::-1], "masked", None, None),
        (np.zeros((2, 3), bool), "masked", None, None),
        (np.array([[True, False, True], [True, True, True]]), "masked", None, None),
    ],
)
def test_kinds_are_told(dense, kind, window, chunk):
    mask = Mask.of(dense)
    assert (mask.kind, mask.window, mask.chunk) == (kind, window, chunk)


@pytest.mark.parametrize(
    ("runs", "firsts", "message"),
    [
        ([[0, 2], [2, 3]], [0, 2], "leave a gap"),
        ([[0, 6]], [0, 1], "within its 5 keys"),
        ([[2, 2]], [0, 1], "must not be empty"),
        ([[0, 2]], [0, 2], "rise from 0 to its 1 runs"),
        ([[0, 2]], [1, 1], "rise from 0"),
        ([0, 2], [0, 1], r"runs \[run 2\]"),
    ],
)
def test_runs_that_cannot_be_are_refused(runs, firsts, message):
    with pytest.raises(RecordError, match=message):
        Mask(keys=5, runs=np.array(runs), firsts=np.array(firsts))


def test_a_long_mask_is_small():
    mask = Mask.causal(100_000, 100_000)
    assert mask.runs.nbytes + mask.firsts.nbytes < 2e6
    assert mask.kind == "causal"
