import numpy as np
import pytest
from scipy.stats import ttest_rel

from headscope.evidence import effect_size, p_above


@pytest.fixture
def scores(rng):
    return rng.random((9, 3)) + np.array([0, 0.3, -0.3])


@pytest.fixture
def baseline(rng):
    return rng.random((9, 3))


def test_effect_size_follows_the_definition(scores, baseline):
    for head in range(3):
        apart = [s - b for s, b in zip(scores[:, head], baseline[:, head], strict=True)]
        mean = sum(apart) / 9
        deviation = (sum((each - mean) ** 2 for each in apart) / 8) ** 0.5
        assert effect_size(scores, baseline)[head] == pytest.approx(mean / deviation, abs=1e-9)


def test_p_is_that_of_scipy(scores, baseline):
    wanted = ttest_rel(scores, baseline, alternative="greater").pvalue
    np.testing.assert_allclose(p_above(scores, baseline), np.maximum(wanted, 2**-9), atol=1e-12)
    assert (wanted > 2**-9).any()


def test_missing_texts_are_left_out(scores, baseline):
    scores[3, 1] = np.nan
    kept = [t for t in range(9) if t != 3]
    for measure in (effect_size, p_above):
        found = measure(scores, baseline)
        assert found[1] == pytest.approx(measure(scores[kept], baseline[kept])[1], abs=1e-12)


def test_texts_that_all_differ_alike():
    third, shift = np.full((4, 3), 1 / 3), np.array([0.5, 0, -0.5])
    assert effect_size(third + shift, third).tolist() == [np.inf, 0, -np.inf]
    assert p_above(third + shift, third).tolist() == [1 / 16, 1, 1]


@pytest.mark.parametrize("texts", [0, 1])
def test_one_text_or_none_says_nothing(texts):
    values = np.ones((texts, 2))
    assert np.isnan(effect_size(values, values * 0)).all()
    assert np.isnan(p_above(values, values * 0)).all()


def test_texts_of_documents_are_tested_over_documents(rng):
    documents = np.repeat(np.arange(8), 5)
    values = rng.normal(0.3, 1, (8, 2))[documents]
    found = p_above(values, np.zeros_like(values), groups=documents)
    np.testing.assert_allclose(found, p_above(values[::5], np.zeros((8, 2))))
    assert (found > p_above(values, np.zeros_like(values))).all()
    assert p_above(np.ones((40, 1)), np.zeros((40, 1)), groups=documents).tolist() == [2.0**-8]


def test_documents_that_are_alike_keep_false_alarms_at_their_rate():
    # ten documents of twenty texts, intraclass correlation .2, no effect: texts alone call 22 % of
    # them significant
    rng = np.random.default_rng(0)
    documents = np.repeat(np.arange(10), 20)
    own = rng.normal(size=(200, 2000)) * np.sqrt(0.8)
    values = own + (rng.normal(size=(10, 2000)) * np.sqrt(0.2))[documents]
    zero = np.zeros_like(values)
    assert np.mean(p_above(values, zero) < 0.05) > 0.15
    assert np.mean(p_above(values, zero, groups=documents) < 0.05) < 0.065
