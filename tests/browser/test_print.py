"""What comes out of a printer: one A4 page of what is shown, with its names, and no controls."""

import re

import pytest

import headscope as hs

VIEWS = ("overview", "head", "matrix", "text", "neuron")


@pytest.fixture(scope="module")
def record(minilm):
    return hs.capture(*minilm, "I went to the store.", "At the store, I bought fresh strawberries.")


@pytest.fixture
def printed(show, chromium_only, record):
    """The page of a view as paper shows it, and how many sheets it takes."""

    def printed(view):
        opened = show(record, view=view)
        sheets = len(re.findall(rb"/Type\s*/Page\b", opened.page.pdf(format="A4")))
        opened.page.emulate_media(media="print")
        opened.settle()
        return opened.page, sheets

    return printed


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_one_sheet_without_controls(view, printed):
    page, sheets = printed(view)
    assert sheets == 1
    assert page.locator("[data-headscope]").is_visible()
    for controls in ("header .segmented", ".more"):
        assert not page.locator(controls).first.is_visible()
    # Paper lies across, as a window does.
    assert "A4 landscape" in page.evaluate("document.querySelector('head style').textContent")


def test_bars_of_neurons_keep_their_names_and_their_width_and_all_rows_are_seen(printed):
    """The names are buttons on the screen, and buttons are left out on paper."""
    page, _ = printed("neuron")
    rows = page.locator(".key-rows").bounding_box()
    assert page.locator("[data-pair-detail]").bounding_box()["y"] >= rows["y"] + rows["height"]
    stage = page.locator(".stage").bounding_box()
    for name in ("query", "key", "product"):
        row = page.locator(f'.vector[data-vector="{name}"]')
        assert row.locator(".vector-name").is_visible()
        assert row.locator(".contributions").bounding_box()["width"] > stage["width"] / 2
    assert not page.locator(".plus").first.is_visible()


def test_the_numbers_of_a_pinned_row_are_on_paper(show, chromium_only, record):
    """Lines have them beside their keys; a matrix in a list."""
    page = show(record, view="matrix", layer=1, head=8, query=9).page
    page.emulate_media(media="print")
    numbers = page.locator("[data-listed]").first.locator(".number").all_inner_texts()
    assert [text.endswith("×") for text in numbers] == [False, True]
    assert page.locator("[data-listed] .number").first.is_visible()
