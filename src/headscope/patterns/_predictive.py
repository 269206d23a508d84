"""Vig's fifth pattern: words that the word can be predicted from."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.measures import spearman

LEAST_KEYS = 3


def predictive(
    weights: Float[np.ndarray, "head query key"],
    drops: Float[np.ndarray, "query key"],
    *,
    pairs: Bool[np.ndarray, "query key"] | None = None,
) -> Float[np.ndarray, " head"]:
    """Whether a head looks at the words from which the model predicts the word: rank correlation, -1..1.

    ``mean_q spearman_k(A[q, k], drops[q, k])`` over keys other than q, with
    ``drops[q, k] = log p(x_q | q masked) - log p(x_q | q and k masked)``.

    The drops come from a live model with a masked-word head, which this package never runs: one pass with q masked and
    one for each pair. Nothing here computes them yet.

    Source: Vig 2019, pattern 5; the statistic is ours. Rows with fewer than three keys, or where all keys are alike,
    do not count; NaN where none counts.

    Args:
        weights: attention, axes head, query, key; as many queries as keys.
        drops: how much masking the key as well costs the query, in nats.
        pairs: True for the pairs that count; all but the token itself by default.

    Raises:
        RecordError: where drops do not fit the weights.

    Example:
        >>> weights = np.array([[[0.0, 0.5, 0.3, 0.2]]])
        >>> predictive(weights, np.array([[0.0, 2.0, 1.0, 0.1]])).tolist()
        [1.0]
    """
    if drops.shape != weights.shape[1:]:
        raise RecordError(f"drops have shape {drops.shape}, but [query key] is {weights.shape[1:]}")
    counted = np.ones(drops.shape, bool) if pairs is None else pairs.copy()
    np.fill_diagonal(counted, False)
    found = np.full(len(weights), np.nan)
    for head, rows in enumerate(np.asarray(weights, np.float64)):
        ranks = [
            spearman(row[on], drop[on].astype(np.float64))
            for row, drop, on in zip(rows, drops, counted, strict=True)
            if on.sum() >= LEAST_KEYS
        ]
        known = [rank for rank in ranks if not np.isnan(rank)]
        found[head] = np.mean(known) if known else np.nan
    return found
