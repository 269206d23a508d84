"""A live model in a real browser: type, silence a head, draw a pattern."""

import threading
import time
from contextlib import contextmanager

import pytest

pytest.importorskip("uvicorn", reason="needs the extra server: pip install 'headscope[server]'")

from playwright.sync_api import expect

from .live_pages import wait_for_address

TEXT = "The rabbit hopped across the road because it was tired."
TOKEN = "right-token"
SLOW = 30_000


@pytest.fixture(scope="module")
def live_port():
    """The demo model behind its server."""
    import uvicorn

    from headscope.capturing import load_model
    from headscope.live._facts import LIMITS
    from headscope.live._model import LiveModel
    from headscope.live._server import LiveHost, live_application
    from headscope.views.listening import listening_on

    model, tokenizer = load_model(None)
    live = LiveModel(model, tokenizer, limits=LIMITS, text=TEXT)
    host = LiveHost(name="demo", text=TEXT, limits=LIMITS, live=live)
    with _running(uvicorn, live_application(host, TOKEN), listening_on) as port:
        yield port


@contextmanager
def _running(uvicorn, application, listening_on):
    with listening_on(0) as listening:
        server = uvicorn.Server(uvicorn.Config(application, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture
def page(browser, live_port):
    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"http://127.0.0.1:{live_port}/?token={TOKEN}")
    ready = page.locator('[data-headscope][data-ready="true"]')
    ready.wait_for(state="attached", timeout=SLOW)
    yield page
    context.close()
    assert errors == []


def test_a_text_that_is_typed_is_shown_and_stays_in_the_address(page):
    page.locator('[data-field="text"]').fill("Two words.")
    expect(page.locator(".facts")).to_contain_text("5 tokens", timeout=SLOW)
    wait_for_address(page, "text=Two%20words.")
    page.reload()
    expect(page.locator('[data-field="text"]')).to_have_value("Two words.", timeout=SLOW)


def test_an_empty_text_is_a_message_and_the_picture_stays(page):
    page.locator('[data-field="text"]').fill(" ")
    expect(page.locator("[data-problem]")).to_contain_text("Type a text")
    expect(page.locator(".facts")).to_contain_text("13 tokens")


def test_a_silenced_head_moves_the_output_and_undoing_it_takes_it_back(page):
    page.locator('[data-tile="1-8"]').click()
    page.keyboard.press("x")
    switch = page.locator('[data-change="silence 1-8"]')
    expect(page.locator("[data-kl]")).to_contain_text("moved", timeout=SLOW)
    expect(switch).to_have_attribute("aria-pressed", "true")
    wait_for_address(page, "changes=zero:1-8")
    # The card of the head offers more quantities and its own buttons now, and stays in the window;
    # in a tall one it is narrow.
    page.set_viewport_size({"width": 1280, "height": 1000})
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size({"width": 1280, "height": 860})
    switch.click()
    expect(page.locator("[data-kl]")).to_have_count(0, timeout=SLOW)
    assert "changes=" not in page.url


def test_a_drawing_of_the_token_before_finds_the_head_that_looks_there(page):
    page.locator('[data-panel="sketch"]').click()
    page.locator('[data-stamp="previous token"]').click()
    first = page.locator('[data-ranked="sketched"] button').first
    expect(first).to_have_attribute("data-sketched-head", "0-2", timeout=SLOW)
