"""Records made of nothing but random numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from headscope.record import Layer, ModelFacts, Record, Stack, Tokens


def random_weights(
    rng: np.random.Generator, shape: Sequence[int], sharpness: float = 2.0
) -> Float[np.ndarray, "..."]:
    """Softmax of normal scores along the last axis, float32."""
    raised = np.exp(sharpness * rng.standard_normal(tuple(shape)))
    return (raised / raised.sum(axis=-1, keepdims=True)).astype(np.float32)


def random_record(
    *, layers: int = 2, heads: int = 3, queries: int = 5, keys: int = 7, seed: int = 0
) -> Record:
    """A cross-attention record whose axes all have their own size, so that no mixed-up axis goes
    unseen.
    """
    rng = np.random.default_rng(seed)
    sides = {
        "query": Tokens(pieces=_pieces("q", queries)),
        "key": Tokens(pieces=_pieces("k", keys)),
    }
    made = tuple(
        Layer(layer=number, weights=random_weights(rng, (heads, queries, keys)))
        for number in range(layers)
    )
    stack = Stack(name="cross", layers=made, query=sides["query"], key=sides["key"])
    return Record(stacks={"cross": stack}, model=ModelFacts(name="random"))


def _pieces(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{number}" for number in range(count))
