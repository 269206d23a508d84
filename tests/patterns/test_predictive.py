"""Words that a word can be predicted from: by definition, and on planted heads."""

import numpy as np
import pytest

from headscope import RecordError
from headscope.measures import spearman
from headscope.patterns import PATTERNS, heads, predictive, predictive_pattern

from .conftest import planted, record_of, sentences


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


def test_drops_that_do_not_fit_are_refused(unchecked):
    with pytest.raises(
        RecordError, match=r"drops have shape \(2, 3\), but \[query key\] is \(3, 3\)"
    ):
        unchecked(predictive)(np.zeros((1, 3, 3)), np.zeros((2, 3)))


def test_a_head_without_preference_has_zero_and_a_text_without_differences_none(rng):
    assert predictive(np.full((2, 5, 5), 0.2), rng.random((5, 5))).tolist() == [0, 0]
    assert np.isnan(predictive(rng.random((2, 5, 5)), np.zeros((5, 5)))).all()


def test_drops_that_are_not_known_do_not_count(rng):
    weights, drops = rng.random((2, 6, 6)), rng.random((6, 6))
    unknown = drops.copy()
    unknown[:, 0] = unknown[0] = np.nan
    np.testing.assert_allclose(
        predictive(weights, unknown), predictive(weights[:, 1:, 1:], drops[1:, 1:])
    )


@pytest.fixture(scope="module")
def found():
    """Head 0 follows what masking costs, head 1 looks at the next word, head 2 at everything
    alike.
    """
    rng = np.random.default_rng(5)
    records, costs = [], {}
    for _ in range(24):
        tokens = sentences(rng, pair=False)
        drops = rng.random((len(tokens), len(tokens)))
        costs[tokens] = drops
        maps = [
            drops / drops.sum(axis=1, keepdims=True),
            planted(tokens, "next"),
            planted(tokens, "uniform"),
        ]
        records.append(record_of(maps, tokens))
    return heads(records, patterns=(*PATTERNS, predictive_pattern(costs.__getitem__)))


def test_a_planted_head_is_found_and_no_other(found):
    assert [
        (label.head, label.score) for label in found.labels if label.pattern == "predictive"
    ] == [(0, 1.0)]
    label = next(label for label in found.all_labels if label.pattern == "predictive")
    assert label.against == "uniform, position"
    assert abs(label.baseline) < 0.3


def test_looking_near_is_no_prediction():
    rng = np.random.default_rng(6)
    records, costs = [], {}
    for _ in range(24):
        tokens = sentences(rng, pair=False)
        places = np.arange(len(tokens))
        near = 1 / (1 + np.abs(places[:, None] - places))
        costs[tokens] = near
        records.append(record_of([near / near.sum(axis=1, keepdims=True)], tokens))
    found = heads(records, patterns=(predictive_pattern(costs.__getitem__),))
    assert found.all_labels[0].score == pytest.approx(1)
    assert found.all_labels[0].baseline == pytest.approx(1)
    assert not found.labels
