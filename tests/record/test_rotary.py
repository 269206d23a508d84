import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.capturing.building._rotation import rotary_between
from headscope.errors import RecordError
from headscope.record import Layer, Rotary
from headscope.record.rotary import STYLES

from ..close import assert_close

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
    assert_close(Layer(layer=0, queries=queries, keys=keys).before_positions()[0], queries)


@given(
    first=st.integers(0, 5000),
    base=st.sampled_from([10_000.0, 500_000.0]),
    style=st.sampled_from(STYLES),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_place_of_the_first_token_is_found_wherever_it_is(first, base, style, seed):
    rotary = Rotary(frequencies=base ** (-np.arange(8) / 8), style=style, first=first)
    before = np.random.default_rng(seed).standard_normal((HEADS, 40, WIDTH)).astype(np.float32)
    found = rotary_between(before, rotary.turned(before).astype(np.float32))
    assert found is not None
    assert found.first == first


def test_a_layer_that_cannot_turn_back_says_so_unless_both_were_kept(rng):
    before = {
        "queries_before": rng.standard_normal((6, 5, 4)),
        "keys_before": rng.standard_normal((2, 5, 4)),
    }
    after = {"queries": rng.standard_normal((6, 5, 4)), "keys": rng.standard_normal((2, 5, 4))}
    with pytest.raises(RecordError, match="Layer 3: nobody knows, so that .* capture with"):
        Layer(layer=3, **after, turned="nobody knows").before_positions()
    kept = Layer(layer=3, **after, **before, turned="nobody knows").before_positions()
    for found, wanted in zip(kept, before.values(), strict=True):
        assert_close(found, wanted)
    with pytest.raises(RecordError, match=r"keys_before of layer 3 has shape \(3, 5, 4\)"):
        Layer(layer=3, **after, **before | {"keys_before": rng.standard_normal((3, 5, 4))})


@pytest.mark.parametrize("frequencies", [np.zeros((2, 3)), np.zeros(0), np.array([np.nan])])
def test_frequencies_that_cannot_be_are_refused(frequencies):
    with pytest.raises(RecordError, match=r"with the axis \[pair\]"):
        Rotary(frequencies=frequencies, style="halves")
