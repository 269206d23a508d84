"""Patches lie over their picture, in a real browser."""

import numpy as np
import pytest

import headscope as hs
from headscope.testing import random_weights

SHADOW = "document.querySelector('#headscope').shadowRoot"
GRID, SIZE = (2, 3), (8, 24)


@pytest.fixture
def record(rng):
    """A class token and the patches of one picture; the class token looks at row 1, column 2 alone."""
    places = (None, *np.ndindex(GRID))
    labels = ("[CLS]", *(f"r{row}c{column}" for row, column in np.ndindex(GRID)))
    tokens = hs.Tokens(pieces=labels, grids=(GRID,), places=places, pictures=(None, *[0] * 6))
    weights = random_weights(rng, (4, 7, 7))
    weights[:, 0] = np.eye(7)[6]
    layer = hs.Layer(layer=0, weights=weights)
    picture = rng.integers(0, 256, (*SIZE, 3), np.uint8)
    stack = hs.Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    return hs.Record(stacks={"self": stack}, pictures=(picture,))


def pixels_of(view, selector):
    """``[row column 3]`` of a canvas."""
    data, width = view.page.evaluate(
        f"""() => {{
            const canvas = {SHADOW}.querySelector({selector!r});
            const context = canvas.getContext('2d');
            return [[...context.getImageData(0, 0, canvas.width, canvas.height).data], canvas.width];
        }}"""
    )
    found = np.array(data, np.uint8).reshape(-1, width, 4)
    assert (found[..., 3] == 255).all()
    return found[..., :3]


def backgrounds(view):
    return view.page.locator(".pictured .word").evaluate_all("all => all.map(word => word.style.background)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_patches_lie_over_the_picture(show, record, scheme):
    view = show(record, view="text", query=[0], scheme=scheme)
    view.settle()
    np.testing.assert_array_equal(pixels_of(view, ".pictured .under"), record.pictures[0])
    heat = backgrounds(view)
    assert [bool(colour) for colour in heat] == [False] * 5 + [True]
    assert "0.72" in heat[5]
    box = view.page.locator(".pictured").bounding_box()
    assert box["width"] == pytest.approx(450, abs=1)
    assert box["width"] / box["height"] == pytest.approx(SIZE[1] / SIZE[0], rel=0.01)
    patch = view.token("query", 6).bounding_box()
    assert patch["x"] == pytest.approx(box["x"] + 2 / 3 * box["width"], abs=1)
    assert patch["y"] == pytest.approx(box["y"] + 1 / 2 * box["height"], abs=1)
    assert patch["height"] == pytest.approx(box["height"] / 2, abs=1)


def test_names_are_shown_where_they_are_looked_for(show, record):
    view = show(record, view="text")
    seen = "word => getComputedStyle(word.querySelector('.label')).opacity"
    patch = view.token("query", 3)
    assert patch.evaluate(seen) == "0"
    assert patch.get_attribute("aria-label").startswith("r0c2 ")
    patch.hover()
    view.settle()
    assert patch.evaluate(seen) == "1"
    patch.click()
    view.page.mouse.move(0, 0)
    view.settle()
    assert patch.evaluate(seen) == "1"
    assert patch.get_attribute("aria-selected") == "true"
    view.page.keyboard.press("Escape")
    view.token("query", 0).focus()
    view.page.keyboard.press("ArrowRight")
    view.settle()
    assert view.token("query", 1).evaluate(seen) == "1"


def test_a_narrow_page_holds_the_whole_picture(show, record):
    view = show(record, view="text", size=(400, 800))
    view.settle()
    box = view.page.locator(".pictured").bounding_box()
    assert box["x"] > 0
    assert box["x"] + box["width"] < 400


def test_a_patch_stands_beside_its_name(show, record):
    view = show(record, view="head")
    view.settle()
    assert view.page.locator("[data-column=key] .patch").count() == 6
    height, width = (whole // parts for whole, parts in zip(SIZE, GRID, strict=True))
    np.testing.assert_array_equal(
        pixels_of(view, "[data-column=key] [data-token='6'] .patch"), record.pictures[0][height:, 2 * width :]
    )


def test_a_served_page_asks_for_its_pictures(served, record):
    with served(record, view="text") as view:
        view.page.locator(".pictured .under").wait_for(state="attached")
        view.settle()
        np.testing.assert_array_equal(pixels_of(view, ".pictured .under"), record.pictures[0])
