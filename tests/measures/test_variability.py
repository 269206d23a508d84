import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import first_tokens, variability

from ..close import assert_close


def test_variability_follows_the_definition(rng, close):
    maps = rng.dirichlet(np.ones(6), size=(4, 3, 5))
    wanted = []
    for head in range(3):
        change = whole = 0.0
        for q in range(5):
            for k in range(6):
                mean = sum(maps[x, head, q, k] for x in range(4)) / 4
                change += sum(abs(maps[x, head, q, k] - mean) for x in range(4))
                whole += sum(maps[x, head, q, k] for x in range(4))
        wanted.append(change / (2 * whole))
    close(variability(maps), wanted)


def test_first_tokens_takes_the_texts_that_are_long_enough(rng):
    maps = [rng.random((2, n, n)) for n in (3, 6, 4)]
    found = first_tokens(maps, 4)
    assert found.shape == (2, 2, 4, 4)
    assert_close(found[0], maps[1][:, :4, :4])


def test_too_few_texts_are_refused(weights):
    with pytest.raises(RecordError, match="give two or more"):
        variability(weights[None])
    with pytest.raises(RecordError, match="No text has 9 tokens"):
        first_tokens([weights[:, :, :5]], 9)
