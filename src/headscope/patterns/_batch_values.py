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
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from headscope.evidence import position_map, rng_of, uniform_map
from headscope.patterns._head_measures import CLASSES, MEASURES, kovaleva_class
from headscope.patterns._maps import LIKE_WORDS, SHUFFLES, AttentionMaps, BatchWords, QueryKeyTokens
from headscope.patterns._pattern import Pattern
from headscope.record import BatchLayer, BatchStack, Mask

BASELINES = ("uniform", "shuffled", "position", "like words")
OF_PATTERN = 1 + len(BASELINES)
"""Number of rows of each pattern: its score and its baselines."""
BLOCK = 2**21
"""Bytes of the weights that are measured together, in double precision: few enough to stay in the
processor's cache."""
EVEN_KNOWN = 256
"""Number of layouts for which the scores of uniform rows are kept."""


PairFactors = tuple[Float[np.ndarray, "text column pair"], Bool[np.ndarray, "text column"]]
"""As of `BatchPairs.factors`."""


@dataclass(frozen=True)
class _BatchText:
    """One text of a batch.

    Args:
        index: its index in the batch.
        tokens: its tokens.
    """

    index: int
    tokens: QueryKeyTokens

    @cached_property
    def layout(self) -> tuple[Any, ...]:
        """What scores of patterns that are `by_layout` depend on."""
        return self.tokens.layout

    @cached_property
    def layout_with_sinks(self) -> tuple[Any, ...]:
        """What scores of patterns that are `by_sinks` depend on."""
        return (self.tokens.layout, self.tokens.later_sinks.tobytes())


@dataclass(frozen=True)
class _LayerGroup:
    """The weights of some layers with the same mask, on some texts, in double precision.

    Texts and heads are next to each other in memory. Sums over keys and queries then add whole
    vectors, which is several times faster for short texts, and adds in the same order however many
    texts there are.

    Args:
        weights: weights of the heads of all these layers.
        heads: indices of these heads among all heads.
        visible: True where a query may look.
        first: index of the first of these texts among those of the batch.
    """

    weights: Float[np.ndarray, "query key text head"]
    heads: np.ndarray
    visible: Bool[np.ndarray, "query key"]
    first: int

    def maps(self, texts: slice, tokens: QueryKeyTokens) -> AttentionMaps:
        """The maps of all heads on some of the texts, as those of one text."""
        count = len(self.heads)
        flat = self.weights.reshape(*self.visible.shape, -1).transpose(2, 0, 1)
        some = flat[texts.start * count : texts.stop * count]
        return AttentionMaps(some, tokens, self.visible)


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
        self.patterns: tuple[Pattern, ...] = tuple(patterns)
        self.position_mean: np.ndarray | None = position_mean
        self.rows: int = OF_PATTERN * len(self.patterns) + len(CLASSES) + len(MEASURES) + 1
        numbered = list(enumerate(self.patterns))
        self._of_pairs = [(at, each) for at, each in numbered if each.pairs is not None]
        self._by_layout = [(at, each) for at, each in numbered if each.by_layout]
        self._by_sinks = [(at, each) for at, each in numbered if each.by_sinks]
        together = {at for at, _ in (*self._of_pairs, *self._by_layout, *self._by_sinks)}
        self._of_text = [(at, each) for at, each in numbered if at not in together]
        self._placed = [
            (at, each)
            for at, each in numbered
            if each.by_position is not None and (each.pairs is None or each.by_place)
        ]
        self._even: OrderedDict[tuple, np.ndarray] = OrderedDict()

    def of(self, stack: BatchStack) -> Float[np.ndarray, "text row head"]:
        """The values of all texts, with rows as in `Tally`.

        Args:
            stack: the attention of the texts.
        """
        texts = []
        for index, sides in enumerate(zip(stack.query, stack.key, strict=True)):
            texts.append(_BatchText(index, QueryKeyTokens(*sides)))
        # Texts of one layout are next to each other, so that slices of them need no copy.
        texts.sort(key=lambda text: (text.layout_with_sinks, text.index))
        pairs = BatchPairs(
            [pattern for _, pattern in self._of_pairs], [text.tokens for text in texts]
        )
        values = np.full((len(texts), self.rows, len(stack.cells)), np.nan)
        values[:, -1] = len(stack.query[0])
        by_row = values.transpose(1, 0, 2)[:-1]
        for visible, blocks in _blocks(texts, stack):
            factors = pairs.factors(visible) if self._of_pairs else None
            for some, block in blocks:
                own = np.full((self.rows - 1, *block.weights.shape[2:]), np.nan)
                self._measure(some, block, own)
                if factors is not None:
                    self._pairs(block, factors, own)
                by_row[:, block.first : block.first + len(some), block.heads] = own
        given = np.empty_like(values)
        given[[text.index for text in texts]] = values
        return given

    def _measure(self, texts: Sequence[_BatchText], block: _LayerGroup, values: np.ndarray) -> None:
        """Score everything but pairs."""
        for at, layout, maps in _alike(texts, block, "layout"):
            put = _Rows(values[:, at])
            self._score(self._by_layout, layout, maps, put)
            row = OF_PATTERN * len(self.patterns)
            classes = kovaleva_class(maps)
            for number in range(len(CLASSES)):
                put(row + number, classes == number)
            for number, measure in enumerate(MEASURES.values()):
                put(row + len(CLASSES) + number, measure.of(maps))
        if self._by_sinks:
            for at, layout, maps in _alike(texts, block, "layout_with_sinks"):
                self._score(self._by_sinks, layout, maps, _Rows(values[:, at]))
        if self._of_text or self._placed:
            for index, text in enumerate(texts):
                at = slice(index, index + 1)
                self._text(block.maps(at, text.tokens), _Rows(values[:, at]))

    def _score(
        self,
        patterns: Sequence[tuple[int, Pattern]],
        layout: tuple[Any, ...],
        maps: AttentionMaps,
        put: _Rows,
    ) -> None:
        """Score patterns on texts of one layout, and on uniform rows."""
        key = (layout, maps.visible.shape, maps.visible.tobytes())
        if key not in self._even:
            even = AttentionMaps(uniform_map(maps.visible), maps.tokens, maps.visible)
            self._even[key] = np.array([pattern.of(even)[0] for _, pattern in patterns])
            # The oldest one goes: masks of long texts are large, and layouts seldom come back.
            if len(self._even) > EVEN_KNOWN:
                self._even.popitem(last=False)
        for (number, pattern), even in zip(patterns, self._even[key], strict=True):
            put(OF_PATTERN * number, pattern.of(maps))
            put(OF_PATTERN * number + 1, even)

    def _text(self, maps: AttentionMaps, put: _Rows) -> None:
        """Score patterns that may depend on anything, one text at a time."""
        for number, pattern in self._placed:
            if pattern.by_position is not None:
                put(OF_PATTERN * number + 3, pattern.by_position(maps))
        if not self._of_text:
            return
        even = AttentionMaps(uniform_map(maps.visible), maps.tokens, maps.visible)
        for number, pattern in self._of_text:
            put(OF_PATTERN * number, pattern.of(maps))
            put(OF_PATTERN * number + 1, pattern.of(even))

    def _pairs(self, block: _LayerGroup, factors: PairFactors, values: np.ndarray) -> None:
        """Score patterns of content: one product of all heads with the pairs of all patterns and
        shuffles.
        """
        texts = block.weights.shape[2]
        some = slice(block.first, block.first + texts)
        wanted, known = factors[0][some], factors[1][some]
        weights = block.weights.reshape(block.visible.size, texts, -1).transpose(1, 0, 2)
        scores = np.full((*known.shape, weights.shape[2]), np.nan)
        # In most short texts nothing occurs twice.
        for text in np.flatnonzero(known.any(axis=1)):
            np.copyto(scores[text], wanted[text] @ weights[text], where=known[text, :, None])
        on_even = np.where(known, wanted @ uniform_map(block.visible).reshape(-1), np.nan)
        on_placed = None
        if self.position_mean is not None:
            mean = self.position_mean[block.heads]
            placed = position_map(mean, block.visible).reshape(len(mean), -1)
            on_placed = np.where(known[:, :, None], wanted @ placed.T, np.nan)
        put = _Rows(values)
        for index, (number, pattern) in enumerate(self._of_pairs):
            row, at = OF_PATTERN * number, KINDS_OF_PAIRS * index
            put(row, scores[:, at])
            put(row + 1, on_even[:, at, None])
            put(row + 2, scores[:, at + 1])
            put(row + 4, scores[:, at + 2])
            # The average map by position shows just what a positional pattern is: compared with
            # it, no such head would be left.
            if on_placed is not None and not pattern.by_place:
                put(row + 3, on_placed[:, at])


class _Rows:
    """Where the values of some texts belong.

    Args:
        values: of these texts.
    """

    def __init__(self, values: Float[np.ndarray, "row text head"]) -> None:
        self._values = values

    def __call__(self, row: int, scores: np.ndarray | np.float64) -> None:
        """Put one value for all, one for each text, or one for each head of each text."""
        into = self._values[row]
        into[:] = np.reshape(scores, into.shape) if np.size(scores) == into.size else scores


def _blocks(
    texts: Sequence[_BatchText], stack: BatchStack
) -> Iterator[
    tuple[Bool[np.ndarray, "query key"], Iterator[tuple[Sequence[_BatchText], _LayerGroup]]]
]:
    """For each mask, the weights of some texts and layers at a time, texts in this order."""
    # Layers with the same mask form one block, so that the pairs of each pattern are masked once.
    by_mask: dict[Mask, list[tuple[BatchLayer, np.ndarray]]] = {}
    first = 0
    for layer in stack.layers:
        places = np.arange(first, first + len(layer.heads))
        by_mask.setdefault(layer.visible, []).append((layer, places))
        first += len(layer.heads)
    for mask, layers in by_mask.items():
        visible = mask.dense()
        yield visible, _blocks_of(texts, layers, visible)


def _blocks_of(
    texts: Sequence[_BatchText],
    layers: Sequence[tuple[BatchLayer, np.ndarray]],
    visible: Bool[np.ndarray, "query key"],
) -> Iterator[tuple[Sequence[_BatchText], _LayerGroup]]:
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
            yield some, _block(some, part, visible, begin)


def _block(
    texts: Sequence[_BatchText],
    layers: Sequence[tuple[BatchLayer, np.ndarray]],
    visible: Bool[np.ndarray, "query key"],
    first: int,
) -> _LayerGroup:
    heads = np.concatenate([places for _, places in layers])
    # NumPy adds along another axis, in another order, where there is only one map; so a head that
    # is alone is measured twice.
    heads = np.repeat(heads, 2) if len(heads) == 1 else heads
    weights = np.empty((*visible.shape, len(texts), len(heads)))
    at = [text.index for text in texts]
    begin = 0
    for layer, places in layers:
        end = len(heads) if len(layers) == 1 else begin + len(places)
        weights[..., begin:end] = layer.weights[at].transpose(2, 3, 0, 1)
        begin = end
    return _LayerGroup(weights, heads, visible, first)


def _alike(
    texts: Sequence[_BatchText], block: _LayerGroup, key: str
) -> Iterator[tuple[slice, tuple[Any, ...], AttentionMaps]]:
    """The texts of each layout, and the maps of all their heads as those of one text."""
    first = 0
    for layout, same in groupby(texts, key=attrgetter(key)):
        some = list(same)
        at = slice(first, first + len(some))
        yield at, layout, block.maps(at, some[0].tokens)
        first += len(some)


KINDS_OF_PAIRS = 3
"""The text itself, its words shuffled, and its words shuffled within their kind."""


class BatchPairs:
    """Pairs of patterns in texts of one length, as factors of a product with their maps.

    The mean mass on pairs is a weighted sum over the map, so that one product gives the scores of
    all patterns and shuffles.

    Args:
        patterns: patterns that are made of pairs.
        texts: tokens of each text.
    """

    def __init__(self, patterns: Sequence[Pattern], texts: Sequence[QueryKeyTokens]) -> None:
        self._patterns, self._texts = patterns, texts
        self._whole = [index for index, text in enumerate(texts) if text.is_self]

    def factors(
        self, visible: Bool[np.ndarray, "query key"]
    ) -> tuple[Float[np.ndarray, "text column pair"], Bool[np.ndarray, "text column"]]:
        """Factors of the pairs that queries may look at, three columns for each pattern; False
        where a text has no pair, whose factors are 0.
        """
        shape = len(self._texts), KINDS_OF_PAIRS * len(self._patterns)
        wanted, known = np.zeros((*shape, visible.size)), np.zeros(shape, bool)
        hides = not visible.all()
        for indices, column, pairs in self._all():
            seen = pairs & visible if hides else pairs
            # The product with a map is its `mass_on_pairs`, as a mean over the draws with any pair.
            counts = seen.any(axis=3).sum(axis=2)
            draws = np.maximum(1, (counts > 0).sum(axis=1, keepdims=True))
            shares = np.divide(1.0, counts, out=np.zeros(counts.shape), where=counts > 0) / draws
            flat = seen.reshape(*counts.shape, -1).astype(np.float64)
            wanted[indices, column] = (shares[:, None] @ flat)[:, 0]
            known[indices, column] = counts.any(axis=1)
        return wanted, known

    def _all(self) -> Iterator[tuple[list[int], int, Bool[np.ndarray, "text draw query key"]]]:
        """Places of texts, column, and their pairs in every draw."""
        yield from self._moved()
        for number, pattern in enumerate(self._patterns):
            whole = set() if pattern.moved is None else set(self._whole)
            for index, text in enumerate(self._texts):
                if index not in whole:
                    for kind, pairs in _kinds_of(pattern, text):
                        yield [index], KINDS_OF_PAIRS * number + kind, pairs[None]

    def _moved(self) -> Iterator[tuple[list[int], int, Bool[np.ndarray, "text draw query key"]]]:
        """Those that follow from the order of the words, of all texts at once."""
        moved = [(number, each) for number, each in enumerate(self._patterns) if each.moved]
        if not moved or not self._whole:
            return
        words = BatchWords([self._texts[index] for index in self._whole])
        repeating = np.flatnonzero(words.repeats).tolist()
        if not repeating:
            return
        indices = [self._whole[place] for place in repeating]
        words = words.take(repeating)
        orders = words.unmoved, words.orders(), words.orders(alike=True)
        for number, pattern in moved:
            for kind in range(KINDS_OF_PAIRS):
                if _is_compared(pattern, kind) and pattern.moved is not None:
                    pairs = pattern.moved(words, orders[kind])
                    if pairs is not None:
                        yield indices, KINDS_OF_PAIRS * number + kind, pairs


def _is_compared(pattern: Pattern, kind: int) -> bool:
    """Whether a pattern has this kind of pairs; of shuffles, those that it is compared with."""
    if kind == 0:
        return True
    return not pattern.by_place and (kind == 1 or pattern.by_word)


def _kinds_of(
    pattern: Pattern, tokens: QueryKeyTokens
) -> Iterator[tuple[int, Bool[np.ndarray, "draw query key"]]]:
    """The pairs of a pattern in one text, by their kind."""
    yield 0, pattern.wanted(tokens)[None]
    for kind in (1, 2):
        if _is_compared(pattern, kind):
            alike = kind == 2
            rng = rng_of(tokens.said, LIKE_WORDS if alike else 0)
            drawn = (tokens.shuffled(rng, alike=alike) for _ in range(SHUFFLES))
            yield kind, np.stack([pattern.wanted(each) for each in drawn])
