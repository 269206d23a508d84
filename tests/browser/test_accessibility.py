"""axe-core in every view."""

from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights

AXE = Path(__file__).parent.parent.parent / "frontend/node_modules/axe-core/axe.min.js"
OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules of axe-core that look at colours, but for one that it does not try unless asked."""
VIEWS = ("overview", "head", "matrix", "text", "neuron")
PIECES = ("[CLS]", "the", "cat", "sat", "[SEP]", "it", "straw", "##berries", "[SEP]")

pytestmark = pytest.mark.skipif(
    not AXE.exists(),
    reason="axe-core comes with the front end's packages: npm --prefix frontend ci",
)


def record_of(rng):
    """A sentence pair of grouped heads with a sink."""
    tokens = Tokens(pieces=PIECES, segments=(0,) * 5 + (1,) * 4)
    keys = rng.normal(size=(2, 9, 8)).astype(np.float32)
    queries = rng.normal(size=(4, 9, 8)).astype(np.float32) + 2 * keys[[0, 0, 1, 1], 4][:, None]
    layers = tuple(Layer(layer=number, queries=queries, keys=keys) for number in range(3))
    return Record(
        stacks={"self": Stack(name="self", query=tokens, key=tokens, layers=layers)},
        model=ModelFacts(),
    )


@pytest.fixture
def record(rng):
    return record_of(rng)


def grave(view, scheme="light", part=None):
    """What axe-core finds that is critical or serious: rules, and elements that break them.

    A dark page differs from a light one in its colours alone: only their rules are tried there.
    Of a ``part`` the rest is not looked at.
    """
    view.settle()
    if not view.page.evaluate("'axe' in window"):
        view.page.evaluate(AXE.read_text(encoding="utf-8"))
    # Without preload, which looks for style sheets of other addresses: there are none.
    options = {"resultTypes": ["violations"], "preload": False}
    if scheme == "dark":
        options["runOnly"] = {"type": "rule", "values": OF_COLOURS}
    violations = view.page.evaluate(
        "([part, options]) => axe.run(part ?? document, options).then(all => all.violations)",
        [part, options],
    )
    return [
        (rule["id"], [node["html"][:160] for node in rule["nodes"]][:4])
        for rule in violations
        if rule["impact"] in ("critical", "serious")
    ]


@pytest.fixture(scope="module", params=["light", "dark"])
def plain_page(request, kept_pages):
    """A page that stays open, without further quantities."""
    page = kept_pages("file", record_of(np.random.default_rng(20)), scheme=request.param)
    return page, request.param


@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing_critical_or_serious(name, plain_page):
    page, scheme = plain_page
    assert grave(page.follow(view=name, query=3, key=5), scheme) == []


@pytest.mark.parametrize("name", ["matrix", "text"])
def test_axe_finds_nothing_where_scores_are_shown_and_sinks_left_out(name, plain_page):
    page, scheme = plain_page
    assert grave(page.follow(view=name, quantity="score", sinks=0, query=3), scheme) == []


@pytest.mark.parametrize(("width", "scheme"), [(420, "light"), (1280, "dark")])
def test_axe_finds_nothing_where_gold_links_are_shown(width, scheme, show, record):
    links = [(1, 2, "det"), (2, 3, "nsubj"), (5, 3, "conj"), ([6, 7], 5, "obj")]
    page = show(record, scheme=scheme, size=(width, 800), heads=[1], links=links)
    assert grave(page, scheme) == []
    page.follow(view="head", query=1, key=2)
    assert "query=1&key=2" in page.address()
    assert grave(page, scheme) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_picture(scheme, show, rng):
    tokens = Tokens(pieces=tuple("abcdefg"), grids=((2, 3),), places=(None, *np.ndindex(2, 3)))
    layer = Layer(layer=0, weights=random_weights(rng, (4, 7, 7)))
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    records = [
        Record(stacks={"self": stack}, pictures=(rng.integers(0, 256, (8, 12, 3), np.uint8),))
        for _ in range(2)
    ]
    for seen in (records[0], hs.compare(*records)):
        page = show(seen, view="head", scheme=scheme, query=2)
        assert grave(page, scheme) == []
        assert grave(page.choose("text"), scheme) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_help_search_and_words(scheme, show, record):
    view = show(record, scheme=scheme, words=True, query=[1, 2], pinned="sum", layout="rows")
    view.page.locator("[data-menu]").click()
    assert grave(view, scheme) == []
    view.page.keyboard.press("/")
    view.page.locator("[data-search]").fill("cat")
    assert grave(view, scheme) == []
    view.page.keyboard.press("Escape")
    view.page.locator("[data-help-open]").click()
    view.page.locator("[data-help]").wait_for()
    assert grave(view, scheme) == []


def test_axe_finds_nothing_with_many_heads_many_tokens_and_layers_without_attention(show, rng):
    tokens = Tokens(pieces=tuple(f"t{number}" for number in range(210)))
    layers = tuple(
        Layer(layer=number, weights=random_weights(rng, (40, 210, 210))) for number in (1, 2)
    )
    stack = Stack(
        name="self", query=tokens, key=tokens, layers=layers, others={0: "linear (Mamba)"}
    )
    large = Record(stacks={"self": stack}, model=ModelFacts())
    page = show(large, view="overview", size=(390, 800))
    # A page that is made and opened once for both widths: that takes most of the time.
    for width in (390, 1280):
        page.page.set_viewport_size({"width": width, "height": 800})
        for name in ("overview", "head", "text"):
            assert grave(page.follow(view=name, heads=[3])) == [], (width, name)


def test_axe_is_seen_to_fail(show, record):
    view = show(record)
    shadow = "document.querySelector('#headscope').shadowRoot"
    for name in ("aria-label", "title"):
        view.page.evaluate(f"{shadow}.querySelector('[data-help-open]').removeAttribute('{name}')")
    view.page.evaluate(f"{shadow}.querySelector('[data-help-open]').textContent = ''")
    assert "button-name" in [rule for rule, _ in grave(view)]


def test_the_map_is_a_grid_that_says_what_it_shows(show, record):
    cell = show(record, view="head").page.get_by_role("button", name="Head 1-2, key/value head 1")
    assert cell.count() == 1
