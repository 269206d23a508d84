"""Weights some rows at a time, beside the whole matrix."""

import numpy as np
import pytest

import headscope as hs
from headscope.errors import RecordError
from headscope.record import HeldHeads, Layer, Mask, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights

from ..close import assert_close

HEADS, KV_HEADS, QUERIES, KEYS, FEATURES = 6, 2, 9, 13, 4


def window(before):
    """The nearest keys of each query, ahead of which nothing is seen."""
    at = np.arange(KEYS - QUERIES, KEYS)[:, None] - np.arange(KEYS)
    return (at >= 0) & (at <= before)


def holes(rng):
    visible = rng.random((QUERIES, KEYS)) < 0.6
    visible[4] = False
    return visible


VARIANTS = {
    "full": lambda rng: {},
    "causal": lambda rng: {"visible": Mask.causal(QUERIES, KEYS)},
    "window": lambda rng: {"visible": window(2)},
    "holes and a dead row": lambda rng: {"visible": holes(rng)},
    "soft cap": lambda rng: {"soft_cap": 0.7},
    "sinks": lambda rng: {"sinks": rng.normal(size=HEADS).astype(np.float32)},
    "bias": lambda rng: {"bias": rng.normal(size=(HEADS, QUERIES, KEYS)).astype(np.float32)},
    "one bias": lambda rng: {"bias": rng.normal(size=(1, QUERIES, KEYS)), "visible": window(3)},
    "weights": lambda rng: {"weights": random_weights(rng, (HEADS, QUERIES, KEYS))},
}


def layer_of(rng, **more):
    arrays = {
        "queries": rng.normal(size=(HEADS, QUERIES, FEATURES)).astype(np.float32),
        "keys": rng.normal(size=(KV_HEADS, KEYS, FEATURES)).astype(np.float32),
    }
    return Layer(layer=3, scale=0.8, **arrays | more)


def joined(layer, head, **how):
    """All blocks of a head in one matrix; what no block holds stays zero."""
    whole = np.zeros(layer.size, np.float32)
    for block in layer.weight_blocks(head, **how):
        whole[block.queries, block.keys] = block.weights
    return whole


@pytest.mark.parametrize("rows", [1, 2, 20])
@pytest.mark.parametrize("variant", VARIANTS)
def test_blocks_are_the_weights(variant, rows, rng):
    layer = layer_of(rng, **VARIANTS[variant](rng))
    for head in (0, 4):
        exact = layer.weights_of(head)
        assert np.allclose(joined(layer, head, rows=rows), exact, atol=1e-6)
        chosen = [0, 3, 4, 8]
        assert np.allclose(layer.weights_of(head, queries=chosen), exact[chosen], atol=1e-12)
        some = joined(layer, head, queries=chosen, rows=rows)
        assert np.allclose(some[chosen], exact[chosen], atol=1e-6)
        assert not np.delete(some, chosen, axis=0).any()


def test_blocks_of_a_file_are_read_and_checked_row_by_row(rng, tmp_path):
    def kept(weights):
        layer = Layer(layer=0, weights=weights)
        query, key = (
            Tokens(pieces=tuple(f"{side}{at}" for at in range(count)))
            for side, count in (("q", QUERIES), ("k", KEYS))
        )
        stack = Stack(name="self", query=query, key=key, layers=(layer,))
        path = tmp_path / "run.safetensors"
        hs.save(Record(stacks={"self": stack}, model=ModelFacts()), path)
        return path

    weights = random_weights(rng, (2, QUERIES, KEYS))
    layer = hs.load(kept(weights))["self"].layer(0)
    assert_close(joined(layer, 1, rows=4), weights[1])


def test_heads_that_are_not_held_are_refused(rng):
    held = HeldHeads(numbers=(1, 4), heads=HEADS, kv_heads=KV_HEADS)
    layer = layer_of(
        rng,
        queries=rng.normal(size=(2, QUERIES, FEATURES)),
        keys=rng.normal(size=(2, KEYS, FEATURES)),
        held_heads=held,
    )
    assert np.allclose(joined(layer, 4, rows=2), layer.weights_of(4), atol=1e-6)
    assert np.allclose(layer.weights_of(4, queries=[2, 5]), layer.weights_of(4)[[2, 5]])
    with pytest.raises(RecordError, match="holds heads 1, 4 of 6, and not 2"):
        list(layer.weight_blocks(2))
    with pytest.raises(RecordError, match="heads 0 to 5, not 6"):
        layer.weight_blocks(6)
    with pytest.raises(RecordError, match="give one whole number"):
        layer.weight_blocks(None)


def long_layer(**arrays) -> Layer:
    """A layer of one head with 400,000 queries and keys, whose scores are 1.3 TB."""
    length = 400_000
    own = {"queries": np.zeros((1, length, 1)), "keys": np.zeros((1, length, 1))}
    return Layer(layer=0, **own, visible=Mask.causal(length, length), scale=1.0, **arrays)


@pytest.mark.parametrize("method", ["weights_of", "scores_of"])
def test_weights_that_no_memory_holds_are_refused_before_it_is_taken(method):
    with pytest.raises(RecordError, match=r"1 head with 400,000 queries .* GB .*weight_blocks"):
        getattr(long_layer(), method)(0)
    np.testing.assert_allclose(long_layer().weights_of(0, queries=[0, 1])[1, :2], 0.5)
