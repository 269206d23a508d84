"""A phone: a finger in place of a pointer, and little room."""

import numpy as np
import pytest

import headscope as hs
from headscope import Record
from headscope.record import Layer, Stack, Tokens

WORDS = ("[CLS]", "one", "two", "three", "four", "five", "[SEP]", "six", "seven", "[SEP]")
DATA = ("tile", "grid-cell")
"""Heads of a map are as small as there are many, and can be walked with arrows."""

pytestmark = pytest.mark.usefixtures("chromium_only")


@pytest.fixture
def phone(browser, rng, tmp_path):
    """Open a page of twelve heads on a phone."""
    tokens = Tokens(pieces=WORDS, segments=(0,) * 7 + (1,) * 3)
    queries, keys = rng.normal(size=(2, 12, len(WORDS), 32)).astype(np.float32)
    layers = [Layer(layer=layer, queries=queries, keys=keys, scale=0.3) for layer in (0, 1)]
    stack = Stack(name="self", layers=tuple(layers), query=tokens, key=tokens)
    path = hs.view(Record(stacks={"self": stack})).save(tmp_path / "page.html")
    context = browser.new_context(
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        reduced_motion="reduce",
    )

    def opened(fragment):
        page = context.new_page()
        page.goto(f"{path.as_uri()}#v=2&{fragment}")
        page.locator('[data-headscope][data-ready="true"]').wait_for(state="attached")
        return page

    yield opened
    context.close()


def test_the_picture_begins_in_the_upper_third(phone):
    for view in ("head", "matrix", "text", "neuron&heads=3"):
        page = phone(f"view={view}")
        assert page.locator("#view").bounding_box()["y"] < 844 / 3, view


def test_all_else_is_behind_more(phone):
    page = phone("view=head")
    assert not page.locator("[data-filter]").is_visible()
    page.locator("[data-menu]").tap()
    for tool in ("[data-filter]", "[data-hide-special]"):
        box = page.locator(tool).bounding_box()
        assert box["x"] >= 0, tool
        assert box["x"] + box["width"] <= 390, tool


def test_the_drawer_of_a_pair_covers_no_row_and_comes_into_sight(phone):
    page = phone("view=neuron&heads=3&query=4&vector=hidden")
    page.locator('.key-row[data-token="3"] .plus').tap()
    drawer = page.locator("[data-pair-detail]")
    drawer.wait_for()
    rows = page.locator(".key-scroll").bounding_box()
    box = drawer.bounding_box()
    assert box["y"] >= rows["y"] + rows["height"]
    assert box["y"] + box["height"] <= 844 + 1


@pytest.mark.parametrize(
    "view", ["overview", "head", "text", "neuron&heads=3&query=4&key=3", "head&query=2"]
)
def test_a_finger_hits_every_button(phone, view):
    page = phone(f"view={view}")
    small = page.evaluate(
        """data => [...document.querySelector('#headscope').shadowRoot
            .querySelectorAll('button, select, summary, [role=option]')]
            .filter(each => !data.some(name => each.classList.contains(name)))
            .map(each => [each.className, each.getBoundingClientRect()])
            .filter(([, box]) => box.height > 0 && box.height < 31.5)
            .map(([name, box]) => `${name} ${Math.round(box.width)} x ${Math.round(box.height)}`)""",
        list(DATA),
    )
    assert small == []


def test_a_tapped_head_comes_up_from_below_and_its_tile_stays_in_sight(phone):
    page = phone("view=overview")
    card = page.locator(".full-head")
    page.locator('[data-tile="1-7"]').tap()
    page.locator(".full-head[data-raised]").wait_for()
    assert "1-7" in card.locator("[data-headline]").inner_text()
    top = card.bounding_box()["y"]
    tile = page.locator('[data-tile="1-7"]').bounding_box()
    assert 844 / 3 < top < 844 / 2
    assert 0 <= tile["y"] <= tile["y"] + tile["height"] <= top
    page.locator(".sheet-grip").tap()
    assert page.locator(".full-head[data-raised]").count() == 0
