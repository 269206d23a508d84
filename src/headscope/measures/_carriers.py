"""Which neurons of queries and keys carry a score."""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError

SHARE = 0.9


def neuron_scores(
    queries: Float[np.ndarray, "head query feature"],
    keys: Float[np.ndarray, "head key feature"],
    targets: Float[np.ndarray, "head query key"],
    *,
    scale: float = 1.0,
) -> Float[np.ndarray, "head query feature"]:
    """What each neuron adds to the score of what a query looks at.

    ``c_f(q) = scale * q_f * sum_k t_qk k_f``: with a row t that is 1 at one key, the products of
    the neuron view, which sum to the score; with the weights themselves, the products met on
    average; with a row that sums to 0 (what is looked at, less all there is), what sets these keys
    apart. What all keys share cancels there, as it does in the softmax.

    Source: Vig 2019, part 2 (q x k of the neuron view); the mean over targets is ours.

    Args:
        queries: after positions.
        keys: after positions, repeated where heads share them.
        targets: how much each key counts.
        scale: what scores are multiplied by.

    Raises:
        RecordError: where the arrays do not fit together.

    Example:
        >>> queries, keys = np.array([[[1.0, 2.0]]]), np.array([[[3.0, -1.0], [5.0, 0.5]]])
        >>> neuron_scores(queries, keys, np.array([[[0.0, 1.0]]])).tolist()
        [[[5.0, 1.0]]]
    """
    wanted = (queries.shape[0], queries.shape[1], keys.shape[1])
    if targets.shape != wanted or keys.shape[::2] != queries.shape[::2]:
        raise RecordError(
            f"queries {queries.shape}, keys {keys.shape} and targets {targets.shape} do not fit: "
            "expected [head query feature], [head key feature] and [head query key]"
        )
    meant = np.asarray(targets, np.float64) @ np.asarray(keys, np.float64)
    return scale * np.asarray(queries, np.float64) * meant


def carriers(
    scores: Float[np.ndarray, "*axes unit"], *, share: float = SHARE
) -> Bool[np.ndarray, "*axes unit"]:
    """The fewest neurons that together make up a share of the positive score: True for those.

    They are taken from the largest on until their sum reaches ``share * sum_f max(0, c_f)``; none
    where nothing is positive. Of equal ones the first are taken.

    Source: Vig 2019, part 2, speaks of few or many neurons; the share of 90 % is ours.

    Args:
        scores: what each neuron, or each frequency pair, adds.
        share: of the positive score, within 0..1.

    Raises:
        RecordError: where share is not within 0..1.

    Example:
        >>> carriers(np.array([[3.0, -9.0, 0.5, 6.0]])).tolist()
        [[True, False, False, True]]
    """
    if not 0 < share <= 1:
        raise RecordError(f"share is {share}; give one above 0 and up to 1")
    positive = np.maximum(np.asarray(scores, np.float64), 0.0)
    order = np.argsort(-positive, axis=-1, kind="stable")
    ranked = np.take_along_axis(positive, order, axis=-1)
    before = np.cumsum(ranked, axis=-1) - ranked
    whole = positive.sum(axis=-1, keepdims=True)
    # What is reached but for rounding is reached.
    taken = (before < share * whole * (1 - 1e-12)) & (ranked > 0)
    carrying = np.zeros(positive.shape, bool)
    np.put_along_axis(carrying, order, taken, axis=-1)
    return carrying


def set_overlap(sets: Bool[np.ndarray, "query unit"]) -> tuple[float, float]:
    """How alike the sets of different queries are: mean Jaccard index of all pairs, and what chance
    would give.

    ``J = |S & S'| / |S | S'|``; chance draws sets of the same sizes from all neurons alike, and its
    mean is exact. Empty sets do not count; both are NaN for fewer than two.

    Source: Jaccard 1912; ours for the question how much the neurons shift with the position.

    Args:
        sets: True for the neurons that carry the score of a query.

    Example:
        >>> set_overlap(np.array([[True, True, False, False], [False, True, True, False]]))
        (0.3333333333333333, 0.38888888888888884)
    """
    sets = sets[sets.any(axis=1)]
    if len(sets) < 2:
        return float("nan"), float("nan")
    sizes = sets.sum(axis=1)
    both = (sets.astype(np.float64) @ sets.T.astype(np.float64))[np.triu_indices(len(sets), 1)]
    first, second = (sizes[side] for side in np.triu_indices(len(sets), 1))
    # Chance depends on the two sizes alone, so it is computed once for each pair of sizes.
    kinds, counts = np.unique(
        np.stack([np.minimum(first, second), np.maximum(first, second)]), axis=1, return_counts=True
    )
    chance = [chance_overlap(int(small), int(large), sets.shape[1]) for small, large in kinds.T]
    return float((both / (first + second - both)).mean()), float(np.average(chance, weights=counts))


@lru_cache(maxsize=100_000)
def chance_overlap(first: int, second: int, units: int) -> float:
    """Mean Jaccard index of two sets of these sizes that are drawn from so many neurons by chance,
    exactly.

    ``sum_x x / (a + b - x) C(a, x) C(n - a, b - x) / C(n, b)``.

    Args:
        first: size of one set.
        second: size of the other.
        units: number of all neurons.

    Raises:
        RecordError: where a set is empty or larger than the whole.

    Example:
        >>> chance_overlap(4, 4, 4), round(chance_overlap(1, 1, 10), 9)
        (1.0, 0.1)
    """
    if not 0 < min(first, second) <= max(first, second) <= units:
        raise RecordError(
            f"Sets of {first} and {second} cannot be drawn from {units}; give sizes from 1 to "
            f"{units}"
        )
    # The sizes of intersections that there can be: two large sets must overlap.
    ways = comb(units, second)
    shared = range(max(0, first + second - units), min(first, second) + 1)
    return sum(
        comb(first, x) * comb(units - first, second - x) / ways * x / (first + second - x)
        for x in shared
    )
