"""The head view in a real browser, opened from disk, offline."""

import numpy as np
import pytest

import headscope as hs
from headscope.testing import random_weights

PIECES = ["[CLS]", "the", "cat", "sat", "[SEP]", "it", "straw", "##berries", "[SEP]"]
HEADS, LAYERS = 4, 3
SHADOW = "document.querySelector('#headscope').shadowRoot"


@pytest.fixture
def pair(rng):
    weights = random_weights(rng, (LAYERS, HEADS, len(PIECES), len(PIECES)))
    return hs.from_weights(weights, PIECES, sentence_b_start=5, model="tiny")


@pytest.fixture
def uneven(rng):
    """An encoder-decoder whose sides, depths and heads all differ."""
    return hs.from_weights(
        encoder=random_weights(rng, (2, 3, 5, 5)),
        decoder=random_weights(rng, (4, 2, 7, 7)),
        cross=random_weights(rng, (4, 2, 7, 5)),
        encoder_tokens=list("abcde"),
        decoder_tokens=list("tuvwxyz"),
    )


def wait(view, name, value):
    view.page.locator(f'[data-headscope][data-{name}="{value}"]').wait_for(state="attached")
    view.settle()


def numbers(view, side):
    """The number shown beside each token of a side, None where there is none."""
    view.settle()
    texts = view.page.locator(f'[data-side="{side}"]').all_inner_texts()
    found = [text.split("\n")[-1] for text in texts]
    return [float(text) if text.startswith((".", "0.", "1.")) else None for text in found]


def above_even(weights):
    """The weights that are drawn as lines: their byte is larger than that of the even share."""
    return np.rint(255 * np.sqrt(weights)) > np.rint(255 * np.sqrt(1 / weights.shape[-1]))


def test_it_opens_with_a_head_of_the_first_layer(show_kept, pair):
    view = show_kept(pair)
    assert (view.state("stack"), view.state("layer")) == ("self", "0")
    head = int(view.state("heads"))
    assert int(view.state("lines")) == above_even(pair["self"].weights(0, head)).sum()
    assert view.colours() > 50
    for side in ("query", "key"):
        labels = view.page.locator(f'[data-side="{side}"] .label').all_inner_texts()
        assert labels == [piece.removeprefix("##") for piece in PIECES]


def test_what_python_chose_is_shown_first(show, pair):
    view = show(pair, layer=2, heads=[1], theme="dark")
    assert (view.state("layer"), view.state("heads")) == ("2", "1")


def test_layers_change_by_key(show_kept, pair):
    view = show_kept(pair)
    view.token("query", 0).focus()
    view.page.keyboard.press("]")
    wait(view, "layer", "1")
    view.page.keyboard.press("]")
    view.page.keyboard.press("]")
    wait(view, "layer", "2")
    view.page.keyboard.press("[")
    wait(view, "layer", "1")
    view.page.keyboard.press("]")
    wait(view, "layer", "2")


@pytest.mark.parametrize(("side", "other", "axis"), [("query", "key", 0), ("key", "query", 1)])
def test_hover_isolates_a_token_and_shows_its_numbers(side, other, axis, show_kept, pair):
    view = show_kept(pair).follow(layer=1, heads=[3])
    view.token(side, 3).hover()
    wanted = pair["self"].weights(1, 3).take(3, axis=axis)
    shown = numbers(view, other)
    for found, exact in zip(shown, wanted, strict=True):
        assert exact < 0.02 if found is None else found == pytest.approx(exact, abs=0.009)
    assert sum(found is not None for found in shown) >= 4
    assert view.colours("token") > 10
    view.page.mouse.move(2, 2)
    assert all(found is None for found in numbers(view, other))


def test_click_pins_and_escape_releases(show_kept, pair):
    view = show_kept(pair)
    view.token("query", 6).click()
    view.page.mouse.move(2, 2)
    assert any(numbers(view, "key"))
    assert view.token("query", 6).get_attribute("aria-selected") == "true"
    view.page.keyboard.press("Escape")
    assert not any(numbers(view, "key"))
    view.token("key", 2).click()
    view.token("key", 2).click()
    view.page.mouse.move(2, 2)
    assert not any(numbers(view, "query"))


def test_everything_is_reached_by_keyboard(show_kept, pair):
    view = show_kept(pair)
    view.token("query", 0).focus()
    view.page.keyboard.press("ArrowDown")
    view.page.keyboard.press("ArrowDown")
    view.settle()
    assert view.page.evaluate(f"{SHADOW}.activeElement.dataset.token") == "2"
    view.page.keyboard.press("Enter")
    assert any(numbers(view, "key"))
    view.page.keyboard.press("ArrowRight")
    view.settle()
    assert view.page.evaluate(f"{SHADOW}.activeElement.dataset.side") == "key"
    view.page.keyboard.press("Escape")
    view.page.mouse.move(2, 2)


def test_sentence_pair_filters_tile_all_lines(show_kept, pair):
    view = show_kept(pair).follow(heads=[0]).more()
    everything = int(view.state("lines"))
    parts = []
    for name in ("aa", "ab", "ba", "bb"):
        view.page.locator("[data-filter]").select_option(name)
        parts.append(int(view.state("lines")))
    stored = above_even(pair["self"].weights(0, 0))
    first = slice(0, 5), slice(5, 9)
    assert parts == [
        int(stored[first[a], first[b]].sum()) for a, b in ((0, 0), (0, 1), (1, 0), (1, 1))
    ]
    assert sum(parts) == everything == int(stored.sum())


def test_muting_special_tokens_says_what_it_hides(show_kept, pair):
    view = show_kept(pair).follow(heads=[0])
    before = int(view.state("lines"))
    view.more().page.locator("[data-hide-special]").check()
    hidden = view.page.locator("[data-hidden-part]")
    hidden.wait_for()
    assert int(view.state("lines")) < before
    special = np.array(pair["self"].query.special)
    weights = pair["self"].weights(0, 0)
    kept = weights[~special][:, ~special].sum() / weights.sum()
    assert int("".join(filter(str.isdigit, hidden.inner_text()))) == pytest.approx(
        100 * (1 - kept), abs=1.5
    )


def test_a_sentence_pair_is_needed_for_its_filters(show_kept, uneven):
    view = show_kept(uneven)
    assert view.page.locator("[data-filter]").count() == 0
    assert view.page.locator("[data-hide-special]").count() == 0


def test_stacks_of_uneven_size_are_chosen(show_kept, uneven):
    view = show_kept(uneven)
    assert view.state("stack") == "encoder"
    for name, queries, keys in (("cross", 7, 5), ("decoder", 7, 7), ("encoder", 5, 5)):
        view.page.locator("[data-stack-choice]").select_option(name)
        wait(view, "stack", name)
        assert view.page.locator('[data-side="query"]').count() == queries
        assert view.page.locator('[data-side="key"]').count() == keys
        assert view.colours() > 20


def test_the_address_opens_the_same_picture(show, pair):
    view = show(pair)
    view.page.locator('[data-tile="1-2"]').click()
    wait(view, "layer", "1")
    view.token("key", 0).click()
    fragment = view.address()
    assert "key=0" in fragment
    again = show(pair, fragment=fragment)
    assert (again.state("layer"), again.state("heads")) == ("1", "2")
    assert any(numbers(again, "query"))
    again.token("key", 0).click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_and_the_button(scheme, chromium_only, show, pair):
    view = show(pair, scheme=scheme)
    grounds = (
        f"[...{SHADOW}.querySelectorAll('*')].map(element => "
        "getComputedStyle(element).backgroundColor)"
    )

    def is_dark():
        ground = next(colour for colour in view.page.evaluate(grounds) if colour.startswith("rgb("))
        return sum(int(part) for part in ground.strip("rgb()").split(",")) < 300

    assert is_dark() == (scheme == "dark")
    view.more().page.locator("[data-theme-toggle]").click()
    view.settle()
    assert is_dark() == (scheme == "light")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda text: text.replace('data-chunk="weights/self/0"', 'data-chunk="gone"'),
            "weights/self/0",
        ),
        (lambda text: text.replace('"format": 2', '"format": 3'), "3"),
        (lambda text: text.replace('"shape": [4, 9, 9]', '"shape": [4, 9, 8]'), ""),
    ],
    ids=["no chunk", "newer format", "wrong size"],
)
def test_a_broken_page_says_so(damage, message, pair, browser, tmp_path):
    path = tmp_path / "broken.html"
    path.write_text(damage(hs.view(pair, view="head").html), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    failure = page.locator("[data-failure]")
    failure.wait_for()
    assert "This page cannot be shown" in failure.inner_text()
    assert message in failure.inner_text()
    page.close()


def test_a_reader_hears_numbers(show_kept, pair):
    """Roles, names and numbers in the accessibility tree, without looking at the canvas."""
    view = show_kept(pair).follow(layer=0, heads=[2])
    view.token("query", 1).click()
    strongest = int(pair["self"].weights(0, 2)[1].argmax())
    view.settle()
    spoken = view.page.get_by_role(
        "option", name=f"{pair['self'].weights(0, 2)[1, strongest]:.2f}".lstrip("0")
    )
    assert str(strongest) in [option.get_attribute("data-token") for option in spoken.all()]
    hidden = (
        f"[...{SHADOW}.querySelectorAll('canvas')].map(canvas => "
        "canvas.closest('[aria-hidden=true]') !== null)"
    )
    assert set(view.page.evaluate(hidden)) == {True}
