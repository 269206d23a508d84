"""Why a token was said, on the page of a live model: asked by a click, drawn, and cut by another."""

import pytest

pytest.importorskip("uvicorn", reason="needs the extra server: pip install 'headscope[server]'")

from playwright.sync_api import expect

import headscope as hs
from headscope.answering import DEMO
from headscope.capturing import load_model
from headscope.composition import attended
from headscope.testing import tiny_model, tiny_tokenizer

from .live_pages import SLOW, live_page, served_model, wait_for_address

CHAT = [
    {"role": "document", "content": "At the library they use seven. The road was quiet on Friday."},
    {"role": "document", "content": "The code of the mill is amber falcon."},
    {"role": "user", "content": "What is the code of the library?"},
]


@pytest.fixture(scope="module")
def served():
    model, tokenizer = load_model(str(DEMO), writes=True)
    with served_model(model, tokenizer, CHAT) as port:
        yield port, hs.why(model, tokenizer, CHAT)


@pytest.fixture
def opened(browser, served):
    with live_page(browser, served[0]) as page:
        yield page


def test_a_predicted_token_is_followed_and_a_line_is_cut(opened, served):
    why = served[1]
    assert not why.refusal
    opened.locator(f'[data-guess="{why.answer}"] [data-why]').click()
    view = opened.locator("[data-why-place]")
    expect(view.locator("[data-line]")).to_have_count(why.sizes[why.chosen], timeout=SLOW)
    expect(view).to_contain_text(f"“{why.answer}” leads “{why.instead}”")
    first = why.lines()[0]
    (_, layer), (head, query, key) = why.cells[why.links[first, 0]], why.links[first, 1:]
    line = view.locator("[data-line]").first
    line.press("Enter")
    wait_for_address(opened, f"changes=cut:{layer}-{head}q{query}k{key}")
    said = f"layer={layer}, heads=[{head}], query=[{query}], key=[{key}]"
    expect(opened.locator("[data-call]")).to_contain_text(said)
    expect(opened.get_by_role("tabpanel", name="One head")).to_be_visible()
    expect(line).to_have_attribute("aria-pressed", "true")
    # Once more, and the line is there again; the picture stays all the while.
    line.press("Enter")
    expect(opened.locator("[data-changed]")).to_have_count(0, timeout=SLOW)
    expect(line).to_have_attribute("aria-pressed", "false")
    places = opened.get_by_role("tablist", name="Place")
    places.get_by_role("tab", name="All heads").click()
    expect(view).to_have_count(0)
    places.get_by_role("tab", name="Why").click()
    expect(view.locator("[data-line]")).to_have_count(why.sizes[why.chosen])


def test_it_tells_how_far_it_got_and_is_stopped(opened):
    opened.locator("[data-guess] [data-why]").first.click()
    running = opened.locator('[data-live-why="running"]')
    expect(running.locator("progress")).to_be_visible(timeout=SLOW)
    running.locator("[data-why-cancel]").click()
    expect(opened.locator("[data-live-why]")).to_have_count(0)


def test_what_is_refused_has_its_reason(opened, served):
    opened.locator("[data-guess] [data-why]").last.click()
    view = opened.locator("[data-why-place]")
    expect(view).to_contain_text("No picture: ", timeout=SLOW)
    expect(view.locator("[data-line]")).to_have_count(0)
    expect(view.locator("table").first).to_be_visible()


def written(page, count="1"):
    """The last token of what the model writes on, opened."""
    page.locator('[data-panel="write"]').click()
    page.locator("[data-token-count]").select_option(count)
    page.locator("[data-write]").click()
    expect(page.locator("[data-written-token]")).to_have_count(int(count), timeout=SLOW)
    page.locator("[data-written-token]").last.click()
    return page.locator(".live-alternatives [data-why]")


def test_a_written_token_is_followed(browser):
    model, tokenizer = load_model(str(DEMO), writes=True)
    text = "The code of the mill is amber falcon. The code of the mill is"
    answer = hs.generate(model, tokenizer, text, max_new_tokens=1, do_sample=False).generation.text
    with served_model(model, tokenizer, text) as port, live_page(browser, port) as page:
        written(page).click()
        view = page.locator("[data-why-place]")
        expect(view).to_contain_text(f"“{answer.strip()}” leads", timeout=SLOW)


def test_written_tokens_that_are_others_as_a_text_are_not_followed(browser):
    with (
        served_model(tiny_model("gpt2", writes=True), tiny_tokenizer(), "the sea.") as port,
        live_page(browser, port) as page,
    ):
        written(page, "10").click()
        view = page.locator("[data-live-why]")
        expect(view).to_contain_text("has other tokens when it is read as a text", timeout=SLOW)
        expect(view.locator("[data-line], table")).to_have_count(0)


def test_why_a_pinned_token_attends_there_stands_in_its_card(opened, served):
    found = attended(*load_model(str(DEMO), writes=True), CHAT, head=(2, 0))
    opened.locator('[data-option="one"]').click()
    opened.locator('[data-tile="2-0"]').click()
    opened.locator(f'[data-side="query"][data-token="{found.query[1]}"]').click()
    card = opened.locator("[data-inspector]")
    card.get_by_role("button", name="why there?").click()
    expect(card.locator("[data-attended]")).to_contain_text(found.summary, timeout=SLOW)
    largest = found.columns()
    row = card.locator("[data-attended] tr", has_text=largest["part"][0]).first
    expect(row).to_contain_text(f"{largest['by_key'][0]:+.2f}")
    # Of another head nothing is told before it is asked about.
    opened.locator('[data-tile="1-0"]').click()
    expect(card.locator("[data-attended] table")).to_have_count(0)
