"""Tokens of scripts that are written from right to left, in rows: scrolling goes their way."""

import pytest

from headscope import Record
from headscope.record import Layer, ModelFacts, Stack, Tokens
from headscope.testing import random_weights

TOKENS = 120
IN_SIGHT = """(tokens) => {
    const root = tokens[0].closest('.scroller').getBoundingClientRect();
    const seen = tokens.filter(each => {
        const { left, right } = each.getBoundingClientRect();
        return right > root.left + 1 && left < root.right - 1;
    });
    return seen.map(each => Number(each.dataset.token));
}"""


def in_sight(view, side):
    """Numbers of the tokens of one side that the picture shows now."""
    return view.page.locator(f'[data-side="{side}"][data-token]').evaluate_all(IN_SIGHT)


@pytest.fixture(scope="module")
def long_record():
    import numpy as np

    def of(word):
        tokens = Tokens(pieces=tuple(f"{word}" for _ in range(TOKENS)))
        layer = Layer(
            layer=0, weights=random_weights(np.random.default_rng(0), (2, TOKENS, TOKENS))
        )
        stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
        return Record(stacks={"self": stack}, model=ModelFacts(name="made up"))

    return of


@pytest.mark.parametrize(("word", "direction"), [("سلام", "rtl"), ("peace", "ltr")])
def test_a_pinned_token_far_away_comes_into_sight(word, direction, show, long_record):
    view = show(
        long_record(word),
        view="head",
        layout="rows",
        layer=0,
        heads=[0],
        query=[100],
        size=(900, 700),
    )
    view.settle()
    assert view.page.locator(".scroller").get_attribute("dir") == direction
    assert 100 in in_sight(view, "query")
    assert view.errors == []


@pytest.mark.parametrize(("word", "sign"), [("سلام", -1), ("peace", 1)])
def test_scrolling_moves_both_rows_with_it(word, sign, show, long_record):
    view = show(long_record(word), view="head", layout="rows", layer=0, heads=[0], size=(900, 700))
    assert 0 in in_sight(view, "query")
    view.page.locator(".scroller").evaluate("(root, by) => root.scrollBy(by, 0)", sign * 1500)
    view.settle()
    for side in ("query", "key"):
        seen = in_sight(view, side)
        assert seen
        assert min(seen) > 5, "the tokens that come next are in sight, and the first have gone"
        assert max(seen) < TOKENS


@pytest.mark.parametrize(
    ("text", "order"),
    [
        (["he", "said", "ש", "##ל", "to", "me"], [0, 1, 3, 2, 4, 5]),
        (["ש", "##ל", "ו", "12", "no"], [4, 3, 2, 1, 0]),
    ],
)
def test_pieces_of_a_word_run_in_its_direction(text, order, show, rng):
    tokens = Tokens(pieces=("[CLS]", *text))
    count = len(tokens)
    layer = Layer(layer=0, weights=random_weights(rng, (1, count, count)))
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    view = show(Record(stacks={"self": stack}, model=ModelFacts(name="made up")), view="text")
    words = view.page.locator(".word").evaluate_all(
        "words => words.map(word => word.querySelector('.label').getBoundingClientRect().left)"
    )
    assert sorted(range(len(text)), key=lambda at: words[1 + at]) == order
