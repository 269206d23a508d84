"""Records of chosen heads: what was not captured is empty, and says so."""

import pytest

import headscope as hs
from headscope.testing import tiny_model, tiny_tokenizer

PICKS = [(0, 1), (0, 2), (1, 5)]


@pytest.fixture(scope="module")
def record():
    return hs.capture(tiny_model("llama"), tiny_tokenizer(), "the cat sat on the mat", heads=PICKS)


@pytest.fixture(params=["page", "server"])
def shown(request, record, show, served):
    if request.param == "page":
        yield show(record, view="overview")
        return
    with served(record, view="overview") as view:
        yield view


def test_heads_keep_their_numbers_in_every_view(shown):
    page = shown.page
    page.locator("[data-tile]").first.wait_for()
    assert sorted(
        page.locator("[data-tile]").evaluate_all("tiles => tiles.map(tile => tile.dataset.tile)")
    ) == ["0-1", "0-2", "1-5"]
    shown.choose("head")
    assert page.locator('[data-tile="0-5"]').count() == 0
    page.locator('[data-tile="1-5"]').first.click()
    shown.choose("head")
    assert shown.state("layer") == "1"
    assert shown.state("heads") == "5"
    shown.token("query", 2).click()
    page.locator('.all-heads [data-tile="1-5"]:not([title$="not in this page"])').wait_for()
    page.locator('.all-heads [data-tile="0-1"]:not([title$="not in this page"])').wait_for()
    assert (
        page.locator('.all-heads [data-tile="0-5"]')
        .get_attribute("title")
        .endswith("not in this page")
    )
    assert shown.errors == []


def test_neurons_are_shown_where_a_page_holds_one_layer(show, record):
    view = show(record, view="neuron", layer=1, head=5, include_layers=[1])
    assert view.state("heads") == "5"
    assert view.page.locator("[data-canvas]").count() > 0
    assert view.errors == []
