"""What can be asked of a live model in a real browser: which heads matter, and what is alike."""

import re
import threading
import time
from contextlib import contextmanager

import pytest

pytest.importorskip("uvicorn", reason="needs the extra server: pip install 'headscope[server]'")

from playwright.sync_api import expect

import headscope as hs
from headscope.testing import tiny_model, tiny_tokenizer

from .live_pages import open_more

TEXT = "the cat sat on it."
TOKEN = "right-token"
SLOW = 30_000


class Slowly:
    """A pause before every pass of a model, long enough that something can be done meanwhile."""

    def __init__(self, model):
        self.seconds = 0.0
        self.passes = 0
        model.register_forward_pre_hook(self._wait)

    def _wait(self, *_):
        self.passes += 1
        time.sleep(self.seconds)

    @contextmanager
    def by(self, seconds):
        self.seconds = seconds
        try:
            yield
        finally:
            self.seconds = 0.0


@pytest.fixture(scope="module")
def served():
    """A causal model of 3 layers and 5 heads behind its server; its port, and what slows it."""
    import uvicorn

    from headscope.live._facts import LIMITS
    from headscope.live._model import LiveModel
    from headscope.live._server import LiveHost, live_application
    from headscope.views.listening import listening_on

    live = LiveModel(tiny_model("gpt2", writes=True), tiny_tokenizer(), limits=LIMITS, text=TEXT)
    slowly = Slowly(live.model)
    other = LiveModel(
        tiny_model("llama", writes=True), tiny_tokenizer(), limits=LIMITS, records=live.records
    )
    texts = [TEXT, "it sat on the cat.", "the mat sat."]
    atlas = hs.atlas(live.model, tiny_tokenizer(), texts, battery=False, progress=False)
    host = LiveHost(name="tiny", text=TEXT, limits=LIMITS, live=live, second=other, atlas=atlas)
    with listening_on(0) as listening:
        server = uvicorn.Server(uvicorn.Config(live_application(host, TOKEN), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield listening.getsockname()[1], slowly
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture(scope="module")
def tab(browser, served):
    """One page for all tests of this file; each begins where the last one ended."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    tab = context.new_page()
    errors = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(f"http://127.0.0.1:{served[0]}/?token={TOKEN}")
    tab.locator('[data-headscope][data-ready="true"]').wait_for(state="attached", timeout=SLOW)
    open_more(tab)
    yield tab
    context.close()
    assert errors == []


@contextmanager
def panel(tab, name):
    """A panel of the bar, open."""
    button = tab.locator(f'[data-panel="{name}"]')
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    try:
        yield tab.locator("[data-open-panel]")
    finally:
        button.click()


def color_of(tab, head):
    return tab.locator(f'[data-tile="{head}"]').evaluate(
        "tile => getComputedStyle(tile).backgroundColor"
    )


def test_every_head_is_coloured_by_what_it_matters(tab):
    plain = color_of(tab, "1-2")
    with panel(tab, "matters") as opened:
        to = opened.locator("[data-matters-to]")
        assert to.locator("option").count() == 5
        to.select_option(index=2)
        words = to.input_value()
        opened.locator("[data-matters]").click()
        expect(opened.locator('[data-matters-ranked="exact"]')).to_be_visible(timeout=SLOW)
        assert tab.locator("[data-order=ranked] [data-tile]").count() == 15
        legend = tab.locator('[data-on-grid="exact"]')
        expect(legend).to_contain_text(words)
        expect(legend).to_contain_text("nats")
        first = tab.locator("[data-order=ranked] [data-tile]").first
        head, label = first.get_attribute("data-tile"), first.get_attribute("aria-label")
        said = label.rpartition("by what they matter: ")[2]
        assert color_of(tab, head) != plain
        assert said in tab.locator(f'[data-tile="{head}"]').evaluate(
            "tile => getComputedStyle(tile, '::after').content"
        )
        tab.locator("[data-off-grid]").click()
        assert color_of(tab, head) == plain
        opened.locator("[data-matters-on-grid]").check()
        assert color_of(tab, head) != plain


def test_it_belongs_to_its_text(tab):
    field = tab.locator('[data-field="text"]')
    expect(tab.locator("[data-on-grid]")).to_be_visible()
    field.fill("the dog sat.")
    expect(tab.locator("[data-on-grid]")).to_have_count(0, timeout=SLOW)
    field.fill(TEXT)
    expect(tab.locator("[data-on-grid]")).to_be_visible(timeout=SLOW)


def test_it_can_be_cancelled_and_the_preview_stays(tab, served):
    slowly = served[1]
    with slowly.by(0.15), panel(tab, "matters") as opened:
        opened.locator("[data-matters]").click()
        preview = opened.locator('[data-matters-ranked="gradient"]')
        expect(preview).to_be_visible(timeout=SLOW)
        expect(opened.locator("progress")).to_be_visible()
        opened.locator("[data-matters-stop]").click()
        expect(opened.locator("progress")).to_have_count(0)
        expect(tab.locator('[data-on-grid="gradient"]')).to_contain_text("by gradient only")
        # A pass that had begun ends at its next module; after that the model rests.
        time.sleep(0.4)
        passes = slowly.passes
        time.sleep(0.5)
        assert slowly.passes == passes
        expect(preview).to_be_visible()
        expect(opened.locator("[role=alert]")).to_be_empty()
        expect(opened.locator("[data-matters]")).to_be_enabled()


def test_another_question_ends_it_without_a_complaint(tab, served):
    with served[1].by(0.15), panel(tab, "matters") as opened:
        opened.locator("[data-matters]").click()
        expect(opened.locator("progress")).to_be_visible(timeout=SLOW)
        tab.locator('[data-field="text"]').fill("the dog.")
        expect(opened.locator("progress")).to_have_count(0, timeout=SLOW)
        expect(tab.locator(".facts")).to_contain_text("6 tokens", timeout=SLOW)
        expect(opened.locator("[role=alert]")).to_be_empty()
        expect(tab.locator("[data-problem]")).to_be_empty()


def test_two_texts_stand_beside_each_other_with_what_was_edited_marked(tab):
    tab.locator('[data-field="text"]').fill("he said that he sat.")
    with panel(tab, "two") as opened:
        opened.locator("[data-other-text]").fill("we said that we sat.")
        opened.locator("[data-side-by-side]").click()
        shown = tab.locator('[data-headscope][data-view="compare"]')
        shown.wait_for(state="attached", timeout=SLOW)
        expect(opened.locator('[data-both="1"] mark')).to_have_count(2, timeout=SLOW)
        pictures = tab.locator("[data-picture]")
        expect(pictures).to_have_count(3)
        expect(pictures.last).to_contain_text("difference")


def test_the_second_model_stands_beside_the_first(tab):
    with panel(tab, "two") as opened:
        opened.locator("[data-beside-model]").click()
        expect(opened.locator("[data-partner]")).to_contain_text("beside", timeout=SLOW)
        expect(opened.locator("mark")).to_have_count(0)
        expect(opened.locator('[data-both="1"]')).to_contain_text("Llama")
        assert (
            opened.locator('[data-both="0"] .live-note').inner_text()
            != opened.locator('[data-both="1"] .live-note').inner_text()
        )
        expect(tab.locator("[data-picture]")).to_have_count(3)
    tab.locator('[data-field="text"]').fill(TEXT)
    tab.locator('[data-option="overview"]').click()


@pytest.mark.filterwarnings("ignore:.*of the tokens of the prompt are")
def test_a_guess_is_gone_on_from_and_each_layer_says_its_own(tab):
    field = tab.locator('[data-field="text"]')
    field.fill("a cat")
    output = tab.locator("[data-output]")
    expect(output).to_contain_text("after “[SEP]”", timeout=SLOW)
    expect(tab.locator(".facts")).to_contain_text("· 6 tokens", timeout=SLOW)
    output.locator("[data-by-layer]").click()
    layers = output.locator("[data-lens-layers] li")
    expect(layers).to_have_count(3, timeout=SLOW)
    # the last layer says what the model says
    first = output.locator("[data-guess]").first
    expect(layers.last).to_contain_text(first.locator(".number").first.inner_text())
    second = output.locator("[data-guess]").nth(1)
    chosen = second.get_attribute("data-guess")
    second.locator("[data-branch]").click()
    expect(tab.locator("[data-open-panel]")).to_have_attribute("data-open-panel", "write")
    written = tab.locator("[data-written-token]")
    expect(written.first).to_have_text(chosen.removeprefix("##"), timeout=SLOW)
    expect(written.nth(1)).to_be_visible(timeout=SLOW)
    expect(field).not_to_have_value("a cat", timeout=SLOW)
    tab.locator('[data-panel="write"]').click()
    field.fill(TEXT)
    count = len(tiny_tokenizer()(TEXT)["input_ids"])
    expect(tab.locator(".facts")).to_contain_text(f"· {count} tokens", timeout=SLOW)


def painted(tab):
    return tab.locator('[data-paint][aria-pressed="true"]').count()


def test_a_pattern_is_painted_by_keyboard_and_in_one_stroke(tab):
    with panel(tab, "sketch") as opened:
        opened.locator('[data-paint="0,0"]').focus()
        for key in ("ArrowDown", " ", "ArrowRight", "ArrowDown", "Enter"):
            tab.keyboard.press(key)
        assert painted(tab) == 2
        expect(opened.locator('[data-paint="2,1"]')).to_have_attribute("aria-pressed", "true")
        opened.locator("[data-stamp-clear]").click()
        first, last = (
            opened.locator(f'[data-paint="3,{column}"]').bounding_box() for column in (0, 6)
        )
        tab.mouse.move(first["x"] + 8, first["y"] + 8)
        tab.mouse.down()
        tab.mouse.move(last["x"] + 8, last["y"] + 8, steps=20)
        tab.mouse.up()
        assert painted(tab) == 7
        ranked = tab.locator("[data-order=ranked] [data-tile]")
        expect(ranked.first).to_be_visible(timeout=SLOW)
        opened.locator("[data-stamp-head]").click()
        expect(ranked.first).to_be_visible(timeout=SLOW)
        # Over the atlas the mean map of a head is most like itself; arrows go along all heads.
        opened.locator('[data-option="atlas"]').click()
        expect(opened.locator('[data-option="atlas"]')).to_have_text("the atlas (3 texts)")
        opened.locator("[data-stamp-head]").click()
        likest = re.compile("like the drawing: 1.0")
        expect(ranked.first).to_have_attribute("aria-label", likest, timeout=SLOW)
        assert ranked.count() == 15
        expect(ranked.first).to_have_attribute("aria-current", "true")
        ranked.first.focus()
        tab.keyboard.press("ArrowRight")
        expect(ranked.nth(1)).to_have_attribute("aria-current", "true")
    expect(tab.locator("[data-order=ranked]")).to_have_count(0)


@pytest.mark.parametrize(
    ("name", "begin"), [("matters", "[data-matters]"), ("write", "[data-write]")]
)
def test_closing_the_tab_ends_what_runs(name, begin, browser, served):
    port, slowly = served
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}")
    open_more(page)
    page.locator(f'[data-panel="{name}"]').click(timeout=SLOW)
    if name == "write":
        page.locator("[data-token-count]").select_option("10")
    with slowly.by(0.3):
        page.locator(begin).click(timeout=SLOW)
        running = "[data-written-token]" if name == "write" else "progress"
        expect(page.locator(running).first).to_be_visible(timeout=SLOW)
        # Fifteen heads, or ten tokens, would take longer than this.
        page.close()
        time.sleep(0.8)
        passes = slowly.passes
        time.sleep(0.8)
        assert slowly.passes == passes
    context.close()
