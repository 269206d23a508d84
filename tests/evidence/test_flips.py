"""Flipping signs against SciPy, McNemar and chance."""

import numpy as np
import pytest
from scipy.stats import binomtest, permutation_test

from headscope import RecordError
from headscope.evidence import least_p, p_flipped

from ..close import assert_close


def test_few_texts_are_exact(rng):
    values = rng.normal(0.4, 1, size=(8, 3))
    wanted = [
        permutation_test((column,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
        for column in values.T
    ]
    np.testing.assert_allclose(p_flipped(values), wanted)


def test_right_and_wrong_answers_are_mcnemars_test(rng):
    changed = np.concatenate([np.full(13, -1.0), np.full(4, 1.0), np.zeros(60)])
    rng.shuffle(changed)
    wanted = binomtest(4, 17).pvalue
    assert p_flipped(changed[:, None], flips=40_000)[0] == pytest.approx(wanted, abs=0.004)


def test_chance_gives_even_probabilities(rng):
    found = p_flipped(rng.normal(size=(30, 400)), flips=999)
    assert np.quantile(found, [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.07)


def test_the_least_that_can_be_said():
    assert p_flipped(np.ones((40, 1)), flips=99)[0] == pytest.approx(0.01)
    assert p_flipped(np.zeros((40, 2))).tolist() == [1.0, 1.0]
    assert np.isnan(p_flipped(np.ones((1, 2)))).all()
    with pytest.raises(RecordError, match="A difference is missing"):
        p_flipped(np.array([[np.nan], [1.0]]))


def test_rounding_does_not_part_what_is_as_far(rng):
    values = np.full((12, 1), 0.1)
    assert p_flipped(values)[0] == 2 / 2**12


def test_texts_of_one_document_get_one_sign(rng):
    documents = np.repeat(np.arange(5), 6)
    values = rng.normal(size=(30, 3))
    sums = np.stack([values[documents == number].sum(axis=0) for number in range(5)])
    assert_close(p_flipped(values, groups=documents), p_flipped(sums))
    assert p_flipped(np.ones((30, 1)), groups=documents)[0] == least_p(5) == 2 / 2**5
