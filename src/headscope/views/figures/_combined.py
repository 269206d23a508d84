"""What a figure puts together before it is drawn: pieces of words, the mean of layers or heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headscope.errors import FigureError
from headscope.record import Layer, Words, word_maps

Read = Callable[[Layer], np.ndarray]
"""The numbers of a layer of the record, axes head, query, key."""
WORDS_NOTE = "whole words: the sum of what their pieces get, the mean of what these give"


@dataclass(frozen=True, kw_only=True, eq=False)
class Combined:
    """What of the record each number that is drawn is put together from.

    Args:
        layers: for each layer that is drawn, the layers of the record whose mean it is.
        words: the words of queries and of keys; None where tokens are drawn.
        heads: the heads whose mean is drawn; empty where they are drawn one by one.
    """

    layers: Mapping[int, tuple[Layer, ...]]
    words: tuple[Words, Words] | None
    heads: tuple[int, ...]

    def of(self, layer: Layer, read: Read, *, scores: bool = False) -> np.ndarray:
        """Numbers of a layer that is drawn: of a word the sum over its pieces as a key, the mean
        over them as a query; of scores the mean over all pairs that may be seen.
        """
        values = np.mean([read(each) for each in self.layers[layer.layer]], axis=0)
        if self.words is None:
            return values
        query, key = (words.tokens for words in self.words)
        seen = np.isfinite(values)
        joined = word_maps(np.where(seen, values, 0.0), query, key)
        if not scores:
            return joined
        # Both are sums over the same pairs, divided by the same number of queries.
        counts = word_maps(seen.astype(np.float64), query, key)
        return np.divide(joined, counts, out=np.full_like(joined, -np.inf), where=counts > 0)

    def position(self, side: int, token: int) -> int:
        """Where a token of the record stands in what is drawn."""
        if self.words is None:
            return token
        runs = self.words[side].tokens
        return next(at for at, run in enumerate(runs) if token in run)


def mean_layer(layers: Sequence[Layer]) -> Layer:
    """The mean of layers, head by head, with the number of the first.

    Raises:
        FigureError: where they do not have the same heads.
    """
    if len(layers) == 1:
        return layers[0]
    if len({layer.head_numbers for layer in layers}) > 1:
        numbers = ", ".join(str(layer.layer) for layer in layers)
        raise FigureError(
            f"Layers {numbers} have no mean head by head: they do not have the same heads; give "
            "mean_layers= others"
        )
    first = layers[0]
    sinks = [layer.has("sinks") for layer in layers]
    return Layer(
        layer=first.layer,
        held_heads=first.held_heads,
        weights=np.mean([layer.held_weights() for layer in layers], axis=0),
        visible=np.any([np.asarray(layer.visible, bool) for layer in layers], axis=0),
        sinks=first.part("sinks") if all(sinks) else None,
        # Rows that are empty, or lose some to a sink, in some of the layers sum to less than 1.
        partial=any(layer.partial or layer.dead.any() for layer in layers)
        or any(sinks) != all(sinks),
    )
