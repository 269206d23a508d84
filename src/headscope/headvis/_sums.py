"""What a tree holds of all texts: six metrics of each head, histograms, the tokens looked at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.measures import row_entropy

METRICS = {
    "self_attention_score": "Weight of a token on itself, mean over positions",
    "prev_token_score": "Weight on the token before, mean over positions that have one",
    "pattern_entropy": "Entropy of a row in nats, mean over positions",
    "qk_distance": "Distance from query to key in tokens, mean over all attention",
    "qk_distance_variance": "Variance of that distance, over all attention",
    "induction_score": (
        "Weight on what followed the same token earlier, mean over queries whose token was there "
        "before; weights below 0.01 count as 0"
    ),
}
"""Names as Neuronpedia's importers know them, with what they mean."""
LEAST_OF_INDUCTION = 0.01
BINS = 50
"""Of largest weights, from 0 to 1."""
MOST_BYTES_OF_TOKENS = 2**29
"""What each head looks at is counted for each token of the vocabulary: up to half a GiB, above
which the table is left out.
"""


class HeadvisSums:
    """Adds up texts for all heads of a stack.

    Args:
        heads: how many there are in all layers.
    """

    def __init__(self, heads: int) -> None:
        self.heads: int = heads
        self.texts: int = 0
        self.positions: int = 0
        self.repeats: int = 0
        """Queries whose token was there before."""
        self.histogram: Int[np.ndarray, "head bin"] = np.zeros((heads, BINS), np.int64)
        self.maxima: Float[np.ndarray, " head"] = np.zeros(heads)
        self._entropy = np.zeros(heads)
        self._previous = np.zeros(heads)
        self._induction = np.zeros(heads)
        self._by_distance = np.zeros((heads, 0))
        self._columns: dict[int, int] = {}
        self._on_tokens: np.ndarray | None = np.zeros((0, heads))

    def update(
        self,
        layers: Sequence[Float[np.ndarray, "text layer_head query key"]],
        ids: Int[np.ndarray, "text key"],
    ) -> Float[np.ndarray, "text head"]:
        """Count texts of one length.

        Args:
            layers: weights of every layer.
            ids: vocabulary numbers of the tokens.

        Returns:
            The largest weight of each head on each text, outside row and column 0.
        """
        count, length = ids.shape
        self.texts += count
        self.positions += count * length
        missing = max(0, length - self.longest)
        self._by_distance = np.pad(self._by_distance, ((0, 0), (0, missing)))
        after = _after_the_same(ids)
        # A row of the mask is a query; one earlier place is enough to count it.
        self.repeats += int(after.any(axis=2).sum())
        columns = self._columns_of(ids)
        maxima, first = [], 0
        for weights in layers:
            heads = slice(first, first + weights.shape[1])
            first = heads.stop
            self._add_layer(heads, weights, after)
            if columns is not None and self._on_tokens is not None:
                on_keys = weights.sum(axis=2, dtype=np.float64).swapaxes(1, 2)
                flat = on_keys.reshape(count * length, -1)
                np.add.at(self._on_tokens[:, heads], columns.reshape(-1), flat)
            maxima.append(np.minimum(largest(weights), 1.0))
        together = np.concatenate(maxima, axis=1)
        bins = np.minimum((together * BINS).astype(np.int64), BINS - 1)
        for head in range(self.heads):
            self.histogram[head] += np.bincount(bins[:, head], minlength=BINS)
        self.maxima += together.sum(axis=0, dtype=np.float64)
        return together

    def _add_layer(
        self,
        heads: slice,
        weights: Float[np.ndarray, "text layer_head query key"],
        after: Bool[np.ndarray, "text query key"],
    ) -> None:
        length = weights.shape[-1]
        for of_text, mask in zip(weights, after, strict=True):
            self._entropy[heads] += row_entropy(of_text).sum(axis=1)
            followers = of_text[:, mask].astype(np.float64)
            counted = followers >= LEAST_OF_INDUCTION
            self._induction[heads] += (followers * counted).sum(axis=1)
        together = weights.sum(axis=0, dtype=np.float64)
        self._previous[heads] += together.trace(offset=-1, axis1=1, axis2=2)
        self._by_distance[heads, 0] += together.trace(axis1=1, axis2=2)
        for distance in range(1, length):
            before = together.trace(offset=-distance, axis1=1, axis2=2)
            behind = together.trace(offset=distance, axis1=1, axis2=2)
            self._by_distance[heads, distance] += before + behind

    def _columns_of(self, ids: Int[np.ndarray, "text key"]) -> Int[np.ndarray, "text key"] | None:
        """The row in which a token is counted; None where the table got too large."""
        if self._on_tokens is None:
            return None
        for number in np.unique(ids).tolist():
            self._columns.setdefault(number, len(self._columns))
        needed = len(self._columns)
        if 8 * needed * self.heads > MOST_BYTES_OF_TOKENS:
            self._on_tokens = None
            return None
        have = len(self._on_tokens)
        if needed > have:
            # Twice as much at a time, so that it is not copied for every new token.
            more = max(needed, 2 * have) - have
            self._on_tokens = np.pad(self._on_tokens, ((0, more), (0, 0)))
        return np.vectorize(self._columns.__getitem__, otypes=[np.int64])(ids)

    @property
    def longest(self) -> int:
        """Tokens of the longest text."""
        return self._by_distance.shape[1]

    def metrics(self) -> dict[str, Float[np.ndarray, " head"]]:
        """The metrics of all heads, by name; without those that no text measures.

        Position 0 counts. Source: Neuronpedia's pipeline of 2026 (hijohnnylin/neuronpedia).
        """
        distances = np.arange(self.longest)
        mean = self._by_distance @ distances / self.positions
        square = self._by_distance @ distances**2 / self.positions
        values = {
            "self_attention_score": self._by_distance[:, 0] / self.positions,
            # Every text has one position without a token before it.
            "prev_token_score": self._previous / (self.positions - self.texts),
            "pattern_entropy": self._entropy / self.positions,
            "qk_distance": mean,
            # Rounding may leave a little less than 0 where all weights have one distance.
            "qk_distance_variance": np.maximum(square - mean**2, 0.0),
        }
        if self.repeats:
            values["induction_score"] = self._induction / self.repeats
        return values

    def distances(self, head: int) -> tuple[list[int], Float[np.ndarray, " bin"]]:
        """Share of all attention of a head by distance: edges of the bins, and values."""
        edges = distance_edges(self.longest)
        return edges, np.add.reduceat(self._by_distance[head], edges[:-1]) / self.positions

    def keys(self, head: int, count: int) -> list[tuple[int, float]] | None:
        """The tokens that most attention of a head goes to, by vocabulary number, with their share
        of all of it; None where they were too many to be counted.
        """
        if self._on_tokens is None:
            return None
        numbers = np.array(list(self._columns))
        shares = self._on_tokens[: len(numbers), head] / self.positions
        # By number at a tie, so that the order of the texts changes nothing.
        order = np.lexsort((numbers, -shares.round(9)))[:count]
        return [(int(numbers[at]), float(shares[at])) for at in order if shares[at] > 0]


def distance_edges(longest: int) -> list[int]:
    """Bins of distances: 0, 1, 2 to 3, 4 to 7 and so on, each closed on the left.

    Example:
        >>> distance_edges(6)
        [0, 1, 2, 4, 8]
    """
    edges = [0, 1]
    while edges[-1] < longest:
        edges.append(2 * edges[-1])
    return edges


def _after_the_same(ids: Int[np.ndarray, "text key"]) -> Bool[np.ndarray, "text query key"]:
    """True where the key follows an earlier token that is the same as the query; the query itself
    where it repeats the token before it.
    """
    same = ids[:, :, None] == ids[:, None, :]
    length = ids.shape[1]
    # Key j + 1 for every j < q, so key <= q.
    after = np.zeros((len(ids), length, length), bool)
    after[:, :, 1:] = same[:, :, :-1] & np.tri(length, length - 1, -1, dtype=bool)
    return after


def largest(weights: Float[np.ndarray, "*texts query key"]) -> Float[np.ndarray, "*texts"]:
    """The largest weight outside row and column 0, which every reader skips."""
    return weights[..., 1:, 1:].max(axis=(-2, -1))
