import pytest

from headscope import RecordError, Tokens


def test_bare_pieces_get_labels_marks_and_segments():
    tokens = Tokens(pieces=("[CLS]", "straw", "##berries", "Ġstore", "▁the", "##", "<s>", "<|end|>", "a<b", "[SEP]"))
    assert tokens.labels == ("[CLS]", "straw", "berries", "store", "the", "##", "<s>", "<|end|>", "a<b", "[SEP]")
    assert tokens.special == (True, False, False, False, False, False, True, True, False, True)
    assert tokens.segments == (0,) * 10
    assert [i for i, on in enumerate(tokens.continues) if on] == [2]


def test_continues_follows_words_within_a_segment():
    tokens = Tokens(pieces=("a", "b", "c", "d", "e"), words=(0, 0, None, 1, 1), segments=(0, 0, 0, 0, 1))
    assert tokens.continues == (False, True, False, False, False)


def test_take_keeps_everything_of_the_kept():
    tokens = Tokens(
        pieces=("a", "b", "c"), texts=("abc",), ids=(5, 6, 7), offsets=((0, 1), None, (2, 3)), words=(0, 1, 2)
    )
    assert tokens.take([0, 2]) == Tokens(
        pieces=("a", "c"), texts=("abc",), ids=(5, 7), offsets=((0, 1), (2, 3)), words=(0, 2)
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pieces": ("a", "b"), "ids": (1,)}, "1 ids were given for 2 pieces"),
        ({"pieces": ("a", "b"), "special": (True,)}, "1 special were given for 2 pieces"),
        ({"pieces": ("a",), "segments": (2,)}, r"segments must be 0 or 1 .* not \[2\]"),
        (
            {"pieces": ("a",), "texts": ("ab",), "offsets": ((1, 3),)},
            r"offsets \(1, 3\) of token 0 \('a'\) leave text 0",
        ),
        ({"pieces": ("a",), "offsets": ((0, 1),)}, "leave text 0 with its 0 characters"),
    ],
)
def test_what_does_not_fit_is_refused(fields, message):
    with pytest.raises(RecordError, match=message):
        Tokens(**fields)
