"""Heads as points of a plane."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError

MOST_STEPS, LEAST_GAIN = 1000, 1e-8
"""Of the majorisation: steps, and the part of the error that one must take away."""


def head_map(distances: Float[np.ndarray, "head other_head"]) -> Float[np.ndarray, "head 2"]:
    """Heads as points of a plane, like heads close together: metric multidimensional scaling.

    The points minimise ``sum_{a<b} (|x_a - x_b| - d_ab)^2`` by majorisation (SMACOF), starting from
    classical scaling.

    Source: Clark et al. 2019, section 6; de Leeuw 1977 for the majorisation. Ours then turns the
    map to its principal axes; directions and axes have no meaning. `stress` measures how far the
    map can be trusted.

    Args:
        distances: of every two heads, such as `head_distances` of one text or their sum over many.

    Raises:
        RecordError: where distances are not finite, symmetric and 0 on the diagonal.

    Example:
        >>> np.abs(head_map(np.array([[0.0, 2.0], [2.0, 0.0]])).round(3)).tolist()
        [[1.0, 0.0], [1.0, 0.0]]
    """
    distances = np.asarray(distances, np.float64)
    _check(distances)
    points, error = _classical(distances), np.inf
    for _ in range(MOST_STEPS):
        drawn = _between(points)
        last, error = error, ((drawn - distances) ** 2).sum()
        if last - error <= LEAST_GAIN * error:
            break
        ratio = np.divide(distances, drawn, out=np.zeros_like(drawn), where=drawn > 0)
        points = (ratio.sum(axis=1)[:, None] * points - ratio @ points) / len(points)
    # The right singular vectors of centred points are their principal axes.
    points = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(points, full_matrices=False)
    points = points @ axes.T
    # An axis may point either way; the point that lies farthest along it is made positive.
    signs = np.sign(points[np.argmax(np.abs(points), axis=0), np.arange(2)])
    return points * np.where(signs == 0, 1.0, signs)


def stress(
    distances: Float[np.ndarray, "head other_head"], points: Float[np.ndarray, "head 2"]
) -> float:
    """How badly a map keeps the distances (Kruskal's stress-1): 0 exactly; above 0.2 a map is held
    to be poor.

    ``sqrt(sum_{a<b} (|x_a - x_b| - d_ab)^2 / sum_{a<b} d_ab^2)``.

    Source: Kruskal 1964, with the distances themselves in the denominator. Clark et al. give none
    for their map.

    Args:
        distances: what the map should keep.
        points: the map, from `head_map`.

    Example:
        >>> stress(np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([[1.0, 0.0], [-1.0, 0.0]]))
        0.0
    """
    drawn = _between(points)
    whole = (distances**2).sum()
    if not whole:
        return 0.0
    error = ((drawn - distances) ** 2).sum()
    return float(np.sqrt(error / whole))


def _classical(distances: np.ndarray) -> np.ndarray:
    """The two principal coordinates of the distances (Torgerson 1952)."""
    products = -0.5 * distances**2
    products -= products.mean(axis=0)
    products -= products.mean(axis=1)[:, None]
    values, vectors = np.linalg.eigh(products)
    return vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))


def _between(points: np.ndarray) -> np.ndarray:
    across, along = (axis[:, None] - axis for axis in points.T)
    return np.hypot(across, along)


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
