"""The sums and the sample of an atlas, whose size does not depend on the number of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from headscope.atlases._classes import CLASSES, RELATIONS, class_of_tokens, names_of, related_pairs
from headscope.atlases._offset_bins import SIDE, bin_names, bin_of_pairs, end_rows, onto_bins
from headscope.atlases._pair_sketch import ROWS, add_pairs, pair_hashes, width_for, word_hashes
from headscope.atlases._sample import TextSample, sampled
from headscope.corpus import key_of
from headscope.errors import RecordError
from headscope.record import Tokens

STEP = 2.0**30
"""Steps between 0 and 1 of the weights that are added up: int64 then holds 2^33 queries."""
ROOT_STEP = 2.0**18
"""Steps between 0 and 1 of the roots of weights. Sums of their products over 2^17 queries are whole
numbers that float64 holds exactly, so that no sum is rounded.
"""
BINS = 128
"""Number of bins for the scores of a head, from 0 to 1."""


@dataclass(frozen=True, eq=False)
class MeasuredText:  # noqa: PLW1641 - equal for tests, and never a key
    """The attention of all heads on one text, and their measures.

    Args:
        values: measures, with rows as in `headscope.patterns.Tally`.
        weights: weights of all heads, layer after layer.
        visible: the keys that each query of a layer may look at.
        heads: number of heads of each layer.
        tokens: tokens of the text.
        lengths: length of the vector that each head adds from each key, ``||f(x)||``; None where
            they were not kept.
    """

    values: Float[np.ndarray, "row head"]
    weights: Float[np.ndarray, "head query key"]
    visible: tuple[Bool[np.ndarray, "query key"], ...]
    heads: tuple[int, ...]
    tokens: Tokens
    lengths: Float[np.ndarray, "head key"] | None = None

    def __eq__(self, other: object) -> bool:
        """Whether all numbers are the same to the last bit."""
        if not isinstance(other, MeasuredText):
            return NotImplemented
        same = np.array_equal(self.values, other.values, equal_nan=True)
        # Two that were not kept are equal, too: an array of None is.
        lengths = np.array_equal(np.array(self.lengths), np.array(other.lengths))
        return same and lengths and np.array_equal(self.weights, other.weights)


class AtlasSums:
    """The sums over texts for an atlas.

    The attention of each head, and uniform attention in each layer, is added up in whole numbers:
    by distance, by class of tokens, by position from the ends of the text, and by words of query
    and key. The distribution of scores, the similarity of heads, and a sample of the texts are
    kept, too.

    Args:
        cells: layer and number of every head.
        scores: names of the scores whose distribution is kept.
        has_norms: whether shares of norms are added up, too.
    """

    def __init__(
        self,
        cells: Sequence[tuple[int, int]],
        scores: Sequence[str],
        *,
        has_norms: bool = False,
    ) -> None:
        self.cells: list[tuple[int, int]] = [(layer, head) for layer, head in cells]
        self.scores: tuple[str, ...] = tuple(scores)
        self.sample: TextSample = TextSample()
        heads = len(self.cells)
        maps = heads + len(dict(self.cells))
        self.maps: int = maps
        """Number of maps: one for each head, and one of uniform attention for each layer."""
        # Whole numbers: their sums are the same to the last bit in whatever order parts are added.
        self.counts: dict[str, np.ndarray] = {
            "totals": np.zeros(3, np.int64),
            "distance": np.zeros((maps, len(bin_names())), np.int64),
            "classes": np.zeros((maps, len(CLASSES) ** 2), np.int64),
            "relations": np.zeros((maps, len(RELATIONS)), np.int64),
            "queries": np.zeros(len(CLASSES), np.int64),
            "map": np.zeros((maps, 4 * SIDE * SIDE), np.int64),
            "map_texts": np.zeros(4 * SIDE * SIDE, np.int64),
            "alike": np.zeros((heads, heads), np.int64),
            "spread": np.zeros((len(self.scores), heads, BINS), np.int64),
            "pairs": np.zeros((maps, ROWS, width_for(maps)), np.int64),
        }
        self.has_norms: bool = has_norms
        if has_norms:
            self.counts["norm_keys"] = np.zeros((heads, len(CLASSES)), np.int64)
            self.counts["norm_relations"] = np.zeros((heads, len(RELATIONS)), np.int64)

    def update(
        self, name: str, text: MeasuredText, scores: Float[np.ndarray, "score head"], times: int = 1
    ) -> None:
        """Add one text.

        Args:
            name: name of the text; its hash decides whether it is in the sample.
            text: its attention.
            scores: scores of each head, NaN where it has none.
            times: how often the corpus holds the text.

        Raises:
            RecordError: where it has other heads, or queries and keys are different tokens.
        """
        self._check(text)
        length = len(text.tokens)
        whole = np.rint(self._maps(text) * STEP)
        added = self._added(text.tokens, whole)
        added["totals"] = np.array([1, length, length * length])
        added["alike"] = _alike(text.weights)
        added["spread"] = _spread(scores)
        if text.lengths is not None and self.has_norms:
            added |= _norm_shares(text, text.lengths)
        for counted, numbers in added.items():
            self.counts[counted] += times * numbers.astype(np.int64)
        words = word_hashes(names_of(text.tokens))
        hashes = pair_hashes(words[:, None], words[None, :]).reshape(-1)
        add_pairs(self.counts["pairs"], hashes, times * whole)
        key = key_of("atlas", name)
        if self.sample.takes(key):
            self.sample.add(sampled((key, name), text.tokens, text.weights, scores))

    def _check(self, text: MeasuredText) -> None:
        heads, queries, keys = text.weights.shape
        if heads != len(self.cells) or queries != keys or keys != len(text.tokens):
            raise RecordError(
                f"Expected the attention of {len(self.cells)} heads from a text to itself, got "
                f"weights of shape {text.weights.shape}; choose a stack of self-attention"
            )

    def _maps(self, text: MeasuredText) -> Float[np.ndarray, "map pair"]:
        """The weights of all heads, and uniform weights of each layer."""
        even = []
        for visible in text.visible:
            count = visible.sum(axis=1, keepdims=True)
            even.append(np.divide(visible, count, out=np.zeros(visible.shape), where=count > 0))
        flat = text.weights.reshape(len(self.cells), -1)
        return np.concatenate([flat, np.stack(even).reshape(len(even), -1)])

    def _added(self, tokens: Tokens, whole: Float[np.ndarray, "map pair"]) -> dict[str, np.ndarray]:
        """The numbers that one text adds."""
        # Computed as products in float64, which are exact in any order: whole numbers below 2^53.
        length, count = len(tokens), len(CLASSES)
        of_token = class_of_tokens(tokens)
        of_pair = (of_token[:, None] * count + of_token[None, :]).reshape(-1)
        bins = len(bin_names())
        ends = end_rows(length)
        is_end = (ends[:, None] >= 0) & (ends[None, :] >= 0)
        cells = np.where(is_end, ends[:, None] * 2 * SIDE + ends[None, :], -1).reshape(-1)
        map_of_ends = np.zeros((len(whole), 4 * SIDE * SIDE))
        seen = np.zeros(4 * SIDE * SIDE)
        chosen = np.flatnonzero(cells >= 0)
        # Each pair has a cell of its own in the map, so nothing is written twice.
        map_of_ends[:, cells[chosen]] = whole[:, chosen]
        seen[cells[chosen]] = 1
        related = related_pairs(tokens).reshape(len(RELATIONS), -1).astype(np.float64)
        return {
            "distance": whole @ onto_bins(bin_of_pairs(length).reshape(-1), bins),
            "classes": whole @ onto_bins(of_pair, count * count),
            "relations": whole @ related.T,
            "queries": np.bincount(of_token, minlength=count),
            "map": map_of_ends,
            "map_texts": seen,
        }

    def __add__(self, other: AtlasSums) -> AtlasSums:
        """The sums over the texts of both.

        Raises:
            RecordError: where they have different heads or scores.
        """
        if not isinstance(other, AtlasSums):
            return NotImplemented
        mine, theirs = ((each.cells, each.scores, each.has_norms) for each in (self, other))
        if mine != theirs:
            raise RecordError("Sums of other heads or scores cannot be added up; run both alike")
        both = AtlasSums(self.cells, self.scores, has_norms=self.has_norms)
        for name in self.counts:
            both.counts[name] = self.counts[name] + other.counts[name]
        for text in (*self.sample.texts(), *other.sample.texts()):
            both.sample.add(text)
        return both

    @property
    def kept(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The fields and arrays of a file."""
        arrays = self.counts | {
            f"sample.{name}": array for name, array in self.sample.arrays.items()
        }
        return {"scores": list(self.scores), "sample": self.sample.documents}, arrays

    @classmethod
    def of_kept(
        cls,
        cells: Sequence[tuple[int, int]],
        document: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
    ) -> AtlasSums:
        """The sums from the fields and arrays of `kept`."""
        sums = cls(cells, document["scores"], has_norms="norm_keys" in arrays)
        for name in sums.counts:
            sums.counts[name] = arrays[name]
        named = [(name, f"sample.{name}") for name in ("links", "weights", "scores")]
        sums.sample = TextSample.of_kept(
            document["sample"], {name: arrays[there] for name, there in named if there in arrays}
        )
        return sums


def _alike(weights: Float[np.ndarray, "head query key"]) -> Float[np.ndarray, "head other_head"]:
    """Similarity of heads, summed over queries, in steps of 2^-30: for two rows the sum of the
    square roots of products, 1 where they are equal and 0 where they share no key (Bhattacharyya
    1943).
    """
    roots = np.rint(np.sqrt(weights.astype(np.float64)) * ROOT_STEP).reshape(len(weights), -1)
    products = roots @ roots.T
    # From steps of 2^-36 to the steps of all other sums.
    return np.rint(products / 2.0**6)


def _norm_shares(
    text: MeasuredText, lengths: Float[np.ndarray, "head key"]
) -> dict[str, np.ndarray]:
    """Where what a head adds comes from: for each query the share of each key in the sum of
    ``weight * ||f(x)||`` (Kobayashi et al. 2020), added up by class of key and by relation.
    """
    added = text.weights.astype(np.float64) * lengths[:, None, :]
    whole = added.sum(axis=2, keepdims=True)
    shares = np.divide(added, whole, out=np.zeros(added.shape), where=whole > 0)
    steps = np.rint(shares * STEP)
    related = related_pairs(text.tokens).reshape(len(RELATIONS), -1).astype(np.float64)
    return {
        "norm_keys": steps.sum(axis=1) @ onto_bins(class_of_tokens(text.tokens), len(CLASSES)),
        "norm_relations": steps.reshape(len(steps), -1) @ related.T,
    }


def _spread(scores: Float[np.ndarray, "score head"]) -> Float[np.ndarray, "score head bin"]:
    """1 in the bin of each score; only zeros where a score is NaN."""
    bins = np.clip(np.floor(np.nan_to_num(scores) * BINS), 0, BINS - 1).astype(np.int64)
    spread = np.zeros((*scores.shape, BINS))
    np.put_along_axis(spread, bins[..., None], ~np.isnan(scores)[..., None], axis=2)
    return spread
