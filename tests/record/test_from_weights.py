import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import RecordError
from headscope.testing import random_weights

TOKENS = ["[CLS]", "a", "b", "[SEP]", "c"]


@pytest.fixture
def weights(rng):
    return random_weights(rng, (2, 3, 5, 5))


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda w: w, id="array"),
        pytest.param(lambda w: list(w), id="list of arrays"),
        pytest.param(lambda w: w[:, None], id="batch of one"),
        pytest.param(lambda w: w.tolist(), id="nested lists"),
        pytest.param(lambda w: torch.tensor(w), id="tensor"),
        pytest.param(
            lambda w: tuple(torch.tensor(layer, requires_grad=True)[None] for layer in w),
            id="tuple of tensors",
        ),
        pytest.param(lambda w: w.astype(np.float64), id="float64"),
    ],
)
def test_arrays_of_any_library_give_the_same_record(weights, given):
    record = hs.from_weights(given(weights), TOKENS)
    for layer in range(2):
        np.testing.assert_array_equal(record["self"].weights(layer), weights[layer])
    assert record["self"].query.special == (True, False, False, True, False)


def test_half_precision_tensors_are_taken_as_they_are(weights):
    record = hs.from_weights(torch.tensor(weights).bfloat16(), TOKENS)
    np.testing.assert_array_equal(
        record["self"].weights(1), torch.tensor(weights)[1].bfloat16().float().numpy()
    )


def test_a_pair_keeps_its_two_sentences(weights):
    tokens = hs.from_weights(weights, TOKENS, sentence_b_start=4)["self"].query
    assert tokens.segments == (0, 0, 0, 0, 1)


def test_a_layer_that_is_none_keeps_the_numbers_of_the_others(weights):
    record = hs.from_weights([None, weights[0], None, weights[1]], TOKENS)
    assert [layer.layer for layer in record["self"]] == [1, 3]


def test_encoder_decoder_of_uneven_depth_and_length(rng):
    record = hs.from_weights(
        encoder=random_weights(rng, (1, 3, 5, 5)),
        decoder=random_weights(rng, (4, 2, 6, 6)),
        cross=random_weights(rng, (4, 2, 6, 5)),
        encoder_tokens=TOKENS,
        decoder_tokens=list("uvwxyz"),
    )
    assert [len(record[name]) for name in ("encoder", "decoder", "cross")] == [1, 4, 4]
    assert record["cross"].query.pieces == tuple("uvwxyz")
    assert record["cross"].key.pieces == tuple(TOKENS)


def test_the_users_array_is_not_kept(weights):
    record = hs.from_weights(weights, TOKENS)
    before = weights[0, 0, 0, 0]
    weights[0, 0, 0, 0] = 7
    assert record["self"].weights(0, 0)[0, 0] == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda w: {"weights": w}, "self attention was given without tokens"),
        (lambda w: {"cross": w, "encoder_tokens": TOKENS}, "without decoder_tokens and"),
        (lambda w: {}, "give weights and tokens"),
        (lambda w: {"weights": (), "tokens": TOKENS}, "is empty: the model returned none. Under"),
        (
            lambda w: {"weights": np.repeat(w[:, None], 2, 1), "tokens": TOKENS},
            "holds a batch of 2 texts",
        ),
        (lambda w: {"weights": w[0], "tokens": TOKENS}, r"has shape \(5, 5\); expected three axes"),
        (lambda w: {"weights": w, "tokens": TOKENS[:4]}, "5 queries and 5 keys, but 4 query"),
        (lambda w: {"weights": w, "tokens": "abcde"}, "not 'abcde'"),
        (
            lambda w: {"weights": w, "tokens": TOKENS, "sentence_b_start": 5},
            "must lie between 1 and 4",
        ),
        (lambda w: {"weights": [[[[1, 2], [3]]]], "tokens": TOKENS}, "not an array of numbers"),
        (lambda w: {"weights": np.log(w), "tokens": TOKENS}, "are these scores before softmax"),
        (lambda w: {"weights": np.float32(1), "tokens": TOKENS}, "attention is .*1.0.*; give one"),
    ],
)
def test_what_does_not_fit_is_refused(weights, arguments, message):
    with pytest.raises(RecordError, match=message):
        hs.from_weights(**arguments(weights))


def test_weights_that_never_look_ahead_are_of_a_causal_model(weights):
    even = np.tril(np.ones((2, 3, 5, 5)))
    even /= even.sum(axis=-1, keepdims=True)
    record = hs.from_weights(even, TOKENS)
    assert {layer.kind for layer in record["self"]} == {"causal"}
    layer = record["self"].layer(0)
    seen = np.asarray(layer.visible, bool)
    lift = layer.weights_of(0) * seen.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(lift[seen], 1, atol=1e-6)
    # One head that looks ahead a little is enough for all of them.
    even[1, 2] = weights[1, 2]
    assert {layer.kind for layer in hs.from_weights(even, TOKENS)["self"]} == {"full"}
