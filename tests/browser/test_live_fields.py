"""Every field of what a live model reads, in a real browser: pair, target, turns, picture, sound."""

import io
import wave

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="needs the extra server: pip install 'headscope[server]'")
pytest.importorskip("PIL", reason="needs the extra pictures: pip install 'headscope[pictures]'")

from playwright.sync_api import expect

from headscope.testing import tiny_model, tiny_tokenizer

from ..processors import square_pictures, tiny_clip, tiny_llava
from .live_pages import SLOW, live_page, open_more, served_model, wait_for_address, wait_until_ready

TEXT = "a cat."
FORM = "{% for turn in messages %}{{ turn['role'][0] }} {{ turn['content'] }} {% endfor %}"


def facts(page):
    return page.locator(".facts")


def tokens(page, count):
    expect(facts(page)).to_contain_text(f" {count} tokens", timeout=SLOW)


def picture(kind="PNG"):
    """12 pixels red beside 8 green ones, 12 high."""
    from PIL import Image

    pixels = np.zeros((12, 20, 3), np.uint8)
    pixels[:, :12, 0] = pixels[:, 12:, 1] = 255
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    name = kind.lower()
    return {"name": f"two.{name}", "mimeType": f"image/{name}", "buffer": file.getvalue()}


def sound(rate, seconds=0.1):
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(2)
        written.setsampwidth(2)
        written.setframerate(rate)
        steps = np.sin(np.arange(int(seconds * rate)) / 9) * 9000
        written.writeframes(np.repeat(steps.astype("<i2"), 2).tobytes())
    return {"name": "hum.wav", "mimeType": "audio/wav", "buffer": file.getvalue()}


def test_a_second_text_is_read_with_the_first(browser):
    with (
        served_model(tiny_model("bert"), tiny_tokenizer(), TEXT) as port,
        live_page(browser, port) as page,
    ):
        tokens(page, 7)
        page.locator('[data-add-field="text_b"]').click()
        page.locator('[data-field="text_b"]').fill("it")
        tokens(page, 10)
        wait_for_address(page, "text_b=it")
        assert page.url.endswith("text=a%20cat.&text_b=it")
        page.reload()
        tokens(page, 10)
        open_more(page)
        page.locator('[data-add-field="text_b"]').click()
        tokens(page, 7)


def test_a_target_is_what_the_decoder_reads(browser):
    with (
        served_model(tiny_model("bart"), tiny_tokenizer(), TEXT) as port,
        live_page(browser, port) as page,
    ):
        expect(page.locator('[data-output="target"]')).to_contain_text("next target token")
        page.locator('[data-add-field="target"]').click()
        page.locator('[data-field="target"]').fill("it")
        expect(page.locator("[data-place]")).to_contain_text("after “t”", timeout=SLOW)
        page.locator("[data-stack-choice]").select_option("decoder")
        # The decoder starts with a token of its own, and does not read the last.
        tokens(page, 4)
        page.reload()
        expect(page.locator('[data-field="target"]')).to_have_value("it", timeout=SLOW)


def test_turns_of_a_conversation_are_read_in_the_form_of_the_model(browser):
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = FORM
    with (
        served_model(tiny_model("llama", writes=True), tokenizer, "a cat") as port,
        live_page(browser, port) as page,
    ):
        page.locator("[data-as-chat]").click()
        # The template writes every token: the tokenizer adds none of its own around it.
        tokens(page, 5)
        page.locator("[data-add-turn]").click()
        expect(page.get_by_label("Who speaks in turn 2")).to_have_value("assistant")
        page.locator('[data-field="turn-1"]').fill("no")
        tokens(page, 8)
        page.get_by_label("Who speaks in turn 1").select_option("system")
        wait_for_address(page, "system")
        page.reload()
        expect(page.locator('[data-field="turn-1"]')).to_have_value("no", timeout=SLOW)
        page.locator("[data-as-text]").click()
        expect(page.locator('[data-field="text"]')).to_have_value("no")
        tokens(page, 4)


def test_a_picture_is_chosen_before_anything_is_shown(browser):
    with (
        served_model(tiny_model("vit", image_size=12), square_pictures()) as port,
        live_page(browser, port, ready=False) as page,
    ):
        expect(page.get_by_text("reads a picture")).to_be_visible(timeout=SLOW)
        # WebP is none of what the server reads: the page draws it anew.
        page.set_input_files('[data-field="image"]', picture("WEBP"))
        wait_until_ready(page)
        tokens(page, 10)
        page.set_input_files('[data-field="image"]', picture())
        expect(page.locator(".live-file")).to_contain_text("two.png", timeout=SLOW)
        page.set_input_files(
            '[data-field="image"]', {"name": "a.png", "mimeType": "image/png", "buffer": b"none"}
        )
        expect(page.locator("[data-problem]")).to_contain_text("cannot be read", timeout=SLOW)
        tokens(page, 10)


def test_a_model_that_needs_picture_and_text_asks_for_the_picture(browser):
    with served_model(*tiny_clip(), TEXT) as port, live_page(browser, port, ready=False) as page:
        page.set_input_files('[data-field="image"]', picture())
        wait_until_ready(page)
        page.locator("[data-stack-choice]").select_option("text")
        tokens(page, 7)
        page.locator('[data-field="text"]').fill("a dog it")
        tokens(page, 8)


def test_a_picture_has_its_place_in_the_text(browser):
    with served_model(*tiny_llava(), TEXT) as port, live_page(browser, port) as page:
        page.set_input_files('[data-field="image"]', picture())
        page.locator("[data-stack-choice]").select_option("vision")
        tokens(page, 10)
        assert page.locator("[data-problem]").inner_text() == ""


def test_a_sound_is_played_at_the_rate_of_the_model(browser):
    from transformers import Wav2Vec2FeatureExtractor

    extractor = Wav2Vec2FeatureExtractor(sampling_rate=8000, do_normalize=False)
    model = tiny_model("wav2vec2")
    with served_model(model, extractor) as port, live_page(browser, port, ready=False) as page:
        page.set_input_files('[data-field="audio"]', sound(44100))
        wait_until_ready(page)
        tokens(page, int(model._get_feat_extract_output_lengths(800)))
        page.set_input_files('[data-field="audio"]', sound(8000, 0.05))
        tokens(page, int(model._get_feat_extract_output_lengths(400)))
        page.set_input_files('[data-field="audio"]', sound(8000, 31))
        expect(page.locator("[data-problem]")).to_contain_text("lasts 31.0 seconds", timeout=SLOW)
