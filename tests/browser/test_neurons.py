"""The neuron view: strips as wide as the card, pairs in a drawer, several queries, one vector with
its numbers.
"""

import numpy as np
import pytest

from headscope import Record
from headscope.record import Layer, Stack, Tokens

WORDS = ("[CLS]", "one", "two", "three", "four", "five", "[SEP]")
FEATURES = 32


@pytest.fixture
def record(rng):
    """Two heads that see no later key; the second joins four with two more than any other two
    words.
    """
    size = len(WORDS)
    queries, keys = (rng.normal(size=(2, size, FEATURES)).astype(np.float32) for _ in range(2))
    queries[1, 4] = 3 * keys[1, 2] / np.abs(keys[1, 2]).max()
    tokens = Tokens(pieces=WORDS)
    layer = Layer(
        layer=0, queries=queries, keys=keys, scale=0.3, visible=np.tril(np.ones((size, size), bool))
    )
    return Record(stacks={"self": Stack(name="self", layers=(layer,), query=tokens, key=tokens)})


def shown_queries(view):
    view.settle()
    return [each.inner_text() for each in view.page.locator(".query-name").all()]


def test_it_opens_on_the_two_words_that_are_joined_most(show, record):
    view = show(record, view="neuron", heads=[1])
    assert shown_queries(view) == ["four"]
    assert view.text(".formula").startswith("four → two:")


def test_strips_are_at_least_two_hundred_pixels_wide(show, record):
    view = show(record, view="neuron", heads=[1], size=(1280, 800))
    band = view.page.evaluate(
        """() => {
            const rows = document.querySelector('#headscope').shadowRoot.querySelector('.key-rows');
            return parseFloat(getComputedStyle(rows).getPropertyValue('--band'));
        }"""
    )
    assert band >= 200
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_without_neurons_there_are_lines_between_words(show, record):
    view = show(record, view="neuron", heads=[1], neurons="hidden")
    assert view.colours("all") > 10
    assert view.page.locator(".key-rows").count() == 0
    view.token("query", 4).hover()
    assert view.page.locator(".scroller[data-focus=query]").count() == 1


def test_several_queries_stand_below_each_other(show, record):
    view = show(record, view="neuron", heads=[1], query=[2])
    view.page.locator('.query-list [data-token="5"]').click(modifiers=["Shift"])
    view.page.locator('.query-list [data-token="4"]').click(modifiers=["Shift"])
    assert shown_queries(view) == ["two", "four", "five"]
    assert "query=2,4,5" in view.address()
    tops = [each.bounding_box()["y"] for each in view.page.locator(".key-rows").all()]
    assert tops == sorted(set(tops))


def test_a_pair_is_a_drawer_that_moves_no_rows(show, record):
    view = show(record, view="neuron", heads=[1], query=5, vector="hidden")
    rows = view.page.locator(".key-scroll").bounding_box()
    view.page.locator('.key-row[data-token="3"] .plus').click()
    view.page.locator("[data-pair-detail]").wait_for()
    assert view.page.locator(".key-scroll").bounding_box() == rows
    view.page.locator("[data-enlarged]").select_option("hidden")
    view.settle()
    assert view.page.locator("[data-pair-detail]").count() == 0
    assert "vector=hidden" in show(record, view="neuron", fragment="#v=2&vector=hidden").address()


@pytest.mark.parametrize("name", ["product", "query", "key"])
def test_one_vector_is_enlarged_with_its_numbers(show, record, name):
    view = show(record, view="neuron", heads=[1], query=5, key=3)
    view.page.locator("[data-enlarged]").select_option(name)
    view.settle()
    layer = record["self"].layer(0)
    query, key = layer.queries[1, 5].astype(float), layer.keys[1, 3].astype(float)
    wanted = {"product": query * key * layer.scale, "query": query, "key": key}[name]
    large = view.page.locator("[data-vector][data-large]")
    assert large.get_attribute("data-vector") == name
    numbers = large.locator("[data-neuron]")
    assert numbers.count() == FEATURES
    for at in range(FEATURES):
        feature = int(numbers.nth(at).get_attribute("data-neuron"))
        said = float(numbers.nth(at).inner_text().split()[-1].replace("−", "-"))
        assert said == pytest.approx(wanted[feature], abs=0.011)
    axis = large.locator(".vector-axis small").first.inner_text()
    assert float(axis) == pytest.approx(np.abs(wanted).max(), abs=0.011)


def test_keys_that_are_masked_are_weak(show, record):
    view = show(record, view="neuron", heads=[1], query=3)
    weak = view.page.locator(".key-row[data-masked] > *").first.evaluate(
        "each => getComputedStyle(each).opacity"
    )
    strong = (
        view.page.locator(".key-row:not([data-masked]) > *")
        .nth(8)
        .evaluate("each => getComputedStyle(each).opacity")
    )
    assert (float(weak), float(strong)) == (0.4, 1.0)
    assert view.page.locator(".key-row[data-masked]").count() == 3


def test_three_queries_are_one_row_of_pictures(show, record):
    view = show(
        record, view="compare", tray=[f"0-1 view=neuron query={query}" for query in (2, 4, 5)]
    )
    view.page.locator("[data-picture][data-query]").nth(2).wait_for()
    assert shown_queries(view) == ["two", "four", "five"]


def test_a_word_of_several_pieces_has_their_mean_and_says_so(show, rng):
    pieces = ("[CLS]", "straw", "##berries", "and", "##s", "[SEP]")
    queries, keys = (
        rng.normal(size=(2, len(pieces), FEATURES)).astype(np.float32) for _ in range(2)
    )
    tokens = Tokens(pieces=pieces)
    layer = Layer(layer=0, queries=queries, keys=keys, scale=0.3)
    record = Record(stacks={"self": Stack(name="self", layers=(layer,), query=tokens, key=tokens)})
    view = show(record, view="neuron", heads=[1], query=1, key=3, words=True)
    assert shown_queries(view) == ["strawberries"]
    pairs = queries[1, 1:3] @ keys[1, 3:5].T
    assert f"q · k {pairs.mean():.2f} ×".replace("-", "−") in view.text(".formula")
    weights = layer.weights_of(1)[1:3]
    weight = view.page.locator(".key-row[data-token='2'] .softmax b").inner_text()
    assert float(weight) == pytest.approx(weights[:, 3:5].sum(axis=1).mean(), abs=0.006)
    assert view.text("[data-words-note]").startswith("Whole words:")
    view.choose("overview")
    assert view.more().page.locator("[data-words]").is_checked()
