"""What changes a picture is in the address and the call, can be undone, and moves nothing else."""

import numpy as np
import pytest

import headscope as hs
from headscope import Record
from headscope.record import Layer, Stack, Tokens

WORDS = ("[CLS]", "one", "two", "three", "four", "[SEP]")


@pytest.fixture
def record(rng):
    """Two layers of three heads: in layer 1 nearly all attention goes to the first token."""
    even = rng.dirichlet([5.0] * len(WORDS), size=(3, len(WORDS)))
    sinking = 0.1 * even
    sinking[:, :, 0] += 0.9
    return hs.from_weights([even, sinking], Tokens(pieces=WORDS))


@pytest.fixture
def scored(rng):
    """The same with queries and keys: heads, queries and features differ in number."""
    queries, keys = (rng.normal(size=(3, len(WORDS), 8)).astype(np.float32) for _ in range(2))
    tokens = Tokens(pieces=WORDS)
    layer = Layer(layer=0, queries=queries, keys=keys, scale=0.4)
    return Record(stacks={"self": Stack(name="self", layers=(layer,), query=tokens, key=tokens)})


def test_back_forward_and_undo_lead_through_the_steps(show, record):
    view = show(record)
    view.page.keyboard.press("]")
    assert view.address() == "#v=2&layer=1&heads=0"
    view.choose("matrix")
    view.choose("text")
    view.page.go_back()
    view.page.locator('[data-headscope][data-view="matrix"]').wait_for(state="attached")
    assert view.address() == "#v=2&view=matrix&layer=1&heads=0"
    view.page.keyboard.press("Control+z")
    view.page.locator('[data-headscope][data-view="head"]').wait_for(state="attached")
    assert view.address() == "#v=2&layer=1&heads=0"
    view.page.keyboard.press("Control+z")
    view.page.locator('[data-headscope][data-layer="0"]').wait_for(state="attached")
    view.page.keyboard.press("Control+z")
    view.page.keyboard.press("Control+Shift+z")
    view.page.locator('[data-headscope][data-layer="1"]').wait_for(state="attached")
    view.page.go_forward()
    view.page.locator('[data-headscope][data-view="matrix"]').wait_for(state="attached")
    assert view.text("[data-call]") == 'hs.view(record, view="matrix", layer=1, heads=[0])'


@pytest.mark.parametrize("name", ["tiles", "direction"])
def test_a_choice_is_in_the_address_and_the_call_and_opens_again(show, record, name):
    place, value = {"tiles": ("overview", "lines"), "direction": ("text", "given")}[name]
    view = show(record, view=place)
    call = f'{name}="{value}"'
    assert call not in view.text("[data-call]")
    if name == "tiles":
        view.page.locator('[data-option="lines"]').click()
    else:
        view.page.locator("[data-menu]").click()
        view.page.locator("[data-direction]").select_option(value)
    fragment = view.address()
    assert f"{name}={value}" in fragment
    assert call in view.text("[data-call]")
    again = show(record, view=place, fragment=fragment)
    assert call in again.text("[data-call]")


def test_the_part_of_a_matrix_that_is_seen_is_in_the_address(show, record):
    view = show(record, view="matrix")
    view.page.locator(".matrix-plane").focus()
    view.page.keyboard.press("+")
    fragment = view.address()
    cell = view.state("cell")
    assert "&zoom=" in fragment
    assert show(record, view="matrix", fragment=fragment).state("cell") == cell
    call = view.text("[data-call]")
    numbers = [
        float(number) for number in call.partition("zoom=[")[2].partition("]")[0].split(", ")
    ]
    assert show(record, view="matrix", zoom=numbers).state("cell") == cell


def test_the_order_of_neurons_is_in_the_address(show, scored):
    view = show(scored, view="neuron")
    view.page.locator("[data-menu]").click()
    view.page.locator("[data-neurons]").select_option("ranked")
    assert "neurons=ranked" in view.address()
    assert 'neurons="ranked"' in view.text("[data-call]")


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_the_stage_stands_still_from_layer_to_layer(show, record, size):
    view = show(record, size=size)
    before = view.token("query", 1).bounding_box()
    view.page.keyboard.press("]")
    view.page.locator('[data-headscope][data-layer="1"]').wait_for(state="attached")
    assert view.token("query", 1).bounding_box() == before
