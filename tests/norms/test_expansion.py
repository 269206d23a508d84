import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.norms import expansion_rate


def test_it_is_the_root_mean_square_of_the_singular_values(rng):
    value, projection = rng.standard_normal((5, 4)), rng.standard_normal((4, 6))
    value_bias, bias = rng.standard_normal(4), rng.standard_normal(6)
    for released in (False, True):
        offset = np.zeros((1, 6)) if released else bias[None]
        right = np.block(
            [[projection, (rng.standard_normal((4, 1)) * 0)], [offset, np.ones((1, 1))]]
        )
        whole = np.block([[value, np.zeros((5, 1))], [value_bias[None], np.ones((1, 1))]]) @ right
        sizes = np.linalg.svd(whole, compute_uv=False)
        given = None if released else bias
        found = expansion_rate(value, projection, value_bias, given, released=released)
        assert found == pytest.approx(np.sqrt((sizes**2).sum() / 6), abs=1e-12)


def test_the_released_form_puts_the_bias_into_a_column(rng):
    value, projection, bias = (
        rng.standard_normal((3, 3)),
        rng.standard_normal((3, 3)),
        rng.standard_normal(3),
    )
    first = np.block([[value, np.zeros((3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])
    second = np.block([[projection, bias[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
    wanted = np.linalg.norm(first @ second) / 2
    assert expansion_rate(value, projection, None, bias, released=True) == pytest.approx(
        wanted, abs=1e-12
    )
    assert expansion_rate(value, projection, None, bias) != pytest.approx(wanted, abs=1e-3)


@pytest.mark.usefixtures("in_production")
def test_matrices_that_do_not_fit_are_refused():
    with pytest.raises(RecordError, match="do not fit"):
        expansion_rate(np.ones((3, 2)), np.ones((3, 3)))
    with pytest.raises(RecordError, match="as many features as outputs"):
        expansion_rate(np.ones((3, 2)), np.ones((2, 3)), None, np.ones(3), released=True)
