"""Every change of a live model by hand, in a real browser: on a head, a link and a token."""

import pytest

pytest.importorskip("uvicorn", reason="needs the extra server: pip install 'headscope[server]'")

from playwright.sync_api import expect

from headscope.testing import tiny_model, tiny_tokenizer

from .live_pages import SLOW, live_page, open_more, served_model, wait_for_address

TEXT = "a cat sat."
AS_LONG = "a dog sat."


@pytest.fixture(scope="module")
def port():
    with served_model(tiny_model("gpt2", writes=True), tiny_tokenizer(), TEXT) as port:
        yield port


@pytest.fixture(scope="module")
def opened(browser, port):
    with live_page(browser, port) as page:
        yield page


@pytest.fixture
def page(opened):
    """The one page, loaded anew without the changes of the test before."""
    address = opened.url.partition("#")[0]
    opened.goto("about:blank")
    opened.goto(address)
    expect(opened.locator('[data-live="ready"]')).to_be_attached(timeout=SLOW)
    open_more(opened)
    expect(opened.locator("[data-change]")).to_have_count(0)
    opened.locator('[data-option="overview"]').click()
    opened.locator('[data-tile="1-3"]').click()
    expect(opened.locator("[data-subject]")).to_have_text("Head 1-3")
    return opened


def switch(page, words):
    return page.locator(f'[data-change="{words}"]')


def moved(page):
    expect(page.locator("[data-kl]")).to_contain_text("moved", timeout=SLOW)
    expect(page.locator('[data-live="ready"]')).to_be_attached(timeout=SLOW)


def python(page):
    return page.locator("[data-live-python]").inner_text()


def test_a_head_is_made_uniform_and_shown_as_difference(page):
    page.locator('[data-do="uniform"]').click()
    moved(page)
    expect(switch(page, "make uniform 1-3")).to_be_visible()
    assert python(page) == "interventions=[hs.interventions.Uniform(layer=1, heads=[3])]"
    wait_for_address(page, "quantity=difference")
    switch(page, "make uniform 1-3").click()
    expect(page.locator("[data-kl]")).to_have_count(0, timeout=SLOW)


def test_a_head_is_replaced_by_its_mean_over_texts(page):
    page.locator('[data-do="mean"]').click()
    page.locator("[data-from]").fill(f"{AS_LONG}\na sea sat.")
    page.locator("[data-from-go]").click()
    moved(page)
    expect(switch(page, "replace by the mean 1-3")).to_be_visible()
    assert "hs.interventions.Mean(records=[hs.capture(model, tokenizer, 'a dog sat.')" in python(
        page
    )


def test_a_head_is_patched_from_another_text(page):
    page.locator('[data-do="patch"]').click()
    page.locator("[data-from]").fill(AS_LONG)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    moved(page)
    expect(switch(page, f"patch 1-3 from “{AS_LONG}”")).to_be_visible()
    page.reload()
    expect(switch(page, f"patch 1-3 from “{AS_LONG}”")).to_be_visible(timeout=SLOW)


def test_what_cannot_be_patched_is_a_line_and_no_switch(page):
    page.locator('[data-do="patch"]').click()
    page.locator("[data-from]").fill("a longer text than it.")
    page.locator("[data-from-go]").click()
    expect(page.locator("[data-problem]")).to_contain_text("tokens", timeout=SLOW)
    expect(page.locator("[data-change]")).to_have_count(0)
    page.locator('[data-do="zero"]').click()
    moved(page)
    expect(page.locator("[data-problem]")).to_have_text("")


def head_view(page):
    page.locator('[data-option="one"]').click()
    page.locator('[data-headscope][data-view="head"]').wait_for(state="attached")
    page.locator('[data-side="key"][data-token="1"]').wait_for()


def test_a_token_is_cut_from_all_that_look_at_it(page):
    head_view(page)
    assert page.locator('[data-do="cut"]').is_disabled()
    page.locator('[data-side="key"][data-token="1"]').click()
    page.locator('[data-do="cut"]').click()
    moved(page)
    expect(switch(page, "cut 1-3: all → a")).to_be_visible()
    assert "hs.Cut(layer=1, heads=[3], keys=[1])" in python(page)


def test_a_link_is_cut(page):
    head_view(page)
    page.locator('[data-side="query"][data-token="3"]').click()
    page.locator('[data-side="key"][data-token="1"]').click()
    page.locator('[data-do="cut"]').click()
    moved(page)
    assert "hs.Cut(layer=1, heads=[3], queries=[3], keys=[1])" in python(page)
    page.locator("[data-change]").click()
    expect(page.locator("[data-kl]")).to_have_count(0, timeout=SLOW)
    page.keyboard.press("Escape")
    page.locator('[data-side="key"][data-token="2"]').click(modifiers=["Alt"])
    moved(page)
    assert "keys=[2]" in python(page)


def test_a_head_is_silenced_at_one_token_only(page):
    head_view(page)
    page.locator('[data-side="query"][data-token="3"]').click()
    page.locator("[data-only-here]").check()
    page.locator('[data-do="zero"]').click()
    moved(page)
    assert "hs.Zero(layer=1, heads=[3], queries=[3])" in python(page)


def test_every_switch_is_a_step_that_can_be_undone(page):
    page.keyboard.press("x")
    moved(page)
    page.keyboard.press("Control+z")
    expect(page.locator("[data-change]")).to_have_count(0, timeout=SLOW)
    page.keyboard.press("Control+Shift+z")
    expect(switch(page, "silence 1-3")).to_be_visible(timeout=SLOW)
