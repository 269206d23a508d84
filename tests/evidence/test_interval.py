import numpy as np
import pytest
from scipy.stats import binomtest, norm, t

from headscope.errors import RecordError
from headscope.evidence import effective_groups, interval, redrawn_ratios
from headscope.evidence._interval import expanded_tails

from ..close import assert_close


def test_missing_values_are_left_out_and_all_heads_share_the_draw(rng):
    values = rng.random((12, 3))
    values[:, 1] = values[:, 0]
    values[4, 2] = np.nan
    found = interval(values)
    assert found[0].tolist() == found[1].tolist()
    assert np.isfinite(found).all()
    low, high = found[2]
    assert low < np.nanmean(values[:, 2]) < high


def test_texts_that_agree_have_no_width_and_one_text_says_nothing():
    assert interval(np.full((5, 1), 0.3))[0] == pytest.approx([0.3, 0.3])
    assert np.isnan(interval(np.array([[0.3, np.nan]]))).all()
    assert np.isnan(interval(np.zeros((0, 2)))).all()


def test_confidence_is_refused_that_is_none():
    with pytest.raises(RecordError, match="between 0 and 1"):
        interval(np.zeros((3, 1)), confidence=95.0)


def test_few_documents_widen_the_tails_as_students_distribution_does(rng):
    values = rng.normal(size=(8, 3))
    plain = np.quantile(redrawn_ratios(values, np.ones(values.shape)), (0.025, 0.975), axis=0).T
    wide = interval(values)
    # Hesterberg 2015: Phi(sqrt(8/7) t_7(.025))
    tail = norm.cdf(np.sqrt(8 / 7) * t.ppf(0.025, 7))
    np.testing.assert_allclose(expanded_tails(0.95, 8.0, 8.0), [tail, 1 - tail])
    assert (np.diff(wide) / np.diff(plain) > 1.15).all()
    assert_close(interval(values), interval(values, method="expanded"))


def test_texts_of_one_document_are_drawn_together(rng):
    documents = np.repeat(np.arange(12), 5)
    values = rng.normal(size=(12, 2))[documents]
    alone, together = interval(values), interval(values, groups=documents)
    # five copies of a text say no more than one
    np.testing.assert_allclose(together, interval(values[::5]))
    assert (np.diff(together) > 2 * np.diff(alone)).all()


def test_documents_of_other_sizes_are_fewer_than_they_look(rng):
    sizes = np.array([40, 3, 3, 2, 2, 2])
    assert effective_groups(sizes[:, None].astype(float))[0] == pytest.approx(
        52**2 / (1600 + 9 + 9 + 12)
    )
    groups = np.repeat(np.arange(6), sizes)
    values = rng.normal(size=(52, 1))
    narrow = expanded_tails(0.95, 6.0, 6.0)
    wide = expanded_tails(0.95, 6.0, float(effective_groups(sizes[:, None].astype(float))[0]))
    assert wide[0] < narrow[0]
    assert np.isfinite(interval(values, groups=groups)).all()


def test_texts_without_a_group_are_their_own_and_names_may_be_anything(rng):
    values = rng.random((6, 1))
    assert_close(interval(values), interval(values, groups=[None, "", float("nan"), None, "a", 7]))
    assert_close(
        interval(values, groups=["b", "b", "a", "a", "c", "c"]),
        interval(values, groups=[1, 1, 2, 2, 3, 3]),
    )
    with pytest.raises(RecordError, match="5 groups were given for 6 texts"):
        interval(values, groups=range(5))


def test_one_document_says_nothing():
    assert np.isnan(interval(np.random.default_rng(0).random((6, 1)), groups=["a"] * 6)).all()
    assert np.isnan(interval(np.ones((6, 1)), groups=["a"] * 6)).all()


def test_shares_have_wilsons_interval(rng):
    values = (rng.random((20, 2)) < 0.2).astype(float)
    values[:, 1] = 1
    found = interval(values)
    for head in range(2):
        wanted = binomtest(int(values[:, head].sum()), 20).proportion_ci(0.95, "wilson")
        np.testing.assert_allclose(found[head], [wanted.low, wanted.high], atol=1e-12)
    # differences of shares are none
    assert interval(np.ones((20, 1)), method="expanded").tolist() == [[1.0, 1.0]]
    assert interval(np.zeros((20, 1)))[0] == pytest.approx([0, 0.161], abs=5e-4)
    # nothing else than 0 may be possible, such as weights that are masked
    assert interval(np.zeros((20, 1)), shares=False).tolist() == [[0.0, 0.0]]
    assert interval(np.ones((20, 1)), shares=False).tolist() == interval(np.ones((20, 1))).tolist()


def test_shares_of_documents_that_agree_are_as_sure_as_their_number():
    wanted = interval(np.ones((5, 1)), method="wilson")[0, 0]
    assert interval(np.ones((40, 1)), groups=np.repeat(np.arange(5), 8))[0, 0] < wanted < 0.6


def test_rare_events_are_held_by_their_interval():
    # Bernoulli .05 of 20 texts: the percentile interval holds it in 63 % of cases
    values = (np.random.default_rng(0).random((20, 2000)) < 0.05).astype(float)
    low, high = interval(values, resamples=200).T
    assert np.mean((low <= 0.05) & (high >= 0.05)) > 0.9


def test_intervals_hold_at_twenty_documents_of_various_sizes():
    # benchmarks/intervals.py measures this with more repetitions, and other distributions
    rng, held = np.random.default_rng(1), np.zeros(2)
    for _ in range(10):
        sizes = np.maximum(1, np.rint(np.exp(rng.normal(2.5, 0.9, 20)))).astype(int)
        groups = np.repeat(np.arange(20), sizes)
        shared = (rng.normal(size=(20, 60)) * np.sqrt(0.15))[groups]
        values = shared + rng.normal(size=shared.shape) * np.sqrt(0.85)
        for place, each in enumerate((groups, None)):
            low, high = interval(values, groups=each, resamples=500).T
            held[place] += np.sum((low <= 0) & (high >= 0))
    assert 0.91 < held[0] / 600 < 0.99
    assert held[1] / 600 < 0.8
