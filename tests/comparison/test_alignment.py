import re

import numpy as np
import pytest

from headscope.comparison import align, grid_tokens
from headscope.errors import RecordError
from headscope.record import Tokens


def tokens_of(text, pieces, *, marks=("", "")):
    """Tokens of a text cut into these pieces, with offsets, between special tokens."""
    offsets, at = [], 0
    for piece in pieces:
        at = text.index(piece, at)
        offsets.append((at, at + len(piece)))
        at += len(piece)
    first, last = ([mark] if mark else [] for mark in marks)
    return Tokens(
        pieces=(*first, *pieces, *last),
        texts=(text,),
        offsets=(*[None] * len(first), *offsets, *[None] * len(last)),
        special=(*[True] * len(first), *[False] * len(pieces), *[True] * len(last)),
    )


def told(found):
    return [(span.a, span.b, span.kind) for span in found.spans]


def test_the_same_tokens_stand_beside_each_other():
    found = align(Tokens(pieces=("a", "b", "c")), Tokens(pieces=("a", "b", "c")), same_model=False)
    assert found.identity
    assert told(found) == [((n,), (n,), "both") for n in range(3)]


def test_words_that_were_put_in_left_out_and_replaced():
    a = Tokens(pieces=("[CLS]", "the", "old", "man", "said", "he", "slept", "[SEP]"))
    b = Tokens(pieces=("[CLS]", "the", "man", "said", "she", "slept", "well", "[SEP]"))
    found = align(a, b, same_model=True)
    assert [span.kind for span in found.spans] == [
        *("both", "both", "a", "both", "both", "replaced", "both", "b", "both")
    ]
    assert found.shared == pytest.approx(8 / 12)
    labels = grid_tokens(found, a, b).labels
    assert labels == ("[CLS]", "the", "−old", "man", "said", "he→she", "slept", "+well", "[SEP]")
    assert (
        found.summary
        == "6 in both, 1 replaced, 1 only in A, 1 only in B (aligned by edit distance)"
    )


def test_texts_of_a_pair_are_not_mixed_up():
    a = Tokens(pieces=("x", "y", "z", "u"), segments=(0, 0, 1, 1))
    found = align(a, Tokens(pieces=("x", "y", "z", "u"), segments=(0, 0, 0, 1)), same_model=True)
    assert not found.identity
    assert [span.kind for span in found.spans] == ["both", "both", "replaced", "both"]


def test_two_tokenizers_meet_where_tokens_of_both_end():
    text = "an unbelievable tale"
    a = tokens_of(text, ["an", "un", "believ", "able", "tale"], marks=("[CLS]", "[SEP]"))
    b = tokens_of(text, ["an", " unbeliev", "able", " ta", "le"], marks=("<s>", ""))
    found = align(a, b, same_model=False)
    assert found.method == "characters"
    assert told(found) == [
        ((0,), (0,), "both"),
        ((1,), (1,), "both"),
        ((2, 3), (2,), "both"),
        ((4,), (3,), "both"),
        ((5,), (4, 5), "both"),
        ((6,), (), "a"),
    ]
    assert found.shared == 1


def test_overlapping_cuts_go_together_and_characters_without_a_token_stay_alone():
    text = "abcd ef"
    a = tokens_of(text, ["ab", "cd", "ef"])
    b = tokens_of(text, ["a", "bc", "d"])
    assert told(align(a, b, same_model=False, least=0.0)) == [
        ((0, 1), (0, 1, 2), "both"),
        ((2,), (), "a"),
    ]


def test_letters_of_several_bytes_may_be_several_tokens():
    text = "né è"
    a = Tokens(
        pieces=("n", "Ã", "©", "Ġè"), texts=(text,), offsets=((0, 1), (1, 2), (1, 2), (2, 4))
    )
    b = tokens_of(text, ["né", "è"])
    assert told(align(a, b, same_model=False)) == [((0, 1, 2), (0,), "both"), ((3,), (1,), "both")]


def test_special_tokens_stand_together_by_their_place():
    pieces = {
        "a": ("[CLS]", "x", "[SEP]", "y", "[SEP]"),
        "b": ("<s>", "x", "</s>", "</s>", "y", "</s>"),
    }
    sides = [
        Tokens(
            pieces=names,
            texts=("x", "y"),
            offsets=tuple((0, 1) if name in "xy" else None for name in names),
            segments=tuple(int(place > names.index("x") + 1) for place in range(len(names))),
        )
        for names in pieces.values()
    ]
    assert told(align(*sides, same_model=False)) == [
        ((0,), (0,), "both"),
        ((1,), (1,), "both"),
        ((2,), (2, 3), "both"),
        ((3,), (4,), "both"),
        ((4,), (5,), "both"),
    ]


def test_a_token_of_white_space_is_no_part_of_the_word_after_it():
    text = "a  b"
    a = Tokens(pieces=("a", "▁", "b"), texts=(text,), offsets=((0, 1), (1, 3), (3, 4)))
    b = Tokens(pieces=("a", "Ġb"), texts=(text,), offsets=((0, 1), (1, 4)))
    assert told(align(a, b, same_model=False)) == [
        ((0,), (0,), "both"),
        ((1,), (), "a"),
        ((2,), (1,), "both"),
    ]


def test_tokens_without_a_place_in_the_middle_of_a_text_keep_their_order():
    text = "a b"
    a = Tokens(pieces=("a", "?", "b", "[SEP]"), texts=(text,), offsets=((0, 1), None, (2, 3), None))
    assert told(align(a, tokens_of(text, ["a", "b"], marks=("", "</s>")), same_model=False)) == [
        *[((0,), (0,), "both"), ((1,), (), "a"), ((2,), (1,), "both"), ((3,), (2,), "both")]
    ]


def patches_of(*names, grid=(2, 3), mark="<image>"):
    """Words, and where None stands all patches of a grid, row by row; bracketed names are
    special.
    """
    pieces, places = [], []
    for name in names:
        found = [None] if name else list(np.ndindex(grid))
        places += found
        pieces += [name or mark] * len(found)
    return Tokens(
        pieces=tuple(pieces),
        grids=(grid,),
        places=tuple(places),
        special=tuple("[" in p for p in pieces),
    )


def test_two_models_meet_patch_by_patch_whatever_stands_before_the_patches():
    a = patches_of("[CLS]", None)
    b = patches_of("[CLS]", "[REGISTER 1]", "[REGISTER 2]", None, mark="patch")
    found = align(a, b, same_model=False)
    assert told(found) == [
        ((0,), (0,), "both"),
        ((), (1,), "b"),
        ((), (2,), "b"),
        *[((1 + n,), (3 + n,), "both") for n in range(6)],
    ]
    assert found.shared == 1
    assert found.summary == "7 in both, 2 only in B (aligned by patches)"
    tokens = grid_tokens(found, a, b)
    assert (tokens.grids, tokens.places) == (b.grids, b.places)
    assert tokens.pictures == (None, None, None, *[0] * 6)
    assert tokens.labels[:3] == ("[CLS]", "+[REGISTER 1]", "+[REGISTER 2]")


def test_words_beside_a_picture_are_aligned_and_its_patches_stay_in_their_places():
    a = patches_of(None, "Is", "it", "red", "?")
    b = patches_of("Look", ":", None, "Is", "she", "red", "?")
    tokens = grid_tokens(align(a, b, same_model=True), a, b)
    assert tokens.labels == ("+Look", "+:", *["<image>"] * 6, "Is", "it→she", "red", "?")
    assert tokens.places == (None, None, *np.ndindex(2, 3), None, None, None, None)
    assert grid_tokens(align(b, a, same_model=True), b, a).places == tokens.places


def test_a_patch_is_replaced_by_nothing():
    grid = {"grids": ((1, 3),)}
    a = Tokens(pieces=("x", "p", "q", "y"), places=(None, (0, 0), (0, 1), None), **grid)
    b = Tokens(pieces=("x", "p", "z", "y"), places=(None, (0, 0), None, None), **grid)
    assert [span.kind for span in align(a, b, same_model=True).spans] == (
        "both both a b both"
    ).split()
    c = Tokens(pieces=("x", "p", "q", "y"), places=(None, (0, 0), (0, 2), None), **grid)
    found = align(a, c, same_model=True)
    assert told(found)[2:4] == [((2,), (), "a"), ((), (2,), "b")]
    assert grid_tokens(found, a, c).places == (None, (0, 0), (0, 1), (0, 2), None)


@pytest.mark.parametrize(
    ("a", "b", "same", "said"),
    [
        (Tokens(pieces=("a", "b")), Tokens(pieces=("c", "d")), True, "0% of their tokens in"),
        (
            Tokens(pieces=("a", "b")),
            Tokens(pieces=("a", "##b")),
            False,
            "hold no texts; capture both",
        ),
        (
            Tokens(pieces=("a", "b"), texts=("ab",)),
            Tokens(pieces=("ab",), texts=("ab",)),
            False,
            "hold no offsets of their tokens in the text",
        ),
        (
            tokens_of("a b", ["a", "b"]),
            tokens_of("a c", ["a", "c"]),
            False,
            "two models and of two texts ('a b' and",
        ),
        (
            Tokens(pieces=("0", "1"), grids=((1, 2),), places=((0, 0), (0, 1))),
            Tokens(pieces=("0",), grids=((1, 1),), places=((0, 0),)),
            True,
            "no parts of one grid: 1 x 2 patches in A, 1 x 1 patches in B; compare pictures",
        ),
        (  # as many patches, and none where one of the other is
            Tokens(pieces=("0", "1"), grids=((1, 2),), places=((0, 0), (0, 1))),
            Tokens(pieces=("0", "1"), grids=((2, 1),), places=((0, 0), (1, 0))),
            True,
            "1 x 2 patches in A, 2 x 1 patches in B",
        ),
        (
            Tokens(pieces=("0", "1"), grids=((1, 2), (3, 1)), places=((0, 0), (0, 1))),
            Tokens(pieces=("a", "cat")),
            True,
            "1 x 2 patches and 3 x 1 patches in A, no picture in B",
        ),
        (
            Tokens(pieces=("see", "0"), grids=((1, 1),), places=(None, (0, 0))),
            Tokens(pieces=("Look", "0"), grids=((1, 1),), places=(None, (0, 0))),
            False,
            "two models and hold words as well as pictures",
        ),
        (
            Tokens(pieces=("0", "1"), times=((0.0, 1.0), (1.0, 2.0))),
            Tokens(pieces=("0",), times=((0.0, 1.0),)),
            True,
            "those of sounds, of 2 and 1 parts",
        ),
    ],
)
def test_what_has_no_right_alignment_is_refused(a, b, same, said):
    with pytest.raises(RecordError, match=re.escape(said)):
        align(a, b, same_model=same)


def test_how_much_must_be_in_common_is_a_choice_and_special_tokens_do_not_count():
    a = Tokens(pieces=("[CLS]", "x", "y", "z", "[SEP]"))
    b = Tokens(pieces=("[CLS]", "x", "u", "v", "[SEP]"))
    with pytest.raises(RecordError, match="33% .* at least 50%"):
        align(a, b, same_model=True)
    assert align(a, b, same_model=True, least=0.3).shared == pytest.approx(1 / 3)
