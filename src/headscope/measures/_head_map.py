"""Heads as points of a plane."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError

STARTS, MOST_STEPS, LEAST_GAIN = 5, 1000, 1e-10
"""Those of Clark et al.; a start ends early where a step lowers the error by no more than this
share of the squared distances.
"""
TOUCHING = 1e-5
"""In place of a distance of 0 between two places, which the ratio of distances cannot have; as in
scikit-learn.
"""


def head_map(
    distances: Float[np.ndarray, "head other_head"], *, seed: int = 0
) -> Float[np.ndarray, "head 2"]:
    """Heads as points of a plane, like heads close together: metric multidimensional scaling.

    The places minimise ``sum_{a<b} (|x_a - x_b| - d_ab)^2`` (SMACOF, from 5 random starts).

    Source: Clark et al. 2019, section 6: scikit-learn's MDS with n_init 5, max_iter 1000 and eps
    1e-10; the same numbers come out here. Ours then turns the map to its principal axes, so that it
    does not depend on how the random start happened to lie; directions and axes have no meaning.
    `stress` says how far the map can be trusted.

    Args:
        distances: of every two heads, such as `head_distances` of one text or their sum over many.
        seed: of the random starts.

    Raises:
        RecordError: where distances are not finite, symmetric and 0 on the diagonal.

    Example:
        >>> np.abs(head_map(np.array([[0.0, 2.0], [2.0, 0.0]])).round(3)).tolist()
        [[1.0, 0.0], [1.0, 0.0]]
    """
    distances = np.asarray(distances, np.float64)
    _check(distances)
    # NumPy's older generator, since scikit-learn draws its starts from that.
    random = np.random.RandomState(seed)
    places, least = np.empty(0), np.inf
    for _ in range(STARTS):
        start = random.uniform(size=(len(distances), 2))
        reached, error = _smacof(distances, start)
        if error < least:
            places, least = reached, error
    # The right singular vectors of centred points are their principal axes.
    places = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(places, full_matrices=False)
    places = places @ axes.T
    # An axis may point either way; the place that lies farthest along it is made positive.
    signs = np.sign(places[np.argmax(np.abs(places), axis=0), np.arange(2)])
    return places * np.where(signs == 0, 1.0, signs)


def stress(
    distances: Float[np.ndarray, "head other_head"], places: Float[np.ndarray, "head 2"]
) -> float:
    """How badly a map keeps the distances (Kruskal's stress-1): 0 exactly; above 0.2 a map is held
    to be poor.

    ``sqrt(sum_{a<b} (|x_a - x_b| - d_ab)^2 / sum_{a<b} d_ab^2)``.

    Source: Kruskal 1964, with the distances themselves in the denominator. Clark et al. give none
    for their map.

    Args:
        distances: what the map should keep.
        places: the map, from `head_map`.

    Example:
        >>> stress(np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([[1.0, 0.0], [-1.0, 0.0]]))
        0.0
    """
    drawn = np.linalg.norm(places[:, None] - places[None], axis=-1)
    whole = (distances**2).sum()
    if not whole:
        return 0.0
    error = ((drawn - distances) ** 2).sum()
    return float(np.sqrt(error / whole))


def _smacof(distances: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, float]:
    """Places that keep distances better and better from a start on, and the error that is left.

    scikit-learn takes the same steps; checking its input in each of them takes most of its time.
    """
    count = len(distances)
    drawn, before, error = _apart(places), np.inf, np.inf
    for _ in range(MOST_STEPS):
        drawn[drawn == 0] = TOUCHING
        ratio = distances / drawn
        # The Guttman transform: each place is pulled or pushed by every other one.
        pulls = -ratio
        pulls[np.arange(count), np.arange(count)] += ratio.sum(axis=1)
        places = 1.0 / count * (pulls @ places)
        drawn = _apart(places)
        error = ((drawn.ravel() - distances.ravel()) ** 2).sum() / 2
        if before - error <= LEAST_GAIN * (drawn.ravel() ** 2).sum() / 2:
            break
        before = error
    return places, float(error)


def _apart(places: np.ndarray) -> np.ndarray:
    """How far apart every two places are."""
    squares = np.einsum("ij,ij->i", places, places)
    # |a - b|^2 = |a|^2 + |b|^2 - 2 a b, which may fall a rounding below 0
    apart = -2 * (places @ places.T)
    apart += squares[:, None]
    apart += squares
    np.maximum(apart, 0, out=apart)
    np.fill_diagonal(apart, 0)
    return np.sqrt(apart)


def _check(distances: np.ndarray) -> None:
    wrong = _what_is_wrong(distances)
    if wrong:
        raise RecordError(
            f"The distances are {wrong}; give those of every two heads, as head_distances returns "
            "them"
        )


def _what_is_wrong(distances: np.ndarray) -> str:
    if not np.isfinite(distances).all():
        return "not finite"
    if distances.shape[0] != distances.shape[1]:
        return "not square"
    if len(distances) < 2:
        return "of a single head"
    if not np.allclose(distances, distances.T) or np.diag(distances).any():
        return "not symmetric with 0 on the diagonal"
    return ""
