"""Live pages of real models in a real browser: with the pointer, and by keyboard alone."""

import pytest

pytest.importorskip("uvicorn", reason="needs the extra server: pip install 'headscope[server]'")

from playwright.sync_api import expect

from .live_pages import SLOW, live_page, served_model, tab_to, wait_for_address, wait_for_width

TEXT = "The rabbit hopped across the road because it was tired."
STORY = "Once upon a time there was a little girl named"


@pytest.fixture(scope="module")
def port(minilm):
    with served_model(*minilm, TEXT) as port:
        yield port


@pytest.fixture
def page(browser, port):
    with live_page(browser, port) as page:
        yield page


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
    wait_for_width(page, 1280)
    page.set_viewport_size({"width": 1280, "height": 860})
    switch.click()
    expect(page.locator("[data-kl]")).to_have_count(0, timeout=SLOW)
    assert "changes=" not in page.url


def test_a_drawing_of_the_previous_token_finds_the_head_that_looks_there(page):
    page.locator('[data-panel="sketch"]').click()
    page.locator('[data-stamp="previous token"]').click()
    first = page.locator("[data-order=ranked] [data-tile]").first
    expect(first).to_have_attribute("data-tile", "0-2", timeout=SLOW)


def walk_to(page, layer, head):
    """Press arrows until the tile of a head has the focus."""
    tile = page.evaluate(
        "document.querySelector('#headscope').shadowRoot.activeElement.dataset.tile"
    )
    down, right = (to - int(at) for at, to in zip(tile.split("-"), (layer, head), strict=True))
    for _ in range(abs(down)):
        page.keyboard.press("ArrowDown" if down > 0 else "ArrowUp")
    for _ in range(abs(right)):
        page.keyboard.press("ArrowRight" if right > 0 else "ArrowLeft")


def test_all_of_it_is_done_by_keyboard(page):
    press = page.keyboard.press
    tab_to(page, '[data-field="text"]')
    press("Control+a")
    page.keyboard.type("Two words.")
    expect(page.locator(".facts")).to_contain_text("5 tokens", timeout=SLOW)
    press("Control+a")
    page.keyboard.type(TEXT)
    expect(page.locator(".facts")).to_contain_text("13 tokens", timeout=SLOW)
    expect(page.locator('[data-live="ready"]')).to_be_attached(timeout=SLOW)
    # The tile of the chosen head is reached by Tab, the others by arrows, which show them.
    tab_to(page, "[data-tile]")
    walk_to(page, 1, 8)
    expect(page.locator('[data-tile="1-8"]')).to_have_attribute("aria-current", "true")
    expect(page.locator(".headline h2")).to_contain_text("Head 1-8 looks at the next token")
    press("x")
    expect(page.locator("[data-kl]")).to_contain_text("moved", timeout=SLOW)
    tab_to(page, '[data-change="silence 1-8"]', key="Shift+Tab")
    press("Enter")
    expect(page.locator("[data-kl]")).to_have_count(0, timeout=SLOW)
    tab_to(page, '[data-panel="sketch"]')
    press("Enter")
    tab_to(page, '[data-stamp="previous token"]')
    press("Enter")
    first = page.locator("[data-order=ranked] [data-tile]").first
    expect(first).to_have_attribute("data-tile", "0-2", timeout=SLOW)
    tab_to(page, "[data-tile]")


def test_ten_tokens_are_written_and_a_head_changes_them_by_keyboard(browser, shared):
    from headscope.capturing import load_model

    folder = shared / "models" / "stories260K"
    if not folder.is_dir():
        pytest.skip("stories260K is not among the real models of this machine")
    model, tokenizer = load_model(folder, writes=True)
    given = tokenizer(STORY, return_tensors="pt")
    plain = model.generate(**given, max_new_tokens=10, do_sample=False)[0]
    with served_model(model, tokenizer, STORY) as port, live_page(browser, port) as page:
        press = page.keyboard.press
        expect(page.locator("[data-guess]").first).to_contain_text("Lily", timeout=SLOW)
        tab_to(page, '[data-panel="write"]')
        press("Enter")
        tab_to(page, "[data-token-count]")
        press("ArrowUp")
        expect(page.locator("[data-token-count]")).to_have_value("10")
        tab_to(page, "[data-write]")
        press("Enter")
        written = page.locator("[data-written-token]")
        expect(written).to_have_count(10, timeout=SLOW)
        field = page.locator('[data-field="text"]')
        whole = tokenizer.decode(plain, skip_special_tokens=True)
        expect(field).to_have_value(whole, timeout=SLOW)
        # What another token would have led to.
        tab_to(page, '[data-written-token="0"]')
        press("Enter")
        other = page.locator("[data-alternative]").nth(1)
        expect(other).to_be_visible()
        tab_to(page, "[data-alternative]")
        press("Tab")
        press("Enter")
        expect(field).not_to_have_value(whole, timeout=SLOW)
        assert field.input_value().startswith(STORY)
        expect(page.locator('[data-live="ready"]')).to_be_attached(timeout=SLOW)
        tab_to(page, "[data-tile]")
        press("x")
        expect(page.locator("[data-kl]").first).to_contain_text("nats", timeout=SLOW)
