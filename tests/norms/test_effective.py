import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import effective_attention
from headscope.norms import effective_weights
from headscope.record import Layer

from .conftest import weights_of


def test_values_have_the_null_space_of_what_heads_add(rng):
    """The fifth identity: A T = A_perp T with T = values times a head's part of the output
    projection.
    """
    values, projection = rng.standard_normal((2, 9, 3)), rng.standard_normal((4, 3, 11))
    layer = Layer(layer=0, weights=weights_of(rng, 4, 5, 9), values=values)
    vectors = values[[0, 0, 1, 1]] @ projection
    found = effective_weights(layer)
    np.testing.assert_allclose(found, effective_attention(layer.weights, vectors), atol=1e-9)
    np.testing.assert_allclose(found @ vectors, layer.weights @ vectors, atol=1e-9)
    assert np.abs(found - layer.weights).max() > 0.01


def test_without_values_there_is_none(rng):
    with pytest.raises(RecordError, match="holds no values"):
        effective_weights(Layer(layer=0, weights=weights_of(rng, 2, 3, 4)))
