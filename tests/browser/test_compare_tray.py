"""The compare tray: frozen pictures beside each other, in the address and in the call."""

import itertools

import numpy as np
import pytest

import headscope as hs
from headscope.errors import PageError
from headscope.record import Tokens

WORDS = ("[CLS]", "one", "two", "three", "four", "five", "[SEP]")


@pytest.fixture
def record(rng):
    """Two layers of three heads."""
    return hs.from_weights(
        list(rng.dirichlet([0.3] * len(WORDS), size=(2, 3, len(WORDS)))), Tokens(pieces=WORDS)
    )


def pictures(view):
    view.settle()
    return [
        each.get_attribute("data-picture") for each in view.page.locator("[data-picture]").all()
    ]


def test_shift_click_collects_heads_without_moving_anything(show, record):
    view = show(record, view="overview")
    view.page.locator("[data-story] button").first.wait_for()
    before = view.page.locator('[data-tile="1-2"]').bounding_box()
    view.page.locator('[data-tile="1-2"]').click(modifiers=["Shift"])
    view.page.locator('[data-tile="0-1"]').click(modifiers=["Shift"])
    assert view.page.locator('[data-tile="1-2"]').bounding_box() == before
    assert view.state("view") == "overview"
    assert view.address().endswith("tray=1-2;0-1")
    assert view.text("[data-said]") == "0-1 added to compare, 2 of 6"
    view.page.locator('[data-option="compare"]').click()
    view.page.locator('[data-headscope][data-view="compare"]').wait_for(state="attached")
    assert pictures(view) == ["1-2", "0-1"]
    assert view.text("[data-call]") == 'hs.view(record, tray=["1-2", "0-1"])'


def test_any_picture_is_kept_as_it_is(show, record):
    view = show(record, view="matrix", layer=1, heads=[0], query=2)
    view.page.locator("[data-freeze]").click()
    view.page.keyboard.press("]")
    view.page.locator('[data-option="head"]').click()
    view.page.keyboard.press("a")
    assert "tray=1-0~view=matrix~query=2;1-0~query=2" in view.address()


def test_several_heads_are_a_picture_each(show, record):
    assert pictures(show(record, view="compare", tray=["1-0,2", "0-1"])) == ["1-0", "1-2", "0-1"]
    assert show(record, heads=[0, 2], layer=1).state("view") == "compare"


def test_six_pictures_have_room_in_a_narrow_window(show, record):
    every = [f"{layer}-{head}" for layer in (0, 1) for head in (0, 1, 2)]
    view = show(record, view="compare", tray=every, size=(1100, 800))
    view.page.locator("[data-picture][data-layer]").nth(5).wait_for()
    tray, last = (
        view.page.locator(part).bounding_box() for part in (".tray", "[data-picture]:last-child")
    )
    assert last["x"] + last["width"] <= tray["x"] + tray["width"]


TRAY = ["0-1", "1-0 view=matrix", "1-1 view=text query=3", {"layer": 0, "head": 2, "query": "four"}]


@pytest.fixture
def compared(show, record):
    view = show(record, view="compare", tray=TRAY)
    view.page.locator('[data-headscope][data-view="compare"]').wait_for(state="attached")
    view.page.locator("[data-picture][data-layer]").nth(3).wait_for()
    return view


def test_python_opens_the_same_row(compared):
    assert pictures(compared) == ["0-1", "1-0 view=matrix", "1-1 view=text query=3", "0-2 query=4"]
    boxes = [each.bounding_box() for each in compared.page.locator("[data-picture]").all()]
    assert len({round(box["y"]) for box in boxes}) == 1
    assert all(one["x"] + one["width"] <= other["x"] for one, other in itertools.pairwise(boxes))
    assert [
        each.get_attribute("data-heads") for each in compared.page.locator("[data-picture]").all()
    ] == ["1", "0", "1", "2"]


def test_a_row_is_emptied_by_keyboard_and_says_so(compared):
    compared.page.locator("[data-picture]").nth(3).focus()
    compared.page.keyboard.press("Delete")
    assert pictures(compared) == ["0-1", "1-0 view=matrix", "1-1 view=text query=3"]
    assert compared.text("[data-said]") == "0-2 query=4 removed, 3 left"
    compared.page.keyboard.press("Control+z")
    assert len(pictures(compared)) == 4


def test_a_token_is_pointed_at_in_all_pictures(show, record):
    view = show(record, view="compare", tray=["0-1", "1-2"])
    view.page.locator("[data-picture][data-layer]").nth(1).wait_for()
    view.page.locator('[data-picture="0-1"] [data-side="query"][data-token="3"]').hover()
    view.settle()
    assert view.page.locator(".scroller[data-focus=query]").count() == 2


def test_a_click_pins_in_one_picture_and_is_kept(show, record):
    view = show(record, view="compare", tray=["0-1", "1-2"])
    view.page.locator("[data-picture][data-layer]").nth(1).wait_for()
    view.page.locator('[data-picture="0-1"] [data-side="query"][data-token="3"]').click()
    assert pictures(view) == ["0-1 query=3", "1-2"]


@pytest.mark.parametrize(
    ("tray", "message"),
    [
        (["9-0"], r"layer=9; this page has 0, 1"),
        (["0-7"], "head=7"),
        (["0 query=noone"], "there is no such token"),
        (["two"], "has no place"),
        (["0"] * 7, "a row holds 6"),
        ("0-1", "must be a list"),
        ([{"head": 1}], "names no layer"),
        (["0 view=pair"], "view='pair'"),
        (["0 mass=1"], "is none of"),
    ],
)
def test_what_a_page_does_not_hold_is_refused(record, tray, message):
    with pytest.raises(PageError, match=message):
        hs.view(record, tray=tray)


def test_hostile_tokens_are_text_in_every_picture(show, hostile, rng):
    words = tuple(hostile)[:24]
    weights = list(rng.dirichlet([0.5] * len(words), size=(1, 2, len(words))))
    record = hs.from_weights(weights, Tokens(pieces=words))
    view = show(
        record, view="compare", tray=["0-0 query=3", "0-1 view=matrix key=2", "0 view=text"]
    )
    view.page.locator("[data-picture][data-layer]").nth(2).wait_for()
    assert (
        view.page.locator(
            "[data-picture] img, [data-picture] script, [data-picture] iframe"
        ).count()
        == 0
    )
    assert np.isfinite(view.page.evaluate("document.documentElement.scrollWidth"))


@pytest.fixture
def both(show, record, rng):
    """The first record beside one of as many other words and another of more layers and fewer
    words.
    """
    words = ("[CLS]", "uno", "due", "tre", "quattro", "cinque", "[SEP]")
    other = hs.from_weights(list(rng.dirichlet([0.3] * 7, size=(2, 3, 7))), Tokens(pieces=words))
    short = hs.from_weights(
        list(rng.dirichlet([0.3] * 4, size=(5, 3, 4))), Tokens(pieces=words[:4])
    )
    tray = ["0-1", "0-1 record=it", "4-2 record=short"]
    view = show(record, view="compare", beside={"it": other, "short": short}, tray=tray)
    view.page.locator("[data-picture][data-layer]").nth(2).wait_for()
    return view


def test_pictures_of_several_records_stand_in_one_row(both):
    tokens = [
        each.locator(
            '[data-side="query"] [data-token], [data-side="query"][data-token]'
        ).all_inner_texts()
        for each in both.page.locator("[data-picture]").all()
    ]
    assert [words[1] for words in tokens] == ["one", "uno", "uno"]
    assert [len(words) for words in tokens] == [7, 7, 4]
    said = both.page.locator(".tray-picture header bdi").all_inner_texts()
    assert [words.split(" · ")[0] for words in said[1:]] == ["it", "short"]
    assert all("strongest link" in words for words in said)
    assert both.text("[data-call]") == (
        'hs.view(record, beside=beside, tray=["0-1", "0-1 record=it", "4-2 record=short"])'
    )
    assert both.address() == ""  # as the page opened


def test_a_token_is_pointed_at_in_another_text_where_it_has_as_many(both):
    both.page.locator('[data-picture="0-1"] [data-side="query"][data-token="3"]').hover()
    both.settle()
    focused = both.page.locator("[data-picture]:has(.scroller[data-focus=query])")
    assert [each.get_attribute("data-picture") for each in focused.all()] == [
        "0-1",
        "0-1 record=it",
    ]


def test_what_is_added_is_added_of_every_record_that_has_it(both):
    both.page.locator("[data-clear]").click()
    both.page.locator('[data-option="overview"]').click()
    both.page.locator("[data-story] button").first.wait_for()
    both.page.locator('[data-tile="1-2"]').click(modifiers=["Shift"])
    assert both.address().endswith("tray=1-2;1-2~record=it;1-2~record=short")
    assert both.text("[data-said]") == "1-2 added to compare, 3 of 6"


def test_a_pin_in_another_record_stays_in_its_picture(both):
    both.page.locator('[data-picture="0-1 record=it"] [data-side="query"][data-token="2"]').click()
    both.page.locator('[data-picture="0-1 record=it query=2"]').wait_for()
    assert pictures(both) == ["0-1", "0-1 record=it query=2", "4-2 record=short"]


def test_a_picture_of_another_record_opens_with_all_of_its_views(both):
    both.page.locator(".tray-name").nth(2).click()
    both.page.locator('[data-headscope][data-view="head"][data-layer="4"]').wait_for(
        state="attached"
    )
    assert "shown_record=short" in both.address()
    assert "5 layers · 3 heads · 4 tokens" in both.text("header")
    assert 'beside=beside, view="head"' in both.text("[data-call]")
    assert 'shown_record="short"' in both.text("[data-call]")
    both.choose("overview")
    assert both.page.locator(".tile").count() == 15
    # from here a head goes into the tray of the page, and its pictures are there still
    both.page.locator('[data-tile="3-2"]').click(modifiers=["Shift"])
    assert "3-2~record=short" in both.address()
    both.page.locator("[data-record]").select_option("")
    assert "2 layers · 3 heads · 7 tokens" in both.text("header")
    assert both.page.locator(".tile").count() == 6
    both.page.go_back()
    assert "5 layers" in both.text("header")


def test_a_page_opens_on_another_record(show, record, rng):
    other = hs.from_weights(
        list(rng.dirichlet([0.3] * 4, size=(5, 3, 4))), Tokens(pieces=("a", "b", "c", "d"))
    )
    view = show(record, beside=[other], shown_record="b", layer=4, heads=[2], query=["c"])
    assert view.state("layer") == "4"
    assert view.state("heads") == "2"
    assert view.token("query", 2).get_attribute("data-lit-self") == "pin"
    with pytest.raises(PageError, match="shown_record='c'; beside= has b"):
        hs.view(record, beside=[other], shown_record="c")
    with pytest.raises(PageError, match="give further records"):
        hs.view(record, shown_record="b")


def test_matrices_of_many_tokens_stand_in_two_rows_with_names_once_a_row(show, rng):
    heads = rng.dirichlet([0.05] * 70, size=(1, 6, 70))
    record = hs.from_weights(list(heads), Tokens(pieces=[f"w{token}" for token in range(70)]))
    view = show(record, view="compare", tray=[f"0-{head}" for head in range(6)])
    view.settle()
    boxes = [each.bounding_box() for each in view.page.locator('[data-canvas="matrix"]').all()]
    assert len({round(box["y"]) for box in boxes[:3]}) == 1
    assert all(box["y"] > boxes[0]["y"] + boxes[0]["height"] for box in boxes[3:])
    assert all(box["width"] > 120 for box in boxes)
    assert view.page.locator(".axis-query").count() == 2
    assert view.page.locator(".axis-key").count() == 0


def test_words_stand_beside_the_lines_of_all_heads_wherever_one_is_scrolled(show, rng):
    words = tuple(f"w{at}" for at in range(50))
    weights = rng.dirichlet([0.3] * 50, size=(1, 3, 50)).astype(np.float32)
    record = hs.from_weights(weights, Tokens(pieces=words))
    view = show(record, view="compare", tray=["0-0", "0-1", "0-2"], size=(1280, 600))
    scrollers = view.page.locator(".tray-picture .scroller")
    scrollers.first.evaluate("scroller => { scroller.scrollTop = 90 }")
    view.settle()
    assert scrollers.evaluate_all("all => all.map(each => each.scrollTop)") == [90, 90, 90]
