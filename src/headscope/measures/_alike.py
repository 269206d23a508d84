"""How alike heads are: distances between their weights, a map of them, rankings compared."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.measures._spread import row_entropy

CLARK_DIVERGENCE_SMOOTHING = 1e-3
IN_CACHE = 450_000
"""Numbers in single precision that stay in the cache of a core."""
PAIRS = (256, 4096)
"""Least and most pairs of tokens at a time: fewer are not worth a call of NumPy, and sums over more
are no longer exact to seven digits in single precision.
"""
CACHE_LINE = 64
"""Bytes that a processor fetches at once."""
LEAST_HALF = np.float32(1e-30)


def jensen_shannon(
    first: Float[np.ndarray, "head query key"],
    second: Float[np.ndarray, "head query key"],
    *,
    smoothing: float = 0.0,
) -> Float[np.ndarray, "head query"]:
    """Jensen-Shannon divergence of two heads' rows, in nats: 0 where they are equal, at most ``ln 2
    = 0.6931``.

    ``JS(p, q) = KL(p|m) / 2 + KL(q|m) / 2 = H(m) - (H(p) + H(q)) / 2`` with ``m = (p + q) / 2``.

    Source: Clark et al. 2019, section 6. A divergence: neither they nor we take the square root.

    Args:
        first: attention, axes head, query, key.
        second: attention of the heads that these are compared with, one by one.
        smoothing: share s of the uniform row that is mixed in: ``(1 - s) A + s / n``.

    Example:
        >>> jensen_shannon(np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]])).round(4).tolist()
        [[0.6931]]
    """
    first, second = (_smoothed(each, smoothing) for each in (first, second))
    apart = row_entropy((first + second) / 2) - (row_entropy(first) + row_entropy(second)) / 2
    # Of equal rows rounding may leave a little less than 0.
    return np.maximum(0.0, apart)


def jensen_shannon_parts(
    first: Float[np.ndarray, "head query key"], second: Float[np.ndarray, "head query key"]
) -> Float[np.ndarray, "head query key"]:
    """What each key adds to the Jensen-Shannon divergence of two heads' rows, in nats; never below
    0.

    ``(p ln(p / m) + q ln(q / m)) / 2`` with ``m = (p + q) / 2``: each term is at least 0, as ``x ln
    x`` is convex, and their sum over keys is `jensen_shannon`. Exactly 0 where both weights are the
    same. (Ours; the divergence is that of Clark et al. 2019, section 6.)

    Args:
        first: attention, axes head, query, key; rows may sum to less than 1.
        second: attention of the heads that these are compared with, one by one.

    Example:
        >>> jensen_shannon_parts(np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]])).round(
        ...     4
        ... ).tolist()
        [[[0.3466, 0.3466]]]
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    middle = (first + second) / 2
    return np.maximum(0.0, (_times_log(first, middle) + _times_log(second, middle)) / 2)


def _times_log(part: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """``p ln(p / m)``, 0 where p is 0; where p is near m as ``p ln(1 + (p - m) / m)``, so that
    nothing is lost.
    """
    apart = np.divide(part - middle, middle, out=np.zeros_like(middle), where=middle > 0)
    # log1p keeps the digits of small differences; p is at most 2 m, so that only far below m, where
    # 1 + (p - m) / m would cancel, the logarithms are taken one by one.
    near = apart > -0.5
    far = (part > 0) & ~near
    logs = np.log1p(apart, out=np.zeros_like(apart), where=near)
    np.copyto(logs, np.log(part, out=np.zeros_like(part), where=far), where=far)
    np.subtract(logs, np.log(middle, out=np.zeros_like(middle), where=far), out=logs, where=far)
    return part * logs


def head_distances(
    weights: Float[np.ndarray, "head query key"], *, smoothing: float = CLARK_DIVERGENCE_SMOOTHING
) -> Float[np.ndarray, "head other_head"]:
    """Distance of every two heads on one text, in nats: the sum of `jensen_shannon` over all rows.

    Source: Clark et al. 2019, section 6, and their released code: smoothed with 0.001, summed, not
    averaged. Add the matrices of several texts for their distance over a corpus; `head_map` draws
    them. Logarithms are taken in single precision: about a millionth of the entropies is lost.

    Args:
        weights: attention of all heads, those of all layers one after the other; axes head, query,
            key.
        smoothing: share of the uniform row that is mixed in.

    Raises:
        RecordError: where there is no head.

    Example:
        >>> head_distances(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]), smoothing=0.0).round(4).tolist()
        [[0.0, 0.6931], [0.6931, 0.0]]
    """
    if not len(weights):
        raise RecordError("head_distances was given no head; give attention [head query key]")
    heads, keys = len(weights), max(1, weights.shape[-1])
    flat = np.asarray(weights).reshape(heads, -1)
    # The sum of ``m log2 m`` of every two heads, with the head itself on the diagonal.
    sums = np.zeros((heads, heads))
    # Weights that are the same in all heads add nothing: those that a mask hides.
    differing = np.flatnonzero((flat != flat[0]).any(axis=0))
    pairs = int(np.clip(IN_CACHE // (3 * heads), *PAIRS)) // PAIRS[0] * PAIRS[0]
    blocks, middles, logs = (_aligned(heads, pairs) for _ in range(3))
    for first in range(0, len(differing), pairs):
        part = flat.take(differing[first : first + pairs], axis=1)
        size = part.shape[1]
        # Half of each smoothed weight, so that the sum of two heads is their mean.
        block = blocks[:, :size]
        np.multiply(part, (1 - smoothing) / 2, out=block, casting="same_kind")
        block += smoothing / 2 / keys
        # ``0 ln 0`` is 0; that of the least half is as good as 0, and no case of its own.
        np.maximum(block, LEAST_HALF, out=block)
        for head in range(heads):
            middle, log = middles[head:, :size], logs[head:, :size]
            np.add(block[head:], block[head], out=middle)
            # NumPy's binary logarithm takes little more than half as long as its natural one.
            np.log2(middle, out=log)
            sums[head, head:] += np.matmul(middle[:, None], log[:, :, None])[:, 0, 0]
    sums *= np.log(2)
    own = np.diag(sums)
    apart = np.triu(np.maximum(0.0, (own[:, None] + own) / 2 - sums), k=1)
    return apart + apart.T


def _aligned(*shape: int) -> np.ndarray:
    """An empty array in single precision that begins with a line of the cache: NumPy's own begin
    anywhere, and vectors that lie across two lines are read and written half as fast.
    """
    values = math.prod(shape)
    line = CACHE_LINE // np.dtype(np.float32).itemsize
    room = np.empty(values + line, np.float32)
    start = -room.ctypes.data % CACHE_LINE // room.itemsize
    return room[start : start + values].reshape(shape)


def _smoothed(weights: np.ndarray, smoothing: float) -> np.ndarray:
    weights = np.asarray(weights, np.float64)
    return (1 - smoothing) * weights + smoothing / weights.shape[-1] if smoothing else weights


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


def kendall(first: Float[np.ndarray, " token"], second: Float[np.ndarray, " token"]) -> float:
    """Kendall's tau-b: 1 the same order, -1 the opposite, NaN where one of them is all ties.

    ``(C - D) / sqrt((C + D + T_1) (C + D + T_2))`` over all pairs: concordant, discordant, tied in
    one only.

    Source: Jain and Wallace 2019 compare attention and importance so; SciPy's `kendalltau` computes
    it.

    Args:
        first: values.
        second: values of the same tokens.

    Raises:
        RecordError: where there are fewer than two tokens, not equally many, or values that are not
            finite.

    Example:
        >>> round(kendall(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])), 9)
        0.333333333
    """
    from scipy.stats import kendalltau

    _check_ranked(first, second)
    return np.nan if _flat(first) or _flat(second) else float(kendalltau(first, second).statistic)


def spearman(first: Float[np.ndarray, " token"], second: Float[np.ndarray, " token"]) -> float:
    """Spearman's rho, the correlation of ranks: ties share the mean of their ranks; NaN where one
    is all ties.

    Source: Abnar and Zuidema 2020 and Hewitt and Manning 2019 compare so; ranks by SciPy's
    `rankdata`. The release of ALTI gives ties dense ranks, which is another number.

    Args:
        first: values.
        second: values of the same tokens.

    Raises:
        RecordError: where there are fewer than two tokens, not equally many, or values that are not
            finite.

    Example:
        >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
        0.5
    """
    from scipy.stats import rankdata

    _check_ranked(first, second)
    if _flat(first) or _flat(second):
        return np.nan
    a, b = rankdata(first), rankdata(second)
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def _flat(values: np.ndarray) -> bool:
    return bool((values == values[0]).all())


def _check_ranked(first: np.ndarray, second: np.ndarray) -> None:
    if first.shape != second.shape or first.ndim != 1 or len(first) < 2:
        raise RecordError(
            f"Rankings of shapes {first.shape} and {second.shape}; give two lists of equal "
            "length, from 2"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise RecordError(
            "A ranking holds values that are not finite; leave those tokens out of both"
        )
