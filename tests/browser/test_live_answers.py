"""Questions about a picture to a live model, in a real browser: a tiny Qwen3-VL."""

import time
from contextlib import contextmanager

import pytest

pytest.importorskip("uvicorn", reason="needs the extra server: pip install 'headscope[server]'")
pytest.importorskip("PIL", reason="needs the extra pictures: pip install 'headscope[pictures]'")

from playwright.sync_api import expect
from transformers import AutoModelForCausalLM, AutoTokenizer

import headscope as hs

from ..processors import tiny_qwen_vl
from .live_pages import SLOW, live_page, served_model, wait_for_width
from .test_live_fields import picture


@pytest.fixture(scope="module")
def model():
    return tiny_qwen_vl("qwen3_vl")


@pytest.fixture(scope="module")
def opened(browser, model):
    with served_model(*model, "what is it") as port, live_page(browser, port) as page:
        yield page


@pytest.fixture
def answered(opened):
    """The page with an answer to its question, of the test before or of its own."""
    if not opened.locator("[data-open-panel]").count():
        open_panel(opened)
    if not opened.locator("[data-answered]").count():
        answer(opened)
    return opened


def open_panel(page):
    page.locator('[data-panel="answer"]').click()
    page.set_input_files('[data-field="image"]', picture())
    # What layers say of the text alone goes with the answer to the text alone.
    vision = page.locator("[data-stack-choice] option", has_text="vision")
    expect(vision).to_be_attached(timeout=SLOW)


def answer(page):
    page.locator("[data-token-count]").select_option("8")
    page.locator('[data-answer="start"]').click()
    expect(words(page).first).to_be_visible(timeout=SLOW)


@contextmanager
def slow(model, seconds):
    hook = model.register_forward_pre_hook(lambda *_: time.sleep(seconds))
    try:
        yield
    finally:
        hook.remove()


def words(page):
    return page.locator("[data-answered] [data-word]")


def chosen(page):
    """The number of the word that is chosen, -1 for all."""
    return page.locator('[data-answered] [aria-pressed="true"][data-word]').get_attribute(
        "data-word"
    )


def test_a_question_is_answered_and_the_heat_follows_its_words(opened):
    open_panel(opened)
    # What each layer would say of the question, the last one what the model says.
    output = opened.locator("[data-output]")
    output.locator("[data-by-layer]").first.click()
    expect(output.locator("[data-lens-layers] li").last).to_contain_text(
        output.locator("[data-guess] .number").first.inner_text(), timeout=SLOW
    )
    answer(opened)
    expect(opened.locator("[data-answered]")).to_contain_text("what is it")
    assert chosen(opened) == "-1"
    opened.locator('[data-word="2"]').click()
    assert chosen(opened) == "2"
    expect(opened.locator("[data-answered] [data-heat]")).to_be_visible()
    # the views show question and answer, in the stack that wrote it
    expect(opened.locator("[data-stack-choice]")).to_have_value("text")


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(width, answered):
    answered.set_viewport_size({"width": width, "height": 860})
    expect(answered.locator("[data-answered]")).to_be_visible()
    wait_for_width(answered, width)


def test_a_newer_question_ends_it_and_has_no_answer_yet(answered, model):
    alert = answered.locator("[data-open-panel] [role=alert]")
    answered.locator('[data-field="text"]').fill("what is that")
    expect(answered.locator("[data-answered]")).to_have_count(0)
    expect(answered.locator('[data-live="ready"]')).to_be_attached(timeout=SLOW)
    with slow(model[0], 0.3):
        answered.locator('[data-answer="start"]').click()
        expect(answered.locator("[data-answer-words]")).not_to_be_empty(timeout=SLOW)
        answered.locator('[data-field="text"]').fill("what is it")
        expect(answered.locator('[data-answer="start"]')).to_be_visible(timeout=SLOW)
    expect(answered.locator('[data-live="ready"]')).to_be_attached(timeout=SLOW)
    expect(alert).to_be_empty()
    expect(answered.locator("[data-problem]")).to_be_empty()
    # the first answer is that of the first question, which is asked again
    expect(answered.locator("[data-answered]")).to_be_visible()


def test_a_changed_model_answers_otherwise_and_undoing_it_shows_the_question(answered):
    answered.locator('[data-option="overview"]').click()
    answered.locator('[data-tile="1-3"]').click()
    answered.keyboard.press("x")
    expect(answered.locator("[data-kl]")).to_contain_text("moved", timeout=SLOW)
    answered.locator('[data-answer="start"]').click()
    expect(words(answered).first).to_be_visible(timeout=SLOW)
    answered.locator("[data-change]").click()
    expect(answered.locator('[data-output="next-token"]')).to_be_visible(timeout=SLOW)


def test_a_document_that_is_switched_off_changes_the_answer(browser):
    documents = ["The code of the mill is amber falcon.", "Copper opens the tower."]
    turns = [{"role": "document", "content": text} for text in documents]
    turns.append({"role": "user", "content": "Which code opens the mill?"})
    retrieval = [
        of.from_pretrained(hs.answering.DEMO) for of in (AutoModelForCausalLM, AutoTokenizer)
    ]
    with served_model(*retrieval, turns) as port, live_page(browser, port) as page:
        page.locator('[data-panel="answer"]').click()
        answer(page)
        answered = page.locator("[data-answered]")
        expect(answered.locator(".answer-says")).to_contain_text("“amber falcon” needed document 1")
        expect(answered.locator("[data-needed]")).to_have_attribute("data-part", "0")
        page.locator("[data-turn-0]").uncheck()
        expect(answered.locator(".answer-says")).not_to_contain_text("amber falcon", timeout=SLOW)
        # What is left keeps its name.
        expect(answered.locator(".answer-part").first).to_contain_text("document 2")
        page.locator("[data-turn-0]").check()
        expect(answered.locator(".answer-says")).to_contain_text("amber falcon", timeout=SLOW)
