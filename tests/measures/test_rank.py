import math

import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import kendall, spearman

TIES = np.array([1.0, 2.0, 2.0, 5.0, 3.0, 2.0, 9.0, 1.0])


def plain_kendall(a, b):
    pairs = [(i, j) for i in range(len(a)) for j in range(i)]
    products = [np.sign(a[i] - a[j]) * np.sign(b[i] - b[j]) for i, j in pairs]
    free = [sum(x[i] != x[j] for i, j in pairs) for x in (a, b)]
    return sum(products) / math.sqrt(free[0] * free[1])


def plain_spearman(a, b):
    ranks = [
        [sum(y < x for y in each) + (sum(y == x for y in each) + 1) / 2 for x in each]
        for each in (a, b)
    ]
    means = [sum(each) / len(each) for each in ranks]
    centred = [[x - mean for x in each] for each, mean in zip(ranks, means, strict=True)]
    product = sum(x * y for x, y in zip(*centred, strict=True))
    return product / math.sqrt(sum(x * x for x in centred[0]) * sum(y * y for y in centred[1]))


@pytest.mark.parametrize(("ours", "plain"), [(kendall, plain_kendall), (spearman, plain_spearman)])
def test_ties_have_mid_ranks(rng, ours, plain):
    other = rng.integers(0, 4, len(TIES)).astype(float)
    assert ours(TIES, other) == pytest.approx(plain(TIES, other), abs=1e-9)


@pytest.mark.parametrize("rank", [kendall, spearman])
def test_all_ties_have_no_order_and_what_does_not_fit_is_refused(rank):
    assert math.isnan(rank(np.ones(4), np.arange(4.0)))
    with pytest.raises(RecordError, match="give two lists of equal length"):
        rank(np.ones(1), np.ones(1))
    with pytest.raises(RecordError, match="not finite"):
        rank(np.array([1.0, np.nan]), np.ones(2))
