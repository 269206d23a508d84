"""Patches lie over their picture, in a real browser."""

import io
from dataclasses import replace
from itertools import zip_longest

import numpy as np
import pytest
from PIL import Image

import headscope as hs
from headscope.record import Layer, Stack, Tokens
from headscope.testing import random_weights

SHADOW = "document.querySelector('#headscope').shadowRoot"
GRID, SIZE = (2, 3), (8, 24)


@pytest.fixture
def record(rng):
    """A class token and the patches of one picture; the class token looks at row 1, column 2
    alone.
    """
    places = (None, *np.ndindex(GRID))
    labels = ("[CLS]", *(f"r{row}c{column}" for row, column in np.ndindex(GRID)))
    tokens = Tokens(pieces=labels, grids=(GRID,), places=places, pictures=(None, *[0] * 6))
    weights = random_weights(rng, (4, 7, 7))
    weights[:, 0] = np.eye(7)[6]
    layer = Layer(layer=0, weights=weights)
    picture = rng.integers(0, 256, (*SIZE, 3), np.uint8)
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
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
    return view.page.locator(".pictured .word").evaluate_all(
        "all => all.map(word => word.style.background)"
    )


def test_it_opens_on_the_patch_with_most_contrast(show, record):
    picture = np.full((*SIZE, 3), 90, np.uint8)
    picture[4:, 8:16:2] = 255
    view = show(replace(record, pictures=(picture,)), view="text")
    pinned = view.page.locator('.pictured [aria-selected="true"]')
    assert [pinned.nth(at).inner_text() for at in range(pinned.count())] == ["r1c1"]
    assert view.address() == ""


def test_compared_heads_are_pictures_too(show, record):
    view = show(record, view="compare", tray=["0-1", "0-3"])
    assert view.page.locator(".tray-picture .pictured .ink").count() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_lies_over_its_patches(show, record, scheme):
    view = show(record, view="text", query=[0], scheme=scheme)
    view.settle()
    np.testing.assert_array_equal(pixels_of(view, ".pictured .ink"), record.pictures[0])
    heat = backgrounds(view)
    assert [bool(colour) for colour in heat] == [False] * 5 + [True]
    box = view.page.locator(".pictured").bounding_box()
    assert box["width"] == pytest.approx(450, abs=1)
    assert box["width"] / box["height"] == pytest.approx(SIZE[1] / SIZE[0], rel=0.01)
    patch = view.token("query", 6).bounding_box()
    assert patch["x"] == pytest.approx(box["x"] + 2 / 3 * box["width"], abs=1)
    assert patch["y"] == pytest.approx(box["y"] + 1 / 2 * box["height"], abs=1)
    assert patch["height"] == pytest.approx(box["height"] / 2, abs=1)


def test_names_are_shown_where_they_are_looked_for(show_kept, record):
    view = show_kept(record).follow(view="text")
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


def test_a_patch_stands_beside_its_name(show_kept, record):
    view = show_kept(record).follow(view="head")
    view.settle()
    assert view.page.locator("[data-column=key] .patch").count() == 6
    height, width = (whole // parts for whole, parts in zip(SIZE, GRID, strict=True))
    np.testing.assert_array_equal(
        pixels_of(view, "[data-column=key] [data-token='6'] .patch"),
        record.pictures[0][height:, 2 * width :],
    )


def test_a_served_page_asks_for_its_pictures(served, record):
    with served(record, view="text") as view:
        view.page.locator(".pictured .ink").wait_for(state="attached")
        view.settle()
        np.testing.assert_array_equal(pixels_of(view, ".pictured .ink"), record.pictures[0])


@pytest.mark.parametrize(("scheme", "signed"), [("light", False), ("dark", True)])
def test_the_scale_is_what_is_seen_on_the_picture(show, record, scheme, signed):
    """On a picture without ink each end of the bar looks as the patches that have it."""
    row = np.array([0, 1, 0, -1, 1, 0, -1.0]) if signed else np.array([0, 1, 0, 0, 1, 0, 0.0])
    seen = replace(record, pictures=(np.full((*SIZE, 3), 255).astype(np.uint8),))
    numbers = np.tile(row, (4, 7, 1))
    view = show(
        seen,
        view="text",
        query=[0],
        scheme=scheme,
        density=4,
        quantities={"made": [numbers]},
        quantity="made",
    )
    view.settle()
    image = np.asarray(Image.open(io.BytesIO(view.page.screenshot())).convert("RGB")).astype(int)

    def at(box, part, height):
        x, y = box["x"] + part * box["width"], box["y"] + height * box["height"]
        return image[round(4 * y), round(4 * x)]

    bar = view.page.locator(".text-view .scale-bar").bounding_box()
    ends = [(0.01, (3, 6) if signed else (2, 5)), (0.99, (1, 4))]
    for part, patches in ends:
        for token in patches:
            found = at(view.token("query", token).bounding_box(), 0.5, 0.5)
            np.testing.assert_allclose(found, at(bar, part, 0.5), atol=12, err_msg=f"{token}")
    assert np.abs(at(bar, 0.02, 0.25) - at(bar, 0.98, 0.25)).max() > 40


def test_arrows_lead_from_row_to_row(show_kept, record):
    view = show_kept(record).follow(view="text")
    focused = f"{SHADOW}.activeElement.dataset.token"
    view.token("query", 0).focus()
    for key, token in [("Down", 1), ("Right", 2), ("Down", 5), ("Left", 4), ("Up", 1), ("Up", 0)]:
        view.page.keyboard.press(f"Arrow{key}")
        assert view.page.evaluate(focused) == str(token)


COUNT = """() => {
    const put = CanvasRenderingContext2D.prototype.putImageData;
    window.drawn = [];
    CanvasRenderingContext2D.prototype.putImageData = function (...given) {
        if (/patch|ink/.test(this.canvas.className)) {
            window.drawn.push(this.canvas.closest('[data-inspector]') ? 'list' : this.canvas.className);
        }
        return put.apply(this, given);
    };
}"""


def drawn(view):
    """What was drawn of pictures since the last time that was asked."""
    view.settle()
    return view.page.evaluate("window.drawn.splice(0)")


@pytest.fixture
def deep(record, rng):
    """The record with three layers."""
    stack = record["self"]
    layers = [Layer(layer=n, weights=random_weights(rng, (4, 7, 7))) for n in range(3)]
    return replace(record, stacks={"self": replace(stack, layers=tuple(layers))})


def step(view, number):
    view.page.keyboard.press("]")
    view.page.locator(f'[data-headscope][data-layer="{number}"][data-ready="true"]').wait_for(
        state="attached"
    )


@pytest.mark.parametrize(("name", "before"), [("head", "patch"), ("text", "ink")])
def test_pictures_are_drawn_once(show, deep, name, before):
    """Neither pointing nor another layer or size draws a picture again; the list draws those that
    it names.
    """
    view = show(deep, view="matrix")
    view.page.evaluate(COUNT)
    view.choose(name)
    assert [of for of in drawn(view) if of != "list"] == [before] * (12 if name == "head" else 1)
    for token in (3, 5, 0, 6):
        view.token("query", token).hover()
        view.settle()
    for number in (1, 2):
        step(view, number)
    view.token("query", 2).click()
    view.page.locator('.all-heads [data-tile="2-1"]').click()
    view.page.set_viewport_size({"width": 1000, "height": 500})
    assert set(drawn(view)) <= {"list"}


def test_the_list_draws_a_patch_where_another_was(show, deep):
    """At most one drawing for each line, none where the line names the patch that it named
    before.
    """
    view = show(deep, view="text", query=[])
    view.settle()
    view.page.evaluate(COUNT)
    listed = "all => all.map(line => line.dataset.listed)"

    def names():
        return view.page.locator("[data-listed]").evaluate_all(listed)

    before = names()
    for token in (2, 5, 1):
        view.token("query", token).hover()
        view.settle()
        after = names()
        changed = [new for new, old in zip_longest(after, before) if new not in (None, old, "0")]
        assert len(drawn(view)) <= len(changed)
        before = after
    view.token("query", 1).click()
    assert drawn(view) == []


@pytest.fixture
def compared(record, rng):
    """The record beside one with the same tokens, another picture and other weights."""
    stack = record["self"]
    layer = Layer(layer=0, weights=random_weights(rng, (4, 7, 7)))
    picture = rng.integers(0, 256, (*SIZE, 3), np.uint8)
    b = replace(record, stacks={"self": replace(stack, layers=(layer,))}, pictures=(picture,))
    return hs.compare(record, b)


@pytest.mark.parametrize("served_page", [False, True])
def test_each_record_is_shown_on_its_own_picture(show_kept, served, compared, served_page):
    def check(view):
        for quantity, records in [
            ("other", "a"),
            ("weight", "b"),
            ("difference", "ab"),
            ("effect", "ab"),
        ]:
            label = {"other": "weight of A", "weight": "weight of B"}.get(quantity, quantity)
            view.more().page.locator("[data-quantities]").select_option(label=label)
            view.page.locator(f'[data-headscope][data-quantity="{quantity}"]').wait_for(
                state="attached"
            )
            view.settle()
            blocks = view.page.locator(".text-block")
            assert blocks.count() == len(records)
            for number, name in enumerate(records):
                picture = getattr(compared, name).pictures[0]
                found = pixels_of(view, f".text-block:nth-of-type({number + 2}) .ink")
                np.testing.assert_array_equal(found, picture)
            titles = [name.upper() for name in records] if len(records) > 1 else []
            assert blocks.locator(".view-note").all_inner_texts() == titles

    if served_page:
        with served(compared, view="text") as view:
            view.page.locator(".pictured .ink").first.wait_for(state="attached")
            check(view)
    else:
        check(show_kept(compared).follow(view="text"))


def test_a_difference_is_seen_on_both_pictures_at_once(show_kept, compared):
    view = show_kept(compared).follow(view="text", query=[0])
    view.settle()
    heat = backgrounds(view)
    assert len(heat) == 12
    assert heat[:6] == heat[6:]
    assert view.page.get_by_role("listbox").evaluate_all(
        "all => all.map(box => box.ariaLabel)"
    ) == ["Text, A", "Text, B"]
    tops = [view.page.locator(".pictured").nth(n).bounding_box() for n in range(2)]
    assert tops[0]["y"] == pytest.approx(tops[1]["y"])
    assert tops[0]["x"] + tops[0]["width"] < tops[1]["x"]
    view.page.locator(".pictured").nth(1).locator("[data-token='3']").click()
    view.settle()
    assert view.page.locator(".pictured [data-token='3'][aria-selected=true]").count() == 2


def test_a_patch_of_both_records_stands_beside_its_name(show_kept, compared):
    view = show_kept(compared).follow(view="head")
    view.settle()
    assert view.page.locator("[data-side=key][data-token='6'] .patch").count() == 2
    for side in ("query", "key"):
        xs = [
            view.page.locator(f"[data-side={side}][data-token='6'] .patch")
            .nth(n)
            .bounding_box()["x"]
            for n in range(2)
        ]
        assert xs[0] < xs[1]
    height, width = (whole // parts for whole, parts in zip(SIZE, GRID, strict=True))
    for number, record in enumerate((compared.a, compared.b)):
        found = pixels_of(
            view, f"[data-column=key] [data-token='6'] .patch:nth-of-type({number + 1})"
        )
        np.testing.assert_array_equal(found, record.pictures[0][height:, 2 * width :])


@pytest.mark.parametrize("width", [1280, 390])
def test_frames_of_a_video_stand_in_a_row_with_their_numbers(show, rng, width):
    grids, count = ((2, 3),) * 3, 18
    tokens = Tokens(
        pieces=tuple(f"f{frame} {patch}" for frame in range(3) for patch in range(6)),
        grids=grids,
        frames=((0, 1), (2, 3), (4, 4)),
        places=tuple(np.ndindex(2, 3)) * 3,
        pictures=tuple(np.repeat(range(3), 6).tolist()),
    )
    layer = Layer(layer=0, weights=random_weights(rng, (2, count, count)))
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    frames = tuple(rng.integers(0, 256, (*SIZE, 3), np.uint8) for _ in range(3))
    view = show(hs.Record(stacks={"self": stack}, pictures=frames), view="text", size=(width, 844))
    pictures = view.page.locator(".pictured")
    assert pictures.evaluate_all(
        "all => all.map(each => getComputedStyle(each, '::after').content)"
    ) == ['"frames 0-1"', '"frames 2-3"', '"frame 4"']
    boxes = [picture.bounding_box() for picture in pictures.all()]
    # Two in a row even on a phone.
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] < boxes[1]["x"]
    assert max(box["x"] + box["width"] for box in boxes) <= width
