"""Draws by name: the same in any parts, and as good as drawing texts again."""

import numpy as np
import pytest

from headscope import RecordError
from headscope.evidence import PoissonSums, redrawn_ratios, times_drawn

from ..close import assert_close


def clustered(documents, seed=0):
    """Parts and wholes of texts of so many documents, alike within each, and the documents."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(documents), rng.integers(1, 9, documents))
    share = np.clip(0.4 + 0.15 * rng.standard_normal(documents), 0.05, 0.95)[of]
    whole = rng.integers(3, 12, len(of)).astype(float)
    return rng.binomial(whole.astype(int), share).astype(float), whole, of


def sums_of(part, whole, of, *, order=None, draws=1000):
    sums = PoissonSums((2,), draws=draws)
    for index in range(len(part)) if order is None else order:
        values = np.array([part[index], whole[index]])
        sums.update(f"text {index}", values, group=f"document {of[index]}")
    return sums


def ratio(total):
    return total[..., 0] / total[..., 1]


def test_a_document_is_drawn_as_often_as_poisson_says():
    drawn = np.concatenate([times_drawn(str(number), 500) for number in range(200)])
    shares = np.bincount(drawn, minlength=5)[:5] / len(drawn)
    expected = np.exp(-1) / np.array([1, 1, 2, 6, 24])
    np.testing.assert_allclose(shares, expected, atol=4 * np.sqrt(0.25 / len(drawn)))
    # Documents are drawn each by itself.
    apart = np.corrcoef(times_drawn("a", 20_000), times_drawn("b", 20_000))[0, 1]
    assert abs(apart) < 0.03


def test_any_order_and_parts_give_the_same_bits():
    part, whole, of = clustered(7)
    sums = sums_of(part / 3, whole, of, draws=60)
    order = np.random.default_rng(1).permutation(len(part))
    cut = len(order) // 3
    halves = [
        sums_of(part / 3, whole, of, order=some, draws=60) for some in (order[:cut], order[cut:])
    ]
    both = halves[1] + halves[0]
    assert_close(sums.redrawn, both.redrawn)
    assert_close(sums.total, both.total)
    assert sums.texts == both.texts == len(part)


def test_a_text_that_is_there_twice_counts_twice():
    once, twice = PoissonSums((3,), draws=20), PoissonSums((3,), draws=20)
    values = np.array([0.1, 2.0, -7.5])
    once.update("a", values)
    once.update("a", values)
    twice.update("a", values, times=2)
    assert_close(once.redrawn, twice.redrawn)


def test_the_interval_of_a_ratio_is_that_of_documents_drawn_again():
    part, whole, of = clustered(150)
    ends = sums_of(part, whole, of).interval(ratio)
    redrawn = redrawn_ratios(part[:, None], whole[:, None], groups=of, resamples=5000)
    exact = np.quantile(redrawn, [0.025, 0.975])
    np.testing.assert_allclose(ends, exact, atol=0.1 * (exact[1] - exact[0]))
    alone = PoissonSums((2,))
    for index, values in enumerate(np.stack([part, whole], axis=1)):
        alone.update(f"text {index}", values)
    # As if texts of one document were drawn by themselves: too short.
    assert np.ptp(alone.interval(ratio)) < 0.9 * np.ptp(ends)


def test_a_quantile_comes_from_counts_in_bins():
    rng = np.random.default_rng(2)
    values = rng.beta(2, 5, 400)
    edges = np.linspace(0, 1, 101)
    sums = PoissonSums((100,))
    for index, value in enumerate(values):
        sums.update(str(index), np.histogram(value, edges)[0].astype(float))

    def median(counts):
        passed = np.cumsum(counts, axis=-1) >= counts.sum(axis=-1, keepdims=True) / 2
        return edges[1:][passed.argmax(axis=-1)]

    redrawn = np.median(rng.choice(values, (4000, len(values))), axis=1)
    exact = np.quantile(redrawn, [0.025, 0.975])
    np.testing.assert_allclose(sums.interval(median), exact, atol=0.015)


def test_what_cannot_be_added_is_refused():
    with pytest.raises(RecordError, match="from 1 on, got 0"):
        PoissonSums((2,), draws=0)
    sums = PoissonSums((2,), draws=5)
    with pytest.raises(RecordError, match="got \\(3,\\)"):
        sums.update("a", np.zeros(3))
    with pytest.raises(RecordError, match="not finite"):
        sums.update("a", np.array([0, np.nan]))
    with pytest.raises(RecordError, match="cannot be added up"):
        sums + PoissonSums((2,), draws=6)


def test_texts_together_are_texts_one_by_one():
    part, whole, of = clustered(40)
    one_by_one, together = sums_of(part, whole, of, draws=50), PoissonSums((2,), draws=50)
    together.update_many([(f"document {each}", 1) for each in of], np.stack([part, whole], axis=1))
    assert together._sums.tobytes() == one_by_one._sums.tobytes()
    twice = PoissonSums((1,), draws=50)
    twice.update_many([("a", 2), ("b", 1)], np.array([[0.25], [4.0]]))
    thrice = PoissonSums((1,), draws=50)
    for name, value in (("a", 0.25), ("b", 4.0), ("a", 0.25)):
        thrice.update(name, np.array([value]))
    assert twice._sums.tobytes() == thrice._sums.tobytes()
    assert twice.texts == thrice.texts == 3


def test_few_documents_have_wider_ends():
    sums = sums_of(*clustered(12))
    plain, wider = sums.interval(ratio), sums.interval(ratio, documents=(12.0, 9.5))
    assert 1.15 * np.ptp(plain) < np.ptp(wider) < 1.6 * np.ptp(plain)
    nothing = sums.interval(lambda total: np.full(len(total), np.nan))
    assert np.isnan(nothing).all()
