"""The arrays of a page, read back as the viewer reads them."""

import gzip

import numpy as np
import pytest

import headscope as hs
from headscope.patterns import TextFacts, _kinds, head_numbers
from headscope.record import HeldHeads, Layer, Mask, ModelFacts, Record, Rotary, Stack, Tokens
from headscope.testing import random_weights
from headscope.views import _payload
from headscope.views._payload import Chunks, made_layer
from headscope.views._thumbs import pooled_lifts, quantise

HEADS, KV_HEADS, QUERIES, KEYS, FEATURES = 6, 2, 5, 7, 4


def facts_of(layer):
    query, key = (
        Tokens(pieces=tuple(f"{side}{at}" for at in range(n)))
        for side, n in zip("qk", layer.size, strict=True)
    )
    return TextFacts(query, key, causal=False, alone=False)


def layer_of(rng, **more):
    arrays = {
        "queries": rng.normal(size=(HEADS, QUERIES, FEATURES)).astype(np.float32),
        "keys": rng.normal(size=(KV_HEADS, KEYS, FEATURES)).astype(np.float32),
    }
    return Layer(layer=3, **(arrays | {"scale": 0.5} | more))


def band(rng):
    visible = rng.random((QUERIES, KEYS)) < 0.6
    visible[:, 2] = True
    visible[4] = False
    return visible


def offsets(rng, heads):
    line = rng.normal(size=(heads, QUERIES + KEYS - 1)).astype(np.float32)
    return line[:, (np.arange(KEYS)[None, :] - np.arange(QUERIES)[:, None] + QUERIES - 1)]


CASES = {
    "plain": lambda rng: {},
    "soft cap": lambda rng: {"soft_cap": 0.7},
    "visible": lambda rng: {"visible": band(rng)},
    "sinks": lambda rng: {"sinks": rng.normal(size=HEADS).astype(np.float32)},
    "bias by offset": lambda rng: {"bias": offsets(rng, HEADS)},
    "one bias by offset": lambda rng: {"bias": offsets(rng, 1)},
    "any bias": lambda rng: {"bias": rng.normal(size=(HEADS, QUERIES, KEYS)).astype(np.float32)},
    "large numbers": lambda rng: {
        "queries": (rng.normal(size=(HEADS, QUERIES, FEATURES)) * 4e5).astype(np.float32),
        "scale": 5e-6,
    },
}


def read(header, chunks):
    """The weights of a layer, from nothing but the header and the bytes."""

    def array(of):
        values = np.frombuffer(chunks[of["chunk"]], of["dtype"]).reshape(of["shape"])
        return (values / 255.0) ** 2 if of["encoding"] == "sqrt" else values.astype(np.float64)

    if header["weights"]:
        return array(header["weights"])
    given = header["scores"]
    queries, keys = array(given["queries"]), array(given["keys"])
    keys = keys[np.arange(len(queries)) * len(keys) // len(queries)]
    scores = np.einsum("hqf,hkf->hqk", queries, keys) * given["scale"]
    if given["soft_cap"] is not None:
        scores = given["soft_cap"] * np.tanh(scores / given["soft_cap"])
    if given["bias"]:
        bias = array(given["bias"])
        if bias.ndim == 2:
            bias = bias[:, np.arange(KEYS)[None, :] - np.arange(QUERIES)[:, None] + QUERIES - 1]
        scores = scores + bias
    if header["visible"]:
        visible = np.zeros((QUERIES, KEYS), bool)
        for query, start, stop in np.frombuffer(chunks[header["visible"]["chunk"]], "<i4").reshape(
            -1, 3
        ):
            visible[query, start:stop] = True
        scores = np.where(visible, scores, -np.inf)
    raised = np.exp(scores)
    total = raised.sum(axis=-1, keepdims=True)
    if given["sinks"]:
        total = total + np.exp(given["sinks"])[:, None, None]
    return raised / np.where(total > 0, total, 1)


@pytest.mark.parametrize("case", CASES)
def test_weights_are_read_back_within_the_stated_error(case, rng):
    layer = layer_of(rng, **CASES[case](rng))
    chunks = Chunks()
    made = made_layer("self", layer, list(range(HEADS)), chunks, facts=facts_of(layer), room=10**6)
    assert made.header["weights"] is None
    off = np.abs(read(made.header, chunks.by_name) - layer.weights_of()).max()
    assert off <= made.header["error"] == made.header["scores"]["error"] < 0.004


@pytest.mark.parametrize(
    ("heads", "shared", "kv_heads"),
    [([0, 1, 2, 3, 4, 5], 2, 2), ([1, 2], 1, 1), ([0, 1, 5], 2, 3), ([2, 3], 2, 2)],
)
def test_some_heads_come_with_the_keys_they_share(heads, shared, kv_heads, rng):
    layer, chunks = layer_of(rng), Chunks()
    made = made_layer("self", layer, heads, chunks, facts=facts_of(layer), room=10**6)
    assert made.header["kv_heads"] == kv_heads
    assert np.abs(read(made.header, chunks.by_name) - layer.weights_of()[heads]).max() < 0.004


def test_the_smaller_form_travels_where_there_is_no_room_for_both(rng):
    short, long = (
        layer_of(rng),
        Layer(
            layer=0,
            queries=rng.normal(size=(2, 300, FEATURES)).astype(np.float32),
            keys=rng.normal(size=(2, 310, FEATURES)).astype(np.float32),
        ),
    )
    forms = [
        made_layer(
            "self", layer, list(range(layer.heads)), Chunks(), facts=facts_of(layer), room=0
        ).header
        for layer in (short, long)
    ]
    assert [(form["weights"] is None, form["scores"] is None) for form in forms] == [
        (False, True),
        (True, False),
    ]


def test_queries_and_keys_that_half_precision_cannot_hold_do_not_stand_for_weights(rng):
    layer = layer_of(rng, scale=900.0)
    made = made_layer(
        "self", layer, list(range(HEADS)), Chunks(), facts=facts_of(layer), room=10**6
    )
    assert made.header["weights"] is not None
    assert made.header["error"] < _payload.MOST_ERROR < made.header["scores"]["error"]


def test_a_page_of_six_layers_at_512_tokens_stays_small(rng, monkeypatch):
    """6 x 12 heads of size 32: at most 6.5 MB, with the neurons."""
    tokens = Tokens(pieces=tuple(f"t{n}" for n in range(512)))
    arrays = [
        {name: rng.normal(size=(12, 512, 32)).astype(np.float32) for name in ("queries", "keys")}
        for _ in range(6)
    ]
    layers = tuple(Layer(layer=n, scale=0.177, **given) for n, given in enumerate(arrays))
    record = Record(
        stacks={"self": Stack(name="self", query=tokens, key=tokens, layers=layers)},
        model=ModelFacts(),
    )
    chunks = hs.view(record).chunks
    assert (
        sum(len(gzip.compress(data, compresslevel=4)) for data in chunks.values()) * 4 / 3 < 6.2e6
    )


@pytest.mark.parametrize("size", [(5, 7), (48, 48), (49, 131), (100, 3)])
def test_a_thumbnail_holds_the_mean_multiple_of_the_even_share(size, rng):
    weights = random_weights(rng, (1, *size))
    (pooled,) = pooled_lifts(weights, Mask.full(*size))
    assert pooled.shape == tuple(min(48, side) for side in size)
    rows = np.arange(pooled.shape[0] + 1) * size[0] // pooled.shape[0]
    columns = np.arange(pooled.shape[1] + 1) * size[1] // pooled.shape[1]
    block = weights[0, rows[-2] : rows[-1], columns[0] : columns[1]]
    # A multiple is the weight times the keys that are seen, and a part of as many.
    assert pooled[-1, 0] == pytest.approx(block.mean(), rel=1e-6)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("heads", [[0, 4, 1], [0, 5]])
def test_each_head_has_its_own_thumbnail_and_kind(heads, together, rng, monkeypatch):
    """Where heads are measured together as where there are too many weights for that."""
    if not together:
        monkeypatch.setattr(_kinds, "MOST_AT_ONCE", 1)
    held = HeldHeads(numbers=(1, 2, 4), heads=HEADS, kv_heads=KV_HEADS)
    layer = Layer(layer=0, weights=random_weights(rng, (3, QUERIES, KEYS)), held_heads=held)
    facts = facts_of(layer)
    made = made_layer("self", layer, heads, Chunks(), facts=facts, room=0)
    for head, thumb, kind in zip(heads, made.pictures.thumbs, made.pictures.kinds, strict=True):
        if head not in held.numbers:
            assert not thumb.any()
            assert np.isnan(kind).all()
            continue
        weights = layer.weights_of(head)
        assert np.abs(thumb.astype(int) - quantise(weights).astype(int)).max() <= 1
        numbers = list(head_numbers(weights, layer.visible, facts).values())
        assert np.allclose(kind, numbers, rtol=1e-6, equal_nan=True)


def test_the_mask_travels_as_runs_of_visible_keys(rng):
    visible, chunks = band(rng), Chunks()
    weights = visible / np.maximum(visible.sum(-1, keepdims=True), 1)
    layer = Layer(layer=0, weights=np.stack([weights, weights]), visible=visible)
    header = made_layer("self", layer, [0, 1], chunks, facts=facts_of(layer), room=0).header[
        "visible"
    ]
    again = np.zeros_like(visible)
    for query, start, stop in np.frombuffer(
        chunks.by_name[header["chunk"]], header["dtype"]
    ).reshape(header["shape"]):
        again[query, start:stop] = True
    assert np.array_equal(again, visible)


def test_a_rotation_travels_with_its_layer(rng):
    rotary = Rotary(frequencies=np.array([1.0, 0.25]), style="neighbours", start=1)
    layer = Layer(
        layer=0, queries=rng.normal(size=(2, 3, 5)), keys=rng.normal(size=(2, 4, 5)), rotary=rotary
    )
    made = made_layer("self", layer, [0, 1], Chunks(), facts=facts_of(layer), room=1000)
    assert made.header["rotary"] == {"frequencies": [1.0, 0.25], "style": "neighbours", "start": 1}
