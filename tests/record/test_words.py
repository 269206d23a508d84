"""Attention between whole words, as arrays, tables and files."""

import numpy as np
import pytest

import headscope as hs
from headscope.errors import RecordError
from headscope.record import Layer, Stack, Tokens, Words, word_maps
from headscope.testing import random_weights

PIECES = ("[CLS]", "straw", "##berr", "##ies", "taste", "[SEP]")
WORDS = ("[CLS]", "strawberries", "taste", "[SEP]")
RUNS = ((0,), (1, 2, 3), (4,), (5,))


@pytest.fixture
def stack(rng):
    """Three layers of two heads, the words of a query that looks at fewer keys."""
    tokens = Tokens(pieces=PIECES)
    return hs.from_weights(random_weights(rng, (3, 2, 6, 6)), tokens)["self"]


def test_words_are_the_sum_over_keys_and_the_mean_over_queries(stack):
    assert stack.query.whole_words == Words(WORDS, RUNS, ())
    words, weights = stack.weights(words=True), stack.weights()
    assert words.shape == (3, 2, 4, 4)
    for row, query in enumerate(RUNS):
        for column, key in enumerate(RUNS):
            block = weights[:, :, query][..., key]
            np.testing.assert_allclose(
                words[:, :, row, column], block.sum(axis=-1).mean(axis=-1), atol=1e-6
            )
    np.testing.assert_allclose(words.sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(stack.weights(1, 1, words=True), words[1, 1])
    np.testing.assert_allclose(word_maps(weights[0], RUNS, RUNS), words[0])


def test_words_are_a_stack_of_their_own(stack):
    words = stack.words([2])
    assert words.query.labels == words.key.labels == WORDS
    assert words.query.special == (True, False, False, True)
    assert [layer.layer for layer in words] == [2]
    np.testing.assert_allclose(words.weights(2), stack.weights(2, words=True))
    assert words.words().query.labels == WORDS
    with pytest.raises(RecordError, match="has layers 0 to 2, not 7"):
        stack.words([7])


def test_what_a_word_may_see_is_what_one_of_its_pieces_may(rng):
    visible = np.tril(np.ones((6, 6), bool))
    queries, keys = rng.standard_normal((2, 6, 8)), rng.standard_normal((1, 6, 8))
    layer = Layer(layer=0, queries=queries, keys=keys, visible=visible)
    tokens = Tokens(pieces=PIECES)
    made = Stack(name="self", query=tokens, key=tokens, layers=(layer,)).words()
    assert np.array_equal(np.asarray(made.layers[0].visible, bool), np.tril(np.ones((4, 4), bool)))
    np.testing.assert_allclose(made.weights(0).sum(axis=-1), 1, atol=1e-6)


def test_tables_and_files_are_of_words_where_asked(stack, tmp_path):
    pytest.importorskip("pandas", reason="needs the extra pandas")
    square = stack.to_pandas(0, 1, words=True)
    assert square.shape == (4, 4)
    assert [name for _, name in square.index] == list(WORDS)
    table = stack.to_pandas(words=True)
    assert len(table) == 3 * 2 * 4 * 4
    assert set(table["key_token"]) == set(WORDS)
    assert set(stack.columns(words=True)["query_token"]) == set(WORDS)
