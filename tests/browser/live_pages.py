"""A live model behind its server on a real port, and its page."""

import re
import threading
import time
from contextlib import contextmanager

from playwright.sync_api import expect

TOKEN = "right-token"
SLOW = 30_000
FOCUSED = """(selector) => {
    const root = document.querySelector("#headscope").shadowRoot;
    return root.activeElement?.matches(selector) ?? false;
}"""
"""Whether what has the focus is of a selector."""


@contextmanager
def served_model(model, tokenizer, text="", **limits):
    """Serve a loaded model: gives its port."""
    import uvicorn

    from headscope.live._facts import LIMITS
    from headscope.live._model import LiveModel
    from headscope.live._server import LiveHost, live_application
    from headscope.views.listening import listening_on

    live = LiveModel(model, tokenizer, limits={**LIMITS, **limits}, text=text)
    host = LiveHost("tiny", text, live.facts["limits"], live)
    with listening_on(0) as listening:
        server = uvicorn.Server(uvicorn.Config(live_application(host, TOKEN), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)


@contextmanager
def live_page(browser, port, *, fragment="", size=(1280, 860), scheme="light", ready=True):
    """The page of a live model; in the end nothing may have gone wrong in it."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(SLOW)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}{fragment}")
    if ready:
        wait_until_ready(page)
        open_more(page)
    yield page
    context.close()
    assert errors == []


def wait_until_ready(page):
    page.locator('[data-headscope][data-ready="true"]').wait_for(state="attached", timeout=SLOW)


def open_more(page):
    """Open what stands behind one word: further changes, fields and questions."""
    page.locator("[data-live-more]").click()


def wait_for_address(page, words):
    """Wait until the address holds these words: it follows what is shown by a few frames."""
    expect(page).to_have_url(re.compile(re.escape(words)), timeout=SLOW)


def wait_for_width(page, width):
    """Wait until what is shown is as wide as the window: it is drawn anew after a change of it.

    Not by ``wait_for_function``, which needs ``eval`` that the server's policy forbids.
    """
    wait_for(page, lambda: page.evaluate("document.documentElement.scrollWidth") == width)


def wait_for(page, is_so):
    """Wait until something is so that the page brings about: its messages are heard meanwhile."""
    until = time.monotonic() + SLOW / 1000
    while not is_so():
        assert time.monotonic() < until, f"not within {SLOW / 1000:g} s"
        page.wait_for_timeout(50)


def tab_to(page, selector, *, key="Tab", most=80):
    """Press Tab until the focus is on something."""
    for _ in range(most):
        if page.evaluate(FOCUSED, selector):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} does not reach {selector}")
