"""Erasure of scores that plain functions give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headscope.studies import erasure


def test_erasure_of_a_score_that_one_token_decides():
    decided = lambda kept: 0.9 if 2 in kept else 0.1  # noqa: E731
    right, wrong = np.array([0.1, 0.2, 0.9, 0.3]), np.array([0.9, 0.2, 0.1, 0.3])
    assert erasure(decided, right, shares=(0.25, 0.5)) == pytest.approx((0.8, 0.0))
    assert erasure(decided, wrong, shares=(0.25, 0.5)) == pytest.approx((0.0, 0.8))


@given(arrays(float, st.integers(2, 9), elements=st.integers(-50, 50).map(float), unique=True))
def test_keeping_the_top_is_taking_out_the_bottom(signal):
    """What is sufficient by a signal is what is comprehensive by its reverse, where both halves are
    as large.
    """
    scores = np.linspace(0.1, 0.9, len(signal))
    probability = lambda kept: float(scores[list(kept)].sum())  # noqa: E731
    without, alone = erasure(probability, signal, shares=(0.5,))
    half = round(0.5 * len(signal))
    if 2 * half == len(signal):
        assert erasure(probability, -signal, shares=(0.5,)) == pytest.approx((alone, without))
    assert without + alone == pytest.approx(scores.sum())
