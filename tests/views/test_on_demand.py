"""What a live page asks for: the same numbers as the record, small, and made only when asked."""

import json

import numpy as np
import pytest

import headscope as hs
from headscope.errors import PageError, RecordError
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_record, random_weights
from headscope.views import _on_demand
from headscope.views._on_demand import BYTE_ERROR, OnDemand
from headscope.views._thumbs import decoded, pooled_lifts, quantise

from ..plain_statistics import statistics_of

QUERIES, KEYS, FEATURES, HEADS = 5, 7, 6, 4


def made(
    rng, *, layers=3, heads=HEADS, kv_heads=2, queries=QUERIES, keys=KEYS, features=FEATURES, **more
):
    def layer(number):
        shapes = {"queries": (heads, queries, features), "keys": (kv_heads, keys, features)}
        arrays = {
            name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
        }
        given = {name: value(rng) if callable(value) else value for name, value in more.items()}
        return Layer(layer=number, scale=0.4, **arrays, **given)

    sides = {"query": queries, "key": keys}
    tokens = {
        name: Tokens(pieces=tuple(f"{name}{at}" for at in range(count)))
        for name, count in sides.items()
    }
    stack = Stack(name="self", layers=tuple(layer(number) for number in range(layers)), **tokens)
    return Record(stacks={"self": stack}, model=ModelFacts(name="made"))


VARIANTS = {
    "plain": {},
    "masked": {"visible": np.tril(np.ones((QUERIES, KEYS), bool), 2)},
    "capped, with sinks": {
        "soft_cap": 1.5,
        "sinks": lambda rng: rng.standard_normal(HEADS).astype(np.float32),
    },
    "bias of each head": {
        "bias": lambda rng: rng.standard_normal((HEADS, QUERIES, KEYS)).astype(np.float32)
    },
    "bias of all": {"bias": lambda rng: rng.standard_normal((1, QUERIES, KEYS)).astype(np.float32)},
}


def read(given, array, dtype, part):
    """One entry of a split array as the page reads it."""
    assert array["split"]
    return np.frombuffer(given.chunk(f"{array['chunk']}/{part}"), dtype).reshape(array["shape"][1:])


def weights_in_page(given, stack, number, head):
    """The weights of a head, recomputed from what is sent."""
    page = json.loads(given.chunk(f"layer/{stack}/{number}"))
    if page["scores"] is None:
        return decoded(read(given, page["weights"], np.uint8, head)), page
    scores = page["scores"]
    queries = read(given, scores["queries"], scores["queries"]["dtype"], head).astype(float)
    shared = head * scores["keys"]["shape"][0] // scores["queries"]["shape"][0]
    found = (
        queries
        @ read(given, scores["keys"], scores["keys"]["dtype"], shared).astype(float).T
        * scores["scale"]
    )
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
        for kind, exact in (("row-weight", layer.weights_of()), ("row-score", layer.scores_of())):
            row = np.frombuffer(given.chunk(f"{kind}/self/2/{query}"), np.float32).reshape(
                HEADS, KEYS
            )
            np.testing.assert_allclose(row, exact[:, query], atol=1e-6)


def test_rows_and_thumbnails_of_weights(rng):
    record = hs.from_weights(random_weights(rng, (3, 4, 60, 60)), [f"w{at}" for at in range(60)])
    given = OnDemand(record, {"include_heads": [1, 3]})
    found, page = weights_in_page(given, "self", 1, 1)
    exact = record["self"].layer(1).weights_of(3)
    assert np.abs(found - exact).max() <= page["error"] == BYTE_ERROR
    row = np.frombuffer(given.chunk("row-weight/self/1/59"), np.float32).reshape(2, 60)
    np.testing.assert_array_equal(
        row, record["self"].layer(1).weights_of()[[1, 3], 59].astype(np.float32)
    )
    assert given.chunk("row-score/self/1/59") is None
    thumbs = given.header["stacks"][0]["thumbs"]
    assert (thumbs["shape"], thumbs["split"]) == ([3, 2, 48, 48], True)
    pictures = np.frombuffer(given.chunk("thumbs/self/1"), np.uint8).reshape(2, 48, 48)
    wanted = quantise(pooled_lifts(exact[None], record["self"].layer(1).visible)[0])
    # A weight in the middle between two bytes may round to either of them.
    assert np.abs(pictures[1].astype(int) - wanted).max() <= 1


GONE = (
    "layer layer/self layer/self/9 layer/self/0/0 layer/gone/0 queries/self/0 queries/self/0/4 "
    "keys/self/0/2 bias/self/0/0 weights/self/0/0 visible/self/0 thumbs/self/3 thumbs/self/0/0 "
    "row-weight/self/0 row-weight/self/0/5 row-weight/self/9/0 row-weight/self/0/-1 "
    "row-weight/self/0/1/2 ../self/0 other/self/0/0 row-mass/self/0/1 row-contribution/self/0/1 "
    "value_norms/self/0 quantity-alti/self/0 layer-alti/self/0 queries-alti/self/0/0"
).split()


@pytest.mark.parametrize("name", ["", *GONE])
def test_there_is_nothing_else(name, rng):
    assert OnDemand(made(rng), {}).chunk(name) is None


def test_what_a_page_cannot_hold_can_be_shown_live(monkeypatch):
    monkeypatch.setattr(hs.views._page, "LARGEST", 10)
    shown = hs.view(random_record(layers=3))
    with pytest.raises(PageError, match="a widget, and headscope serve, send only what is looked"):
        shown.html  # noqa: B018 - made when it is read
    assert OnDemand(shown.record, shown.options).chunk("layer/cross/1")


def test_a_layer_without_weights_is_said_at_once(rng):
    record = made(rng)
    query, key = record["self"].query, record["self"].key
    layer = Layer(
        layer=0, statistics=statistics_of(record["self"].layer(0).weights_of(), key, query)
    )
    stack = Stack(name="self", query=query, key=key, layers=(layer,))
    with pytest.raises(RecordError, match="Layer 0 holds neither weights nor queries and keys"):
        hs.view(Record(stacks={"self": stack}, model=ModelFacts(name="made")))


def array_of(data, array):
    """What the page reads of a quantity that travels whole."""
    stored = np.frombuffer(data, array["dtype"]).reshape(array["shape"]).astype(float)
    root = (stored - 128) / 127 if array["encoding"] == "signed" else stored / 255
    return root * np.abs(root) * array["most"]


def with_more(rng):
    """A record with value norms, and what a caller gives beside them."""
    record = made(rng)
    norms = [rng.random((HEADS, KEYS)) * 3 for _ in range(3)]
    for layer, own in zip(record["self"].layers, norms, strict=True):
        object.__setattr__(layer, "value_norms", own)
    given = {
        "difference": [rng.standard_normal((HEADS, QUERIES, KEYS)) for _ in range(3)],
        "rollout": [rng.random((QUERIES, KEYS)), None, rng.random((QUERIES, KEYS))],
        "weights": [None, rng.random((HEADS, QUERIES, KEYS)), None],
    }
    return record, norms, given


def test_the_header_says_what_each_layer_will_have_and_all_of_it_is_that_of_a_page(rng):
    record, _, given = with_more(rng)
    options = {"quantities": given, "include_heads": [1, 3], "quantity": "difference"}
    live, page = OnDemand(record, options), hs.view(record, **options)
    assert live.header["quantities"] == page.header["quantities"]
    assert live.header["selection"] == page.header["selection"]
    assert [layer["has"] for layer in live.header["stacks"][0]["layers"]] == [
        ["score", "contribution", "difference", "rollout"],
        ["score", "contribution", "difference", "weights"],
        ["score", "contribution", "difference", "rollout"],
    ]
    for number, whole in enumerate(page.header["stacks"][0]["layers"]):
        later = json.loads(live.chunk(f"layer/self/{number}"))
        assert later["value_norms"] == whole["value_norms"]
        assert (
            live.chunk(later["value_norms"]["chunk"]) == page.chunks[whole["value_norms"]["chunk"]]
        )
        assert later["quantities"] == whole["quantities"]
        for array in later["quantities"].values():
            assert live.chunk(array["chunk"]) == page.chunks[array["chunk"]]


def test_quantities_come_for_the_heads_that_are_held(rng):
    record, norms, given = with_more(rng)
    live = OnDemand(record, {"quantities": given, "include_heads": [1, 3]})
    page = json.loads(live.chunk("layer/self/1"))
    for name, signed in (("difference", True), ("weights", False)):
        array, wanted = page["quantities"][name], given[name][1][[1, 3]]
        found = array_of(live.chunk(array["chunk"]), array)
        assert np.abs(found - wanted).max() <= np.abs(wanted).max() / (127 if signed else 255)
    sent = np.frombuffer(live.chunk("value_norms/self/1"), np.float32).reshape(2, KEYS)
    np.testing.assert_allclose(sent, norms[1][[1, 3]], rtol=1e-6)
    assert live.chunk("quantity-rollout/self/1") is None
    assert live.chunk("quantity-rollout/self/0/1") is None


def test_rows_of_quantities_are_exact(rng):
    record, norms, given = with_more(rng)
    live = OnDemand(record, {"quantities": given, "include_heads": [1, 3]})

    def row(name, number=2, query=3):
        return np.frombuffer(live.chunk(f"row-{name}/self/{number}/{query}"), np.float32).reshape(
            -1, KEYS
        )

    weights = record["self"].layer(2).weights_of()[[1, 3], 3]
    np.testing.assert_allclose(row("contribution"), weights * norms[2][[1, 3]], rtol=1e-5)
    np.testing.assert_allclose(row("difference"), given["difference"][2][[1, 3], 3], rtol=1e-6)
    np.testing.assert_allclose(row("rollout"), given["rollout"][2][None, 3], rtol=1e-6)
    np.testing.assert_allclose(row("weights", 1, 4), given["weights"][1][[1, 3], 4], rtol=1e-6)
    assert live.chunk("row-rollout/self/1/3") is None


def test_a_live_view_has_the_evidence_of_a_page(rng):
    record = hs.from_weights(random_weights(rng, (2, 3, 6, 6)), list("abcdef"))
    found = hs.heads(record)
    live, page = OnDemand(record, {"evidence": found}), hs.view(record, evidence=found)
    assert live.header["evidence"] == page.header["evidence"]
    for name in ("status/self", "numbers/self", "values/self"):
        assert live.chunk(name) == page.chunks[name]


def test_a_stack_may_have_slashes_and_numbers_in_its_name(rng, hostile):
    """What is asked for is found from the end of a chunk's name."""
    layer = made(rng)["self"].layers[1]
    query, key = (made(rng)["self"].query, made(rng)["self"].key)
    names = ["a", "a/1", "a/1/0", "", "..", "/", *(name for name in hostile if name.isprintable())]
    stacks = {name: Stack(name=name, query=query, key=key, layers=(layer,)) for name in names}
    given = OnDemand(Record(stacks=stacks), {})
    for name in stacks:
        header = json.loads(given.chunk(f"layer/{name}/1"))
        assert header["scores"]["queries"]["chunk"] == f"queries/{name}/1"
        assert given.chunk(f"queries/{name}/1/2") is not None
        assert given.chunk(f"thumbs/{name}/0") is not None
        assert given.chunk(f"row-weight/{name}/1/4") is not None
        assert given.chunk(f"layer/{name}/2") is None
        assert given.chunk(f"queries/{name}/1/x") is None
