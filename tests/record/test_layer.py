import dataclasses

import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.record import Layer
from headscope.testing import random_weights

from ..close import assert_close

HEADS, KV_HEADS, QUERIES, KEYS, WIDTH = 6, 2, 5, 7, 4


@pytest.fixture
def weights(rng):
    return random_weights(rng, (HEADS, QUERIES, KEYS))


@pytest.fixture
def qk(rng):
    return {
        "queries": rng.standard_normal((HEADS, QUERIES, WIDTH)),
        "keys": rng.standard_normal((KV_HEADS, KEYS, WIDTH)),
        "scale": 0.5,
    }


def plain_weights(layer):
    """Weights by loops, straight from the definition."""
    found = np.zeros((HEADS, QUERIES, KEYS))
    visible = None if layer.visible is None else np.asarray(layer.visible)
    for head in range(HEADS):
        key_head = head // (HEADS // KV_HEADS)
        for query in range(QUERIES):
            terms = []
            for key in range(KEYS):
                score = (
                    sum(
                        layer.queries[head, query, f] * layer.keys[key_head, key, f]
                        for f in range(WIDTH)
                    )
                    * layer.scale
                )
                if layer.soft_cap is not None:
                    score = layer.soft_cap * np.tanh(score / layer.soft_cap)
                if layer.bias is not None:
                    score += layer.bias[head if layer.bias.shape[0] > 1 else 0, query, key]
                hidden = visible is not None and not visible[query, key]
                terms.append(0.0 if hidden else np.exp(score))
            total = sum(terms) + (0 if layer.sinks is None else np.exp(layer.sinks[head]))
            found[head, query] = np.array(terms) / total if total else 0
    return found


@pytest.mark.parametrize(
    "extra", ["nothing", "visible", "bias", "one bias", "soft_cap", "sinks", "everything"]
)
def test_recomputed_weights_follow_the_definition(qk, rng, extra):
    visible = rng.random((QUERIES, KEYS)) < 0.6
    visible[0] = False
    options = {
        "visible": {"visible": visible},
        "bias": {"bias": rng.standard_normal((HEADS, QUERIES, KEYS))},
        "one bias": {"bias": rng.standard_normal((1, QUERIES, KEYS))},
        "soft_cap": {"soft_cap": 0.7},
        "sinks": {"sinks": rng.standard_normal(HEADS)},
    }
    options["everything"] = {
        name: value for option in options.values() for name, value in option.items()
    }
    layer = Layer(layer=0, **qk, **options.get(extra, {}))
    np.testing.assert_allclose(layer.weights_of(), plain_weights(layer), atol=1e-12)
    for head in range(HEADS):
        np.testing.assert_allclose(layer.weights_of(head), layer.weights_of()[head], atol=1e-12)
        assert_close(layer.scores_of(head), layer.scores_of()[head])


def test_rows_that_see_nothing_are_zero_and_said_to_be_dead(qk):
    visible = np.ones((QUERIES, KEYS), bool)
    visible[2] = False
    layer = Layer(layer=0, visible=visible, **qk)
    assert layer.dead.tolist() == [False, False, True, False, False]
    assert not layer.weights_of()[:, 2].any()
    np.testing.assert_allclose(layer.weights_of()[:, [0, 1, 3, 4]].sum(-1), 1)


def test_huge_scores_do_not_overflow(qk):
    np.testing.assert_allclose(Layer(layer=0, **qk | {"scale": 1e4}).weights_of().sum(-1), 1)


def test_a_layer_is_frozen(weights):
    layer = Layer(layer=0, weights=weights)
    with pytest.raises(dataclasses.FrozenInstanceError):
        layer.layer = 3
    with pytest.raises(ValueError, match="read-only"):
        layer.weights[0, 0, 0] = 0


def test_sizes(qk):
    layer = Layer(layer=0, **qk)
    assert layer.kv_head_of.tolist() == [0, 0, 0, 1, 1, 1]
    assert (layer.heads, layer.kv_heads, layer.size) == (HEADS, KV_HEADS, (QUERIES, KEYS))


@pytest.mark.parametrize(
    ("visible", "kind"),
    [
        (None, "full"),
        (np.tril(np.ones((4, 4), bool)), "causal"),
        (np.tril(np.ones((4, 6), bool), k=2), "causal"),
        (np.tril(np.ones((5, 5), bool)) & ~np.tril(np.ones((5, 5), bool), k=-2), "sliding"),
        (np.eye(5, dtype=bool)[::-1], "masked"),
    ],
)
def test_kind_is_read_off_the_mask(visible, kind):
    queries, keys = (3, 4) if visible is None else visible.shape
    weights = (
        np.ones((2, queries, keys)) / keys
        if visible is None
        else np.broadcast_to(visible / visible.sum(-1, keepdims=True), (2, queries, keys))
    )
    assert Layer(layer=0, weights=weights, visible=visible).kind == kind


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"weights of layer 4 holds nan at \[1, 2000, 3\]"),
        (np.inf, "holds inf"),
        (-0.25, r"negative weight -0.25 at \[1, 2000, 3\]; are these scores"),
        (0.53125, "head 1, query 2000 sums to 1.5; rows must sum to 1"),
    ],
)
def test_one_wrong_weight_is_found_wherever_it_is(dtype, value, message):
    weights = np.full((2, 3000, 32), 1 / 32, dtype)
    weights[1, 2000, 3] = value
    with pytest.raises(RecordError, match=message):
        Layer(layer=4, weights=weights)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("step", [1, 2])
def test_only_a_number_that_is_not_finite_is_refused(qk, value, step):
    queries = np.full((HEADS, QUERIES, WIDTH * step), 3e38, np.float32)  # its square is not finite
    given = {"queries": queries[..., ::step], "keys": qk["keys"].astype(np.float32), "scale": 1e-38}
    Layer(layer=0, **given)
    given["queries"][1, 2, 3] = value
    with pytest.raises(RecordError, match=r"queries of layer 0 holds -?(nan|inf) at \[1, 2, 3\]"):
        Layer(layer=0, **given)


def test_transposed_weights_are_recognised(weights):
    with pytest.raises(RecordError, match=r"the axes must be \[head query key\]"):
        Layer(layer=0, weights=np.ascontiguousarray(weights.swapaxes(1, 2)))


def test_sinks_allow_rows_below_one_but_not_above(weights):
    sinks = np.zeros(HEADS)
    assert Layer(layer=0, weights=weights * 0.5, sinks=sinks).heads == HEADS
    with pytest.raises(RecordError, match="sums to 1.5"):
        Layer(layer=0, weights=weights * 1.5, sinks=sinks)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": np.zeros((4, KEYS, WIDTH))}, "6 heads cannot share 4 key/value heads"),
        ({"keys": np.zeros((KV_HEADS, KEYS, 3))}, r"keys of layer 0 has shape \(2, 7, 3\), but"),
        ({"values": np.zeros((KV_HEADS, 6, 9))}, r"values of layer 0 has shape"),
        ({"weights": np.zeros((QUERIES, KEYS))}, r"weights of layer 0 has shape \(5, 7\)"),
        ({"queries": np.zeros((1, HEADS, QUERIES, WIDTH))}, "expected the axes"),
        ({"sinks": np.zeros(5)}, "sinks of layer 0 has shape"),
        ({"bias": np.zeros((2, QUERIES, KEYS))}, "has 2 heads; give 1 or 6"),
        ({"visible": np.ones((KEYS, QUERIES), bool)}, "visible of layer 0 has shape"),
        ({"keys": None}, "neither weights nor queries and keys"),
        ({"queries": np.zeros((HEADS, QUERIES, WIDTH), int)}, "must be a NumPy array of floating"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(qk, change, message):
    with pytest.raises(RecordError, match=message):
        Layer(layer=0, **qk | change)


def test_unknown_head_and_missing_scores_are_said(weights):
    layer = Layer(layer=3, weights=weights)
    with pytest.raises(RecordError, match="Layer 3 has heads 0 to 5, not 6"):
        layer.weights_of(6)
    with pytest.raises(RecordError, match="Layer 3 has heads 0 to 5, not -1"):
        layer.weights_of(-1)
    with pytest.raises(RecordError, match="holds weights but no queries and keys"):
        layer.scores_of(0)
