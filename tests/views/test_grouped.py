"""Long texts in groups of tokens, beside the weights between single tokens."""

import json
from dataclasses import replace

import numpy as np
import pytest

import headscope as hs
from headscope.errors import PageError
from headscope.patterns import COLUMNS, PLACES, _kinds, numbers_of_heads, text_facts
from headscope.record import (
    HeldHeads,
    Layer,
    Mask,
    ModelFacts,
    Part,
    Record,
    Stack,
    Tokens,
    recompute,
)
from headscope.views import _grouped, _on_demand, answers
from headscope.views._on_demand import OnDemand
from headscope.views._page import page_parts
from headscope.views._thumbs import sentence_starts
from headscope.views.answers import PageAnswers

QUERIES, KEYS, HEADS = 111, 131, 4
STARTS = {"q": [0, 30, 60, 85], "k": [0, 25, 60, 90, 115]}
"""First token of each sentence; the last key ends a word, not a sentence."""


@pytest.fixture(autouse=True)
def short_pages(monkeypatch):
    monkeypatch.setattr(_grouped, "MOST_TOKENS", 100)


def holes(rng):
    visible = rng.random((QUERIES, KEYS)) < 0.03
    visible[[7, *range(30, 60)]] = False  # one query of a group, and a whole group
    return visible


MASKS = {"causal": lambda rng: Mask.causal(QUERIES, KEYS), "full": lambda rng: None, "holes": holes}


def made(rng, visible=None, **more):
    queries = rng.normal(size=(HEADS, QUERIES, 8)).astype(np.float32)
    keys = rng.normal(size=(2, KEYS, 8)).astype(np.float32)
    arrays = {"queries": queries, "keys": keys, "scale": 0.5, "visible": visible}
    layer = Layer(layer=0, **arrays | more)
    query, key = (
        Tokens(pieces=tuple(f"{side}{at}{'.' * (at + 1 in STARTS[side])}" for at in range(count)))
        for side, count in (("q", QUERIES), ("k", KEYS))
    )
    stack = Stack(name="cross", query=query, key=key, layers=(layer,))
    return Record(stacks={"cross": stack}, model=ModelFacts(name="made up"))


def by_hand(weights, alive):
    """The mean over the queries of a group of the sums over the keys of another."""
    rows = np.split(np.arange(QUERIES), STARTS["q"][1:])
    columns = np.split(np.arange(KEYS), STARTS["k"][1:])
    return np.array(
        [[weights[np.ix_(q, k)].sum() / max(1, alive[q].sum()) for k in columns] for q in rows]
    )


@pytest.mark.parametrize("mask", MASKS)
def test_groups_add_up_keys_and_average_queries(mask, rng):
    record = made(rng, MASKS[mask](rng))
    layer = record["cross"].layer(0)
    grouped = _grouped.in_groups(record, {})["cross"].layer(0)
    for head in (0, 3):
        wanted = by_hand(layer.weights_of(head), ~layer.dead)
        assert np.allclose(grouped.weights_of(head), wanted, atol=1e-6)
        assert np.allclose(grouped.weights_of(head, queries=[1, 3]), wanted[[1, 3]], atol=1e-6)
    seen = by_hand(np.asarray(layer.visible, float), np.ones(QUERIES)) > 0
    assert np.array_equal(np.asarray(grouped.visible), seen)


def test_a_page_in_groups_says_so_and_has_their_text(rng):
    given = OnDemand(made(rng, MASKS["causal"](rng)), {})
    stack = given.header["stacks"][0]
    assert given.header["unseen"].startswith(
        "Each row and column stands for a sentence or some short ones, as a page shows no more "
        "than 100 of 111 tokens one by one: weights are added up over its keys"
    )
    assert (len(stack["query"]["labels"]), len(stack["key"]["labels"])) == (4, 5)
    assert stack["key"]["labels"][1].startswith("k25 k26 ")
    assert stack["key"]["labels"][1].endswith(" k59.")
    assert (stack["query"]["count"], stack["key"]["count"]) == (QUERIES, KEYS)
    assert stack["sentences"] == {"query": [0, 1, 2, 3], "key": [0, 1, 2, 3, 4]}
    assert json.loads(given.chunk("layer/cross/0"))["weights"]["shape"] == [HEADS, 4, 5]
    assert len(given.chunk("weights/cross/0/2")) == 4 * 5
    page, chunks = page_parts(made(rng, MASKS["causal"](rng)), {})
    assert page["stacks"][0]["layers"][0]["weights"]["shape"] == [HEADS, 4, 5]
    assert chunks


def test_what_heads_do_is_told_of_single_tokens(rng, monkeypatch):
    monkeypatch.setattr(_kinds, "MOST_AT_ONCE", 1)
    record = made(rng, MASKS["causal"](rng))
    layer = record["cross"].layer(0)
    exact = numbers_of_heads(layer.weights_of(), layer.visible, text_facts(record["cross"]))
    for name in PLACES:
        starts = STARTS["q" if name.endswith("_query") else "k"]
        places = exact[:, COLUMNS.index(name)]
        places[places >= 0] = np.searchsorted(starts, places[places >= 0], side="right") - 1
    given = OnDemand(record, {})
    (stack,) = given.header["stacks"]
    data = [np.frombuffer(given.chunk(f"kind/cross/0/{head}"), np.float32) for head in range(HEADS)]
    assert np.allclose(data, exact, rtol=1e-4, equal_nan=True)
    # Head by head, so that a page shows how far they are.
    assert (stack["thumbs"]["chunk"], stack["thumbs"]["split"]) == ("thumb/cross", 2)
    assert (stack["kinds"]["values"]["chunk"], stack["thumbs"]["shape"][0]) == ("kind/cross", 1)
    page, chunks = page_parts(record, {})
    assert page["stacks"][0]["thumbs"]["shape"] == stack["thumbs"]["shape"]
    small = b"".join(given.chunk(f"thumb/cross/0/{head}") for head in range(HEADS))
    assert small == chunks["thumbs/cross"]
    assert [given.chunk(name) for name in ("thumb/cross/0/4", "kind/cross/1/0")] == [None, None]


def test_chosen_heads_and_sinks_stay(rng):
    held = HeldHeads(numbers=(1, 2), heads=HEADS, kv_heads=2)
    more = {"queries": rng.normal(size=(2, QUERIES, 8)), "sinks": np.ones(2, np.float32)}
    record = made(rng, held_heads=held, **more)
    grouped = _grouped.in_groups(record, {})["cross"].layer(0)
    exact = record["cross"].layer(0).weights_of(2)
    assert np.allclose(grouped.weights_of(2), by_hand(exact, np.ones(QUERIES)), atol=1e-6)
    assert grouped.weights_of(2).sum() < 4 - 0.01


def parted(rng):
    """A text of two documents, with marks before, between and behind them."""
    record = made(rng)
    arrays = [rng.normal(size=(2, KEYS, 8)).astype(np.float32) for _ in range(2)]
    layer = Layer(
        layer=0, queries=arrays[0], keys=arrays[1], visible=Mask.causal(KEYS, KEYS), scale=0.5
    )
    spans = {"document 1": range(4, 60), "document 2": range(61, 121)}
    parts = tuple(
        Part(name=name, kind="document", tokens=tuple(span)) for name, span in spans.items()
    )
    inner = Part(name="sentence 1", kind="sentence", level=1, tokens=(4, 5, 6))
    tokens = replace(record["cross"].key, parts=(*parts, inner))
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    return Record(stacks={"self": stack}, model=ModelFacts(name="made up"))


def test_what_is_longer_still_is_told_part_by_part(rng, monkeypatch):
    monkeypatch.setattr(_grouped, "MOST_WEIGHTS", 10_000)
    with pytest.raises(PageError, match=r"111 x 131 weights, .* 100 x 100, of more their parts"):
        OnDemand(made(rng), {})
    record, edges = parted(rng), [0, 4, 60, 61, 121]
    given = OnDemand(record, {})
    (stack,) = given.header["stacks"]
    assert stack["query"]["labels"] == ["…", "document 1", "…", "document 2", "…"]
    assert stack["sentences"]["key"] == [0, 1, 2, 3, 4]
    assert "stands for a part or what is between two" in given.header["unseen"]
    exact = record["self"].layer(0).weights_of(1)
    sums = np.add.reduceat(np.add.reduceat(exact, edges, axis=1), edges, axis=0)
    wanted = sums / np.diff([*edges, KEYS])[:, None]
    grouped = _grouped.in_groups(record, {})["self"].layer(0)
    assert np.allclose(grouped.weights_of(1), wanted, atol=1e-6)
    # All heads at once would take as long as all weights of the single tokens.
    monkeypatch.setattr(_on_demand, "OPENING", 5_000)
    monkeypatch.setattr(answers, "OVERVIEW", 30_000)
    opened = PageAnswers(hs.view(record)).opening({})
    assert sorted(opened) == ["layer/self/0", "visible/self/0", "weights/self/0/0"]
    # From some queries of each part: here they are the even ones, which see as much.
    monkeypatch.setattr(recompute, "sampled_queries", lambda count, most: np.arange(0, count, 2))
    some = _grouped.in_groups(record, {})["self"].layer(0).weights_of(1)
    assert np.allclose(some[1], np.add.reduceat(exact[4:60:2].mean(axis=0), edges), atol=1e-6)


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


def text_of(*sentences):
    """A text whose sentences have so many tokens, every third of which continues a word."""
    pieces = [f"##{at}" if at % 3 == 1 else f"{at}" for at in range(sum(sentences))]
    for end in np.cumsum(sentences):
        pieces[end - 1] = "."
    return Tokens(pieces=tuple(pieces))


def test_sentences_end_where_they_end_and_never_inside_a_word():
    tokens = text_of(30, 5, 5, 40, 300, 24)
    starts = sentence_starts(tokens, 200).tolist()
    assert starts[:3] == [0, 30, 80]  # the short ones together with the next
    assert starts[-1] == 380
    # A sentence without end for long is cut, and not in a word.
    assert len(starts) == 5
    assert not any(tokens.continues[start] for start in starts)
    assert len(sentence_starts(text_of(*[30] * 50), 10)) <= 10


def test_a_long_text_is_told_by_sentences_and_an_even_head_is_even_there(monkeypatch):
    monkeypatch.setattr(_grouped, "MOST_TOKENS", 2**13)
    count = 1002
    pieces = tuple("." if at % 30 == 29 else f"w{at}" for at in range(count))
    even = np.tril(np.ones((count, count), np.float32)) / np.arange(1, count + 1)[:, None]
    page, chunks = page_parts(hs.from_weights(even[None, None], tokens=list(pieces)), {})
    (stack,) = page["stacks"]
    assert stack["sentences"]["query"][:3] == [0, 30, 60]
    assert stack["thumbs"]["shape"] == [1, 1, 34, 34]
    bytes_ = np.frombuffer(chunks["thumbs/self"], np.uint8).reshape(34, 34)
    assert set(bytes_[np.tril_indices(34)].tolist()) == {round(255 * (1 / count) ** 0.5)}
    short = hs.from_weights(even[None, None, :99, :99], tokens=list(pieces[:99]))
    assert "sentences" not in page_parts(short, {})[0]["stacks"][0]
