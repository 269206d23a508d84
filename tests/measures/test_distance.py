import numpy as np
import pytest

from headscope.measures import mean_distance


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("start", [0, 2])
def test_distance_follows_the_definition(weights, keys, close, signed, start):
    wanted = []
    for head in weights:
        terms = [(head[q][k], q + start - k) for q in range(5) for k in range(7) if keys[k]]
        total = sum(a for a, _ in terms)
        wanted.append(sum(a * (d if signed else abs(d)) for a, d in terms) / total)
    close(mean_distance(weights, signed=signed, keys=keys, start=start), wanted)


def test_planted_diagonals_are_as_far_as_their_offset():
    back, ahead = np.eye(6, 9, k=-2)[None], np.eye(6, 9, k=3)[None]
    assert mean_distance(back).tolist() == [2]
    assert mean_distance(ahead).tolist() == [-3]
    assert mean_distance(ahead, signed=False).tolist() == [3]


def test_a_head_that_looks_at_none_of_the_keys_has_no_distance(weights):
    assert np.isnan(mean_distance(weights, keys=np.zeros(7, bool))).all()
