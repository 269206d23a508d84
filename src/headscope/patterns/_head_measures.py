"""The measures of every head in `heads`, each declared once: its function and its explanation.

An entry of `MEASURES` is a column of the table and of `to_pandas`, a map of the figure, and an axis
and an order of the viewer. Files that were saved before a measure was added still load, with NaN
for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.measures import (
    entropy,
    mass_at_offsets,
    mass_on,
    mean_distance,
)
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
