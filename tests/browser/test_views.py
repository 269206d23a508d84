"""The views beside the head view, and what they share, in a real browser, opened from disk,
offline.
"""

import re
from functools import cache

import numpy as np
import pytest

import headscope as hs
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights

VIEWS = ("head", "matrix", "text", "neuron")
QUERIES = ("[CLS]", "we", "went", "home", "##ward", "[SEP]")
KEYS = ("[CLS]", "straw", "##berries", "are", "red", ".", "yes", "no", "[SEP]")
LAYERS, HEADS, KV_HEADS, FEATURES = 3, 4, 2, 8
SHADOW = "document.querySelector('#headscope').shadowRoot"


def scored_layer(rng, number, **more):
    queries, keys = len(QUERIES), len(KEYS)
    return Layer(
        layer=number,
        queries=rng.normal(size=(HEADS, queries, FEATURES)).astype(np.float32),
        keys=rng.normal(size=(KV_HEADS, keys, FEATURES)).astype(np.float32),
        scale=0.7,
        **more,
    )


def scored_record(rng):
    """Queries and keys of grouped heads, of which some pairs are masked."""
    visible = np.tril(np.ones((len(QUERIES), len(KEYS)), bool), k=len(KEYS) - len(QUERIES))
    layers = tuple(scored_layer(rng, number, visible=visible) for number in range(LAYERS))
    sides = {"query": Tokens(pieces=QUERIES), "key": Tokens(pieces=KEYS)}
    return Record(
        stacks={"cross": Stack(name="cross", layers=layers, **sides)},
        model=ModelFacts(name="scored"),
    )


@pytest.fixture
def scored(rng):
    return scored_record(rng)


@pytest.fixture(scope="module")
def page_in(kept_pages):
    """A page of the record in a window of a width and density; it stays open for all views."""

    @cache
    def page_in(width=1280, density=1):
        record = scored_record(np.random.default_rng(20))
        return kept_pages("file", record, size=(width, 800), density=density)

    return page_in


@pytest.fixture
def sinking(rng):
    """Weights of which one key that is no special token takes more than half."""
    weights = 0.4 * random_weights(rng, (2, 3, len(QUERIES), len(KEYS)))
    weights[..., 4] += 0.6
    return hs.from_weights(
        cross=weights, encoder_tokens=list(KEYS), decoder_tokens=list(QUERIES), model="sinking"
    )


def printed(text):
    """A number as the page prints it; None for what it prints where there is none."""
    found = re.search(r"(?<![\w.])[−<]?\d*\.?\d+(?!\w)", text)
    if found is None:
        return None
    return float(found[0].replace("−", "-").lstrip("<"))


def near(value):
    """What a printed number may differ by: half of its last digit, of two or three."""
    return pytest.approx(value, abs=0.0052)


def wait(view, name, value):
    view.page.locator(f'[data-headscope][data-{name}="{value}"]').wait_for(state="attached")


def test_the_grid_opens_a_head(show_kept, scored):
    view = show_kept(scored).follow(view="matrix")
    view.page.locator('[data-tile="2-1"]').click()
    wait(view, "layer", "2")
    assert view.state("view") == "matrix"
    assert (view.state("layer"), view.state("heads")) == ("2", "1")


def test_the_map_is_walked_with_arrows(show_kept, scored):
    view = show_kept(scored).follow(view="head")
    view.page.locator('[data-tile="0-0"]').click()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        view.page.keyboard.press(key)
        view.settle()
    wait(view, "layer", "1")
    assert (view.state("view"), view.state("heads")) == ("head", "1")
    assert view.page.evaluate(f"{SHADOW}.activeElement.dataset.tile") == "1-1"


def test_the_map_chooses_a_head_and_shift_keeps_it_to_compare(show_kept, scored):
    view = show_kept(scored).follow(view="matrix")
    view.page.locator('[data-tile="1-0"]').click()
    wait(view, "heads", "0")
    view.page.locator('[data-tile="1-2"]').click(modifiers=["Shift"])
    assert "tray=1-2" in view.address()
    assert (view.state("view"), view.state("heads")) == ("matrix", "0")


def test_heads_that_share_keys_are_framed(show_kept, scored, sinking):
    assert show_kept(scored).page.locator(".kv-frame").count() == LAYERS * KV_HEADS
    assert show_kept(sinking).page.locator(".kv-frame").count() == 0


def cell_at(view, query, key):
    box = view.page.locator(".matrix-plane").bounding_box()
    side = float(view.state("cell"))
    return box["x"] + (key + 0.5) * side, box["y"] + (query + 0.5) * side


def test_the_matrix_says_weight_and_score_of_the_cell_under_the_pointer(show_kept, scored):
    view = show_kept(scored).follow(view="matrix", layer=1, heads=[3])
    weights, scores = scored["cross"].weights(1, 3), scored["cross"].scores(1, 3)
    for query, key in ((0, 0), (3, 6), (5, 8), (2, 1)):
        view.page.mouse.move(*cell_at(view, query, key))
        status = view.text("[data-status]")
        assert printed(view.text("[data-status] b")) == near(weights[query, key])
        assert printed(status.split("score")[1]) == near(scores[query, key])
    view.page.mouse.click(*cell_at(view, 2, 1))
    assert "query=2&key=1" in view.address()


def test_the_matrix_is_walked_and_zoomed_by_keyboard(show_kept, scored):
    view = show_kept(scored).follow(view="matrix", heads=[0])
    view.page.locator(".matrix-plane").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
        view.page.keyboard.press(key)
    assert "query=1&key=2" in view.address()
    before = float(view.state("cell"))
    view.page.keyboard.press("+")
    assert float(view.state("cell")) > before
    view.page.get_by_role("button", name="fit").click()
    assert float(view.state("cell")) == before


def test_scores_are_shown_with_how_far_they_agree_with_weights(show_kept, scored):
    view = show_kept(scored).follow(view="matrix", heads=[2], layer=0)
    plain = view.colours("matrix")
    view.more().page.locator("[data-quantities]").select_option("score")
    said = view.text("[data-agreement]")
    assert f"same top key in 100 % of {len(QUERIES)} rows" in said
    weights, scores = scored["cross"].weights(0, 2), scored["cross"].scores(0, 2)
    seen = np.isfinite(scores)
    assert (
        weights[seen].argsort() == scores[seen].argsort()
    ).mean() < 1  # over all rows their orders differ
    assert printed(said.split("rank correlation")[1]) == 1  # and in each row they are the same
    assert view.colours("matrix") != plain
    bar = view.text(".stage [data-scale]")
    assert float(bar.split("\n")[-1]) == pytest.approx(np.abs(scores[seen]).max(), rel=0.05)


def test_what_a_query_may_not_see_has_a_look_of_its_own(show_kept, scored, sinking):
    assert show_kept(scored).follow(view="matrix").page.locator(
        "[data-look]"
    ).all_inner_texts() == ["masked", "almost 0"]
    view = show_kept(sinking).follow(view="matrix", sinks=False)
    assert view.page.locator("[data-look]").all_inner_texts() == ["excluded", "almost 0"]


def test_words_are_coloured_by_where_a_query_looks_and_who_looks_at_a_key(show_kept, scored):
    view = show_kept(scored).follow(view="text", layer=2, heads=[1])
    weights = scored["cross"].weights(2, 1)
    view.token("query", 3).hover()
    view.settle()
    for key in range(len(KEYS)):
        assert printed(view.token("key", key).get_attribute("title")) == near(weights[3, key])
    view.token("key", 4).hover()
    view.settle()
    for query in range(len(QUERIES)):
        assert printed(view.token("query", query).get_attribute("title")) == near(weights[query, 4])
    view.more().page.locator("[data-quantities]").select_option("score")
    view.more().page.locator("[data-menu]").click()
    view.token("query", 5).hover()
    view.settle()
    assert printed(view.token("key", 2).get_attribute("title")) == near(
        scored["cross"].scores(2, 1)[5, 2]
    )


def test_patches_stand_where_they_are_in_their_picture(show, rng):
    """Whatever their order: some models read patches block by block."""
    places = (None, (0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), None, (0, 0), (0, 1), None)
    pictures = tuple(
        None if place is None else int(token > 7) for token, place in enumerate(places)
    )
    tokens = Tokens(
        pieces=tuple(f"t{token}" for token in range(len(places))),
        grids=((2, 3), (1, 2)),
        places=places,
        pictures=pictures,
    )
    layers = tuple(
        Layer(layer=number, weights=random_weights(rng, (3, 11, 11))) for number in range(2)
    )
    stack = Stack(name="self", query=tokens, key=tokens, layers=layers)
    opened = show(Record(stacks={"self": stack}, model=ModelFacts()), view="text", query=[0])
    boxes = [opened.token("query", token).bounding_box() for token in range(len(places))]
    first = dict(zip(places[1:7], boxes[1:7], strict=True))
    for (row, column), box in first.items():
        assert box["x"] - boxes[1]["x"] == pytest.approx(column * box["width"], abs=1)
        assert box["y"] - boxes[1]["y"] == pytest.approx(row * box["height"], abs=1)
        assert box["width"] == pytest.approx(box["height"], abs=1)
    lowest = max(box["y"] + box["height"] for box in first.values())
    assert boxes[0]["y"] < boxes[1]["y"] < lowest <= boxes[7]["y"] + 1 < boxes[8]["y"]
    assert boxes[9]["y"] == pytest.approx(boxes[8]["y"], abs=1)
    assert boxes[10]["y"] > boxes[9]["y"]
    assert not opened.errors


def test_words_show_what_they_receive_when_nothing_is_chosen(show_kept, scored):
    view = show_kept(scored).follow(view="text", layer=0)
    received = scored["cross"].weights(0, 0).mean(axis=0)
    said = [printed(view.token("key", key).get_attribute("title")) for key in range(len(KEYS))]
    assert said == [near(value) for value in received]


def test_neurons_are_shown_with_scores_and_weights(show_kept, scored):
    view = show_kept(scored).follow(view="neuron", layer=1, heads=[2], query=4)
    scores, weights = scored["cross"].scores(1, 2)[4], scored["cross"].weights(1, 2)[4]
    rows = view.page.locator(".key-scroll .key-row")
    assert rows.count() == len(KEYS)
    for key in range(len(KEYS)):
        score, weight = (
            rows.nth(key).locator(".number").inner_text(),
            rows.nth(key).locator(".softmax").inner_text(),
        )
        if np.isfinite(scores[key]):
            assert (printed(score), printed(weight)) == (near(scores[key]), near(weights[key]))
        else:
            assert (score, weight.strip()) == ("masked", "")
    assert view.colours("neurons") > 30


def test_the_part_that_the_first_neurons_carry_is_printed(show_kept, scored):
    view = show_kept(scored).follow(view="neuron", layer=0, heads=[1], query=5, key=3)
    layer = scored["cross"].layer(0)
    added = np.sort(np.abs(layer.queries[1, 5] * layer.keys[0, 3] * layer.scale))[::-1]
    said = view.text("[data-pair-carried]")
    parts = added.cumsum() / added.sum()
    assert printed(said.split("carry")[1]) == pytest.approx(100 * parts[3], abs=0.51)
    assert int(re.search(r"needs (\d+)", said)[1]) == int((parts >= 0.8).argmax()) + 1
    view.page.locator("[data-menu]").click()
    view.page.locator("[data-neurons]").select_option("hidden")
    view.settle()
    assert view.page.locator('[data-canvas="neurons"]').count() == 0
    assert view.colours("all") > 10
    view.page.locator("[data-neurons]").select_option("model")
    view.page.get_by_role("button", name=re.compile("Neurons of red")).click()
    assert "key=4" in view.address()


def test_a_page_without_queries_and_keys_says_so(show_kept, sinking):
    assert show_kept(sinking).page.locator('[data-option="neuron"]').count() == 0


@pytest.mark.parametrize("quantity", ["weight", "score"])
def test_a_pair_is_shown_for_all_heads_of_all_layers(quantity, show_kept, scored):
    view = show_kept(scored).follow(view="head", query=3, key=5, quantity=quantity)
    of = scored["cross"].weights if quantity == "weight" else scored["cross"].scores
    for layer in range(LAYERS):
        for head in range(HEADS):
            cell = view.page.locator(f'.all-heads [data-tile="{layer}-{head}"]')
            said = cell.get_attribute("title").split(": ")[1]
            assert printed(said) == near(of(layer, head)[3, 5])
    values = np.array([of(layer)[:, 3, 5] for layer in range(LAYERS)])
    strongest = np.unravel_index(values.argmax(), values.shape)
    assert f"{strongest[0]}-{strongest[1]}" in view.text("[data-strongest]").split(",")[0]
    view.token("key", 0).click()
    assert "key=0" in view.address()
    view.page.locator('.all-heads [data-tile="1-1"]').click()
    wait(view, "layer", "1")
    assert view.state("heads") == "1"


def test_keys_that_take_most_are_found_and_left_out(show_kept, sinking):
    view = show_kept(sinking).follow(heads=[2]).more()
    weights = sinking["cross"].weights(0)[[2]]
    said = view.text(".more")
    part = weights[..., 4].mean() / weights.mean(axis=(0, 1)).sum()
    assert f"red {100 * part:.0f} %" in said
    view.page.locator("[data-without-sinks]").check()
    view.page.locator("[data-menu]").click()
    view.token("query", 2).hover()
    view.settle()
    rest = np.delete(weights, 4, axis=2)
    wanted = (rest / rest.sum(axis=-1, keepdims=True)).mean(axis=0)[2]
    strongest = int(wanted.argmax())
    said = view.token("key", strongest + (strongest >= 4)).inner_text().split("\n")[-1]
    assert printed(said) == pytest.approx(wanted[strongest], abs=0.011)
    assert "sinks=0" in view.address()


def test_the_call_that_the_page_shows_opens_the_same_picture(show_kept, scored):
    view = show_kept(scored).follow(view="matrix", heads=[2])
    view.page.mouse.click(*cell_at(view, 1, 3))
    view.page.keyboard.press("]")
    wait(view, "layer", "1")
    selection = eval(view.text("[data-call]"), {"hs": hs, "record": scored}).header["selection"]
    assert selection.items() >= {"view": "matrix", "layer": 1, "heads": [2]}.items()
    assert (selection["query"], selection["key"]) == ([1], [3])


def test_several_tokens_are_followed_together(show_kept, scored):
    view = show_kept(scored).follow(layer=1, heads=[2])
    view.token("query", 1).click()
    view.token("query", 4).click(modifiers=["Shift"])
    assert "query=1,4" in view.address()
    wanted = scored["cross"].weights(1, 2)[[1, 4]].mean(axis=0)
    key = int(wanted.argmax())
    view.settle()
    assert printed(view.token("key", key).inner_text().split("\n")[-1]) == near(wanted[key])
    view.page.keyboard.press("Escape")
    assert "query" not in view.address()


@pytest.mark.parametrize("view_name", VIEWS)
@pytest.mark.parametrize("width", [380, 640, 1440])
def test_no_view_is_cut_off_at_any_width(width, view_name, page_in):
    view = page_in(width).follow(view=view_name, query=2, key=3)
    wait(view, "view", view_name)
    assert (
        view.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        <= 0
    )


@pytest.mark.parametrize("view_name", ["head", "matrix", "neuron"])
def test_pictures_have_the_pixels_of_the_screen(view_name, page_in):
    canvas = f"{SHADOW}.querySelector('.stage canvas')"
    widths = []
    for density in (1, 2):
        view = page_in(density=density).follow(view=view_name)
        wait(view, "view", view_name)
        view.settle()
        widths.append(view.page.evaluate(f"{canvas}.width / {canvas}.clientWidth"))
    assert widths == [pytest.approx(1, abs=0.02), pytest.approx(2, abs=0.04)]


@pytest.mark.parametrize("view_name", VIEWS)
def test_nothing_moves_for_readers_who_want_that(view_name, page_in):
    view = page_in().follow(view=view_name)
    wait(view, "view", view_name)
    moving = f"""[...{SHADOW}.querySelectorAll('*')].filter(element => {{
        const style = getComputedStyle(element);
        return style.transitionProperty !== 'none' && parseFloat(style.transitionDuration) > 0
            || style.animationName !== 'none';
    }}).length"""
    assert view.page.evaluate(moving) == 0


def test_scripts_of_both_directions_keep_their_own(show, rng):
    pieces = "مرحبا ( שלום 中文 a)".split()
    view = show(hs.from_weights(random_weights(rng, (1, 2, 5, 5)), pieces))
    assert view.page.locator('[data-side="key"] bdi').all_inner_texts() == pieces
    directions = "elements => elements.map(element => getComputedStyle(element).unicodeBidi)"
    assert set(view.page.locator('[data-side="key"] bdi').evaluate_all(directions)) == {"isolate"}
