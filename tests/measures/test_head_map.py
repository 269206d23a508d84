import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import head_distances, head_map, stress

from ..close import assert_close


@pytest.fixture
def distances(rng):
    places = rng.standard_normal((6, 2)) * [3, 1]
    return np.linalg.norm(places[:, None] - places[None], axis=-1)


def test_what_fits_a_plane_is_kept(distances):
    places = head_map(distances)
    np.testing.assert_allclose(
        np.linalg.norm(places[:, None] - places[None], axis=-1), distances, atol=1e-3
    )
    assert stress(distances, places) < 1e-3


def test_the_map_lies_along_its_principal_axes(distances):
    places = head_map(distances)
    np.testing.assert_allclose(places.mean(axis=0), 0, atol=1e-9)
    spread = places.T @ places
    assert abs(spread[0, 1]) < 1e-6
    assert spread[0, 0] > spread[1, 1]
    assert_close(places, head_map(distances))


def test_no_random_start_of_scikit_learn_does_better(rng):
    manifold = pytest.importorskip("sklearn.manifold")
    points = rng.random((30, 8))
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    options = {"n_init": 5, "init": "random", "metric": "precomputed", "random_state": 0}
    other = manifold.MDS(2, normalized_stress=False, **options).fit_transform(distances)
    assert stress(distances, head_map(distances)) < 1.01 * stress(distances, other)


def test_stress_follows_the_definition(distances, rng):
    places = rng.standard_normal((6, 2))
    above = below = 0.0
    for a in range(6):
        for b in range(a + 1, 6):
            above += (np.hypot(*(places[a] - places[b])) - distances[a, b]) ** 2
            below += distances[a, b] ** 2
    assert stress(distances, places) == pytest.approx(np.sqrt(above / below), abs=1e-9)


def test_like_heads_lie_together(rng):
    near = [np.eye(8, 9, k=k) for k in (0, 0, 1, 1)]
    maps = np.stack([0.95 * each + 0.05 * rng.dirichlet(np.ones(9), size=8) for each in near])
    places = head_map(head_distances(maps))
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    assert max(apart[0, 1], apart[2, 3]) < 0.3 * apart[0, 2]


@pytest.mark.parametrize(
    ("distances", "message"),
    [
        (np.array([[0.0, np.nan], [np.nan, 0.0]]), "not finite"),
        (np.zeros((2, 3)), "not square"),
        (np.zeros((1, 1)), "of a single head"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), "not symmetric with 0 on the diagonal"),
        (np.ones((2, 2)), "not symmetric with 0 on the diagonal"),
    ],
)
def test_what_are_no_distances_is_refused(distances, message):
    with pytest.raises(RecordError, match=f"The distances are {message}; give"):
        head_map(distances)
