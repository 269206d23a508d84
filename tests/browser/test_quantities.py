"""Every quantity in every view, in a real browser: opened from disk, offline, and from a server."""

import re
import time
from itertools import pairwise

import numpy as np
import pytest

import headscope as hs
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights

VIEWS = ("head", "matrix", "text", "neuron")
QUANTITIES = ("weight", "score", "contribution", "rollout", "difference")
FURTHER = QUANTITIES[1:]
QUERIES = ("[CLS]", "we", "went", "home", "##ward", "[SEP]")
KEYS = ("[CLS]", "straw", "##berries", "are", "red", ".", "yes", "no", "[SEP]")
LAYERS, HEADS, KV_HEADS, FEATURES = 3, 4, 2, 8


def layer_of(rng, number):
    layer = Layer(
        layer=number,
        queries=rng.normal(size=(HEADS, len(QUERIES), FEATURES)).astype(np.float32),
        keys=rng.normal(size=(KV_HEADS, len(KEYS), FEATURES)).astype(np.float32),
        scale=0.7,
        visible=np.tril(np.ones((len(QUERIES), len(KEYS)), bool), k=len(KEYS) - len(QUERIES)),
    )
    object.__setattr__(layer, "value_norms", 3 * rng.random((HEADS, len(KEYS))) + 0.2)
    return layer


@pytest.fixture(scope="module")
def made():
    """What all tests show, made once: pages that stay open show it too."""
    rng = np.random.default_rng(20)
    layers = tuple(layer_of(rng, number) for number in range(LAYERS))
    sides = {"query": Tokens(pieces=QUERIES), "key": Tokens(pieces=KEYS)}
    stacks = {"cross": Stack(name="cross", layers=layers, **sides)}
    size = (1, 1, len(QUERIES), len(KEYS))
    quantities = {
        "rollout": [0.3 * random_weights(rng, size)[0, 0] for _ in range(LAYERS)],
        "difference": [rng.normal(size=(HEADS, len(QUERIES), len(KEYS))) for _ in range(LAYERS)],
    }
    return Record(stacks=stacks, model=ModelFacts(name="many")), quantities


@pytest.fixture
def record(made):
    """Grouped heads of which some pairs are masked, with value norms."""
    return made[0]


@pytest.fixture
def given(made):
    """One map for all heads together, and one of both signs for each head."""
    return {name: list(layers) for name, layers in made[1].items()}


@pytest.fixture(scope="module")
def kept_page(request, kept_pages, made):
    """The record, from a file that holds all, or from a server that is asked."""
    record, quantities = made
    return kept_pages(getattr(request, "param", "file"), record, quantities=quantities)


FROM_BOTH = pytest.mark.parametrize("kept_page", ["file", "server"], indirect=True)


@pytest.fixture
def opened(kept_page):
    """Show the record in a view with a quantity."""

    def opened(view, quantity, **selection):
        kept_page.follow(view=view, quantity=quantity, **selection)
        shown = f'[data-headscope][data-view="{view}"][data-quantity="{quantity}"]'
        kept_page.page.locator(shown).wait_for(state="attached")
        kept_page.page.locator("[data-loading], [data-thumbs-loading]").first.wait_for(
            state="detached"
        )
        kept_page.settle()
        return kept_page

    return opened


@pytest.fixture
def values(record, given):
    """The values of a layer, axes head (or 1), query, key, by other means than the page's."""

    def values(quantity, layer):
        if quantity in given:
            array = given[quantity][layer]
            return array if array.ndim == 3 else array[None]
        if quantity == "contribution":
            return (
                record["cross"].weights(layer) * record["cross"].layer(layer).value_norms[:, None]
            )
        return (
            record["cross"].weights(layer)
            if quantity == "weight"
            else record["cross"].scores(layer)
        )

    return values


def mean_of(values, heads):
    """The mean over the chosen heads, or the one map that there is."""
    return values.mean(axis=0) if len(values) == 1 else values[heads].mean(axis=0)


def printed(text):
    """A number as the page prints it; None for what it prints where there is none."""
    found = re.search(r"(?<![\w.])[−<]?\d*\.?\d+(?!\w)", text)
    return None if found is None else float(found[0].replace("−", "-").lstrip("<"))


def near(value, most):
    """What a printed number may differ by: half its last digit, and the step that the largest size
    is stored in.
    """
    return pytest.approx(value, abs=0.0052 + abs(most) / 127)


def most_of(values):
    return float(np.abs(values[np.isfinite(values)]).max())


@FROM_BOTH
@pytest.mark.parametrize(
    ("view", "quantity"),
    [*zip(VIEWS, FURTHER, strict=True), *zip(VIEWS, FURTHER[::-1], strict=True)],
)
def test_every_view_shows_every_quantity_and_says_so(view, quantity, opened):
    page = opened(view, quantity, heads=[2], query=3, key=4)
    note = page.text("[data-quantity-note]")
    assert note.startswith(quantity)
    assert ("all heads together" in note) == (quantity == "rollout")
    assert "mean rank correlation" in page.text("[data-agreement]")
    assert f'quantity="{quantity}"' in page.text("[data-call]")
    assert page.more().page.locator("[data-quantities]").input_value() == quantity
    canvas = {"head": "all", "matrix": "matrix", "neuron": "neurons"}.get(view)
    if canvas:
        assert page.colours(canvas) > 20


@pytest.mark.parametrize("quantity", FURTHER)
def test_lines_come_with_the_numbers_of_the_token_in_focus(quantity, opened, values):
    page = opened("head", quantity, layer=1, heads=[3], query=4)
    wanted = mean_of(values(quantity, 1), [3])[4]
    most = most_of(values(quantity, 1))
    lit = page.page.locator('[data-side="key"][data-lit]')
    assert lit.count() >= 5
    for element in lit.all():
        key = int(element.get_attribute("data-token"))
        assert printed(element.locator(".number").inner_text()) == near(wanted[key], most)
    listed = page.page.locator("[data-listed]")
    assert int(listed.first.get_attribute("data-listed")) == (
        int(np.nanargmax(np.where(np.isfinite(wanted), wanted, -np.inf)))
        if quantity == "score"
        else int(np.nanargmax(np.abs(wanted)))
    )


def test_lines_of_both_signs_are_blue_and_orange_and_masked_pairs_have_none(opened, record):
    page = opened("head", "score", layer=0, heads=[2])
    scores = record["cross"].scores(0, 2)
    seen = np.isfinite(scores)
    drawn = int(page.state("lines"))
    # An eighth of the largest and more is drawn.
    most = np.abs(scores[seen]).max()
    assert (np.abs(scores[seen]) > 0.14 * most).sum() <= drawn
    assert drawn <= (np.abs(scores[seen]) > 0.11 * most).sum() < scores.size
    hues = page.page.evaluate(
        """() => {
            const canvas = document.querySelector('#headscope').shadowRoot.querySelector('[data-canvas=all]');
            const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            let [blue, orange] = [0, 0];
            for (let at = 0; at < data.length; at += 4) {
                if (data[at + 3] < 40) continue;
                if (data[at + 2] > data[at] + 60) blue++;
                if (data[at] > data[at + 2] + 60) orange++;
            }
            return [blue, orange];
        }"""
    )
    assert min(hues) > 100


@pytest.mark.parametrize("quantity", FURTHER)
def test_the_matrix_says_the_value_under_the_pointer(quantity, opened, values):
    page = opened("matrix", quantity, layer=2, heads=[3], query=4, key=3)
    wanted = mean_of(values(quantity, 2), [3])[4, 3]
    said = page.text("[data-status]").split(quantity)[1]
    assert printed(said) == near(wanted, most_of(values(quantity, 2)))
    top = np.abs(mean_of(values(quantity, 2), [3]))
    end = printed(page.text(".stage [data-scale]").split("\n")[-1])
    assert end == pytest.approx(top[np.isfinite(top)].max(), rel=0.05)


@pytest.mark.parametrize("quantity", FURTHER)
def test_words_are_coloured_by_it(quantity, opened, values):
    page = opened("text", quantity, layer=1, heads=[2], query=3)
    array = values(quantity, 1)
    wanted = mean_of(array, [2])[3]
    for key in range(len(KEYS)):
        said = printed(page.token("key", key).get_attribute("title"))
        assert said == near(wanted[key] if np.isfinite(wanted[key]) else 0, most_of(array))


@pytest.mark.parametrize("quantity", FURTHER)
def test_neurons_stand_beside_it(quantity, opened, values):
    page = opened("neuron", quantity, layer=2, heads=[1], query=2)
    array = values(quantity, 2)
    wanted = mean_of(array, [1])[2]
    found = page.page.locator(".key-scroll .key-row")
    assert found.count() == len(KEYS)
    for key in range(len(KEYS)):
        cell = found.nth(key).locator(".further")
        said = cell.get_attribute("data-further")
        if np.isfinite(wanted[key]):
            assert float(said) == near(wanted[key], most_of(array))
            if quantity != "score":  # which has a column of numbers of its own
                assert printed(cell.inner_text()) == near(wanted[key], most_of(array))
        else:
            assert (said, cell.inner_text().strip()) == (None, "")


@FROM_BOTH
@pytest.mark.parametrize("quantity", ["score", "rollout"])
def test_a_pair_has_a_cell_for_each_of_its_maps(quantity, opened, values):
    page = opened("head", quantity, query=3, key=5)
    arrays = [values(quantity, layer) for layer in range(LAYERS)]
    for layer, array in enumerate(arrays):
        most = most_of(array)
        for head, of in enumerate(array):
            cell = page.page.locator(f'.all-heads [data-tile="{layer}-{head}"]')

            def said(cell=cell):
                return printed(cell.get_attribute("title").split(": ")[1])

            # A server is asked for the layers one after the other.
            assert waited(said, near(of[3, 5], most)) == near(of[3, 5], most)


def waited(read, wanted, seconds=10):
    """What is read, once it is what is wanted; what it is in the end where it never is."""
    end = time.monotonic() + seconds
    while (said := read()) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    return said


@pytest.mark.parametrize("quantity", FURTHER)
def test_agreement_is_that_of_an_independent_reckoning(quantity, opened, values, record):
    stats = pytest.importorskip(
        "scipy.stats", reason="rank correlations come from the extra statistics"
    )
    page = opened("matrix", quantity, layer=1, heads=[2])
    weights, array = values("weight", 1)[[2]], values(quantity, 1)
    if len(array) == 1:
        weights = weights.mean(axis=0, keepdims=True)
    else:
        array = array[[2]]
    seen = np.broadcast_to(record["cross"].layer(1).visible.dense(), weights.shape).reshape(
        -1, len(KEYS)
    )
    assert not seen.all()
    flat = zip(weights.reshape(-1, len(KEYS)), array.reshape(-1, len(KEYS)), seen, strict=True)
    rows = [(a[shown], b[shown]) for a, b, shown in flat]
    same = np.mean([a.argmax() == b.argmax() for a, b in rows])
    rank = np.mean([stats.spearmanr(a, b).statistic for a, b in rows])
    said = page.text("[data-agreement]")
    assert f"of {len(rows)} rows" in said
    assert printed(said.split("same top key in")[1]) == pytest.approx(100 * same, abs=0.51)
    assert printed(said.split("correlation")[1]) == pytest.approx(rank, abs=0.03)


def test_value_norms_stand_under_numbers(opened, record):
    norms = record["cross"].layer(1).value_norms[3]
    numbers = opened("head", "weight", layer=1, heads=[3]).page.locator("details[data-norms]")
    assert f"up to {norms.max():.2f}" in numbers.locator("summary").inner_text()
    numbers.locator("summary").click()
    told = numbers.locator(".number").all_inner_texts()
    assert [printed(text) for text in told] == pytest.approx(list(norms), abs=0.006)


def test_only_what_the_page_has_is_offered(show, rng):
    weights = random_weights(rng, (2, 3, 5, 7))
    sides = {"encoder_tokens": list("abcdefg"), "decoder_tokens": list("vwxyz")}
    page = show(hs.from_weights(cross=weights, **sides))
    assert page.page.locator("[data-quantities]").count() == 0
    assert page.page.locator("[data-quantity-note], [data-norms]").count() == 0


def test_a_layer_without_it_shows_weights_and_says_so(show, record, given):
    given["difference"][1] = None
    page = show(record, quantities=given, quantity="difference", layer=0)
    page.page.keyboard.press("]")
    page.page.locator('[data-headscope][data-layer="1"]').wait_for(state="attached")
    assert page.text("[data-quantity-note]") == "This layer has no difference: weights are shown."
    assert page.state("quantity") == "weight"
    page.page.keyboard.press("]")
    page.page.locator('[data-headscope][data-layer="2"]').wait_for(state="attached")
    assert page.state("quantity") == "difference"


def test_quantities_are_a_list(show, record, given, rng):
    more = {
        name: [rng.random((len(QUERIES), len(KEYS)))] * LAYERS
        for name in ("effect", "my-own-quantity")
    }
    page = show(record, quantities=given | more)
    choice = page.more().page.locator("[data-quantities]")
    assert choice.locator("option").evaluate_all(
        "options => options.map(option => option.value)"
    ) == [*QUANTITIES, "effect", "my-own-quantity"]
    choice.select_option("effect")
    page.page.locator('[data-headscope][data-quantity="effect"]').wait_for(state="attached")
    assert "quantity=effect" in page.address()


def test_a_link_with_an_unknown_quantity_shows_weights(show, record):
    page = show(record, fragment="#v=2&quantity=mass&layer=1")
    assert (page.state("quantity"), page.state("layer")) == ("weight", "1")


def test_a_pinned_word_is_named_in_place_of_the_direction(opened):
    page = opened("text", "weight")
    note = page.page.locator(".view-note").first
    assert "received" in note.inner_text()
    page.token("query", 2).click()
    assert note.inner_text().startswith("from went")
    page.page.locator("[data-menu]").click()
    page.page.locator("[data-direction]").select_option("given")
    page.settle()
    assert "given" in note.inner_text()
    assert "query=" not in page.address()


def test_pieces_of_a_word_touch_each_other_and_words_do_not(opened):
    page = opened("text", "weight")
    boxes = [page.token("key", key).bounding_box() for key in range(4)]
    gaps = [right["x"] - left["x"] - left["width"] for left, right in pairwise(boxes)]
    assert gaps[1] == pytest.approx(0, abs=0.5)
    assert min(gaps[0], gaps[2]) > 2
