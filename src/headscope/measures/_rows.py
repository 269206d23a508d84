"""Which rows count, and the mean over them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError


def with_missing_mass(
    weights: Float[np.ndarray, "head query key"],
) -> Float[np.ndarray, "head query key_and_none"]:
    """Weights with one more key at the end: the mass that went to no token.

    ``A[q, n] = max(0, 1 - sum_k A[q, k])``. Ours, for rows with a learned sink, whose weights sum
    to less than 1: give the result to `entropy` where "nowhere" is to count as a place.

    Args:
        weights: attention, axes head, query, key.

    Example:
        >>> with_missing_mass(np.array([[[0.25, 0.5]]])).tolist()
        [[[0.25, 0.5, 0.25]]]
    """
    weights = np.asarray(weights, np.float64)
    missing = np.maximum(0.0, 1.0 - weights.sum(axis=-1, keepdims=True))
    return np.concatenate([weights, missing], axis=-1)


def mean_over_queries(
    values: Float[np.ndarray, "head query"], queries: Bool[np.ndarray, " query"] | None
) -> Float[np.ndarray, " head"]:
    """Mean over the queries that count, all of them by default; NaN where none does."""
    chosen = values if queries is None else values[:, mask_of(queries, values.shape[1], "queries")]
    if not chosen.shape[1]:
        return np.full(len(values), np.nan)
    return chosen.mean(axis=1)


def ratio(
    parts: Float[np.ndarray, " head"], wholes: Float[np.ndarray, " head"] | np.float64
) -> Float[np.ndarray, " head"]:
    """``parts / wholes``; NaN where the whole is nothing."""
    wholes = np.broadcast_to(wholes, parts.shape)
    return np.divide(parts, wholes, out=np.full(parts.shape, np.nan), where=wholes > 0)


def mask_of(mask: np.ndarray, size: int, name: str) -> Bool[np.ndarray, " size"]:
    """The mask, if it has one truth value for each.

    Raises:
        RecordError: where it has another length or holds something else.
    """
    return _checked(mask, (size,), name, {"queries": "query", "keys": "key"}[name])


def pairs_of(
    pairs: np.ndarray, weights: Float[np.ndarray, "head query key"]
) -> Bool[np.ndarray, "query key"]:
    """The pairs, if they have one truth value for each query and key of the weights.

    Raises:
        RecordError: where they have another shape or hold something else.
    """
    return _checked(pairs, weights.shape[1:], "pairs", "query key")


def _checked(mask: np.ndarray, shape: tuple[int, ...], name: str, axes: str) -> np.ndarray:
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != shape:
        raise RecordError(
            f"{name} has shape {mask.shape} and type {mask.dtype}; expected truth values "
            f"[{axes}] of shape {shape}"
        )
    return mask
