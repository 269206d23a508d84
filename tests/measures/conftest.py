import numpy as np
import pytest

HEADS, QUERIES, KEYS = 3, 5, 7


@pytest.fixture
def weights(rng):
    """Rows that sum to 1 in float64, every axis of its own size."""
    raised = np.exp(2 * rng.standard_normal((HEADS, QUERIES, KEYS)))
    return raised / raised.sum(axis=-1, keepdims=True)


@pytest.fixture
def pairs(rng):
    found = rng.random((QUERIES, KEYS)) < 0.4
    found[1] = False
    return found


@pytest.fixture
def keys():
    return np.array([True, False, False, True, False, True, False])


@pytest.fixture
def queries():
    return np.array([True, True, False, True, False])


@pytest.fixture
def close():
    def check(found, wanted):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)

    return check


@pytest.fixture
def in_production():
    """Without the checks of axes that only tests run: what is wrong has to be found by our own."""
    from jaxtyping import config

    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
