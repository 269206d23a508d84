"""The page inside a notebook's output: a sandboxed frame, where neither address nor storage may be
touched.
"""

from functools import partial

import pytest

import headscope as hs
from headscope.testing import random_weights

from .live_pages import wait_for

SHADOW = "document.querySelector('#headscope').shadowRoot"


@pytest.fixture
def record(rng):
    return hs.from_weights(random_weights(rng, (3, 4, 9, 9)), [f"w{number}" for number in range(9)])


def frame_of(page, number):
    return page.frame_locator("iframe").nth(number)


def height(page, number):
    return page.locator("iframe").nth(number).bounding_box()["height"]


def is_high_enough(page, number):
    """No scroll bar inside, and no more than a little empty space below what is shown."""
    inner = page.frames[number + 1].evaluate(
        f"{SHADOW}.querySelector('main').getBoundingClientRect().height"
    )
    return inner <= height(page, number) <= inner + 8


def test_it_works_as_on_a_page(record, notebook):
    frame = frame_of(notebook(hs.view(record, view="head")), 0)
    frame.locator('[data-tile="0-1"]').click()
    frame.locator('[data-headscope][data-heads="1"]').wait_for(state="attached")


def test_each_frame_gets_the_height_of_what_it_shows(record, notebook):
    page = notebook(
        hs.view(record, view="head"), hs.view(record, view="model"), hs.view(record, view="text")
    )
    for number in range(3):
        page.wait_for_function(
            f"document.querySelectorAll('iframe')[{number}].style.height !== '720px'"
        )
        wait_for(page, partial(is_high_enough, page, number))
    assert len({height(page, number) for number in range(3)}) > 1


def test_frames_out_of_sight_draw_once_they_have_a_width(record, notebook):
    views = "".join(
        view._repr_html_() for view in (hs.view(record, view="head"), hs.view(record, view="model"))
    )
    page = notebook(
        outputs=f'<div style="height:3000px"></div><div id="cell" style="width:0">{views}</div>',
        wait=False,
    )
    for number in range(2):
        frame_of(page, number).locator("[data-headscope]").wait_for(state="attached")
        assert frame_of(page, number).locator("[data-ready]").count() == 0
    page.wait_for_timeout(1000)  # until the browser stops drawing what is out of sight
    page.evaluate("document.querySelector('#cell').style.width = ''")
    for number in range(2):
        frame_of(page, number).locator('[data-headscope][data-ready="true"]').wait_for(
            state="attached"
        )
    assert page.evaluate("scrollY") == 0


def test_a_height_follows_what_is_chosen(record, notebook):
    page = notebook(hs.view(record, view="head"))
    page.wait_for_function("document.querySelector('iframe').style.height !== '720px'")
    frame_of(page, 0).locator('[data-option="text"]').click()
    frame_of(page, 0).locator('[data-headscope][data-view="text"]').wait_for(state="attached")
    wait_for(page, partial(is_high_enough, page, 0))


@pytest.mark.parametrize("light", [True, False])
def test_colours_are_those_of_the_notebook_and_follow_it(light, record, notebook):
    page = notebook(hs.view(record, view="head"), light=light)
    theme = frame_of(page, 0).locator("[data-headscope]")
    words = ["dark", "light"]
    frame_of(page, 0).locator(f'[data-headscope][data-theme="{words[light]}"]').wait_for(
        state="attached"
    )
    page.evaluate(
        "(light) => { document.body.dataset.jpThemeLight = light; }", str(not light).lower()
    )
    frame_of(page, 0).locator(f'[data-headscope][data-theme="{words[not light]}"]').wait_for(
        state="attached"
    )
    assert theme.count() == 1


def test_colours_that_were_chosen_stay(record, notebook):
    page = notebook(hs.view(record, view="head", theme="light"), light=False)
    page.wait_for_function("document.querySelector('iframe').style.height !== '720px'")
    page.wait_for_timeout(200)
    assert frame_of(page, 0).locator("[data-headscope]").get_attribute("data-theme") == "light"


def test_a_host_that_strips_scripts_shows_it_all_the_same(record, notebook):
    text = hs.view(record, view="head")._repr_html_()
    page = notebook(outputs=text[text.index("<iframe") :])
    page.wait_for_timeout(200)
    assert height(page, 0) == 720
    frame_of(page, 0).locator('[data-tile="0-1"]').click()
    frame_of(page, 0).locator('[data-headscope][data-heads="1"]').wait_for(state="attached")


def test_a_host_that_strips_frames_and_styles_says_what_to_do(record, notebook):
    shown = hs.view(record, view="head")._repr_html_()
    assert notebook(hs.view(record, view="head")).get_by_text("File, Trust Notebook").is_hidden()
    left = notebook(outputs=shown[shown.index("<p class=") :])
    assert left.get_by_text(
        "This view is shown in a trusted notebook only: File, Trust Notebook."
    ).is_visible()


def test_no_token_is_garbled_where_the_file_names_another_encoding(rng, notebook):
    tokens = ["caf\u00e9", "\u65e5\u672c", "na\u00efve"]
    page = notebook(
        hs.view(hs.from_weights(random_weights(rng, (1, 2, 3, 3)), tokens), view="head"),
        charset="windows-1252",
    )
    assert frame_of(page, 0).locator('[data-side="query"] .label').all_inner_texts() == tokens


def test_the_notebook_hears_only_its_own_frames(record, notebook):
    page = notebook(hs.view(record, view="head"))
    page.wait_for_function("document.querySelector('iframe').style.height !== '720px'")
    before = height(page, 0)
    for height_asked in ("99", "'1px;position:fixed'", "-5", "null"):
        page.evaluate(f"window.postMessage({{headscope: 'frame', height: {height_asked}}}, '*')")
        page.frames[1].evaluate(
            f"parent.postMessage({{headscope: 'other', height: {height_asked}}}, '*')"
        )
    page.wait_for_timeout(200)
    assert height(page, 0) == before


def test_a_fragment_is_a_page_of_its_own_too(rng, notebook):
    """As users of BertViz write it into a file: no head, no body, no encoding."""
    tokens = ["caf\u00e9", "\u65e5\u672c", "na\u00efve"]
    page = notebook(
        hs.view(hs.from_weights(random_weights(rng, (1, 2, 3, 3)), tokens), view="head"), bare=True
    )
    page.wait_for_function("document.querySelector('iframe').style.height !== '720px'")
    assert frame_of(page, 0).locator('[data-side="query"] .label').all_inner_texts() == tokens
