import numpy as np
import pytest

from headscope.testing import random_record, random_weights
from headscope.views.figures._numbers import (
    affordable_share,
    largest_of,
    mean_of,
    numbers_of,
    pooled,
    top_share,
)
from headscope.views.figures._options import parse_options


def test_the_top_share_is_the_fewest_keys_that_reach_it(rng):
    sizes = random_weights(rng, (2, 5, 7)).astype(float)
    for share in (1, 50, 90, 99):
        kept = top_share(sizes, share)
        for row, chosen in zip(sizes.reshape(-1, 7), kept.reshape(-1, 7), strict=True):
            assert row[chosen].sum() >= share / 100 * row.sum() - 1e-12
            assert np.sort(row[chosen])[1:].sum() < share / 100 * row.sum()
            assert row[chosen].min() > row[~chosen].max(initial=0)


def test_ties_are_kept_together_and_nothing_that_is_0():
    sizes = np.array([[[0.4, 0.2, 0.2, 0.2, 0.0]]])
    assert top_share(sizes, 50).tolist() == [[[True, True, True, True, False]]]
    assert top_share(sizes, 40).tolist() == [[[True, False, False, False, False]]]
    assert not top_share(np.zeros((1, 2, 3)), 100).any()


def test_the_affordable_share_fits_and_the_next_one_does_not(rng):
    sizes = random_weights(rng, (3, 20, 30)).astype(float)
    seen = sizes > 0
    for budget in (100, 500, 1500):
        share = affordable_share(sizes, seen, budget)
        assert top_share(sizes, share).sum() <= budget < top_share(sizes, share + 1).sum()
    assert affordable_share(sizes, seen, 1800) == 100
    assert affordable_share(sizes, seen, 1) == 1


def test_lines_that_cannot_be_seen_cost_nothing(rng):
    sizes = random_weights(rng, (1, 9, 30)).astype(float)
    seen = sizes > 0.05
    assert affordable_share(sizes, seen, int(seen.sum())) == 100


def test_pooling_keeps_every_peak_and_its_sign():
    values = np.zeros((10, 7))
    values[3, 6], values[9, 0] = -5, 2
    small = pooled(values, 4)
    assert small.shape == (4, 4)
    assert (small.min(), small.max()) == (-5, 2)
    assert small[1, 3] == -5
    assert pooled(values, 10) is values


def test_pooling_hides_only_blocks_that_are_all_hidden():
    values = np.full((4, 6), np.nan)
    values[0, 0] = 0.25
    assert np.array_equal(pooled(values, 2), [[0.25, np.nan], [np.nan, np.nan]], equal_nan=True)


def test_means_leave_hidden_numbers_out():
    values = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]])
    assert np.array_equal(mean_of(values), [2, 5, np.nan], equal_nan=True)
    assert largest_of(np.array([np.nan, -3.0])) == 3
    assert largest_of(np.array([np.nan])) == 0


def shown(record, quantity):
    return parse_options(record, {"view": "matrix", "quantity": quantity}).shown


def test_masked_weights_and_scores_are_hidden_alike(grouped):
    layer = grouped["self"].layer(2)
    for quantity in ("weight", "score"):
        values = numbers_of(layer, (1, 3), shown(grouped, quantity))
        assert values.shape == (2, 6, 6)
        assert np.array_equal(np.isnan(values[0]), ~np.tril(np.ones((6, 6), bool)))
    assert numbers_of(layer, (3,), shown(grouped, "weight"))[0, 5] == pytest.approx(
        layer.weights_of(3)[5]
    )


def test_numbers_are_of_the_heads_asked_for():
    record = random_record()
    layer = record["cross"].layer(1)
    assert numbers_of(layer, (2, 0), shown(record, "weight"))[1] == pytest.approx(
        layer.weights_of(0), abs=1e-7
    )
