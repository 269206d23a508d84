"""The measures of every head in `heads`, each declared once: its function and its explanation.

An entry of `MEASURES` is a column of the table and of `to_pandas`, a map of the figure, and an axis
and an order of the viewer. Files that were saved before a measure was added still load, with NaN
for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from headscope.measures import entropy, mass_at_offsets, mass_on, mean_distance
from headscope.patterns._maps import AttentionMaps


@dataclass(frozen=True)
class Measure:
    """A number of each head.

    Args:
        of: computes it from the maps of one text; NaN where it has no meaning.
        says: what it is, in a few words.
        unit: empty for shares from 0 to 1.
    """

    of: Callable[[AttentionMaps], Float[np.ndarray, " head"]]
    says: str
    unit: str = ""

    @property
    def legend(self) -> str:
        """The explanation for the legend of a table."""
        return f"{self.says}, in {self.unit}" if self.unit else self.says


def unknown(maps: AttentionMaps) -> Float[np.ndarray, " head"]:
    """NaN for each head."""
    return np.full(len(maps.weights), np.nan)


def _entropy(maps: AttentionMaps) -> np.ndarray:
    return entropy(maps.weights, queries=maps.seeing)


def _confidence(maps: AttentionMaps) -> np.ndarray:
    # As `headscope.measures.confidence`; the largest weights are known already.
    largest = maps.peaks[0][:, maps.seeing]
    return largest.mean(axis=1) if largest.shape[1] else unknown(maps)


def _distance(maps: AttentionMaps) -> np.ndarray:
    return mean_distance(maps.weights, signed=False) if maps.tokens.is_self else unknown(maps)


def _itself(maps: AttentionMaps) -> np.ndarray:
    return mass_at_offsets(maps.weights, [0])[:, 0] if maps.tokens.is_self else unknown(maps)


def _special(maps: AttentionMaps) -> np.ndarray:
    return mass_on(maps.weights, ~maps.tokens.key_words, queries=maps.seeing)


MEASURES: Mapping[str, Measure] = {
    "entropy": Measure(
        _entropy, "how widely a query spreads its attention, mean over queries and texts", "nats"
    ),
    "confidence": Measure(
        _confidence, "the largest weight of a query, mean over queries and texts"
    ),
    "distance": Measure(
        _distance, "how far away the attention goes, mean over queries and texts", "tokens"
    ),
    "self": Measure(_itself, "weight on the token itself"),
    "special": Measure(_special, "weight on special tokens"),
}


CLASSES = ("vertical", "diagonal", "vertical + diagonal", "block", "heterogeneous")
THRESHOLD, BLOCK_THRESHOLD = 0.5, 0.25


def kovaleva_class(
    maps: AttentionMaps, *, threshold: float = THRESHOLD, block_threshold: float = BLOCK_THRESHOLD
) -> Int[np.ndarray, " head"]:
    """The class of each map, as an index into `CLASSES`.

    In this order, with v, d and b of `strengths` and t the threshold: vertical + diagonal where v
    >= t/2 and d >= t/2; vertical where v >= t; diagonal where d >= t; block where b is above its
    threshold; heterogeneous else.

    Source: Kovaleva et al. 2019, section 4.1, who trained a CNN on about 400 maps labelled by hand
    and released neither. The rules are ours; t = 0.5 follows the thresholds of Clark et al. 2019.

    Args:
        maps: attention of one layer on one text.
        threshold: t.
        block_threshold: threshold of b for a block; half of what two equally long sentences can
            reach.

    Example:
        >>> from headscope.patterns import QueryKeyTokens
        >>> from headscope.record import Tokens
        >>> tokens = Tokens(pieces=("one", "two", "three", "four", "five"))
        >>> maps = AttentionMaps(
        ...     np.eye(5)[None], QueryKeyTokens(tokens, tokens), np.ones((5, 5), bool)
        ... )
        >>> CLASSES[kovaleva_class(maps)[0]]
        'diagonal'
    """
    vertical, diagonal, block = strengths(maps)
    rules = [
        (vertical >= threshold / 2) & (diagonal >= threshold / 2),
        vertical >= threshold,
        diagonal >= threshold,
        block > block_threshold,
    ]
    numbers = [
        CLASSES.index(name) for name in ("vertical + diagonal", "vertical", "diagonal", "block")
    ]
    return np.select(rules, numbers, CLASSES.index("heterogeneous"))


def strengths(
    maps: AttentionMaps,
) -> tuple[Float[np.ndarray, " head"], Float[np.ndarray, " head"], Float[np.ndarray, " head"]]:
    """Vertical, diagonal and block strength of every head, each up to 1.

    v: sum of the m largest column means, m the number of special tokens, at least 1. d: largest
    over the offsets -1, 0 and +1 of the mean of A[i, i+o]; 0 in cross-attention. b: share of the
    mass on words that stays inside the sentence, mean over words, minus ``sum_s (n_s / n)^2``, what
    even rows would give; -1 without a second sentence.

    Args:
        maps: attention of one layer on one text.
    """
    weights, tokens = maps.weights, maps.tokens
    # Choosing rows copies all weights, and nearly always every query sees something.
    if not maps.seeing.all():
        weights = weights[:, maps.seeing]
    count = max(1, int((~tokens.key_words).sum()))
    columns = (
        np.sort(weights.mean(axis=1), axis=1) if weights.shape[1] else np.zeros((len(weights), 1))
    )
    vertical = columns[:, -count:].sum(axis=1)
    return vertical, _diagonal(maps), _block(maps)


def _diagonal(maps: AttentionMaps) -> Float[np.ndarray, " head"]:
    largest = np.zeros(len(maps.weights))
    if not maps.tokens.is_self:
        return largest
    for offset in (-1, 0, 1):
        line = np.diagonal(maps.weights, offset, axis1=1, axis2=2)
        if line.shape[1]:
            largest = np.maximum(largest, line.mean(axis=1))
    return largest


def _block(maps: AttentionMaps) -> Float[np.ndarray, " head"]:
    tokens = maps.tokens
    if not tokens.is_pair:
        return np.full(len(maps.weights), -1.0)
    inside = (maps.weights * tokens.own_sentence).sum(axis=2)
    whole = (maps.weights * tokens.words).sum(axis=2)
    shares = np.divide(inside, whole, out=np.zeros_like(inside), where=whole > 0)
    segments = np.array(tokens.key.segments)[tokens.key_words]
    parts = np.bincount(segments, minlength=2) / len(segments)
    return shares[:, tokens.query_words].mean(axis=1) - (parts**2).sum()
