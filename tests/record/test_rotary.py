import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope import Layer, RecordError
from headscope.record import Rotary
from headscope.record._rotary import STYLES, rotary_between

HEADS, TOKENS, WIDTH = 3, 11, 16


def turned_by_loops(vectors, rotary):
    """Each pair of features as a complex number, turned one at a time."""
    found = np.array(vectors, np.float64)
    for token in range(vectors.shape[1]):
        for pair, (first, second) in enumerate(zip(*rotary.pairs, strict=True)):
            turn = np.exp(1j * rotary.frequencies[pair] * (rotary.first + token))
            for head in range(len(vectors)):
                value = complex(vectors[head, token, first], vectors[head, token, second]) * turn
                found[head, token, first], found[head, token, second] = value.real, value.imag
    return found


@given(
    style=st.sampled_from(STYLES),
    pairs=st.integers(1, WIDTH // 2),
    first=st.integers(0, 3),
    base=st.sampled_from([100.0, 10_000.0, 500_000.0]),
    from_end=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_rotation_is_found_from_what_it_did(style, pairs, first, base, from_end, seed):
    frequencies = base ** (-np.arange(pairs) / pairs)
    start = WIDTH - 2 * pairs if from_end else 0
    rotary = Rotary(frequencies=frequencies, style=style, first=first, start=start)
    before = np.random.default_rng(seed).standard_normal((HEADS, TOKENS, WIDTH)).astype(np.float32)
    after = rotary.turned(before).astype(np.float32)
    np.testing.assert_allclose(after, turned_by_loops(before, rotary), atol=1e-5)
    found = rotary_between(before, after)
    assert found is not None
    np.testing.assert_allclose(found.turned(after, back=True), before, atol=5e-4)
    seen = found.frequencies[: len(frequencies)]
    np.testing.assert_allclose(seen, frequencies[: len(seen)], atol=1e-4)


def test_what_is_no_rotation_is_none(rng):
    before = rng.standard_normal((HEADS, TOKENS, WIDTH))
    assert rotary_between(before, before) is None
    assert rotary_between(before, rng.standard_normal(before.shape)) is None
    assert rotary_between(before, 2 * before) is None
    assert rotary_between(before[:, :1], before[:, :1]) is None


def test_a_layer_gives_queries_and_keys_before_positions(rng):
    rotary = Rotary(frequencies=np.array([1.0, 0.1]), style="halves")
    queries, keys = rng.standard_normal((6, 5, 4)), rng.standard_normal((2, 5, 4))
    layer = Layer(layer=0, queries=rotary.turned(queries), keys=rotary.turned(keys), rotary=rotary)
    for found, wanted in zip(layer.before_positions(), (queries, keys), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    plain = Layer(layer=0, queries=queries, keys=keys)
    np.testing.assert_array_equal(plain.before_positions()[0], queries)


@pytest.mark.parametrize("frequencies", [np.zeros((2, 3)), np.zeros(0), np.array([np.nan])])
def test_frequencies_that_cannot_be_are_refused(frequencies):
    with pytest.raises(RecordError, match=r"with the axis \[pair\]"):
        Rotary(frequencies=frequencies, style="halves")
