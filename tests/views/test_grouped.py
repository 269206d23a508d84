"""Long texts in groups of tokens, beside the weights between single tokens."""

import json

import numpy as np
import pytest

import headscope as hs
from headscope import PageError
from headscope.patterns import COLUMNS, PLACES, _kinds, numbers_of_heads, text_facts
from headscope.record import HeldHeads, Layer, Mask, ModelFacts, Record, Stack, Tokens
from headscope.views import _grouped
from headscope.views._on_demand import OnDemand
from headscope.views._page import page_parts

QUERIES, KEYS, HEADS, SIZE = 111, 131, 4, 2
"""Of 131 keys there are 66 groups, the last of one token; of 111 queries 56."""


@pytest.fixture(autouse=True)
def short_pages(monkeypatch):
    monkeypatch.setattr(_grouped, "MOST_TOKENS", 100)
    monkeypatch.setattr(_grouped, "GROUPS", 66)


def holes(rng):
    visible = rng.random((QUERIES, KEYS)) < 0.03
    visible[[7, 40, 41]] = False  # one query of a group, and a whole group
    return visible


MASKS = {
    "causal": lambda rng: Mask.causal(QUERIES, KEYS),
    "full": lambda rng: None,
    "holes": holes,
}


def made(rng, visible=None, **more):
    queries = rng.normal(size=(HEADS, QUERIES, 8)).astype(np.float32)
    keys = rng.normal(size=(2, KEYS, 8)).astype(np.float32)
    arrays = {"queries": queries, "keys": keys, "scale": 0.5, "visible": visible}
    layer = Layer(layer=0, **arrays | more)
    query, key = (
        Tokens(pieces=tuple(f"{side}{at}" for at in range(count)))
        for side, count in (("q", QUERIES), ("k", KEYS))
    )
    stack = Stack(name="cross", query=query, key=key, layers=(layer,))
    return Record(stacks={"cross": stack}, model=ModelFacts(name="made up"))


def by_hand(weights, alive):
    """The mean over the queries of a group of the sums over the keys of another."""
    wanted = np.zeros((-(-QUERIES // SIZE), -(-KEYS // SIZE)))
    for row in range(wanted.shape[0]):
        queries = slice(row * SIZE, (row + 1) * SIZE)
        for column in range(wanted.shape[1]):
            keys = slice(column * SIZE, (column + 1) * SIZE)
            wanted[row, column] = weights[queries, keys].sum() / max(1, alive[queries].sum())
    return wanted


@pytest.mark.parametrize("mask", MASKS)
def test_groups_add_up_keys_and_average_queries(mask, rng):
    record = made(rng, MASKS[mask](rng))
    layer = record["cross"].layer(0)
    grouped = _grouped.in_groups(record, {})["cross"].layer(0)
    for head in (0, 3):
        wanted = by_hand(layer.weights_of(head), ~layer.dead)
        assert np.allclose(grouped.weights_of(head), wanted, atol=1e-6)
        assert np.allclose(grouped.weights_of(head, queries=[2, 5]), wanted[[2, 5]], atol=1e-6)
    seen = by_hand(np.asarray(layer.visible, float), np.ones(QUERIES)) > 0
    assert np.array_equal(np.asarray(grouped.visible), seen)


def test_a_page_in_groups_says_so_and_has_their_text(rng):
    given = OnDemand(made(rng, MASKS["causal"](rng)), {})
    stack = given.header["stacks"][0]
    assert given.header["unseen"].startswith(
        "Each row and column stands for up to 2 neighbouring tokens, as a page shows no more than "
        "100 of 111 one by one: weights are added up over the keys"
    )
    assert (len(stack["query"]["labels"]), len(stack["key"]["labels"])) == (56, 66)
    assert (stack["key"]["labels"][1], stack["key"]["labels"][-1]) == (
        "k2 k3",
        "k130",
    )
    header = json.loads(given.chunk("layer/cross/0"))
    assert header["weights"]["shape"] == [HEADS, 56, 66]
    assert len(given.chunk("weights/cross/0/2")) == 56 * 66
    page, chunks = page_parts(made(rng, MASKS["causal"](rng)), {})
    assert page["stacks"][0]["layers"][0]["weights"]["shape"] == [HEADS, 56, 66]
    assert chunks


def test_what_heads_do_is_told_of_single_tokens(rng, monkeypatch):
    monkeypatch.setattr(_kinds, "MOST_AT_ONCE", 1)
    record = made(rng, MASKS["causal"](rng))
    layer = record["cross"].layer(0)
    exact = numbers_of_heads(layer.weights_of(), layer.visible, text_facts(record["cross"]))
    for name in PLACES:
        exact[:, COLUMNS.index(name)] //= SIZE
    data = np.frombuffer(OnDemand(record, {}).chunk("kinds/cross/0"), np.float32)
    assert np.allclose(data.reshape(HEADS, -1), exact, rtol=1e-4, equal_nan=True)


def test_chosen_heads_and_sinks_stay(rng):
    held = HeldHeads(numbers=(1, 2), heads=HEADS, kv_heads=2)
    more = {"queries": rng.normal(size=(2, QUERIES, 8)), "sinks": np.ones(2, np.float32)}
    record = made(rng, held_heads=held, **more)
    grouped = _grouped.in_groups(record, {})["cross"].layer(0)
    exact = record["cross"].layer(0).weights_of(2)
    assert np.allclose(grouped.weights_of(2), by_hand(exact, np.ones(QUERIES)), atol=1e-6)
    assert grouped.weights_of(2).sum() < 56 - 0.1


def test_only_heads_that_were_looked_at_are_worked_out(rng, monkeypatch):
    made_heads, real = [], _grouped.GroupedWeights._made
    monkeypatch.setattr(
        _grouped.GroupedWeights, "_made", lambda *at: made_heads.append(at[1]) or real(*at)
    )
    given = OnDemand(made(rng), {})
    for name in ("layer/cross/0", "thumbs/cross/0", "row-weight/cross/0/3"):
        assert given.chunk(name)
    assert sorted(set(made_heads)) == list(range(HEADS))  # a row is of all heads
    made_heads.clear()
    given = OnDemand(made(rng), {})
    for name in ("layer/cross/0", "thumbs/cross/0", "weights/cross/0/2"):
        assert given.chunk(name)
    assert made_heads == [2]


def test_options_about_single_tokens_are_refused(rng):
    record = made(rng)
    words = "quantities= is about single tokens, and a page shows a text of more than 100"
    for make in (
        lambda **given: page_parts(record, given),
        lambda **given: OnDemand(record, given),
    ):
        with pytest.raises(PageError, match=words):
            make(quantities={"mine": [np.zeros((QUERIES, KEYS))]})


def test_short_texts_are_as_they_were(rng, monkeypatch):
    monkeypatch.setattr(_grouped, "MOST_TOKENS", KEYS)
    record = made(rng)
    assert _grouped.in_groups(record, {}) is record
    assert "unseen" not in hs.view(record).header
