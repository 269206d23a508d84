import numpy as np
import pytest
from scipy.stats import bootstrap

from headscope import RecordError
from headscope.evidence import interval


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_scipy_finds_the_same_interval(rng, method):
    values = np.stack([rng.beta(8, 2, 40), rng.exponential(0.3, 40)], axis=1)
    ours = interval(values, method=method, resamples=20_000)
    for head in range(2):
        found = bootstrap(
            (values[:, head],), np.mean, n_resamples=20_000, method=method, rng=np.random.default_rng(1), batch=500
        )
        wanted = found.confidence_interval
        width = wanted.high - wanted.low
        np.testing.assert_allclose(ours[head], [wanted.low, wanted.high], atol=0.03 * width)


def test_bca_follows_the_skew(rng):
    values = rng.exponential(1.0, (30, 1))
    plain, corrected = (interval(values, method=method)[0] for method in ("percentile", "bca"))
    assert (corrected > plain).all()


def test_missing_values_are_left_out_and_all_heads_share_the_draw(rng):
    values = rng.random((12, 3))
    values[:, 1] = values[:, 0]
    values[4, 2] = np.nan
    found = interval(values)
    assert found[0].tolist() == found[1].tolist()
    assert np.isfinite(found).all()
    low, high = found[2]
    assert low < np.nanmean(values[:, 2]) < high


def test_means_are_taken_over_the_texts_that_have_a_value(rng):
    values = rng.uniform(0.9, 1.0, (12, 1))
    values[::2] = np.nan
    low, high = interval(values)[0]
    assert 0.9 <= low < high <= 1.0


def test_texts_that_agree_have_no_width_and_one_text_says_nothing():
    assert interval(np.full((5, 1), 0.3)).tolist() == [[0.3, 0.3]]
    assert np.isnan(interval(np.array([[0.3, np.nan]]))).all()
    assert np.isnan(interval(np.zeros((0, 2)))).all()


def test_more_confidence_is_wider(rng):
    values = rng.random((20, 1))
    narrow, wide = (np.diff(interval(values, confidence=c))[0, 0] for c in (0.5, 0.99))
    assert wide > 2 * narrow


def test_unknown_methods_are_refused():
    with pytest.raises(RecordError, match="wanted are 'percentile' or 'bca'"):
        interval(np.zeros((3, 1)), confidence=95.0)
