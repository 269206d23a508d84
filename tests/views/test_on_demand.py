"""What a live page asks for: the same numbers as the record, small, and made only when asked."""

import gzip
import json

import numpy as np
import pytest

import headscope as hs
from headscope import PageError, RecordError
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens, statistics_of
from headscope.testing import random_record, random_weights
from headscope.views import _html, _on_demand
from headscope.views._on_demand import BYTE_ERROR, OnDemand
from headscope.views._quantise import decoded, quantise
from headscope.views._thumbs import max_pooled

QUERIES, KEYS, FEATURES, HEADS = 5, 7, 6, 4


def made(rng, *, layers=3, heads=HEADS, kv_heads=2, queries=QUERIES, keys=KEYS, features=FEATURES, **more):
    def layer(number):
        shapes = {"queries": (heads, queries, features), "keys": (kv_heads, keys, features)}
        arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        given = {name: value(rng) if callable(value) else value for name, value in more.items()}
        return Layer(layer=number, scale=0.4, **arrays, **given)

    sides = {"query": queries, "key": keys}
    tokens = {name: Tokens(pieces=tuple(f"{name}{at}" for at in range(count))) for name, count in sides.items()}
    stack = Stack(name="self", layers=tuple(layer(number) for number in range(layers)), **tokens)
    return Record(stacks={"self": stack}, model=ModelFacts(name="made"))


VARIANTS = {
    "plain": {},
    "masked": {"visible": np.tril(np.ones((QUERIES, KEYS), bool), 2)},
    "capped, with sinks": {"soft_cap": 1.5, "sinks": lambda rng: rng.standard_normal(HEADS).astype(np.float32)},
    "bias of each head": {"bias": lambda rng: rng.standard_normal((HEADS, QUERIES, KEYS)).astype(np.float32)},
    "bias of all": {"bias": lambda rng: rng.standard_normal((1, QUERIES, KEYS)).astype(np.float32)},
}


def read(given, array, dtype, part):
    """One entry of a split array as the page reads it."""
    assert array["split"]
    data = given.chunk(f"{array['chunk']}/{part}")
    return np.frombuffer(data, dtype).reshape(array["shape"][1:])


def weights_in_page(given, stack, number, head):
    """The weights of a head, recomputed from what is sent."""
    page = json.loads(given.chunk(f"layer/{stack}/{number}"))
    if page["scores"] is None:
        return decoded(read(given, page["weights"], np.uint8, head)), page
    scores = page["scores"]
    queries = read(given, scores["queries"], scores["queries"]["dtype"], head).astype(float)
    shared = head * scores["keys"]["shape"][0] // scores["queries"]["shape"][0]
    found = queries @ read(given, scores["keys"], scores["keys"]["dtype"], shared).astype(float).T * scores["scale"]
    if scores["soft_cap"]:
        found = scores["soft_cap"] * np.tanh(found / scores["soft_cap"])
    if scores["bias"]:
        bias = scores["bias"]
        found = found + read(given, bias, bias["dtype"], head if bias["shape"][0] > 1 else 0)
    if page["visible"]:
        runs = np.frombuffer(given.chunk(page["visible"]["chunk"]), np.int32).reshape(-1, 3)
        seen = np.zeros(found.shape, bool)
        for query, start, end in runs:
            seen[query, start:end] = True
        found = np.where(seen, found, -np.inf)
    raised = np.exp(found)
    sink = 0.0 if scores["sinks"] is None else np.exp(scores["sinks"][head])
    return raised / (raised.sum(1, keepdims=True) + sink), page


@pytest.mark.parametrize("many", [False, True], ids=["half", "single"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_page_recomputes_the_weights_as_exactly_as_it_says(variant, many, rng, monkeypatch):
    if many:
        monkeypatch.setattr(_on_demand, "MEASURED", 0)
    record = made(rng, **VARIANTS[variant])
    given = OnDemand(record, {})
    for number, head in ((0, 0), (2, 3), (1, 1)):
        found, page = weights_in_page(given, "self", number, head)
        exact = record["self"].layer(number).weights_of(head)
        assert np.abs(found - exact).max() <= page["error"] < 0.004
        assert page["scores"]["queries"]["dtype"] == ("float32" if many else "float16")


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_are_exact(variant, rng):
    record = made(rng, **VARIANTS[variant])
    given = OnDemand(record, {})
    layer = record["self"].layer(2)
    for query in (0, 3, QUERIES - 1):
        for kind, exact in (("row", layer.weights_of()), ("score-row", layer.scores_of())):
            row = np.frombuffer(given.chunk(f"{kind}/self/2/{query}"), np.float32).reshape(HEADS, KEYS)
            np.testing.assert_allclose(row, exact[:, query], atol=1e-6)


def test_rows_and_thumbnails_of_weights(rng):
    record = hs.from_weights(random_weights(rng, (3, 4, 60, 60)), [f"w{at}" for at in range(60)])
    given = OnDemand(record, {"include_heads": [1, 3]})
    found, page = weights_in_page(given, "self", 1, 1)
    exact = record["self"].layer(1).weights_of(3)
    assert np.abs(found - exact).max() <= page["error"] == BYTE_ERROR
    row = np.frombuffer(given.chunk("row/self/1/59"), np.float32).reshape(2, 60)
    np.testing.assert_array_equal(row, record["self"].layer(1).weights_of()[[1, 3], 59].astype(np.float32))
    assert given.chunk("score-row/self/1/59") is None
    thumbs = given.header["stacks"][0]["thumbs"]
    assert (thumbs["shape"], thumbs["split"]) == ([3, 2, 48, 48], True)
    pictures = np.frombuffer(given.chunk("thumbs/self/1"), np.uint8).reshape(2, 48, 48)
    np.testing.assert_array_equal(pictures[1], quantise(max_pooled(exact)))


def test_no_weight_is_worse_as_a_byte_than_is_said():
    weights = np.linspace(0, 1, 1_000_001)
    worst = np.abs(decoded(quantise(weights)).astype(float) - weights).max()
    assert 0.99 * BYTE_ERROR < worst <= BYTE_ERROR


@pytest.mark.parametrize(
    "name",
    [
        "",
        "layer",
        "layer/self",
        "layer/self/9",
        "layer/self/0/0",
        "layer/gone/0",
        "queries/self/0",
        "queries/self/0/4",
        "keys/self/0/2",
        "bias/self/0/0",
        "weights/self/0/0",
        "visible/self/0",
        "thumbs/self/3",
        "thumbs/self/0/0",
        "row/self/0",
        "row/self/0/5",
        "row/self/9/0",
        "row/self/0/-1",
        "row/self/0/1/2",
        "../self/0",
        "other/self/0/0",
    ],
)
def test_there_is_nothing_else(name, rng):
    assert OnDemand(made(rng), {}).chunk(name) is None


def test_nothing_is_prepared_before_it_is_asked_for(rng, monkeypatch):
    prepared, pooled = [], []
    real = _on_demand._prepare
    monkeypatch.setattr(_on_demand, "_prepare", lambda *given: prepared.append(given[1].layer) or real(*given))
    monkeypatch.setattr(_on_demand, "max_pooled", lambda weights: pooled.append(1) or max_pooled(weights))
    given = OnDemand(made(rng), {})
    assert all(layer["later"] for layer in given.header["stacks"][0]["layers"])
    assert (prepared, pooled) == ([], [])
    given.chunk("thumbs/self/1")
    assert (prepared, len(pooled)) == ([], HEADS)
    for name in ("layer/self/2", "queries/self/2/0", "keys/self/2/1", "queries/self/2/3"):
        assert given.chunk(name)
    assert prepared == [2]


def test_layers_that_were_looked_at_long_ago_are_given_up(rng, monkeypatch):
    monkeypatch.setattr(_on_demand, "KEPT", 2)
    given = OnDemand(made(rng, layers=4), {})
    first = given.chunk("queries/self/0/1")
    for number in range(4):
        given.chunk(f"layer/self/{number}")
    assert len(given._kept) == 2
    assert given.chunk("queries/self/0/1") == first


def test_twelve_layers_of_twelve_heads_at_512_tokens_open_within_a_megabyte(rng):
    """All that travels until the head view stands: script, header, thumbnails, and the first layer as it opens."""
    record = made(rng, layers=12, heads=12, kv_heads=12, queries=512, keys=512, features=64)
    given = OnDemand(record, {})
    assert given.header["selection"]["heads"] == [0]
    asked = ["layer/self/0", "queries/self/0/0", "keys/self/0/0", *(f"thumbs/self/{row}" for row in range(12))]
    sent = [given.chunk(name) for name in asked]
    texts = [_html.bundle("live.js").encode(), json.dumps(given.header).encode()]
    total = sum(len(gzip.compress(data, 4)) for data in [*sent, *texts])
    assert 100_000 < total < 1_000_000
    assert OnDemand(record, {"heads": [0, 5]}).header["selection"]["heads"] == [0, 5]
    assert OnDemand(made(rng), {}).header["selection"]["heads"] is None


def test_what_a_page_cannot_hold_can_be_shown_live(monkeypatch):
    monkeypatch.setattr(hs.views._page, "LARGEST", 10)
    shown = hs.view(random_record(layers=3))
    with pytest.raises(PageError, match="a widget, and headscope serve, send only what is looked at"):
        shown.html  # noqa: B018 - made when it is read
    assert OnDemand(shown.record, shown.options).chunk("layer/cross/1")


def test_a_layer_without_weights_is_said_at_once(rng):
    record = made(rng)
    query, key = record["self"].query, record["self"].key
    layer = Layer(layer=0, statistics=statistics_of(record["self"].layer(0).weights_of(), key, query))
    stack = Stack(name="self", query=query, key=key, layers=(layer,))
    with pytest.raises(RecordError, match="Layer 0 holds neither weights nor queries and keys"):
        hs.view(Record(stacks={"self": stack}, model=ModelFacts(name="made")))
