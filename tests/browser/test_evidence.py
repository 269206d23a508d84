"""Evidence of heads in a real browser: labels on tiles, scatter and map, the card; opened from
disk, offline.
"""

from functools import cache

import numpy as np
import pytest

import headscope as hs
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights

from .test_accessibility import AXE, grave
from .test_views import SHADOW, wait

LAYERS, HEADS = 3, 4
WORDS = ("stone", "river", "lamp", "cloud", "table", "horse", "glass", "paper")
SCATTERS = ({}, {"x": "map"}, {"x": "entropy", "y": "next", "label": "next"})


def record_of(rng, size):
    """Heads 0-1 and 1-3 look at the next token; all others at anything."""
    pieces = ("[CLS]", *map(str, rng.choice(WORDS, size - 2)), "[SEP]")
    tokens = Tokens(pieces=pieces)
    layers = []
    for number in range(LAYERS):
        weights = random_weights(rng, (HEADS, size, size)) ** 0.5
        weights /= weights.sum(axis=-1, keepdims=True)
        for head in {0: [1], 1: [3]}.get(number, []):
            weights[head] = 0.2 * weights[head] + 0.8 * np.roll(np.eye(size), 1, axis=1)
        layers.append(Layer(layer=number, weights=weights.astype(np.float32)))
    stack = Stack(name="self", query=tokens, key=tokens, layers=tuple(layers))
    return Record(stacks={"self": stack}, model=ModelFacts(name="planted"))


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(5)
    return [record_of(rng, int(size)) for size in rng.integers(8, 12, 16)]


@pytest.fixture(scope="module")
def found(records):
    return hs.heads(records)


@pytest.fixture(scope="module")
def page_of(records, found, kept_pages):
    """A page with what heads do over one text or all; it stays open for all views."""

    @cache
    def page_of(texts, width=1280, scheme="light"):
        evidence = found if texts == "all" else hs.heads(records[0])
        window = {"scheme": scheme, "size": (width, 800)}
        return kept_pages("file", records[0], evidence=evidence, layer=1, head=3, **window)

    return page_of


def test_tiles_carry_the_labels_that_hold(show_kept, records, found):
    view = show_kept(records[0], evidence=found).follow(view="model", label="next")
    told = {f"{label.layer}-{label.head}" for label in found.labels if label.pattern == "next"}
    assert told == {"0-1", "1-3"}
    bright = view.page.locator(".grid-cell:not([data-dim])")
    assert set(bright.evaluate_all("cells => cells.map(cell => cell.dataset.cell)")) == told
    label = next(label for label in found.head(1, 3).labels if label.pattern == "next")
    said = view.page.locator('[data-cell="1-3"]').get_attribute("aria-label")
    wanted = [f"{value:.2f}".lstrip("0") for value in (label.score, label.low, label.high)]
    assert "next {}, 95 % interval {} to {} over 16 texts".format(*wanted) in said


def test_a_dimmed_head_is_fainter_than_before(show_kept, records, found):
    ink = f"""() => {{
        const cell = {SHADOW}.querySelector('[data-cell="2-0"]');
        return getComputedStyle(cell).backgroundColor;
    }}"""
    view = show_kept(records[0], evidence=found).follow(view="model")
    before = view.page.evaluate(ink)
    view.page.locator('[data-label="next"]').click()
    view.settle()
    assert view.page.evaluate(ink) != before


def test_sorted_tiles_keep_their_names_and_open_their_head(show_kept, records, found):
    view = show_kept(records[0], evidence=found).follow(view="model")
    view.page.locator('[data-axis="sort by"]').select_option("entropy")
    view.settle()
    order = np.argsort(-found.measures["entropy"], kind="stable")
    wanted = ["{}-{}".format(*found.cells[at]) for at in order]
    cells = view.page.locator(".ranked [data-cell]")
    assert cells.evaluate_all("cells => cells.map(cell => cell.dataset.cell)") == wanted
    assert view.colours("grid") > 20
    assert cells.nth(0).inner_text().startswith(wanted[0])
    cells.nth(2).click()
    wait(view, "view", "head")
    assert f"{view.state('layer')}-{view.state('heads')}" == wanted[2]


def test_the_canvas_of_sorted_tiles_shows_them_in_their_order(show_kept, records, found):
    pixels = f"""(cell) => {{
        const canvas = {SHADOW}.querySelector('[data-canvas="grid"]');
        const box = {SHADOW}.querySelector(`[data-cell="${{cell}}"]`).getBoundingClientRect();
        const own = canvas.getBoundingClientRect();
        const scale = canvas.width / own.width;
        const part = canvas.getContext('2d').getImageData(
            Math.round((box.left - own.left) * scale), Math.round((box.top - own.top) * scale), 50, 50);
        return [...part.data].join();
    }}"""
    view = show_kept(records[0], evidence=found).follow(view="model", sort="entropy")
    view.page.locator('[data-option="matrices"]').click()
    view.settle()
    first = {cell: view.page.evaluate(pixels, cell) for cell in ("0-1", "1-3", "2-2")}
    view.page.locator("[data-sort-end]").click()
    view.settle()
    assert {cell: view.page.evaluate(pixels, cell) for cell in first} == first
    assert len(set(first.values())) == 3


def test_dots_stand_where_their_measures_are(show_kept, records, found):
    view = show_kept(records[0], evidence=found).follow(view="scatter", x="distance", y="next")
    boxes = [
        view.page.locator(f'[data-dot="{layer}-{head}"]').bounding_box()
        for layer, head in found.cells
    ]
    across, up = np.array([box["x"] for box in boxes]), -np.array([box["y"] for box in boxes])
    scores = [
        next(x.score for x in found.head(*cell).labels if x.pattern == "next")
        for cell in found.cells
    ]
    assert np.corrcoef(across, found.measures["distance"])[0, 1] > 0.9999
    assert np.corrcoef(up, scores)[0, 1] > 0.9999


def test_pointing_at_a_dot_previews_its_card_and_a_click_chooses_the_head(
    show_kept, records, found
):
    view = show_kept(records[0], evidence=found).follow(view="scatter")
    dot = view.page.locator('[data-dot="1-3"]')
    dot.hover()
    view.settle()
    card = view.page.locator("[data-head-card]")
    assert card.get_attribute("data-head-card") == "1-3"
    assert "heads" not in view.address()
    dot.click()
    wait(view, "heads", "3")
    assert view.address() == "#v=2&view=scatter&layer=1&heads=3"
    view.page.mouse.move(2, 2)
    view.settle()
    assert card.get_attribute("data-head-card") == "1-3"
    dot.focus()
    view.page.keyboard.press("ArrowLeft")
    chosen = view.page.evaluate(f"{SHADOW}.activeElement.dataset.dot")
    assert chosen not in (None, "1-3")
    view.page.keyboard.press("Enter")
    view.settle()
    layer, head = chosen.split("-")
    assert (view.state("layer"), view.state("heads")) == (layer, head)


def test_the_card_has_what_python_has(show_kept, records, found):
    view = show_kept(records[0], evidence=found).follow(layer=0, heads=[1])
    label = next(label for label in found.head(0, 1).labels if label.pattern == "next")
    said = view.text('[data-evidence-of="next"]')
    for value in (label.score, label.low, label.high, label.baseline):
        assert f"{value:.2f}".lstrip("0") in said
    assert f"{label.effect:.1f} standard deviations above it" in said
    assert "16 texts" in said
    for text, score in found.head(0, 1).examples("next"):
        assert text in said
        assert f"{score:.2f}".lstrip("0") in said
    view.page.locator('[data-evidence-of="next"] .pair-link').first.click()
    view.settle()
    weights = records[0]["self"].weights(0, 1)
    best = max(range(1, len(weights) - 2), key=lambda query: weights[query, query + 1])
    assert f"query={best}&key={best + 1}" in view.address()


def test_one_text_is_said_to_be_one_in_every_view_that_shows_labels(show, records):
    once = hs.heads(records[0])
    view = show(records[0], evidence=once, layer=0, head=1)
    assert "seen on one text only" in view.text('[data-evidence-of="next"]')
    for name in ("model", "scatter"):
        view.choose(name)
        assert view.text("[data-caution]") == "Seen on one text only: nothing is known of others."


def test_evidence_reaches_a_served_page(served, records, found):
    with served(records[0], evidence=found, view="scatter", x="map") as view:
        assert view.page.locator("[data-dot]").count() == LAYERS * HEADS
        assert "Stress" in view.text("[data-map-note]")


def test_the_call_that_the_page_shows_opens_the_same_picture(show_kept, records, found):
    view = show_kept(records[0], evidence=found).follow(view="scatter", label="next", min_score=40)
    view.page.locator('[data-axis="x axis"]').select_option("map")
    call = view.text("[data-call]")
    again = eval(call, {"hs": hs, "record": records[0], "found": found})
    selection = again.header["selection"]
    assert (
        selection.items()
        >= {"view": "scatter", "label": "next", "min_score": 40, "x": "map"}.items()
    )


@pytest.mark.skipif(
    not AXE.exists(),
    reason="axe-core comes with the front end's packages: npm --prefix frontend ci",
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view_name", ["scatter", "model", "head"])
def test_axe_finds_nothing_critical_or_serious(view_name, scheme, page_of):
    for texts in ("one", "all"):
        view = page_of(texts, scheme=scheme).follow(view=view_name)
        wait(view, "view", view_name)
        assert grave(view, scheme) == []
    view.follow(view=view_name, label="next", x="map", sort="entropy")
    assert grave(view, scheme) == []


@pytest.mark.parametrize("more", SCATTERS)
@pytest.mark.parametrize("width", [380, 640, 900, 1440])
def test_nothing_is_cut_off_at_any_width(width, more, page_of):
    view = page_of("all", width=width).follow(view="scatter", heads=1, **more)
    wait(view, "view", "scatter")
    assert (
        view.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        <= 0
    )
    plane = view.page.locator(".scatter-plane").bounding_box()
    corners = view.page.locator("[data-dot]").evaluate_all(
        "dots => dots.map(dot => dot.getBoundingClientRect()).map(box => [box.x, box.y])"
    )
    assert len(corners) == LAYERS * HEADS
    for x, y in corners:
        assert plane["x"] - 12 <= x <= plane["x"] + plane["width"] - 12
        assert plane["y"] - 12 <= y <= plane["y"] + plane["height"] - 12


@pytest.mark.parametrize("fragment", ["#v=2&view=scatter", "#v=2&view=model&sort=entropy"])
def test_nothing_moves_for_readers_who_want_that(fragment, show, records, found):
    view = show(records[0], evidence=found, fragment=fragment)
    moving = f"""[...{SHADOW}.querySelectorAll('*')].filter(element => {{
        const style = getComputedStyle(element);
        return style.transitionProperty !== 'none' && parseFloat(style.transitionDuration) > 0;
    }}).length"""
    assert view.page.evaluate(moving) == 0
