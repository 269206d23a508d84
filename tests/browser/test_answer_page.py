"""The page of an answer in a browser: pointing, choosing, keys, a phone."""

from dataclasses import replace

import pytest

import headscope as hs
from headscope.answering import AnswerWord

from ..answers import made_answer

SHOWN = """[...document.querySelectorAll('.heat')].filter(image => {
    const {visibility, display} = getComputedStyle(image);
    return visibility === 'visible' && display !== 'none';
}).map(image => image.className)"""


@pytest.fixture
def opened(browser, tmp_path):
    path = hs.view(made_answer(words=24)).save(tmp_path / "answer.html")
    page = browser.new_page()
    page.goto(path.as_uri())
    yield page
    page.close()


def test_the_heat_follows_the_word_that_is_chosen_or_pointed_at(opened):
    assert opened.evaluate(SHOWN) == ["heat plain h0"]
    opened.locator("label.w7").click()
    opened.mouse.move(1, 1)
    assert opened.evaluate(SHOWN) == ["heat plain h7"]
    opened.locator("label.w3").hover()
    assert opened.evaluate(SHOWN) == ["heat plain h3"]
    # a mouse that only rests does not keep keys from leading on
    opened.keyboard.press("ArrowRight")
    assert opened.evaluate(SHOWN) == ["heat plain h8"]
    opened.mouse.move(1, 1)
    opened.get_by_label("more (blue) or less (orange)").check()
    assert opened.evaluate(SHOWN) == ["heat signed h8"]


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(opened, width):
    opened.set_viewport_size({"width": width, "height": 800})
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    picture = opened.locator(".picture").bounding_box()
    assert picture["width"] > 250
    assert picture["height"] <= 0.75 * 800
    assert abs(picture["width"] / picture["height"] - 6 / 4) < 0.02


def test_words_of_hebrew_run_from_right_to_left(browser, tmp_path):
    """Also where a sentence quotes one before a number."""
    words = tuple(AnswerWord(text, (at,)) for at, text in enumerate(["הח", "יש"]))
    answer = replace(made_answer(words=2), words=words)
    page = browser.new_page()
    page.goto(hs.view(answer).save(tmp_path / "answer.html").as_uri())
    first, second = (page.locator(f"label.w{at}").bounding_box() for at in (0, 1))
    assert first["x"] > second["x"]
    assert page.locator("main > p bdi").last.inner_text() in ("\u05d4\u05d7", "\u05d9\u05e9")
    page.close()
