import pytest
from tokenizers import pre_tokenizers

from headscope.errors import RecordError
from headscope.record import Part, Tokens, word_numbers


def test_bare_pieces_get_labels_marks_and_segments():
    pieces = "[CLS] straw ##berries Ġstore ▁the ## <s> <|end|> a<b [SEP]"
    tokens = Tokens(pieces=tuple(pieces.split()))
    assert " ".join(tokens.labels) == "[CLS] straw berries store the ## <s> <|end|> a<b [SEP]"
    assert tokens.special == (True, False, False, False, False, False, True, True, False, True)
    assert tokens.segments == (0,) * 10
    assert [i for i, on in enumerate(tokens.continues) if on] == [2]


def test_continues_follows_words_within_a_segment():
    assert Tokens(
        pieces=("a", "b", "c", "d", "e"), words=(0, 0, None, 1, 1), segments=(0, 0, 0, 0, 1)
    ).continues == (False, True, False, False, False)


def test_take_keeps_everything_of_the_kept():
    tokens = Tokens(
        pieces=("a", "b", "c"),
        texts=("abc",),
        ids=(5, 6, 7),
        offsets=((0, 1), None, (2, 3)),
        words=(0, 1, 2),
    )
    assert tokens.take([0, 2]) == Tokens(
        pieces=("a", "c"), texts=("abc",), ids=(5, 7), offsets=((0, 1), (2, 3)), words=(0, 2)
    )


def test_patches_have_places_in_the_grid_of_their_picture():
    tokens = Tokens(
        pieces=("[CLS]", "a", "b", "c"), grids=((1, 3),), places=(None, (0, 0), (0, 1), (0, 2))
    )
    assert tokens.grid == (1, 3)
    assert tokens.pictures == (None, 0, 0, 0)
    assert tokens.take([0, 2]) == Tokens(
        pieces=("[CLS]", "b"), grids=((1, 3),), places=(None, (0, 1)), pictures=(None, 0)
    )
    assert Tokens(pieces=("a",)).grid is None
    several = Tokens(
        pieces=("a", "b"), grids=((1, 2), (3, 5)), places=((0, 1), (2, 4)), pictures=(0, 1)
    )
    assert several.grid is None


def test_parts_follow_their_tokens():
    told = Part(name="user", kind="turn", spans=((0, 5),), tokens=(1, 2, 4))
    first = Part(name="user, sentence 1", kind="sentence", level=1, spans=((0, 1),), tokens=(1,))
    tokens = Tokens(pieces=tuple("<abcd"), texts=("a b c",), parts=(told, first))
    turned = tokens.take([4, 0, 2])
    assert [part.tokens for part in turned.parts] == [(0, 2), ()]
    assert [(part.name, part.spans) for part in turned.parts] == [
        (part.name, part.spans) for part in tokens.parts
    ]
    assert tokens != Tokens(pieces=tuple("<abcd"), texts=("a b c",))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "chapter"}, "kind 'chapter' .* give one of turn, document"),
        ({"level": -1}, "level -1; give one of .* whole number from 0"),
        ({"spans": ((2, 4),)}, "leave the 3 characters read"),
        ({"tokens": (0, 3)}, r"tokens \(0, 3\); give rising positions from 0 to 2"),
        ({"tokens": (1, 0)}, "rising"),
        ({"tokens": (1, 2)}, "'b' shares token 1 with 'a'; .* another level"),
    ],
)
def test_a_part_that_cannot_be_is_refused(fields, message):
    part = Part(**{"name": "b", "kind": "turn"} | fields)
    parts = (Part(name="a", kind="turn", tokens=(1,)), part)
    with pytest.raises(RecordError, match=message):
        Tokens(pieces=tuple("abc"), texts=("abc",), parts=parts)


def test_frames_have_times():
    tokens = Tokens(pieces=("a", "b", "c"), times=((0.0, 0.5), None, (0.5, 1.0)))
    assert tokens.take([1, 2]).times == (None, (0.5, 1.0))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pieces": ("a", "b"), "ids": (1,)}, "1 ids were given for 2 pieces"),
        ({"pieces": ("a", "b"), "special": (True,)}, "1 special were given for 2 pieces"),
        ({"pieces": ("a",), "segments": (2,)}, "segments are 0, 1, not 2"),
        ({"pieces": ("a",), "texts": ("ab",), "offsets": ((1, 3),)}, r"offsets \(1, 3\) of token"),
        ({"pieces": ("a",), "offsets": ((0, 1),)}, "leave text 0 with its 0 characters"),
        (
            {"pieces": ("a", "b"), "grids": ((1, 1),), "places": ((0, 0),)},
            "1 places were given for 2 pieces",
        ),
        ({"pieces": ("a",), "places": ((0, 0),)}, r"token 0 \('a'\) has the place \(0, 0\)"),
        (
            {"pieces": ("a",), "grids": ((1, 1),), "pictures": (0,), "places": (None,)},
            "has the place None in picture 0",
        ),
        ({"pieces": ("a",), "grids": ((3, 5),), "places": ((0, 5),)}, "leaves the grid of 3 x 5"),
        ({"pieces": ("a",), "times": ((1.0, 0.5),)}, r"times \(1.0, 0.5\) of token 0 must be"),
    ],
)
def test_what_does_not_fit_is_refused(fields, message):
    with pytest.raises(RecordError, match=message):
        Tokens(**fields)


TEXT = "caf\u00e9 \u65e5\u672c \U0001f642 end"


def test_bare_pieces_of_bytes_are_shown_as_the_text():
    """Each letter once: the first of its pieces has it."""
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(TEXT)
    pieces = ["<|endoftext|>", *(letter for word, _ in letters for letter in word)]
    labels = Tokens(pieces=tuple(pieces)).labels
    assert "".join(labels) == f"<|endoftext|>{TEXT}"
    assert labels[4:8] == ("\u00e9", "", " ", "\u65e5")
    fallback = ["<s>", "\u2581caf", "\u00e9", "\u2581"]
    fallback += [f"<0x{byte:02X}>" for byte in "日".encode()]
    assert Tokens(pieces=tuple(fallback)).labels == ("<s>", "caf", "\u00e9", " ", "日", "", "")
    plain = ("\u00c3\u00a9", "##\u00e9")
    assert Tokens(pieces=plain).labels == ("\u00c3\u00a9", "\u00e9")


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ("<s> \u2581The \u2581straw ber ries \u2581were .", "<s> The strawberries were ."),
        ("The \u0120straw ber ries , \u0120don ' t ? !", "The strawberries , don't ?!"),
        ("<|endoftext|> the</w> straw ber ries</w> .</w>", "<|endoftext|> the strawberries ."),
        ("the straw@@ ber@@ ries .", "the strawberries ."),
        ("[CLS] the straw ##ber ##ries ## [SEP]", "[CLS] the strawberries ## [SEP]"),
        ("straw ber ries", "straw ber ries"),
    ],
)
def test_bare_pieces_make_words_by_the_marks_of_their_vocabulary(pieces, words):
    assert Tokens(pieces=tuple(pieces.split())).whole_words.names == tuple(words.split())


@pytest.mark.parametrize(
    "mark",
    ["\u200d", "\u200e", "\u200f", "\u202e", "\u2067", "\u061c", "\u00ad", "\ufeff", "\ufe0f"],
)
def test_an_invisible_mark_behind_a_space_is_of_the_word_behind_it(mark):
    text = f"ab {mark}cd"
    spans = [(at, at + 1) for at in range(len(text))]
    assert word_numbers((text,), spans, [0] * len(text)) == (0, 0, 1, 1, 1, 1)
