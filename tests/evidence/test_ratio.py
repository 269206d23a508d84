import numpy as np
import pytest

from headscope import RecordError
from headscope.evidence import interval, redrawn_ratios

TEXTS, HEADS = 9, 4


def test_ratios_are_those_of_the_same_draws(rng):
    parts, wholes = rng.random((TEXTS, HEADS)), rng.random((TEXTS, HEADS)) + 1
    found = redrawn_ratios(parts, wholes, resamples=5, seed=3)
    times = np.random.default_rng(3).multinomial(TEXTS, np.full(TEXTS, 1 / TEXTS), size=5)
    for draw, counts in enumerate(times):
        texts = [text for text, count in enumerate(counts) for _ in range(count)]
        for head in range(HEADS):
            wanted = sum(parts[text, head] for text in texts) / sum(wholes[text, head] for text in texts)
            assert found[draw, head] == pytest.approx(wanted)


def test_with_wholes_of_one_the_quantiles_are_the_interval_of_the_mean(rng):
    parts = rng.random((TEXTS, HEADS))
    ends = np.quantile(redrawn_ratios(parts, np.ones_like(parts)), (0.025, 0.975), axis=0).T
    np.testing.assert_allclose(ends, interval(parts))


def test_what_is_missing_is_not_counted():
    parts, wholes = np.array([[1.0, np.nan], [3.0, np.nan]]), np.array([[2.0, np.nan], [6.0, np.nan]])
    found = redrawn_ratios(parts, wholes, resamples=8)
    np.testing.assert_allclose(found[:, 0], 0.5)
    assert np.isnan(found[:, 1]).all()
    assert np.isnan(redrawn_ratios(np.zeros((3, 1)), np.zeros((3, 1)), resamples=2)).all()


def test_parts_and_wholes_that_do_not_fit_are_refused():
    with pytest.raises(RecordError, match="miss the same"):
        redrawn_ratios(np.array([[np.nan], [1.0]]), np.ones((2, 1)))
