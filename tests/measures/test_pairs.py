import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.measures import (
    form,
    other_segment,
    related,
    same_form,
    same_segment,
    same_token,
    words,
)
from headscope.record import Tokens

PIECES = ("[CLS]", "the", "store", "[SEP]", "the", "Stores", "straw", "##berries", "[SEP]")
PAIR = Tokens(pieces=PIECES, segments=(0, 0, 0, 0, 1, 1, 1, 1, 1))
LONE = Tokens(pieces=("▁the", "▁strawberry", "</s>"))


def found(pairs):
    return {(int(q), int(k)) for q, k in np.argwhere(pairs)}


def test_segments_share_out_all_pairs_of_words():
    same, other = same_segment(PAIR, PAIR), other_segment(PAIR, PAIR)
    assert not (same & other).any()
    np.testing.assert_array_equal(same | other, words(PAIR, PAIR))
    assert words(PAIR, PAIR).sum() == 36
    assert same.sum() == 4 + 16


def test_same_token_and_form():
    itself = {(i, i) for i in (1, 2, 4, 5, 6, 7)}
    assert found(same_token(PAIR, PAIR)) == itself | {(1, 4), (4, 1)}
    assert found(same_token(PAIR, PAIR, itself=False)) == {(1, 4), (4, 1)}
    assert found(same_form(PAIR, PAIR)) == itself | {(1, 4), (4, 1), (2, 5), (5, 2)}
    assert found(same_form(PAIR, PAIR, itself=False)) == {(1, 4), (4, 1), (2, 5), (5, 2)}


def test_patches_of_one_piece_are_no_words():
    """As in the text of a model that reads pictures, where every patch is called alike."""
    pieces = ("<image>", "<image>", "cat", "a", "cat")
    tokens = Tokens(pieces=pieces, grids=((1, 2),), places=((0, 0), (0, 1), None, None, None))
    assert tokens.worded == (False, False, True, True, True)
    np.testing.assert_array_equal(
        np.argwhere(same_form(tokens, tokens, itself=False)), [[2, 4], [4, 2]]
    )
    np.testing.assert_array_equal(np.argwhere(np.diag(same_form(tokens, tokens)))[:, 0], [2, 3, 4])


def test_across_two_lists_no_token_is_itself():
    assert same_token(PAIR, LONE).shape == (9, 3)
    assert found(same_form(PAIR, LONE, itself=False)) == {(1, 0), (4, 0), (6, 1), (7, 1)}


@pytest.mark.parametrize(
    "alike",
    [
        ("store", "stores", "Store", "stored", "storing", "store's"),
        ("carry", "carries", "carried", "carrying"),
        ("run", "runs", "running"),
        ("pass", "passes", "passed", "passing"),
        ("café", "cafe", "cafes"),
        ("watch", "watches"),
    ],
)
def test_forms_that_meet(alike):
    assert len({form(word) for word in alike}) == 1


@pytest.mark.parametrize(
    ("one", "other"), [("go", "went"), ("bus", "but"), ("sing", "s"), ("red", "r"), ("this", "the")]
)
def test_forms_that_stay_apart(one, other):
    assert form(one) != form(other)


def test_related_words_are_near_but_not_the_same(unchecked):
    vectors = np.zeros((9, 3))
    vectors[[1, 4]], vectors[[2, 5]], vectors[[0, 3, 8]] = (
        [1, 0, 0],
        [[0, 1, 0], [0, 1, 0.1]],
        [0, 1, 0],
    )
    assert found(related(PAIR, PAIR, vectors, vectors, threshold=0.9)) == {(2, 5), (5, 2)}
    with pytest.raises(RecordError, match="9 and 2 vectors were given for 9 query and 9 key"):
        unchecked(related)(PAIR, PAIR, vectors, vectors[:2], threshold=0.9)
