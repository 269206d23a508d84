"""The page of why a word was said, in a browser: its slider, its lines and their card, a phone."""

import pytest
from playwright.sync_api import expect

import headscope as hs
from headscope.answering import DEMO

from .test_accessibility import AXE, grave

DOCUMENTS = [
    "At the library they use seven. The road was quiet on Friday.",
    "The code of the mill is amber falcon. It rained near the barn on Monday.",
    "Copper opens the tower. Nobody at the mill remembers the code.",
]
QUESTION = "What is the code of the library?"


@pytest.fixture(scope="module")
def found():
    long = hs.why(DEMO, text={"documents": DOCUMENTS, "question": QUESTION})
    return {"long": long, "refused": hs.why(DEMO, text="The old road", allow_unfit=True)}


@pytest.fixture
def opened(found, tmp_path, open_file):
    def open_it(name, **window):
        return open_file(found[name].view().save(tmp_path / f"{name}.html"), **window)

    return open_it


def test_the_slider_draws_other_graphs_and_says_what_they_keep(opened, found):
    view, why = opened("long"), found["long"]
    lines = view.page.locator("[data-line]")
    expect(lines).to_have_count(why.sizes[why.chosen])
    slider = view.page.locator("[data-why-stop]")
    for stop in (4, len(why.sizes) - 1):
        slider.fill(str(stop))
        expect(lines).to_have_count(why.sizes[stop])
        share = f"{why.keeps(why.kept)[stop]:.0%}".replace("%", " %")
        said = f"{why.sizes[stop]} lines keep {share} of what attention does here"
        expect(view.page.locator("[data-why-keeps]")).to_contain_text(said)
        expect(slider).to_have_attribute("aria-valuetext", said)


def test_a_line_shows_its_numbers_and_its_way(opened, found):
    view, why = opened("long"), found["long"]
    line, card = view.page.locator("[data-line]").first, view.page.locator("[data-why-card]")
    expect(card).to_have_count(0)
    line.focus()
    expect(card).to_contain_text(f"head {why.name_of(why.lines()[0])}")
    view.page.keyboard.press("Enter")
    expect(line).to_have_attribute("aria-pressed", "true")
    measured = f"{why.numbers[why.lines()[0], 3] / why.lead:.0%}".replace("-", "−")
    expect(card).to_contain_text(measured.replace("%", " %"))
    # Lines are one stop of the Tab key, and arrows go from one to the next.
    view.page.keyboard.press("ArrowRight")
    expect(view.page.locator("[data-line]").nth(1)).to_be_focused()
    view.page.keyboard.press("Escape")
    expect(line).to_have_attribute("aria-pressed", "false")


def test_a_line_opens_its_head_pinned_on_its_two_tokens(opened, found):
    page, why = opened("long").page, found["long"]
    expect(page.get_by_role("tabpanel", name="One head")).to_have_count(0)
    (_, layer), (head, query, key) = (
        why.cells[why.links[why.lines()[0], 0]],
        why.links[why.lines()[0], 1:],
    )
    page.locator("[data-line]").first.press("Enter")
    expect(page.get_by_role("tabpanel", name="One head")).to_contain_text(f"Head {layer}-{head}")
    said = f"layer={layer}, heads=[{head}], query=[{query}], key=[{key}]"
    expect(page.locator("[data-call]")).to_contain_text(said)


def test_what_was_loaded_has_its_picture_without_heads(found, tmp_path, open_file):
    again = hs.load(found["long"].save(tmp_path / "why.safetensors"))
    view = open_file(again.view().save(tmp_path / "again.html"))
    view.page.locator("[data-line]").first.press("Enter")
    expect(view.page.locator("[data-why-card]")).to_be_visible()
    expect(view.page.get_by_role("tabpanel", name="One head")).to_have_count(0)


def test_parts_of_a_long_text_are_columns(opened):
    words = opened("long").page.locator("[data-why-view] svg text")
    expect(words.filter(has_text="document 1")).to_have_count(1)
    expect(words.filter(has_text="seven 100 %")).to_have_count(1)


def test_what_is_refused_has_its_reason_and_its_table(opened, found):
    view = opened("refused")
    assert found["refused"].refusal
    expect(view.page.get_by_text(found["refused"].refusal)).to_be_visible()
    expect(view.page.locator("[data-line], [data-why-stop]")).to_have_count(0)
    expect(view.page.locator("table").first).to_be_visible()


@pytest.mark.parametrize("name", ["long", "refused"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(name, width, opened):
    view = opened(name, size=(width, 844))
    assert view.page.evaluate("document.documentElement.scrollWidth") == width


def test_paper_has_the_picture_without_its_slider(opened):
    view = opened("long")
    view.page.emulate_media(media="print")
    try:
        expect(view.page.locator("[data-line]").first).to_be_attached()
        expect(view.page.locator("[data-why-keeps]")).to_be_visible()
        expect(view.page.locator("[data-why-stop]")).to_be_hidden()
    finally:
        view.page.emulate_media(media="screen")


@pytest.mark.skipif(not AXE.exists(), reason="axe-core comes with the front end's packages")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["long", "refused"])
def test_nothing_grave_is_wrong_with_it(name, scheme, opened):
    view = opened(name, scheme=scheme)
    if name == "long":
        view.page.locator("[data-line]").first.focus()
    assert grave(view, scheme) == []
