"""What a model wrote: a rule after the prompt, probability and entropy of each token, steps to walk
through.
"""

import pytest

import headscope as hs
from headscope import Record
from headscope.record import Candidate, Generation, Layer, Stack, Tokens

PIECES = ("<s>", "Once", "upon", "a", "time", "there", "was")
LABELS = ("a", "time", "there", "was", "a")


def record_of(rng, labels=LABELS, pieces=PIECES, candidates=("a", "the")):
    """Three tokens were given and five written, of which the last was never read."""
    size = len(pieces)
    tokens = Tokens(pieces=pieces)
    weights = rng.dirichlet([0.4] * size, size=(2, size)).astype("float32")
    alternatives = tuple(
        tuple(
            Candidate(id=at, piece=piece, probability=0.6 - 0.3 * at)
            for at, piece in enumerate(candidates)
        )
        for _ in labels
    )
    generation = Generation(
        stack="self",
        prompt=3,
        reads=(3, 1, 1, 1, 1),
        tokens=Tokens(pieces=labels),
        probabilities=(0.6, 0.25, 0.9, 0.5, 0.1),
        entropies=(1.5, 2.0, 0.2, 1.0, 2.5),
        ranks=(1, 2, 1, 1, 7),
        alternatives=alternatives,
    )
    stack = Stack(name="self", layers=(Layer(layer=0, weights=weights),), query=tokens, key=tokens)
    return Record(stacks={"self": stack}, generation=generation)


@pytest.fixture
def record(rng):
    return record_of(rng)


@pytest.mark.parametrize("name", ["head", "text"])
def test_a_rule_parts_what_was_given_from_what_was_written(show, record, name):
    view = show(record, view=name)
    ruled = [each.get_attribute("data-token") for each in view.page.locator("[data-rule]").all()]
    assert ruled == (["3", "3"] if name == "head" else ["3"])


def test_the_matrix_has_a_rule_in_both_directions(show, record):
    view = show(record, view="matrix")
    plane = view.page.locator(".matrix-plane").bounding_box()
    cell = float(view.state("cell"))
    rules = [rule.bounding_box() for rule in view.page.locator(".written-rule").all()]
    assert rules[0]["y"] - plane["y"] == pytest.approx(3 * cell, abs=1)
    assert rules[1]["x"] - plane["x"] == pytest.approx(3 * cell, abs=1)


def test_a_click_on_a_written_token_pins_the_query_that_chose_it(show, record):
    view = show(record)
    assert view.text("[data-written-told]").startswith("5 tokens written after 3 given")
    view.page.locator('[data-step="0"]').click()
    assert view.address() == "#v=2&query=2"
    view.page.keyboard.press("ArrowRight")
    view.page.keyboard.press("Enter")
    assert view.address() == "#v=2&query=3"
    told = view.text("[data-written-told]")
    assert told.startswith("time 25 % · rank 2 · entropy 2.00 nats")
    assert "a 60 %" in told
    assert "the 30 %" in told


def test_pointing_at_a_written_token_tells_of_it_and_shows_its_row(show, record):
    view = show(record)
    before = view.token("query", 0).bounding_box()
    view.page.locator('[data-step="4"]').hover()
    assert view.text("[data-written-told]").startswith("a 10 % · rank 7")
    assert view.page.locator(".scroller[data-focus=query]").count() == 1
    assert view.token("query", 0).bounding_box() == before
    view.page.locator('[data-step="4"]').focus()
    view.page.keyboard.press("ArrowLeft")
    assert view.text("[data-written-told]").startswith("was 50 %")


def test_bars_are_as_high_as_probabilities(show, record):
    view = show(record)
    high = [
        view.page.locator(f'[data-step="{at}"] i').first.bounding_box()["height"] for at in range(5)
    ]
    assert [each / high[2] * 0.9 for each in high] == pytest.approx(
        [0.6, 0.25, 0.9, 0.5, 0.1], abs=0.03
    )


def test_a_text_that_was_given_has_no_strip(show, record):
    from dataclasses import replace

    view = show(replace(record, generation=None))
    assert view.page.locator("[data-written], [data-rule]").count() == 0


def test_hostile_tokens_and_candidates_are_text(show, hostile, rng):
    raw = list(hostile)
    view = show(
        record_of(rng, labels=tuple(raw[:5]), pieces=("p", "q", "r", *raw[:4]), candidates=raw[5:7])
    )
    view.page.locator('[data-step="1"]').hover()
    assert (
        view.page.locator(
            "[data-written] img, [data-written] script, [data-written] iframe"
        ).count()
        == 0
    )
    assert view.text("[data-written-told]").startswith(hostile[raw[1]].page[:20])


def test_five_hundred_written_tokens_stay_quick_and_in_their_place(show, rng):
    count = 501
    size = 3 + count - 1
    pieces = tuple(f"t{at}" for at in range(size))
    tokens = Tokens(pieces=pieces)
    generation = Generation(
        stack="self",
        prompt=3,
        reads=(3, *(1,) * (count - 1)),
        tokens=Tokens(pieces=(*pieces[3:], "end")),
        probabilities=(0.5,) * count,
        entropies=(1.0,) * count,
        ranks=(1,) * count,
    )
    weights = rng.dirichlet([0.4] * size, size=(1, size)).astype("float32")
    stack = Stack(name="self", layers=(Layer(layer=0, weights=weights),), query=tokens, key=tokens)
    view = show(Record(stacks={"self": stack}, generation=generation), query=size - 2)
    assert view.page.locator("[data-step]").count() == 400
    assert view.page.locator('[data-step][aria-pressed="true"]').get_attribute("data-step") == str(
        count - 2
    )
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_the_header_says_what_was_written(record):
    header = hs.view(record).header
    assert header["stacks"][0]["query"]["written"] == header["stacks"][0]["key"]["written"] == 3
    told = header["generation"]
    assert (told["prompt"], told["labels"], told["ranks"]) == (3, list(LABELS), [1, 2, 1, 1, 7])
    assert told["alternatives"][0] == [
        {"label": "a", "probability": 0.6},
        {"label": "the", "probability": 0.3},
    ]
