import math

import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import head_distances, jensen_shannon, jensen_shannon_parts

from ..close import assert_close


def plain(p, q, smoothing):
    n = len(p)
    p, q = ([(1 - smoothing) * a + smoothing / n for a in row] for row in (p, q))
    m = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    halves = (sum(a * math.log(a / c) for a, c in zip(row, m, strict=True) if a) for row in (p, q))
    return sum(halves) / 2


@pytest.mark.parametrize("smoothing", [0.0, 0.001])
def test_divergence_follows_the_definition(weights, rng, close, smoothing):
    other = rng.dirichlet(np.ones(7), size=(3, 5))
    wanted = [
        [plain(p, q, smoothing) for p, q in zip(*heads, strict=True)]
        for heads in zip(weights, other, strict=True)
    ]
    close(jensen_shannon(weights, other, smoothing=smoothing), wanted)


def test_distances_are_summed_over_rows(weights):
    wanted = [
        [sum(plain(p, q, 0.001) for p, q in zip(a, b, strict=True)) for b in weights]
        for a in weights
    ]
    assert_close(head_distances(weights), np.array(wanted))


def test_distances_of_long_causal_texts_are_sums_of_the_divergence(rng):
    """More pairs of tokens than one block; what the mask hides is the same in all heads."""
    weights = np.tril(rng.dirichlet(np.full(90, 0.1), size=(4, 70)), k=20)
    weights /= weights.sum(axis=-1, keepdims=True)
    for smoothing in (0.0, 1e-3):
        distances = head_distances(weights, smoothing=smoothing)
        wanted = np.zeros((4, 4))
        for head in range(4):
            one = np.broadcast_to(weights[head], weights.shape)
            wanted[head] = jensen_shannon(one, weights, smoothing=smoothing).sum(axis=1)
        assert_close(distances, wanted)
        assert (distances == distances.T).all()


def test_equal_heads_are_0_apart(rng):
    weights = rng.dirichlet(np.full(33, 0.1), size=(1, 70))[[0, 0]]
    other = rng.dirichlet(np.full(33, 0.1), size=(1, 70))
    assert head_distances(np.concatenate([weights, other]))[0, 1] == pytest.approx(0, abs=1e-6)
    assert (head_distances(weights) == 0).all()


def test_no_head_is_refused():
    with pytest.raises(RecordError, match="was given no head"):
        head_distances(np.zeros((0, 2, 3)))


def test_parts_are_those_of_the_definition_never_below_0_and_the_same_both_ways(
    weights, rng, close
):
    other = rng.dirichlet(np.full(7, 0.05), size=(3, 5))
    other[0, 0] = weights[0, 0]
    other[1, 2] = np.eye(7)[3]
    parts = jensen_shannon_parts(weights, other)
    close(parts.sum(axis=-1), jensen_shannon(weights, other))
    assert (parts >= 0).all()
    close(parts, jensen_shannon_parts(other, weights))
    assert (parts[0, 0] == 0).all()
    wanted = [
        (p * math.log(2 * p / (p + q)) + (q * math.log(2 * q / (p + q)) if q else 0)) / 2
        for p, q in zip(weights[1, 2], other[1, 2], strict=True)
    ]
    close(parts[1, 2], wanted)


def test_parts_of_nearly_the_same_rows_keep_their_digits():
    p = np.array([[[0.3, 0.7]]])
    step = 1e-9
    parts = jensen_shannon_parts(p, p + np.array([step, -step]))
    assert parts.sum() == pytest.approx(step**2 / 8 * (1 / 0.3 + 1 / 0.7), rel=1e-3)


def test_parts_of_hopelessly_small_weights_are_finite():
    parts = jensen_shannon_parts(np.array([[[1e-300, 1.0]]]), np.array([[[1.0, 0.0]]]))
    assert parts.round(4).tolist() == [[[0.3466, 0.3466]]]
