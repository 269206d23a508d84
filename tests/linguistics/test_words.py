import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.errors import RecordError
from headscope.linguistics import Words, word_attention, words_at
from headscope.record import Tokens, word_maps
from headscope.testing import random_weights

ROWS = [
    [0.1, 0.2, 0.3, 0.1, 0.3],
    [0.2, 0.1, 0.1, 0.4, 0.2],
    [0.3, 0.3, 0.1, 0.1, 0.2],
    [0.1, 0.1, 0.5, 0.1, 0.2],
    [0.25, 0.25, 0.25, 0.15, 0.10],
]
TOKENS = Tokens(
    pieces=("[CLS]", "a", "b1", "##b2", "[SEP]"),
    offsets=(None, (0, 1), (2, 4), (4, 6), None),
    texts=("a b1b2",),
)


@pytest.mark.parametrize(
    ("rows", "third"),
    [
        ("mean", [0.2, 0.2, 0.4, 0.2]),
        ("first", [0.3, 0.3, 0.2, 0.2]),
        ("max", [3 / 14, 3 / 14, 6 / 14, 2 / 14]),
    ],
)
def test_the_published_example(rows, third):
    words = words_at(TOKENS, [(0, 1), (2, 6)])
    assert (words.names, words.tokens, words.rest) == (("a", "b1b2"), ((1,), (2, 3)), (0, 4))
    assert words.units == ((0,), (1,), (2, 3), (4,))
    assert words.places == (1, 2)
    found = word_attention(np.array([ROWS]), words, rows=rows)
    wanted = [[0.1, 0.2, 0.4, 0.3], [0.2, 0.1, 0.5, 0.2], third, [0.25, 0.25, 0.4, 0.1]]
    np.testing.assert_allclose(found[0], wanted, atol=1e-12)


@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=6),
    st.sampled_from(["mean", "first", "max"]),
    st.integers(0, 99),
)
def test_rows_keep_their_sum(sizes, rows, seed):
    starts = np.cumsum([0, *(max(1, size) for size in sizes)])
    groups = [
        tuple(range(start, start + max(1, size)))
        for start, size in zip(starts, sizes, strict=False)
    ]
    words = Words(
        tuple(str(n) for n, size in enumerate(sizes) if size),
        tuple(group for group, size in zip(groups, sizes, strict=True) if size),
        tuple(group[0] for group, size in zip(groups, sizes, strict=True) if not size),
    )
    weights = random_weights(
        np.random.default_rng(seed), (3, int(starts[-1]), int(starts[-1]))
    ).astype(float)
    found = word_attention(weights, words, rows=rows)
    assert found.shape == (3, len(sizes), len(sizes))
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-6)
    assert [words.units[place] for place in words.places] == list(words.tokens)


def test_max_keeps_what_a_sink_took(rng):
    maps = rng.random((2, 3, 4)) / 8
    found = word_maps(maps, [[0, 1], [2]], [[0], [1, 2, 3]], rows="max")
    np.testing.assert_allclose(found.sum(axis=-1)[:, 0], maps[:, :2].sum(axis=-1).mean(axis=-1))
    ratio = found[:, 0] / np.stack(
        [maps[:, :2, 0].max(axis=1), maps[:, :2, 1:].sum(axis=-1).max(axis=1)], axis=-1
    )
    np.testing.assert_allclose(ratio[:, 0], ratio[:, 1])


def test_another_way_to_take_rows_is_refused():
    with pytest.raises(RecordError, match="rows is 'median'; it may be 'mean', 'first', 'max'"):
        word_maps(np.zeros((1, 2, 2)), [[0]], [[1]], rows="median")


def test_spaces_belong_to_the_word_after_them_and_other_text_to_none():
    text = "  two  words, yes "
    offsets = ((0, 1), (1, 5), (5, 6), (6, 9), (9, 12), (12, 13), (13, 17), (17, 18))
    tokens = Tokens(
        pieces=tuple(text[slice(*span)] for span in offsets), offsets=offsets, texts=(text,)
    )
    found = words_at(tokens, [(2, 5), (7, 12), (14, 17)])
    assert found.tokens == ((0, 1), (2, 3, 4), (6,))
    assert found.rest == (5, 7)


def test_a_second_text_belongs_to_no_word():
    tokens = Tokens(
        pieces=("a", "[SEP]", "b"),
        offsets=((0, 1), None, (0, 1)),
        segments=(0, 0, 1),
        texts=("a", "b"),
        words=None,
    )
    found = words_at(tokens, [(0, 1)])
    assert (found.tokens, found.rest) == (((0,),), (1, 2))


def test_a_token_in_two_words_is_named():
    tokens = Tokens(pieces=("don", "'", "t"), offsets=((0, 3), (3, 4), (4, 5)), texts=("don't",))
    with pytest.raises(RecordError, match="Token 0, 'don', is part of several words, 'do' and"):
        words_at(tokens, [(0, 2), (2, 5)])


def test_a_word_without_tokens_is_named():
    words = words_at(TOKENS.take([0, 1, 4]), [(0, 1), (2, 6)])
    assert words.tokens == ((1,), ())
    with pytest.raises(RecordError, match=r"No token stands for word 1 \('b1b2'\)"):
        word_attention(np.zeros((1, 3, 3)), words)
    with pytest.raises(RecordError, match="No token stands for word 1"):
        words.places  # noqa: B018


@pytest.mark.parametrize("spans", [[(2, 6), (0, 1)], [(0, 3), (2, 6)], [(0, 7)], [(1, 1)]])
def test_spans_that_are_no_words_are_refused(spans):
    with pytest.raises(RecordError, match="words follow each other within the 6 characters"):
        words_at(TOKENS, spans)


def test_tokens_without_offsets_are_refused():
    with pytest.raises(RecordError, match="no character offsets"):
        words_at(Tokens(pieces=("a", "b")), [(0, 1)])
