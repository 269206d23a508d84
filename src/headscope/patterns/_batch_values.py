"""The rows of `Tally` for all texts of a batch at once.

A pattern or measure scores each head on its own. So the heads of all layers, and of all texts with
the same layout of tokens, are given to it as the heads of one map. Patterns of content depend on
the words: their pairs, in the text and after shuffling its words, are written into one matrix for
each text, and all heads are multiplied with it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from jaxtyping import Bool, Float

from headscope.evidence import position_map, uniform_map
from headscope.patterns._head_measures import MEASURES
from headscope.patterns._kovaleva import CLASSES, kovaleva_class
from headscope.patterns._maps import AttentionMaps, QueryKeyTokens
from headscope.patterns._pattern import Pattern
from headscope.patterns._word_shuffles import WordShuffles
from headscope.record import BatchLayer, BatchStack, Mask

BASELINES = ("uniform", "shuffled", "position", "like words")
OF_PATTERN = 1 + len(BASELINES)
"""Number of rows of each pattern: its score and its baselines."""
BLOCK = 2**22
"""Bytes of the weights that are measured together, in double precision: few enough to stay in the
processor's cache."""
EVEN_KNOWN = 256
"""Number of layouts for which the scores of uniform rows are kept."""


@dataclass(frozen=True)
class _BatchText:
    """One text of a batch.

    Args:
        place: its index in the batch.
        tokens: its tokens.
        draws: shuffles of its words: among all words, and among words of their kind.
    """

    place: int
    tokens: QueryKeyTokens
    draws: tuple[WordShuffles, WordShuffles]


@dataclass(frozen=True)
class _LayerGroup:
    """The weights of some layers with the same mask, on some texts, in double precision.

    Args:
        weights: weights of the heads of all these layers.
        heads: indices of these heads among all heads.
        visible: True where a query may look.
    """

    weights: Float[np.ndarray, "text head query key"]
    heads: np.ndarray
    visible: Bool[np.ndarray, "query key"]


class BatchValues:
    """Measures all texts of a batch.

    Args:
        patterns: the patterns to score.
        position_mean: see `Tally`.
    """

    def __init__(
        self,
        patterns: Sequence[Pattern],
        position_mean: Float[np.ndarray, "head length length"] | None = None,
    ) -> None:
        self.patterns, self.position_mean = tuple(patterns), position_mean
        self.rows: int = OF_PATTERN * len(self.patterns) + len(CLASSES) + len(MEASURES) + 1
        numbered = list(enumerate(self.patterns))
        self._of_pairs = [(at, each) for at, each in numbered if each.pairs is not None]
        self._by_layout = [(at, each) for at, each in numbered if each.by_layout]
        self._of_text = [
            (at, each) for at, each in numbered if each.pairs is None and not each.by_layout
        ]
        self._placed = [
            (at, each)
            for at, each in numbered
            if each.by_position is not None and (each.pairs is None or each.by_place)
        ]
        self._even: OrderedDict[tuple, np.ndarray] = OrderedDict()

    def of(self, names: Sequence[str], stack: BatchStack) -> Float[np.ndarray, "text row head"]:
        """The values of all texts, with rows as in `Tally`.

        Args:
            names: identifier of each text, which is the seed of its shuffles.
            stack: the attention of these texts.
        """
        texts = []
        for index, name in enumerate(names):
            tokens = QueryKeyTokens(stack.query[index], stack.key[index])
            draws = WordShuffles(tokens, name), WordShuffles(tokens, name, alike=True)
            texts.append(_BatchText(index, tokens, draws))
        # Texts of one layout are next to each other, so that slices of them need no copy.
        texts.sort(key=lambda text: (text.tokens.layout, text.place))
        values = np.full((len(texts), self.rows, len(stack.cells)), np.nan)
        values[:, -1] = len(stack.query[0])
        for some, block in _blocks(texts, stack):
            for first, maps in _alike(some, block):
                self._measure(first, maps, block, values)
            for text, weights in zip(some, block.weights, strict=True):
                self._text(text, AttentionMaps(weights, text.tokens, block.visible), block, values)
            if self._of_pairs:
                self._pairs(some, block, values)
        return values

    def _measure(
        self,
        texts: Sequence[_BatchText],
        maps: AttentionMaps,
        block: _LayerGroup,
        values: np.ndarray,
    ) -> None:
        """Score what depends on positions alone, for texts of one layout."""
        shape = len(texts), len(block.heads)
        at = np.array([text.place for text in texts])[:, None], block.heads[None, :]

        def put(row: int, of_heads: np.ndarray) -> None:
            values[at[0], row, at[1]] = of_heads.reshape(shape)

        for number, pattern in self._by_layout:
            put(OF_PATTERN * number, pattern.of(maps))
        row = OF_PATTERN * len(self.patterns)
        classes = kovaleva_class(maps)
        for number in range(len(CLASSES)):
            put(row + number, classes == number)
        for number, measure in enumerate(MEASURES.values()):
            put(row + len(CLASSES) + number, measure.of(maps))
        for (number, _), even in zip(self._by_layout, self._even_of(maps), strict=True):
            values[at[0], OF_PATTERN * number + 1, at[1]] = even

    def _even_of(self, maps: AttentionMaps) -> np.ndarray:
        """Scores of uniform rows in patterns that depend on the layout alone."""
        key = (maps.tokens.layout, maps.visible.shape, maps.visible.tobytes())
        if key not in self._even:
            even = AttentionMaps(uniform_map(maps.visible), maps.tokens, maps.visible)
            scores = [pattern.of(even)[0] for _, pattern in self._by_layout]
            self._even[key] = np.array(scores)
            # The oldest one goes: masks of long texts are large, and layouts seldom come back.
            if len(self._even) > EVEN_KNOWN:
                self._even.popitem(last=False)
        return self._even[key]

    def _text(
        self, text: _BatchText, maps: AttentionMaps, block: _LayerGroup, values: np.ndarray
    ) -> None:
        """Score patterns that may depend on anything, one text at a time."""
        for number, pattern in self._placed:
            if pattern.by_position is not None:
                row = OF_PATTERN * number + 3
                values[text.place, row, block.heads] = pattern.by_position(maps)
        if not self._of_text:
            return
        even = AttentionMaps(uniform_map(maps.visible), maps.tokens, maps.visible)
        for number, pattern in self._of_text:
            row = OF_PATTERN * number
            values[text.place, row, block.heads] = pattern.of(maps)
            values[text.place, row + 1, block.heads] = pattern.of(even)

    def _pairs(self, texts: Sequence[_BatchText], block: _LayerGroup, values: np.ndarray) -> None:
        """Score patterns of content: one product of all heads with the pairs of all patterns and
        shuffles.
        """
        visible, columns = block.visible, 3 * len(self._of_pairs)
        hides = not visible.all()
        even = uniform_map(visible).reshape(-1)
        placed = None
        if self.position_mean is not None:
            mean = self.position_mean[block.heads]
            placed = position_map(mean, visible).reshape(len(mean), -1)
        for text, weights in zip(texts, block.weights, strict=True):
            wanted = np.zeros((columns, visible.size))
            known = np.zeros(columns, bool)
            for index, (_, pattern) in enumerate(self._of_pairs):
                for kind, pairs in enumerate(_kinds_of(pattern, text)):
                    if pairs is None:
                        continue
                    share = _mean_over_queries(pairs & visible if hides else pairs)
                    if share is not None:
                        wanted[3 * index + kind], known[3 * index + kind] = share, True
            if not known.any():
                continue
            # One product for all patterns and shuffles: a mean over pairs is a weighted sum over
            # the map.
            scores = (weights.reshape(len(weights), -1) @ wanted.T).T
            scores[~known] = np.nan
            on_even = np.where(known, wanted @ even, np.nan)
            on_placed = None if placed is None else (placed @ wanted.T).T
            for index, (number, pattern) in enumerate(self._of_pairs):
                row, at = OF_PATTERN * number, 3 * index
                values[text.place, row, block.heads] = scores[at]
                values[text.place, row + 1, block.heads] = on_even[at]
                values[text.place, row + 2, block.heads] = scores[at + 1]
                values[text.place, row + 4, block.heads] = scores[at + 2]
                # The average map by position shows just what a positional pattern is: compared with
                # it, no such head would be left.
                if on_placed is not None and known[at] and not pattern.by_place:
                    values[text.place, row + 3, block.heads] = on_placed[at]


def _kinds_of(pattern: Pattern, text: _BatchText) -> Iterator[np.ndarray | None]:
    """The pairs of a pattern: in the text, after shuffling its words, and after shuffling them
    within their kind; None for shuffles that it is not compared with.
    """
    yield pattern.wanted(text.tokens)[None]
    yield None if pattern.by_place else text.draws[0].pairs(pattern)
    compared = pattern.by_word and not pattern.by_place
    yield text.draws[1].pairs(pattern) if compared else None


def _mean_over_queries(
    pairs: Bool[np.ndarray, "draw query key"],
) -> Float[np.ndarray, " pair"] | None:
    """The factors whose product with a map is its `mass_on_pairs`, as a mean over the draws that
    have any pair; None where no draw has one.
    """
    if not pairs.any():
        return None
    counts = pairs.any(axis=2).sum(axis=1)
    known = counts > 0
    shares = np.divide(1.0, counts, out=np.zeros(len(counts)), where=known) / known.sum()
    return shares @ pairs.reshape(len(pairs), -1)


def _blocks(
    texts: Sequence[_BatchText], stack: BatchStack
) -> Iterator[tuple[Sequence[_BatchText], _LayerGroup]]:
    """The weights of some texts and layers at a time, in the order of these texts."""
    # Layers with the same mask form one block, so that the pairs of each pattern are masked once.
    by_mask: dict[Mask, list[tuple[BatchLayer, np.ndarray]]] = {}
    first = 0
    for layer in stack.layers:
        places = np.arange(first, first + len(layer.heads))
        by_mask.setdefault(layer.visible, []).append((layer, places))
        first += len(layer.heads)
    for mask, layers in by_mask.items():
        visible = mask.dense()
        sizes = [8 * visible.size * max(1, len(places)) for _, places in layers]
        # The number of layers in a block depends on the model and the length alone: products of
        # another shape may be rounded differently, and the numbers of a text would depend on the
        # batch that it is in.
        at_once = max(1, BLOCK // max(sizes))
        for start in range(0, len(layers), at_once):
            part = layers[start : start + at_once]
            count = max(1, BLOCK // sum(sizes[start : start + at_once]))
            for begin in range(0, len(texts), count):
                some = texts[begin : begin + count]
                yield some, _block(some, part, visible)


def _block(
    texts: Sequence[_BatchText],
    layers: Sequence[tuple[BatchLayer, np.ndarray]],
    visible: Bool[np.ndarray, "query key"],
) -> _LayerGroup:
    heads = np.concatenate([places for _, places in layers])
    weights = np.empty((len(texts), len(heads), *visible.shape))
    places = [text.place for text in texts]
    first = 0
    for layer, of_layer in layers:
        weights[:, first : first + len(of_layer)] = layer.weights[places]
        first += len(of_layer)
    return _LayerGroup(weights, heads, visible)


def _alike(
    texts: Sequence[_BatchText], block: _LayerGroup
) -> Iterator[tuple[Sequence[_BatchText], AttentionMaps]]:
    """The texts of each layout, and the maps of all their heads as those of one text."""
    first = 0
    for _, same in groupby(texts, key=lambda text: text.tokens.layout):
        some = list(same)
        part = block.weights[first : first + len(some)]
        first += len(some)
        yield some, AttentionMaps(part.reshape(-1, *part.shape[2:]), some[0].tokens, block.visible)
