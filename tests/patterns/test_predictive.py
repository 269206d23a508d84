import numpy as np
import pytest

from headscope import RecordError
from headscope.measures import spearman
from headscope.patterns import predictive


def test_predictive_follows_the_definition(rng):
    weights, drops = rng.dirichlet(np.ones(7), size=(3, 5)), rng.random((5, 7))
    for head in range(3):
        ranks = [spearman(np.delete(weights[head, q], q), np.delete(drops[q], q)) for q in range(5)]
        assert predictive(weights, drops)[head] == pytest.approx(sum(ranks) / 5, abs=1e-9)


def test_the_word_itself_and_short_rows_do_not_count(rng):
    drops = rng.random((4, 6))
    weights = drops / drops.sum(axis=1, keepdims=True)
    weights[range(4), range(4)] = 9
    assert predictive(weights[None], drops).tolist() == pytest.approx([1])
    assert np.isnan(predictive(weights[None], drops, pairs=np.eye(4, 6, k=1, dtype=bool))).all()


def test_drops_that_do_not_fit_are_refused():
    with pytest.raises(RecordError, match=r"drops have shape \(2, 3\), but \[query key\] is \(3, 3\)"):
        predictive.__wrapped__(np.zeros((1, 3, 3)), np.zeros((2, 3)))
