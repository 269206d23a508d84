"""Gold links in a real browser: what the page says of a head is what Python says of the same
weights.
"""

import re

import numpy as np
import pytest

from headscope.linguistics import DIRECTIONS, Sentence, predicted_heads, word_attention, words_at
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens

PIECES = (
    "[CLS]",
    "the",
    "straw",
    "##berries",
    "un",
    "##der",
    "red",
    "##dish",
    "leaves",
    "ripe",
    "##n",
    "[SEP]",
)
TREE = Sentence(
    words=("the", "strawberries", "under", "reddish", "leaves", "ripen"),
    heads=(2, 6, 5, 5, 2, 0),
    relations=("det", "nsubj", "case", "amod", "nmod", "root"),
    name="made-up",
)
LAYERS, HEADS, KV_HEADS, FEATURES = 3, 4, 2, 8
SHADOW = "document.querySelector('#headscope').shadowRoot"


def offsets():
    found, place = [], 0
    for piece in PIECES:
        size = len(piece.removeprefix("##"))
        if piece.startswith("["):
            found.append(None)
            continue
        place += not piece.startswith("##") and bool(place)
        found.append((place, place + size))
        place += size
    return tuple(found)


@pytest.fixture
def record(rng):
    """Queries and keys that half precision holds exactly, so that the page has the same weights as
    Python.
    """
    tokens = Tokens(pieces=PIECES, offsets=offsets(), texts=(TREE.text,))

    def numbers(heads):
        return rng.normal(size=(heads, len(PIECES), FEATURES)).astype(np.float16).astype(np.float32)

    layers = tuple(
        Layer(layer=each, queries=numbers(HEADS), keys=numbers(KV_HEADS)) for each in range(LAYERS)
    )
    return Record(
        stacks={"self": Stack(name="self", query=tokens, key=tokens, layers=layers)},
        model=ModelFacts(),
    )


def predicted(record, layer, heads):
    """For both directions: which word each word is said to have as head, by the mean of some
    heads.
    """
    words = words_at(record["self"].query, TREE.spans)
    maps = word_attention(record["self"].layer(layer).weights_of()[heads], words)
    places = list(words.places)
    return predicted_heads(maps[:, places][:, :, places].mean(axis=0, keepdims=True))[:, 0]


def listed(view):
    """What the list says: the chosen head of each word, and whether that is a hit."""
    rows = view.page.locator("[data-word-choice]").evaluate_all(
        "rows => rows.map(row => [row.dataset.wordChoice, 'hit' in row.dataset])"
    )
    return {
        int(choice.split("-", 1)[0]): (int(choice.split("-", 1)[1]), hit) for choice, hit in rows
    }


def arcs(view, half):
    return set(
        view.page.locator(f"[data-half={half}] [data-arc]").evaluate_all(
            "arcs => arcs.map(arc => `${arc.dataset.arc}${'hit' in arc.dataset ? '!' : ''}`)"
        )
    )


@pytest.mark.parametrize(("layer", "heads"), [(0, [2]), (1, [0]), (2, [3])])
def test_hits_are_those_of_python(layer, heads, show_kept, record):
    view = show_kept(record, links=TREE).follow(layer=layer, heads=heads)
    gold = [head - 1 for head in TREE.heads]
    for direction, chosen in zip(DIRECTIONS, predicted(record, layer, heads), strict=True):
        view.page.locator(f'[data-option="{direction}"]').click()
        expected = {
            word: (chosen[word], chosen[word] == gold[word])
            for word in range(len(TREE))
            if gold[word] >= 0
        }
        view.settle()
        assert listed(view) == expected
        hits = sum(hit for _, hit in expected.values())
        assert f"{hits} of 5 words ({20 * hits} %)" in view.text("[data-links-told]")
        assert arcs(view, "chosen") == {
            f"{w}-{c}{'!' if h else ''}" for w, (c, h) in expected.items()
        }
        assert arcs(view, "gold") == {
            f"{w}-{gold[w]}{'!' if h else ''}" for w, (_, h) in expected.items()
        }


def test_the_heads_of_the_record_differ_so_that_the_comparison_can_fail(record):
    told = {
        tuple(predicted(record, layer, [head]).ravel())
        for layer in range(LAYERS)
        for head in range(HEADS)
    }
    assert len(told) > 8


def test_another_layer_and_head_are_told_anew(show_kept, record):
    view = show_kept(record, links=TREE).follow(layer=0, heads=[2])
    before = listed(view)
    view.page.locator('[data-tile="2-1"]').click()
    view.page.locator('[data-headscope][data-layer="2"][data-heads="1"]').wait_for(state="attached")
    view.settle()
    assert {word: chosen for word, (chosen, _) in listed(view).items()} == {
        word: predicted(record, 2, [1])[0][word] for word in range(5)
    }
    assert listed(view) != before
    assert view.text("[data-links-told]").startswith("Layer 2, head 1: ")


def test_a_click_pins_the_word_and_its_gold_head(show_kept, record):
    view = show_kept(record, links=TREE).follow(view="text", layer=1, heads=[0])
    view.page.locator("[data-word-choice^='1-'] button").click()
    assert "query=2&key=9" in view.address()
    assert view.page.locator("[data-word-choice] [aria-pressed=true]").count() == 1
    view.page.locator('[data-option="head->dep"]').click()
    view.page.locator("[data-word-choice^='3-'] button").focus()
    view.page.keyboard.press("Enter")
    assert "query=8&key=6" in view.address()
    view.page.locator("[data-word='5']").click()
    assert "key=9" in view.address()
    assert "query=" not in view.address()


def test_hovering_shows_the_word_everywhere(show_kept, record):
    view = show_kept(record, links=TREE).follow(layer=1, heads=[0])
    view.page.locator("[data-word-choice^='4-'] button").hover()
    assert "leaves" in view.text("[data-chosen]")
    assert view.page.locator("[data-arc][data-active]").count() == 2
    view.page.locator("[data-word='1']").hover()
    assert "straw" in view.text("[data-chosen]")
    assert view.address() == "" or "query=" not in view.address()


def test_hits_and_misses_can_be_seen_alone(show_kept, record):
    layer, head = next(
        (layer, head)
        for layer in range(LAYERS)
        for head in range(HEADS)
        if 0 < (predicted(record, layer, [head])[0][:5] == np.array(TREE.heads[:5]) - 1).sum() < 5
    )
    view = show_kept(record, links=TREE).follow(layer=layer, heads=[head])
    every = listed(view)
    for name, wanted in (("hits", True), ("misses", False)):
        view.page.locator(f'[data-option="{name}"]').click()
        view.settle()
        assert (
            listed(view) == {word: told for word, told in every.items() if told[1] is wanted} != {}
        )


def test_a_row_is_read_as_a_sentence(show_kept, record):
    view = show_kept(record, links=TREE).follow(layer=1, heads=[0])
    chosen = predicted(record, 1, [0])[0][0]
    told = (
        "hit: the det of strawberries"
        if chosen == 1
        else f"miss: the det of strawberries , not {TREE.words[chosen]}"
    )
    button = view.page.locator("[data-word-choice^='0-'] button")
    snapshot = re.sub(r" ,", ",", button.aria_snapshot())
    assert re.sub(r" ,", ",", told) in snapshot


def test_views_of_all_heads_have_no_panel_and_others_have(show_kept, record):
    view = show_kept(record, links=TREE).follow(layer=1, heads=[0])
    for name, count in (("matrix", 1), ("overview", 0), ("text", 1), ("neuron", 1), ("head", 1)):
        view.choose(name)
        assert view.page.locator("[data-links]").count() == count, name
    assert show_kept(record).page.locator("[data-links]").count() == 0


def test_arcs_follow_the_words_and_scroll_within_their_panel(show, rng):
    # Wider than the window in any font.
    count = 40
    tokens = Tokens(pieces=tuple(f"strawberries{word}" for word in range(count)))
    weights = rng.dirichlet(np.ones(count), (2, count)).astype(np.float32)
    stack = Stack(name="self", query=tokens, key=tokens, layers=(Layer(layer=0, weights=weights),))
    record = Record(stacks={"self": stack}, model=ModelFacts())
    links = [(word, word + 1, "obj") for word in range(count - 1)]
    view = show(record, links=links, size=(360, 800))
    view.settle()
    middle = "word => { const { x, width } = word.getBoundingClientRect(); return x + width / 2; }"
    words = view.page.locator("[data-word]").evaluate_all(f"words => words.map({middle})")
    tips = view.page.locator("[data-half=gold] .tip").evaluate_all(f"tips => tips.map({middle})")
    assert tips == pytest.approx(words[:-1], abs=1)
    panel = f"{SHADOW}.querySelector('.links-scroll')"
    assert view.page.evaluate(f"{panel}.scrollWidth > {panel}.clientWidth")
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_words_from_right_to_left_run_from_the_right(show, rng):
    tokens = Tokens(pieces=("הילדה", "אכלה", "תפוח"))
    layers = (Layer(layer=0, weights=rng.dirichlet(np.ones(3), (2, 3)).astype(np.float32)),)
    record = Record(
        stacks={"self": Stack(name="self", query=tokens, key=tokens, layers=layers)},
        model=ModelFacts(),
    )
    view = show(record, links=[(0, 1, "nsubj"), (2, 1, "obj")])
    places = view.page.locator("[data-word]").evaluate_all(
        "all => all.map(word => word.getBoundingClientRect().x)"
    )
    assert places == sorted(places, reverse=True)
    assert "words without a link are left out" in view.text("[data-links-told]")


def test_a_server_sends_the_same(served, record):
    with served(record, links=TREE, layer=2, heads=[3]) as view:
        view.settle()
        assert {word: chosen for word, (chosen, _) in listed(view).items()} == {
            word: predicted(record, 2, [3])[0][word] for word in range(5)
        }
