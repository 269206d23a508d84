"""Evidence of heads in a real browser: labels on tiles, scatter and map, the card; opened from
disk, offline.
"""

import numpy as np
import pytest

import headscope as hs
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights

LAYERS, HEADS = 3, 4
WORDS = ("stone", "river", "lamp", "cloud", "table", "horse", "glass", "paper")


def record_of(rng, size):
    """Heads 0-1 and 1-3 look at the next token; all others at anything."""
    tokens = Tokens(pieces=("[CLS]", *map(str, rng.choice(WORDS, size - 2)), "[SEP]"))
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


def test_what_holds_over_many_texts_owns_the_sentence_and_the_colours(show_kept, records, found):
    view = show_kept(records[0], evidence=found).follow(view="overview")
    view.page.locator("[data-story] button").first.wait_for()
    story = " ".join(view.text("[data-story]").split())
    assert story.startswith("Over 16 texts, of 12 heads 2 look at the next token")
    assert "change with the text" in story
    told = view.page.locator('[data-tile][data-kind="next"]')
    assert sorted(told.evaluate_all("tiles => tiles.map(tile => tile.dataset.tile)")) == [
        "0-1",
        "1-3",
    ]
    assert "looks at the next token" in view.text("[data-headline]")


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
