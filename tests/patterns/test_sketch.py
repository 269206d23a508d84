import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.patterns import PATTERNS, QueryKeyTokens, heads, painted, sketch
from headscope.record import Tokens

from .conftest import NAMES

PAIR = Tokens(
    pieces=("[CLS]", "The", "stores", ",", "[SEP]", "the", "store", "[SEP]"),
    segments=(0, 0, 0, 0, 0, 1, 1, 1),
)
SIDES = QueryKeyTokens(PAIR, PAIR)
WORDS = (1, 2, 3, 5, 6)


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("word -> sep", {(q, k) for q in WORDS for k in (4, 7)}),
        ("punctuation -> any", {(3, k) for k in range(8)}),
        ('"the" -> next', {(1, 2), (5, 6)}),
        ("first -> +2", {(0, 2)}),
        ("stop -> -3", {(3, 0)}),
        ("word -> self", {(q, q) for q in WORDS}),
        ("any -> same", {(1, 5), (5, 1), (2, 6), (6, 2)}),
        ('"store" -> word in other', {(6, 1), (6, 2), (6, 3)}),
        ('  "store"->word in own ', {(6, 5), (6, 6)}),
        ("cls -> delimiter", {(0, 0), (0, 4), (0, 7)}),
    ],
)
def test_rules(rule, wanted):
    found = sketch(rule).wanted(SIDES)
    assert {(int(q), int(k)) for q, k in np.argwhere(found)} == wanted


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("word sep", "cannot be read; write QUERY -> KEY"),
        ("word -> sep in mine", "cannot be read"),
        ("verb -> any", "The query verb is not known; give any, word, cls"),
        ("any -> verb", "The key verb is not known; give any, word, cls.* next, previous"),
        ("next -> any", "The query next is not known"),
        ("+1 -> any", r"The query \+1 is not known"),
    ],
)
def test_rules_that_cannot_be_read(rule, message):
    with pytest.raises(RecordError, match=message):
        sketch(rule)


def test_a_painted_map_is_stretched():
    cells = np.zeros((2, 4))
    cells[0, 3] = cells[1, 0] = 1
    sides = QueryKeyTokens(Tokens(pieces=tuple("abcdef")), Tokens(pieces=tuple("uvwxyzst")))
    found = painted(cells, name="corners").wanted(sides)
    assert found[:3, 6:].all()
    assert found[3:, :2].all()
    assert found.sum() == 12
    with pytest.raises(RecordError, match="nothing in it"):
        painted(np.zeros((2, 2)), name="none")


def test_offsets_mean_nothing_in_cross_attention():
    assert not sketch("any -> next").wanted(QueryKeyTokens(PAIR, Tokens(pieces=("a", "b")))).any()


def test_sketched_patterns_find_and_rank_the_planted_heads(planted_records):
    corner = np.zeros((8, 8))
    corner[:, 0] = 1
    found = heads(
        planted_records,
        patterns=(sketch("word -> next in own"), painted(corner, name="left edge"), *PATTERNS),
    )
    assert NAMES[found.ranked("word -> next in own")[0].head] == "next"
    assert NAMES[found.ranked("left edge")[0].head] == "first-token"
    assert found.ranked("left edge")[0].holds
    assert found.ranked("word -> next in own")[0].holds
    assert found.ranked("left edge")[0].against == "uniform"
    with pytest.raises(RecordError, match="No text shows anything of 'green'"):
        found.ranked("green")
