"""Vig's fifth pattern: words from which the model predicts the query word."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.patterns._maps import AttentionMaps
from headscope.patterns._pattern import Pattern
from headscope.record import Tokens

LEAST_KEYS = 3


def predictive(
    weights: Float[np.ndarray, "head query key"],
    drops: Float[np.ndarray, "query key"],
    *,
    pairs: Bool[np.ndarray, "query key"] | None = None,
) -> Float[np.ndarray, " head"]:
    """Rank correlation, from -1 to 1, of a head's attention with the importance of each word for
    predicting the query word.

    ``mean_q spearman_k(A[q, k], drops[q, k])`` over keys other than q, with
    ``drops[q, k] = log p(x_q | q masked) - log p(x_q | q and k masked)``.

    The drops come from a live model with a masked-word head: `headscope.capturing.masking_drops`.

    Source: Vig 2019, pattern 5; the statistic is ours. Rows with fewer than three keys, or with
    equal drops for all keys, do not count; the score is NaN where no row counts. A head with
    uniform attention gets 0 in a row.

    Args:
        weights: attention, axes head, query, key; as many queries as keys.
        drops: loss of log probability of the query when the key is masked, too, in nats; NaN where
            it is unknown.
        pairs: True for the pairs that count; by default all but the token itself.

    Raises:
        RecordError: where drops do not fit the weights.

    Example:
        >>> weights = np.array([[[0.0, 0.5, 0.3, 0.2]]])
        >>> predictive(weights, np.array([[0.0, 2.0, 1.0, 0.1]])).tolist()
        [1.0]
    """
    from scipy.stats import rankdata

    if drops.shape != weights.shape[1:]:
        raise RecordError(f"drops have shape {drops.shape}, but [query key] is {weights.shape[1:]}")
    counted = ~np.isnan(drops) if pairs is None else pairs & ~np.isnan(drops)
    np.fill_diagonal(counted, False)
    scores = []
    for query, on in enumerate(counted):
        costs = drops[query, on].astype(np.float64)
        if len(costs) < LEAST_KEYS or (costs == costs[0]).all():
            continue
        rows, cost = (
            rankdata(np.asarray(weights[:, query, on], np.float64), axis=1),
            rankdata(costs),
        )
        rows, cost = rows - rows.mean(axis=1, keepdims=True), cost - cost.mean()
        spread = np.sqrt((rows**2).sum(axis=1) * (cost**2).sum())
        scores.append(np.divide(rows @ cost, spread, out=np.zeros(len(rows)), where=spread > 0))
    return np.mean(scores, axis=0) if scores else np.full(len(weights), np.nan)


def predictive_pattern(drops: Callable[[Tokens], np.ndarray], *, threshold: float = 0.3) -> Pattern:
    """Vig's fifth pattern, to be scored like the others.

    Nearby words help most with predicting a word, and many heads attend to nearby words. So the
    pattern is also compared with attention to the nearest words.

    Args:
        drops: computes the ``drops`` of `predictive`, ``[query key]``, for the tokens of a text,
            such as a `Masking` of `headscope.capturing`.
        threshold: smallest mean rank correlation for the label; ours.

    Example:
        >>> predictive_pattern(lambda tokens: np.zeros((len(tokens), len(tokens)))).name
        'predictive'
    """

    def score(maps: AttentionMaps) -> np.ndarray:
        if not maps.tokens.is_self:
            return np.full(len(maps.weights), np.nan)
        return predictive(
            maps.weights, drops(maps.tokens.query), pairs=maps.tokens.words & maps.visible
        )

    def nearest(maps: AttentionMaps) -> np.ndarray:
        positions = np.arange(len(maps.tokens.query))
        near = -np.abs(positions[:, None] - np.arange(len(maps.tokens.key))).astype(np.float64)
        return np.broadcast_to(
            score(AttentionMaps(near[None], maps.tokens, maps.visible)), (len(maps.weights),)
        )

    return Pattern(
        name="predictive",
        says="looks at the words that the word can be predicted from",
        source=(
            "Vig 2019; statistic ours: rank correlation of attention with what masking the key "
            "costs the query"
        ),
        threshold=threshold,
        score=score,
        by_position=nearest,
    )
