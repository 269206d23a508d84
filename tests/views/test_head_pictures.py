"""Thumbnails and kinds of heads from blocks of rows, and what a page says of sampled ones."""

import tracemalloc

import numpy as np
import pytest

from headscope.patterns import COLUMNS, _kinds, numbers_of_heads, text_facts
from headscope.record import Layer, Mask, ModelFacts, Record, Stack, Tokens, recompute
from headscope.views import _grouped, _head_pictures, _payload
from headscope.views._head_pictures import head_pictures
from headscope.views._on_demand import OnDemand
from headscope.views._page import page_parts
from headscope.views._payload import Chunks, made_layer
from headscope.views._thumbs import pooled_lifts, quantise

TOKENS = 131


def made(rng, tokens=TOKENS, **more):
    queries, keys = (rng.normal(size=(2, tokens, 8)).astype(np.float32) for _ in range(2))
    visible = Mask.causal(tokens, tokens)
    layer = Layer(layer=0, queries=2 * queries, keys=keys, scale=0.3, visible=visible, **more)
    words = Tokens(pieces=tuple(f"w{at % 17}" for at in range(tokens)))
    stack = Stack(name="self", query=words, key=words, layers=(layer,))
    return Record(stacks={"self": stack}, model=ModelFacts(name="made up"))


@pytest.fixture
def in_blocks(monkeypatch):
    """Every head in blocks of seven rows, as if the text was long."""
    monkeypatch.setattr(_kinds, "MOST_AT_ONCE", 1)
    monkeypatch.setattr(recompute, "NUMBERS", 7 * TOKENS)
    monkeypatch.setattr(recompute, "FEWEST_ROWS", 1)


@pytest.fixture
def long(in_blocks, monkeypatch):
    """Of which only samples are measured, too."""
    for module in (_head_pictures, _payload):
        monkeypatch.setattr(module, "MEASURED_QUERIES", 100)
    monkeypatch.setattr(_head_pictures, "KIND_QUERIES", 40)
    monkeypatch.setattr(_head_pictures, "POOLED_QUERIES", 120)
    for module in (_grouped, _head_pictures):
        monkeypatch.setattr(module, "QUERIES_OF_A_ROW", 2)


def test_blocks_make_the_pictures_of_whole_matrices(in_blocks, rng):
    stack = made(rng)["self"]
    layer = stack.layer(0)
    pictures = head_pictures(layer, [1, 0], text_facts(stack))
    exact = layer.weights_of()[[1, 0]]
    # A weight in the middle between two bytes may round to either of them.
    off = pictures.thumbs.astype(int) - quantise(pooled_lifts(exact, layer.visible))
    assert np.abs(off).max() <= 1
    assert (off != 0).mean() < 0.01
    wanted = numbers_of_heads(exact, layer.visible, text_facts(stack))
    assert np.allclose(pictures.kinds, wanted, rtol=1e-4, equal_nan=True)


def test_bytes_are_those_of_whole_matrices(in_blocks, rng):
    stack = made(rng)["self"]
    layer = stack.layer(0)
    without = Layer(layer=0, weights=layer.weights_of(), visible=layer.visible)
    chunks = Chunks()
    header = made_layer("self", without, [0, 1], chunks, facts=text_facts(stack), room=0).header
    data = np.frombuffer(chunks.by_name[header["weights"]["chunk"]], np.uint8)
    assert np.array_equal(data.reshape(2, TOKENS, TOKENS), quantise(layer.weights_of()))


def test_samples_are_of_rows_all_over_the_text(long, rng):
    stack = made(rng)["self"]
    layer = stack.layer(0)
    pictures = head_pictures(layer, [0, 1], text_facts(stack))
    whole = quantise(pooled_lifts(layer.weights_of(), layer.visible)).astype(int)
    # No row of the picture is empty.
    assert (pictures.thumbs.max(axis=2) > 0).all()
    assert 0.2 < (pictures.thumbs == whole).mean() < 1
    assert np.allclose(pictures.kinds[:, COLUMNS.index("seen")], TOKENS / 2, rtol=0.2)


def test_a_page_says_what_is_sampled(long, rng):
    header, _ = page_parts(made(rng), {})
    assert header["checked"] == (
        "Of 131 queries: kinds of heads are from 40 queries, thumbnails from 2 for each of their "
        "rows and errors from 128"
    )
    live = OnDemand(made(rng, verified=1e-6, verified_limit=1e-4), {}).header
    assert live["checked"].endswith(
        "(passes; limit 1.0e-04) · Of 131 queries: kinds of heads are from 40 queries and "
        "thumbnails from 2 for each of their rows"
    )
    assert "checked" not in page_parts(made(rng, tokens=90), {})[0]


def test_no_matrix_of_all_queries_and_keys_is_held(rng):
    tokens = 1500
    record = made(rng, tokens=tokens)
    page_parts(made(rng, tokens=90), {})  # what is loaded once
    tracemalloc.start()
    try:
        page_parts(record, {})
        live = OnDemand(record, {})
        for name in ("layer/self/0", "thumbs/self/0", "kinds/self/0"):
            assert live.chunk(name)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # One head in single precision would be 9 MB, of which several were held before.
    assert peak < 0.9 * 4 * tokens**2
