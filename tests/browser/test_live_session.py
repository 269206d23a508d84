"""A session with a live model: kept as files, by keyboard, read by a screen reader, and errors."""

import pytest

pytest.importorskip("uvicorn", reason="needs the extra server: pip install 'headscope[server]'")

from playwright.sync_api import expect

import headscope as hs
from headscope.testing import tiny_model, tiny_tokenizer

from .live_pages import SLOW, live_page, served_model, tab_to, wait_for_address
from .test_accessibility import AXE
from .test_controls import CONTROLS

TEXT = "a cat sat."


@pytest.fixture(scope="module")
def model():
    return tiny_model("gpt2", writes=True)


@pytest.fixture(scope="module")
def port(model):
    with served_model(model, tiny_tokenizer(), TEXT) as port:
        yield port


@pytest.fixture
def page(browser, port):
    with live_page(browser, port) as page:
        yield page


def silenced(page):
    page.locator('[data-tile="1-3"]').click()
    page.keyboard.press("x")
    expect(page.locator("[data-kl]")).to_contain_text("moved", timeout=SLOW)
    expect(page.locator('[data-live="ready"]')).to_be_attached(timeout=SLOW)


def kept(page, kind, path):
    with page.expect_download(timeout=SLOW) as download:
        page.locator(f'[data-keep="{kind}"]').click()
    download.value.save_as(path)
    return path


def test_what_is_kept_is_what_python_captures(chromium_only, page, model, tmp_path, open_file):
    page.locator('[data-panel="keep"]').click()
    own = hs.capture(model, tiny_tokenizer(), TEXT)
    record = hs.load(kept(page, "download", tmp_path / "own.safetensors"))
    assert record.texts == (TEXT,)
    for layer, wanted in zip(record["self"], own["self"], strict=True):
        assert layer.weights_of(0) == pytest.approx(wanted.weights_of(0), abs=1e-6)
    silenced(page)
    record = hs.load(kept(page, "download", tmp_path / "changed.safetensors"))
    change = [hs.Zero(layer=1, heads=[3])]
    changed = hs.capture(model, tiny_tokenizer(), TEXT, interventions=change)
    assert record["self"].weights(layer=2, head=0) == pytest.approx(
        changed["self"].weights(layer=2, head=0), abs=1e-6
    )
    assert record["self"].weights(layer=2, head=0) != pytest.approx(
        own["self"].weights(layer=2, head=0), abs=1e-4
    )
    view = open_file(kept(page, "page", tmp_path / "page.html"))
    expect(view.page.locator('[data-tile="1-3"][aria-current="true"]')).to_be_attached()
    # Another view, layer, head and theme than a page opens with.
    page.locator('[data-tile="2-1"]').click()
    page.locator('[data-option="one"]').click()
    page.locator('[data-option="matrix"]').click()
    page.locator('[data-headscope][data-view="matrix"]').wait_for(state="attached")
    page.locator("[data-menu]").click()
    page.locator("[data-theme-toggle]").click()
    view = open_file(kept(page, "page", tmp_path / "other.html"))
    expect(view.page.locator('[data-headscope][data-view="matrix"]')).to_be_attached()
    call = page.locator("[data-call]").inner_text()
    assert view.text("[data-call]") == call
    assert all(part in call for part in ('view="matrix"', "layer=2", "heads=[1]", 'theme="dark"'))


def test_the_figure_of_a_changed_state_is_downloaded(chromium_only, page, tmp_path):
    silenced(page)
    page.locator('[data-option="one"]').click()
    page.locator('[data-option="matrix"]').click()
    page.locator('[data-headscope][data-view="matrix"]').wait_for(state="attached")
    page.locator("[data-menu]").click()
    page.locator("[data-figure-menu]").click()
    with page.expect_download(timeout=SLOW) as download:
        page.locator('[data-figure="svg"]').click()
    download.value.save_as(tmp_path / "figure.svg")
    assert "<svg" in (tmp_path / "figure.svg").read_text(encoding="utf-8")


def test_an_error_of_the_model_is_one_line_and_the_next_text_is_read(page, model, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("out of\nmemory")

    with monkeypatch.context() as patch:
        patch.setattr(model, "forward", fail)
        page.locator('[data-field="text"]').fill("the dog.")
        expect(page.locator("[data-problem]")).to_contain_text("out of memory", timeout=SLOW)
    assert "\n" not in page.locator("[data-problem]").inner_text()
    expect(page.locator('[data-tile="1-3"]')).to_be_visible()
    page.locator('[data-field="text"]').fill("the dog sat.")
    expect(page.locator("[data-problem]")).to_have_text("", timeout=SLOW)
    expect(page.locator(".facts")).to_contain_text("12 tokens", timeout=SLOW)


def test_all_is_done_by_keyboard(page):
    tab_to(page, '[data-field="text"]')
    page.keyboard.press("Control+a")
    page.keyboard.type("the sea.")
    expect(page.locator(".facts")).to_contain_text("9 tokens", timeout=SLOW)
    tab_to(page, '[data-do="uniform"]')
    page.keyboard.press("Enter")
    expect(page.locator("[data-kl]")).to_contain_text("moved", timeout=SLOW)
    page.keyboard.press("Shift+Tab")
    tab_to(page, '[data-panel="write"]')
    page.keyboard.press("Enter")
    # Ten, not twenty: read as a text these are more tokens, and the model reads at most 32.
    tab_to(page, "[data-token-count]")
    page.keyboard.press("ArrowUp")
    tab_to(page, "[data-write]")
    page.keyboard.press("Enter")
    # Written to its end: until then the heads are those of a text that grows.
    expect(page.get_by_text("10 tokens written")).to_be_visible(timeout=SLOW)
    tab_to(page, "[data-tile]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("x")
    # Made, not taken back: the address names what was answered.
    wait_for_address(page, "zero:")
    expect(page.locator('[data-change^="silence"]')).to_have_attribute("aria-pressed", "true")


def test_the_help_sheet_lists_the_keys(page):
    page.locator('[data-tile="1-3"]').focus()
    page.keyboard.press("?")
    sheet = page.locator("[data-help]")
    expect(sheet).to_contain_text("silences the head")
    expect(sheet).to_contain_text("Alt-click")


PANELS = ("write", "matters", "sketch", "two", "keep")


@pytest.mark.skipif(not AXE.exists(), reason="axe-core comes with the front end's packages")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_in_the_bar_and_its_panels(scheme, width, browser, port):
    with live_page(browser, port, scheme=scheme, size=(width, 860)) as page:
        silenced(page)
        page.evaluate(AXE.read_text(encoding="utf-8"))
        for name in PANELS:
            page.locator(f'[data-panel="{name}"]').click()
            if name == "write":
                page.locator("[data-token-count]").select_option("1")
                page.locator("[data-write]").click()
                page.locator("[data-written-token]").first.click()
            if name == "sketch":
                page.locator('[data-stamp="previous token"]').click()
                page.locator("[data-order=ranked]").wait_for()
            expect(page.locator(f'[data-open-panel="{name}"]')).to_be_visible()
            problems = page.evaluate(
                "axe.run(document, { resultTypes: ['violations'], preload: false })"
                ".then(result => result.violations)"
            )
            grave = [
                (rule["id"], [node["html"][:160] for node in rule["nodes"]][:4])
                for rule in problems
                if rule["impact"] in ("critical", "serious")
            ]
            assert grave == [], name
            # Not even a long guess makes a menu wider than the column of the model.
            page.evaluate(LONG_GUESS)
            assert page.evaluate(BEYOND) == [], name


LONG_GUESS = """() => {
  const root = document.querySelector("#headscope").shadowRoot;
  for (const option of root.querySelectorAll("[data-matters-to] option")) option.append(" of a word that is long".repeat(3));
}"""
BEYOND = """() => {
  const column = document.querySelector("#headscope").shadowRoot.querySelector(".live");
  const { right } = column.getBoundingClientRect();
  const inner = right - Number.parseFloat(getComputedStyle(column).paddingRight) + 1;
  return [...column.querySelectorAll("select, button, textarea, input")]
    .filter((element) => element.checkVisibility() && element.getBoundingClientRect().right > inner)
    .map((element) => element.textContent);
}"""
"""What of the column reaches beyond it."""


def test_no_more_than_fourteen_controls_are_seen(browser, port):
    with live_page(browser, port) as page:
        page.locator("[data-live-more]").click()
        page.locator('[data-option="overview"]').click()
        controls = page.evaluate(CONTROLS)
        assert 8 <= len(controls) <= 14, controls
