"""Pairs that are counted are judged as pairs that are held."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope import TextError
from headscope.tasks import LikenessCounts
from headscope.tasks._similarity import judged_by

from ..close import assert_close

CELLS = 3


def pairs_of(cosines, golds):
    """Values ``[pair cell 2]``; a cell each."""
    return np.stack([cosines, np.repeat(np.array(golds, float)[:, None], len(cosines.T), 1)], 2)


def held(values):
    metric, finish = judged_by(values[:, 0, 1])
    return metric, np.stack([finish(cell) for cell in values.transpose(1, 0, 2)], axis=1)


def counted(values, sampled, parts=3):
    counts = LikenessCounts(values[sampled])
    split = np.array_split(values, min(parts, len(values)))
    for part in split:
        counts.update(part)
    scores = np.concatenate([counts.scores(part) for part in split])
    return counts.metric, scores, counts.mean_cosines


def random_pairs(rng, count, *, graded):
    """Cosines that say something of how alike pairs are, many of them tied."""
    golds = rng.integers(0, 6, count) / 5 if graded else rng.integers(0, 2, count).astype(float)
    apart = rng.normal(0, [0.2, 0.5, 2.0], (count, CELLS))
    return pairs_of(np.round(np.tanh(golds[:, None] + apart), 3), golds)


@pytest.mark.parametrize("graded", [False, True])
def test_scores_are_those_of_held_pairs_where_all_are_in_the_sample(rng, graded):
    values = random_pairs(rng, 500, graded=graded)
    metric, scores, means = counted(values, slice(None))
    wanted_metric, wanted = held(values)
    assert metric == wanted_metric == ("Spearman's rho" if graded else "accuracy")
    np.testing.assert_allclose(scores, wanted, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(means, values[:, :, 0].mean(axis=0), rtol=1e-12)


@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=12))
def test_thresholds_are_those_of_held_pairs(rows):
    cosines, alike = (np.array(column, float) for column in zip(*rows, strict=True))
    values = pairs_of(cosines[:, None], alike)
    if len(set(alike)) < 2:
        with pytest.raises(TextError, match="must differ between them"):
            counted(values, slice(None))
        return
    assert_close(counted(values, slice(None))[1], held(values)[1])


@pytest.mark.parametrize("graded", [False, True])
def test_scores_are_near_those_of_held_pairs_where_few_are_in_the_sample(rng, graded):
    values = random_pairs(rng, 20_000, graded=graded)
    # Not rounded: hardly a pair is tied with another.
    values[:, :, 0] += rng.normal(0, 1e-4, values.shape[:2])
    sampled = rng.permutation(len(values))[:1000]
    _, scores, _ = counted(values, sampled, parts=7)
    _, wanted = held(values)
    assert np.abs(scores.mean(axis=0) - wanted.mean(axis=0)).max() < 1e-3
    if graded:
        assert np.abs(scores - wanted).max() < 0.03
    else:
        # A threshold between two others is never better than the best of all.
        assert (scores.mean(axis=0) <= wanted.mean(axis=0)).all()
        assert (scores != wanted).mean() < 0.01


def peak_of(parts):
    """Bytes that counting so many parts of 500 pairs takes at most."""
    rng = np.random.default_rng(0)
    sample = random_pairs(rng, 1000, graded=True)
    tracemalloc.start()
    counts = LikenessCounts(sample)
    for _ in range(parts):
        counts.update(random_pairs(rng, 500, graded=True))
    counts.scores(sample)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_the_pairs():
    few, many = peak_of(10), peak_of(80)
    assert many < 1.1 * few
