"""The page of an answer in a browser: its words, folded texts, heads, pictures, paper, a phone."""

from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect

import headscope as hs
from headscope.answering import AnswerWord

from ..answers import made_answer
from .test_accessibility import AXE, grave

DOCUMENTS = [
    "At the library they use seven. The road was quiet on Friday. The old map hangs by the door. "
    "Two visitors came on Monday. Dragon opens the quarry. The keeper walked home in the evening.",
    "The code of the mill is amber falcon. It rained near the barn on Monday.",
    "Copper opens the tower. Nobody at the mill remembers the code.",
]
INK = """() => {
    const marks = document.querySelector('#headscope').shadowRoot.querySelectorAll('mark');
    return [...marks].map(mark => mark.style.getPropertyValue('--ink') + mark.textContent).join();
}"""
OPACITIES = """() => {
    const canvas = document.querySelector('#headscope').shadowRoot.querySelector('[data-heat]');
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return [...data].map((value, at) => at % 4 === 3 ? value : null).filter(value => value !== null);
}"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    asked = hs.answer(None, documents=DOCUMENTS, question="Which code opens the mill?")
    many = hs.answer(
        None, documents=DOCUMENTS[1:] * 20, question="Which code opens the tower?", need=None
    )
    twice = hs.answer(
        None, documents=[*DOCUMENTS[:2], DOCUMENTS[1]], question="Which code opens the mill?"
    )
    plain = hs.answer(None, None, f"{DOCUMENTS[1]} Which code opens the mill?")
    made = {"text": asked, "many": many, "twice": twice, "plain": plain}
    made["picture"] = made_answer(words=24)
    return {name: answer.view().save(folder / f"{name}.html") for name, answer in made.items()}


@pytest.fixture
def opened(pages, open_file):
    return lambda name, **window: open_file(pages[name], **window)


def bars(view, part):
    return view.page.locator(f'[data-part="{part}"] .answer-bars').inner_text().split("\n")


def test_a_word_shows_its_own_bars_and_ink(opened):
    view = opened("text")
    assert any("→ < 0.1 %" in line for line in bars(view, 1))
    expect(view.page.locator("[data-needed]")).to_have_count(1)
    before, all_words = view.page.evaluate(INK), bars(view, 1)
    view.page.locator('[data-word="1"]').click()
    assert bars(view, 1) != all_words
    assert view.page.evaluate(INK) != before
    expect(view.page.get_by_text("when “falcon” was written")).to_be_visible()
    # Words are one stop of the Tab key, and arrows go from one to the next.
    view.page.keyboard.press("ArrowLeft")
    view.page.keyboard.press("Enter")
    expect(view.page.locator('[data-word="0"]')).to_have_attribute("aria-pressed", "true")


def test_a_head_shows_what_it_looked_at(opened):
    view = opened("text")
    view.page.locator('[data-head="2-0"]').click()
    expect(view.page.get_by_role("heading", name="What head 2-0 looked at")).to_be_visible()
    assert float(bars(view, 1)[0].split(" %")[0]) > 90
    expect(view.page.locator('[data-head="2-0"]')).to_have_attribute("data-framed", "true")
    view.page.locator('[data-head="2-0"]').click()
    expect(view.page.get_by_role("heading", name="The prompt, part by part")).to_be_visible()


def test_heads_are_framed_by_all_that_was_needed(opened):
    view = opened("twice")
    expect(
        view.page.get_by_text("30 % or more on document 2 and document 3 together")
    ).to_be_visible()
    expect(view.page.locator('[data-head="2-0"]')).to_have_attribute("data-framed", "true")


def test_what_has_no_template_names_none(opened):
    rest = opened("plain").page.get_by_text("The rest: first token")
    expect(rest).to_contain_text("the answer itself")
    expect(rest).not_to_contain_text("template")


def test_a_long_part_is_folded_to_its_strongest_sentences(opened):
    text = opened("text").page.locator('[data-part="0"] .answer-text')
    assert len(text.inner_text()) < len(DOCUMENTS[0])
    text.locator("[data-fold]").first.click()
    assert " ".join(text.inner_text().split()) == DOCUMENTS[0]


def test_of_many_parts_the_rest_is_folded_in_its_place(opened):
    view = opened("many")
    parts = view.page.locator("[data-part]")
    assert parts.count() < 41
    while view.page.locator(".answer-parts > li > [data-fold]").count():
        view.page.locator(".answer-parts > li > [data-fold]").first.click()
    expect(parts).to_have_count(41)
    shown = parts.evaluate_all("all => all.map(part => Number(part.dataset.part))")
    assert shown == sorted(shown)


@pytest.mark.parametrize("name", ["text", "picture"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(name, width, opened):
    view = opened(name, size=(width, 844))
    assert view.page.evaluate("document.documentElement.scrollWidth") == width


def test_dark_colours_are_those_of_the_system_until_they_are_chosen(opened):
    view = opened("text", scheme="dark")
    expect(view.root).to_have_attribute("data-theme", "dark")
    view.page.locator("[data-theme-toggle]").click()
    expect(view.root).to_have_attribute("data-theme", "light")


def test_paper_has_both_bars_of_each_part(opened):
    view = opened("text")
    view.page.emulate_media(media="print")
    try:
        shown = view.page.locator('[data-part="1"] .answer-bar')
        expect(shown).to_have_count(2)
        assert all(bar.bounding_box()["width"] > 50 for bar in shown.all())
        expect(view.page.locator("[data-theme-toggle]")).to_be_hidden()
    finally:
        view.page.emulate_media(media="screen")


def test_the_heat_follows_the_word_that_is_chosen_or_pointed_at(opened):
    view = opened("picture")

    def strongest():
        view.settle()
        return int(np.argmax(view.page.evaluate(OPACITIES)))

    view.page.locator('[data-word="2"]').click()
    view.page.mouse.move(1, 1)
    assert strongest() == 6
    view.page.locator('[data-word="3"]').hover()
    assert strongest() == 9
    view.page.mouse.move(1, 1)
    assert strongest() == 6
    # A sink is left out, and has a cross.
    assert view.page.evaluate(OPACITIES)[5] == 0
    expect(view.page.locator(".answer-picture path")).to_have_count(1)
    scale, gradient = (
        view.page.locator(".answer-scale i"),
        "i => getComputedStyle(i).backgroundImage",
    )
    assert "50%" not in scale.evaluate(gradient)  # from 0 on it has a colour
    view.page.locator("[data-relative]").check()
    assert "50%" in scale.evaluate(gradient)
    assert strongest() == 6
    expect(view.page.locator(".answer-scale")).to_contain_text("less the mean over words")


@pytest.mark.skipif(not AXE.exists(), reason="axe-core comes with the front end's packages")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["text", "picture"])
def test_axe_finds_nothing(name, scheme, opened):
    assert grave(opened(name, scheme=scheme), scheme) == []


def test_words_of_hebrew_run_from_right_to_left(open_file, tmp_path):
    """Also where a sentence quotes one before a number."""
    words = tuple(AnswerWord(text, (at,)) for at, text in enumerate(["הח", "יש"]))
    answer = replace(made_answer(words=2), words=words)
    view = open_file(answer.view().save(tmp_path / "answer.html"))
    first, second = (view.page.locator(f'[data-word="{at}"]').bounding_box() for at in (0, 1))
    assert first["x"] > second["x"]
    assert words[0].text in "".join(view.page.locator(".answer-says bdi").all_inner_texts())
