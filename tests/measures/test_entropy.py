import math

import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import CLARK_SMOOTHING, entropy, with_missing_mass


@pytest.mark.parametrize("smoothing", [0.0, CLARK_SMOOTHING])
def test_entropy_follows_the_definition(weights, queries, close, smoothing):
    size = weights.shape[2]
    wanted = []
    for head in weights:
        rows = [
            [(1 - smoothing) * a + smoothing / size for a in row]
            for row, on in zip(head, queries, strict=True)
            if on
        ]
        wanted.append(sum(-sum(a * math.log(a) for a in row) for row in rows) / len(rows))
    close(entropy(weights, smoothing=smoothing, queries=queries), wanted)


def test_uniform_is_ln_n_and_one_token_is_zero(close):
    close(entropy(np.full((2, 3, 8), 1 / 8)), [math.log(8)] * 2)
    one = np.zeros((2, 3, 8))
    one[:, :, 4] = 1
    assert entropy(one).tolist() == [0, 0]
    a, b = 1 - CLARK_SMOOTHING + CLARK_SMOOTHING / 8, CLARK_SMOOTHING / 8
    close(entropy(one, smoothing=CLARK_SMOOTHING), [-a * math.log(a) - 7 * b * math.log(b)] * 2)


def test_mass_that_went_nowhere_is_a_key_of_its_own(weights, close):
    half = with_missing_mass(weights / 2)
    close(half.sum(axis=-1), np.ones((3, 5)))
    close(entropy(half), entropy(weights) / 2 + math.log(2))


def test_no_row_is_not_a_number(weights):
    assert np.isnan(entropy(weights, queries=np.zeros(5, bool))).all()


@pytest.mark.usefixtures("in_production")
def test_a_mask_of_another_length_is_refused(weights):
    with pytest.raises(RecordError, match=r"queries has shape \(7,\) .* truth values \[query\] of"):
        entropy(weights, queries=np.ones(7, bool))
