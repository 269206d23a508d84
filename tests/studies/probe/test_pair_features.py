"""Features of pairs in pieces are those of one array."""

import numpy as np
import pytest

from headscope.storage import BoundedArrays
from headscope.studies.probe._relations import AT_ONCE, PairFeatures

from ...close import assert_close


@pytest.mark.parametrize("most", [2**20, 100])
@pytest.mark.parametrize("count", [5, AT_ONCE, 2 * AT_ONCE + 3])
def test_rows_and_their_scale_are_those_of_one_array_to_the_last_bit(rng, count, most):
    features = (rng.random((count, 7)) ** 8).astype(np.float32)
    features[:, 3] = 0.5
    train = rng.random(count) < 0.7
    train[0] = True
    mean, deviation = features[train].mean(axis=0), features[train].std(axis=0)
    wanted = (features - mean) / np.where(deviation > 0, deviation, 1)
    with BoundedArrays(most) as arrays:
        pairs = PairFeatures(iter(features), arrays)
        chosen = rng.permutation(count)
        assert_close(pairs.rows(chosen), features[chosen])
        assert_close(pairs.scaled(train)(pairs.rows(chosen)), wanted[chosen])
        for together in (1, 2):
            blocks = list(pairs.blocks(together))
            assert [len(block) for block in blocks[:-1]] == [together * AT_ONCE] * (len(blocks) - 1)
            assert_close(np.concatenate(blocks), features)
