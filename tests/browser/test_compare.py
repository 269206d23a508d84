"""The page of a comparison, in a real browser."""

import headscope as hs
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights


def record_of(pieces, rng):
    tokens = Tokens(pieces=tuple(pieces))
    layers = [
        Layer(layer=n, weights=random_weights(rng, (3, len(tokens), len(tokens)))) for n in range(2)
    ]
    stack = Stack(name="self", query=tokens, key=tokens, layers=tuple(layers))
    return Record(stacks={"self": stack}, model=ModelFacts(name="model"))


def test_one_selection_shows_both_records_and_their_difference(show, rng):
    found = hs.compare(record_of("uvwxyz", rng), record_of("uvtwxyz", rng))
    page = show(found, layer=1, head=2).more().page
    assert "1 only in B (aligned by edit distance)" in page.locator("[data-note]").inner_text()
    assert page.locator('[data-column="key"] .label').all_inner_texts() == "u v +t w x y z".split()
    assert page.locator("[data-call]").inner_text().startswith("hs.view(comparison, ")
    for label in ("weight of A", "effect", "weight of B"):
        page.locator("[data-quantities]").select_option(label=label)
        page.locator('[data-headscope][data-ready="true"]').wait_for(state="attached")
    cell = page.locator('[data-tile="1-2"]').first
    assert f"moved {found['self'].distance(1, 2):.2f}".replace("0.", ".") in cell.get_attribute(
        "aria-label"
    )


def test_the_map_says_how_far_heads_moved_and_marks_what_says_nothing(show, rng):
    a, b = record_of("uvwxy", rng), record_of("uvwxy", rng)
    layers = (a["self"].layers[0], b["self"].layers[1])
    stack = Stack(name="self", query=a["self"].query, key=a["self"].key, layers=layers)
    page = show(hs.compare(a, Record(stacks={"self": stack}, model=a.model))).page
    assert page.locator("[data-moved] [data-within]").count() == 3
    assert page.locator('[data-moved] [data-tile="0-1"]').get_attribute("title") == (
        "Head 0-1: moved 0 nats, within the spread"
    )
