"""Sums over documents: exact in any order, and as sure as what keeps every text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.errors import RecordError
from headscope.evidence import GroupSums, effect_size, interval, p_above

SHAPE = (2, 3)


def drawn(seed, texts, documents):
    """Values of texts whose documents differ, some of them missing."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, documents, texts)
    level = rng.normal(0.4, 0.1, (documents, *SHAPE))
    values = level[groups] + rng.normal(0, 0.2, (texts, *SHAPE))
    values[rng.random(values.shape) < 0.1] = np.nan
    return values, [f"d{group}" for group in groups]


def summed(values, groups=None, order=None):
    sums = GroupSums(values.shape[1:])
    for place in range(len(values)) if order is None else order:
        sums.update(values[place], group=None if groups is None else groups[place])
    return sums.close()


def same(one, other):
    return one.arrays.keys() == other.arrays.keys() and all(
        np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays
    )


@given(st.integers(0, 1000), st.integers(1, 5), st.booleans(), st.sampled_from([1, 400, 2**23]))
@settings(max_examples=40, deadline=None)
def test_any_order_and_any_parts_give_the_same_bits(seed, parts, grouped, at_once):
    values, groups = drawn(seed, 60, 9)
    groups = groups if grouped else [None] * 60
    whole = summed(values, groups)
    order = np.random.default_rng(seed).permutation(60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.evidence._group_sums.AT_ONCE", at_once)
        assert same(whole, summed(values, groups, order))
    # whole documents, as a run cuts them
    part_of = {unit: number % parts for number, unit in enumerate(sorted(set(map(str, groups))))}
    pieces = [
        summed(
            values,
            groups,
            [at for at in order if part_of[str(groups[at])] == part],
        )
        for part in range(parts)
    ]
    both = GroupSums(SHAPE)
    for piece in pieces[::-1]:
        both = GroupSums.of_arrays(piece.arrays) + both
    assert same(whole, both)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e7])
def test_the_sum_is_that_of_fractions(scale):
    from fractions import Fraction

    values = np.random.default_rng(0).normal(0, scale, (50, 1))
    sums = summed(values)
    exact = sum(map(Fraction, values[:, 0].tolist())) / 50
    assert sums.mean[0] == pytest.approx(float(exact), rel=1e-13, abs=2.0**-60)


def test_a_text_that_is_there_twice_counts_twice():
    values, _ = drawn(3, 8, 2)
    sums = GroupSums(SHAPE)
    for each in values:
        sums.update(each, times=2)
    assert same(sums, summed(np.concatenate([values, values])))
    one = GroupSums(SHAPE)
    for each in values:
        one.update(each, group="a", times=2)
    assert same(one, summed(np.concatenate([values, values]), ["a"] * 16))


def test_texts_alone_give_the_tests_of_those_that_are_kept():
    values, _ = drawn(1, 300, 40)
    sums, flat = summed(values), values.reshape(300, -1)
    nothing = np.zeros_like(flat)
    np.testing.assert_allclose(sums.effect.ravel(), effect_size(flat, nothing), rtol=1e-9)
    np.testing.assert_allclose((sums).p_above().ravel(), p_above(flat, nothing), rtol=1e-6)


@pytest.mark.parametrize("documents", [None, 40])
def test_the_interval_is_that_of_redrawn_documents(documents):
    values, groups = drawn(2, 400, documents or 40)
    groups = groups if documents else None
    ends = summed(values, groups).interval().reshape(-1, 2)
    exact = interval(values.reshape(400, -1), groups=groups, resamples=20000)
    width = exact[:, 1] - exact[:, 0]
    # What two seeds of the bootstrap differ by is .03 of the width; see docs page "Intervals".
    assert (np.abs(ends - exact) / width[:, None]).max() < 0.1


def test_documents_of_one_size_give_the_jackknife():
    values, _ = drawn(5, 60, 6)
    values = np.nan_to_num(values, nan=0.5)
    groups = [f"d{place % 6}" for place in range(60)]
    sums, flat = summed(values, groups), values.reshape(60, -1)
    np.testing.assert_allclose(
        sums.p_above().ravel(), p_above(flat, np.zeros_like(flat), groups=groups), rtol=1e-6
    )


@pytest.mark.parametrize("grouped", [False, True])
def test_scores_of_0_and_1_get_wilsons_interval(grouped):
    rng = np.random.default_rng(4)
    values = (rng.random((120, 2, 3)) < 0.3).astype(float)
    groups = [f"d{place % 12}" for place in range(120)] if grouped else None
    sums = summed(values, groups)
    exact = interval(values.reshape(120, -1), groups=groups, method="wilson")
    np.testing.assert_allclose(sums.interval().reshape(-1, 2), exact, rtol=1e-9)
    assert not np.allclose(sums.interval(shares=False).reshape(-1, 2), exact)


def test_constants_are_their_own_interval_and_nothing_is_said_of_one_text():
    sums = summed(np.full((7, 2, 3), 0.1))
    assert (sums.interval() == 0.1).all()
    assert (sums.deviation == 0).all()
    assert (sums.effect == np.inf).all()
    assert (sums.p_above() == 0.5**7).all()
    one = summed(np.full((1, 2, 3), 0.1))
    assert np.isnan(one.interval()).all()
    assert np.isnan(one.p_above()).all()


def test_memory_does_not_grow_with_texts():
    sums = GroupSums(SHAPE)
    for number in range(50):
        sums.update(np.full(SHAPE, float(number)), group=f"d{number % 5}")
    sums.close()
    size = sum(array.nbytes for array in sums.arrays.values())
    assert sums.open_bytes == 0
    assert size == sum(array.nbytes for array in GroupSums(SHAPE).arrays.values())
    assert (sums.texts, sums.documents) == (50, 5)


@pytest.mark.parametrize("values", [np.zeros((3, 2)), np.full(SHAPE, np.inf)])
def test_bad_values_are_refused(values):
    with pytest.raises(RecordError, match=r"Expected finite values of shape \(2, 3\)"):
        GroupSums(SHAPE).update(values)


def test_what_is_too_large_is_refused():
    with pytest.raises(RecordError, match="too large"):
        summed(np.full((1, 1), 2.0**30), ["a"])


@pytest.mark.parametrize("value", [-1 / 18, -1e-9, -3.7, -(2.0**21) - 0.1, 1 / 18])
def test_negative_values_are_as_exact_as_others(value):
    sums = GroupSums((1,))
    for _ in range(3):
        sums.update(np.array([value]))
    assert sums.mean[0] == pytest.approx(value, rel=1e-15, abs=1e-18)
