"""The opening picture: all heads, one of them in full, one sentence about all."""

import numpy as np
import pytest

import headscope as hs
from headscope.record import Tokens

PIECES = "[CLS] the cat sat on the mat [SEP] and the dog ran to the old house [SEP]".split()
TOKENS = Tokens(pieces=tuple(PIECES), segments=(0,) * 8 + (1,) * (len(PIECES) - 8))


def rows(targets, noise=0.1):
    size = len(PIECES)
    targets = np.array(targets, float)
    targets[targets.sum(axis=1) == 0, 0] = 1
    return (1 - noise) * targets / targets.sum(axis=1, keepdims=True) + noise / size


@pytest.fixture
def record():
    """Three layers of five heads: next (sharper with the layer), previous, resting, even, stays in
    its sentence.
    """
    size = len(PIECES)
    inside = np.array(TOKENS.segments)[:, None] == np.array(TOKENS.segments)
    words = ~np.array(TOKENS.special)
    kinds = [
        np.eye(size, k=1),
        np.eye(size, k=-1),
        np.eye(size)[[0] * size],
        np.ones((size, size)),
        inside & words,
    ]
    layers = [np.stack([rows(kind, 0.3 - 0.1 * layer) for kind in kinds]) for layer in range(3)]
    return hs.from_weights(layers, TOKENS)


@pytest.fixture
def overview(show_kept, record):
    view = show_kept(record, view="overview")
    view.page.locator("[data-story] button").first.wait_for()
    return view


def headline(view):
    return view.text("[data-headline]").replace("\n", " ").strip()


def tile(view, name):
    return view.page.locator(f'[data-tile="{name}"]')


def test_a_page_opens_on_the_clearest_head_and_says_what_all_do(show_kept, record):
    view = show_kept(record, view="overview")
    assert headline(view) == "Head 2-0 looks at the next token"
    story = " ".join(view.text("[data-story]").split())
    assert story.startswith(
        f"On these {len(PIECES)} tokens, of 15 heads 3 look at the next token, 3 at the previous"
    )
    assert "rest on [CLS]" in story
    assert view.text("[data-call]") == "hs.view(record)"
    assert view.colours("tiles") > 15
    assert view.text("[data-more]").startswith("here .91")


def test_without_options_a_page_is_an_overview(open_file, record, tmp_path):
    assert open_file(hs.view(record).save(tmp_path / "plain.html")).state("view") == "overview"


def test_of_heads_that_do_nothing_clear_there_is_none_to_compare(show_kept):
    rng = np.random.default_rng(0)
    weights = [rng.dirichlet(np.full(len(PIECES), 0.2), (40, len(PIECES))) for _ in range(3)]
    view = show_kept(hs.from_weights(weights, TOKENS), view="overview")
    assert "120 do none of these" in " ".join(view.text("[data-story]").split())
    assert view.page.locator(".plate-strip").count() == 0
    view.page.keyboard.press("c")
    assert view.state("view") == "overview"


def test_the_head_in_full_follows_the_pointer_and_a_click_keeps_it(overview):
    tile(overview, "1-1").hover()
    assert headline(overview) == "Head 1-1 looks at the previous token"
    assert overview.page.locator("[data-story]").is_visible()
    overview.page.mouse.move(5, 5)
    assert headline(overview) == "Head 2-0 looks at the next token"
    tile(overview, "0-2").click()
    overview.page.mouse.move(5, 5)
    assert headline(overview) == "Head 0-2 rests on [CLS]"
    assert "heads=2" in overview.address()
    assert overview.text("[data-call]") == 'hs.view(record, view="overview", layer=0, heads=[2])'


def test_shares_that_keys_get_stand_beside_them_and_a_token_shows_its_own(overview):
    tile(overview, "2-2").click()
    overview.settle()
    assert overview.token("key", 0).locator(".number").inner_text() == ".91"
    overview.token("query", 3).hover()
    overview.settle()
    assert overview.page.locator(".scroller[data-focus=query]").count() == 1


def test_a_clause_is_a_filter(overview):
    overview.page.locator('[data-story] button[data-kind="previous"]').click()
    assert headline(overview) == "Head 2-1 looks at the previous token"
    assert overview.page.locator(".tile:not([data-dim])").count() == 3
    assert "kind=previous" in overview.address()
    overview.page.keyboard.press("Escape")
    overview.settle()
    assert overview.page.locator(".tile[data-dim]").count() == 0


@pytest.mark.parametrize("order", ["kind", "sharpness"])
def test_other_orders_show_every_head_once(overview, order):
    overview.page.locator("[data-order-choice]").select_option(order)
    overview.settle()
    boxes = [tile.bounding_box() for tile in overview.page.locator(".tile").all()]
    assert len({(round(box["x"]), round(box["y"])) for box in boxes}) == 15
    assert f"order={order}" in overview.address()
    assert overview.colours("tiles") > 15


def test_arrows_walk_enter_opens_the_head_and_a_key_goes_back(overview):
    tile(overview, "2-0").focus()
    overview.page.keyboard.press("ArrowUp")
    overview.page.keyboard.press("ArrowRight")
    assert headline(overview) == "Head 1-1 looks at the previous token"
    overview.page.keyboard.press("Enter")
    overview.page.locator('[data-headscope][data-view="head"]').wait_for(state="attached")
    assert (overview.state("layer"), overview.state("heads")) == ("1", "1")
    overview.page.keyboard.press("o")
    overview.page.locator(".overview-view").wait_for()
    assert headline(overview) == "Head 1-1 looks at the previous token"


def test_leaving_by_a_tab_takes_the_head_along(overview):
    overview.choose("matrix")
    assert (overview.state("layer"), overview.state("heads")) == ("2", "0")


def test_the_clearest_head_of_each_kind_is_compared_side_by_side(overview):
    overview.page.keyboard.press("c")
    overview.page.locator('[data-headscope][data-view="compare"]').wait_for(state="attached")
    pictures = overview.page.locator("[data-picture]")
    assert [picture.get_attribute("data-picture") for picture in pictures.all()][:3] == [
        "2-0",
        "2-1",
        "2-4",
    ]
    assert pictures.count() >= 4
    assert overview.text("[data-call]").startswith('hs.view(record, tray=["2-0", "2-1", "2-4"')


@pytest.mark.parametrize("size", [(390, 844), (768, 1024), (1280, 800), (1920, 1080)])
def test_nothing_leaves_the_page_at_any_width(show, record, size):
    view = show(record, view="overview", size=size)
    view.page.locator("[data-story] button").first.wait_for()
    view.settle()
    assert view.page.evaluate("document.documentElement.scrollWidth") <= size[0]
    for selector in (".tiles", ".full-head"):
        box = view.page.locator(selector).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= size[0] + 0.5


def test_tiles_of_twelve_by_twelve_heads_can_be_read(show, rng):
    from headscope.testing import random_weights

    view = show(
        hs.from_weights(random_weights(rng, (12, 12, 19, 19)), [f"w{at}" for at in range(19)]),
        view="overview",
    )
    box = tile(view, "5-7").bounding_box()
    assert box["width"] >= 44
    assert box["height"] >= 44


def test_cross_attention_and_a_second_stack(show, rng):
    from headscope.testing import random_weights

    record = hs.from_weights(
        encoder=random_weights(rng, (2, 3, 5, 5)),
        cross=random_weights(rng, (3, 3, 4, 5)),
        encoder_tokens=list("abcde"),
        decoder_tokens=list("wxyz"),
    )
    view = show(record, view="overview", stack="cross")
    view.page.locator("[data-story] button").first.wait_for()
    assert view.page.locator(".tile").count() == 9
    view.page.locator("[data-stack-choice]").select_option("encoder")
    view.settle()
    assert view.page.locator(".tile").count() == 6


def test_a_served_page_loads_the_overview_layer_by_layer(served, record):
    with served(record, view="overview") as view:
        view.page.locator("[data-story] button").first.wait_for()
        for _ in range(100):
            if "of 15 heads" in " ".join(view.text("[data-story]").split()):
                break
            view.page.wait_for_timeout(50)
        assert headline(view) == "Head 2-0 looks at the next token"


def test_a_signed_quantity_has_diverging_colours_on_the_tiles(show, record, rng):
    change = [rng.normal(size=(5, len(PIECES), len(PIECES))) for _ in range(3)]
    view = show(record, view="overview", quantities={"change": change}, quantity="change")
    view.page.locator(".tiles-bar .scale", has_text="below 0").wait_for()
    view.settle()
    hues = view.page.evaluate(
        """() => {
            const canvas = document.querySelector('#headscope').shadowRoot.querySelector('[data-canvas=tiles]');
            const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            let [blue, orange] = [0, 0];
            for (let at = 0; at < data.length; at += 4) {
                if (data[at + 2] > data[at] + 60) blue += 1;
                if (data[at] > data[at + 2] + 60) orange += 1;
            }
            return [blue, orange];
        }"""
    )
    assert min(hues) > 1000


def test_large_tiles_can_be_lines(show, record):
    view = show(record, view="overview", size=(1900, 1000))
    view.page.locator("[data-story] button").first.wait_for()
    assert view.page.locator('[data-option="lines"]').count() == 1
    before = view.colours("tiles")
    view.page.locator('[data-option="lines"]').click()
    assert view.colours("tiles") != before
    assert "tiles=lines" in view.address()


def test_a_longer_sentence_takes_room_from_the_cards(show, record):
    view = show(record, view="overview", size=(1280, 900))
    ends = {}
    for lines in (1, 4):
        view.page.evaluate(
            """lines => {
                const root = document.querySelector('#headscope').shadowRoot;
                root.querySelector('.story').style.minHeight = `${26 * lines}px`;
            }""",
            lines,
        )
        view.settle()
        view.settle()
        box = view.page.locator(".full-head").bounding_box()
        ends[lines] = box["y"] + box["height"]
    # Three lines more, of which the card gives some: how many depends on the font.
    assert ends[4] < ends[1] + 3 * 26 - 8
    assert ends[4] <= 900
