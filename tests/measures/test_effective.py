import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import effective_attention, null_dimension


def test_effective_attention_gives_the_same_output_and_is_shortest(weights, rng):
    vectors = rng.standard_normal((3, 7, 2)) @ rng.standard_normal((3, 2, 11))
    found = effective_attention(weights, vectors)
    np.testing.assert_allclose(found @ vectors, weights @ vectors, atol=1e-9)
    assert null_dimension(vectors) == [5, 5, 5]
    assert (np.linalg.norm(found, axis=-1) < np.linalg.norm(weights, axis=-1)).all()


def test_it_follows_the_definition_with_the_null_space(weights, rng):
    vectors = rng.standard_normal((3, 7, 4))
    for head in range(3):
        null = np.linalg.svd(vectors[head])[0][:, 4:]
        wanted = weights[head] - weights[head] @ null @ null.T
        np.testing.assert_allclose(effective_attention(weights, vectors)[head], wanted, atol=1e-9)


def test_more_features_than_tokens_leave_attention_as_it_is(weights, rng):
    vectors = rng.standard_normal((3, 7, 9))
    np.testing.assert_allclose(effective_attention(weights, vectors), weights, atol=1e-9)
    assert null_dimension(vectors) == [0, 0, 0]


@pytest.mark.usefixtures("in_production")
@pytest.mark.parametrize("shape", [(2, 7, 4), (3, 5, 4)])
def test_what_does_not_fit_is_refused(weights, shape):
    with pytest.raises(RecordError, match="differ in heads or keys"):
        effective_attention(weights, np.zeros(shape))
