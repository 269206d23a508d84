"""What live models say that do not write, in a real browser: hidden words, and classes."""

import pytest

pytest.importorskip("uvicorn", reason="needs the extra server: pip install 'headscope[server]'")

from playwright.sync_api import expect

from headscope.testing import tiny_tokenizer

from ..live.conftest import masked_model
from ..processors import with_head
from .live_pages import SLOW, live_page, served_model


def test_hidden_words_are_guessed_where_the_mask_stands(browser):
    with (
        served_model(*masked_model("bert"), "the cat sat.") as port,
        live_page(browser, port) as page,
    ):
        output = page.locator('[data-output="masked"]')
        expect(output).to_contain_text("Write [MASK] for a word")
        page.locator('[data-field="text"]').fill("the [MASK] sat [MASK].")
        expect(output.locator("[data-place]")).to_have_count(2, timeout=SLOW)
        assert output.locator("[data-guess]").count() == 10
        # a guess of a hidden word is nothing to go on from
        assert output.locator("[data-branch]").count() == 0
        output.locator("[data-by-layer]").first.click()
        expect(output.locator("[data-lens-layers] li")).to_have_count(2, timeout=SLOW)
        page.locator('[data-tile="1-1"]').click()
        page.keyboard.press("x")
        expect(output.locator("[data-kl]")).to_have_count(2, timeout=SLOW)


def test_classes_have_their_names_before_and_after_a_change(browser):
    names = {0: "sad", 1: "glad", 2: "neither"}
    model = with_head("SequenceClassification", id2label=names)
    with (
        served_model(model, tiny_tokenizer(), "the cat sat.") as port,
        live_page(browser, port) as page,
    ):
        output = page.locator('[data-output="classes"]')
        names = {
            guess.get_attribute("data-guess") for guess in output.locator("[data-guess]").all()
        }
        assert names == {"sad", "glad", "neither"}
        assert output.locator("[data-by-layer]").count() == 0
        page.locator('[data-tile="1-1"]').click()
        page.keyboard.press("x")
        expect(output.locator("[data-kl]")).to_contain_text("nats", timeout=SLOW)
        expect(output.locator(".was").first).to_be_visible()


def test_classes_of_a_tagger_are_of_one_token(browser):
    names = {0: "name", 1: "place"}
    model = with_head("TokenClassification", id2label=names)
    with (
        served_model(model, tiny_tokenizer(), "the cat sat.") as port,
        live_page(browser, port) as page,
    ):
        output = page.locator('[data-output="classes"]')
        page.locator('[data-tile="1-1"]').click()
        page.keyboard.press("x")
        expect(output.locator(".was").first).to_be_visible(timeout=SLOW)
        assert output.locator("[data-place]").count() == 1
        expect(output.locator(".live-title")).to_contain_text("of “")
