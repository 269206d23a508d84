import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.evidence import benjamini_hochberg, holm

from ..close import assert_close


def plain_holm(p):
    order = sorted(range(len(p)), key=lambda i: p[i])
    found, highest = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - rank) * p[i]))
        found[i] = highest
    return found


def plain_benjamini_hochberg(p):
    order = sorted(range(len(p)), key=lambda i: -p[i])
    found, least = [0.0] * len(p), 1.0
    for rank, i in enumerate(order):
        least = min(least, p[i] * len(p) / (len(p) - rank))
        found[i] = least
    return found


@pytest.mark.parametrize(
    ("ours", "plain"), [(holm, plain_holm), (benjamini_hochberg, plain_benjamini_hochberg)]
)
def test_corrections_follow_the_definition(rng, ours, plain):
    p = rng.random(13) ** 4
    np.testing.assert_allclose(ours(p), plain(p.tolist()), atol=1e-12)
    grid = p[:12].reshape(3, 4)
    np.testing.assert_allclose(ours(grid), np.reshape(plain(p[:12].tolist()), (3, 4)), atol=1e-12)


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_tests_that_could_not_be_made_do_not_count(correct):
    found = correct(np.array([0.01, np.nan, 0.02]))
    assert np.isnan(found[1])
    assert_close(found[[0, 2]], correct(np.array([0.01, 0.02])))
    assert np.isnan(correct(np.array([np.nan]))).all()


def test_no_probability_is_refused():
    with pytest.raises(RecordError, match="between 0 and 1; given were -0.1 to 0.5"):
        holm(np.array([-0.1, 0.5]))
