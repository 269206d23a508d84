"""Neurons that carry a score: by identities, brute force and planted sets."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.errors import RecordError
from headscope.measures import carriers, chance_overlap, neuron_scores, set_overlap

HEADS, QUERIES, KEYS, FEATURES = 3, 5, 7, 4


@pytest.fixture
def vectors(rng):
    return rng.standard_normal((HEADS, QUERIES, FEATURES)), rng.standard_normal(
        (HEADS, KEYS, FEATURES)
    )


def test_neuron_scores_are_those_of_a_plain_loop(vectors, weights, close):
    queries, keys = vectors
    found = neuron_scores(queries, keys, weights, scale=0.3)
    for head in range(HEADS):
        for query in range(QUERIES):
            for feature in range(FEATURES):
                meant = sum(
                    weights[head, query, key] * keys[head, key, feature] for key in range(KEYS)
                )
                close(found[head, query, feature], 0.3 * queries[head, query, feature] * meant)


def fewest(scores, share):
    """The smallest set that reaches the share, by trying all."""
    whole = sum(max(0, score) for score in scores)
    for size in range(len(scores) + 1):
        for chosen in combinations(range(len(scores)), size):
            if sum(max(0, scores[unit]) for unit in chosen) >= share * whole - 1e-9:
                return size
    raise AssertionError


@given(
    st.lists(st.floats(-9, 9, allow_nan=False).map(lambda x: round(x, 3)), min_size=1, max_size=7),
    st.sampled_from([0.1, 0.5, 0.9, 1.0]),
)
def test_carriers_are_the_fewest_that_reach_the_share(scores, share):
    found = carriers(np.array(scores), share=share)
    positive = np.maximum(scores, 0)
    assert positive[found].sum() >= share * positive.sum() - 1e-9
    assert (positive[found] > 0).all()
    assert found.sum() == fewest(scores, share)


@pytest.mark.parametrize(("first", "second", "units"), [(1, 1, 5), (2, 3, 5), (3, 3, 4), (5, 2, 6)])
def test_chance_is_the_mean_over_all_sets(first, second, units):
    one = set(range(first))
    found = [
        len(one & set(other)) / len(one | set(other))
        for other in combinations(range(units), second)
    ]
    assert chance_overlap(first, second, units) == pytest.approx(np.mean(found), abs=1e-12)


def test_overlap_of_sets_is_the_mean_over_pairs(rng):
    sets = rng.random((6, 9)) < 0.4
    sets[2] = False
    pairs = list(combinations([set(np.flatnonzero(row)) for row in sets if row.any()], 2))
    found, chance = set_overlap(sets)
    assert found == pytest.approx(np.mean([len(a & b) / len(a | b) for a, b in pairs]), abs=1e-12)
    assert chance == pytest.approx(
        np.mean([chance_overlap(len(a), len(b), 9) for a, b in pairs]), abs=1e-12
    )


def test_one_set_is_like_no_other():
    assert np.isnan(set_overlap(np.array([[True, False], [False, False]]))).all()


def test_what_does_not_fit_is_refused(vectors, weights, in_production):
    queries, keys = vectors
    with pytest.raises(RecordError, match=r"\(3, 7, 4\) and targets \(3, 7, 5\) do not fit"):
        neuron_scores(queries, keys, weights.swapaxes(1, 2))
    with pytest.raises(RecordError, match="share is 0"):
        carriers(np.ones(3), share=0.0)
    with pytest.raises(RecordError, match="Sets of 0 and 2 cannot be drawn from 3"):
        chance_overlap(0, 2, 3)
