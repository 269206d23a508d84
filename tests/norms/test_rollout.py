import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headscope as hs
from headscope.errors import RecordError
from headscope.interventions import confidence_importance
from headscope.norms import flow, rollout
from headscope.record import Layer, Stack, Tokens
from headscope.testing import random_record, tiny_model, tiny_tokenizer

from ..close import assert_close
from .conftest import weights_of
from .plain import rolled

EXACT = {"rtol": 0, "atol": 1e-9}


@pytest.fixture
def maps(rng):
    return weights_of(rng, 3, 5, 5).round(6)


def test_rollout_is_the_product_of_the_layers(maps):
    wanted, _ = rolled(maps.tolist())
    np.testing.assert_allclose(rollout(maps), wanted, **EXACT)


@given(seed=st.integers(0, 1000), layers=st.integers(1, 4), size=st.integers(1, 6))
def test_rows_of_rollout_sum_to_one(seed, layers, size):
    found = rollout(weights_of(np.random.default_rng(seed), layers, size, size))
    np.testing.assert_allclose(found.sum(-1), 1, **EXACT)
    assert found.min() >= 0


def test_records_of_a_changed_model_are_named():
    model, tokenizer = tiny_model("gpt2"), tiny_tokenizer()
    with hs.intervene(model, hs.Zero(layer=0, heads=1)):
        record = hs.capture(model, tokenizer, "the cat sat")
    for function in (rollout, flow):
        for source in (record, record["self"]):
            with pytest.warns(UserWarning, match=r"not of the model as it is; changed: layer 0: "):
                function(source)
    with pytest.warns(UserWarning, match=r"confidence_importance: 1 of 2 records are not of the"):
        confidence_importance([record, hs.capture(model, tokenizer, "the cat")])
    with pytest.warns(UserWarning, match="Mean: 1 of 1 records"):
        hs.interventions.Mean(records=[record])
    with pytest.warns(UserWarning, match="word_alignment: 1 of 1 records"):
        hs.word_alignment(record, layer=1, stack="self")


def test_rollout_without_residual_and_of_maps_that_hold_it(maps):
    bare = rollout(maps, residual=False)
    even = maps / maps.sum(-1, keepdims=True)
    np.testing.assert_allclose(bare[2], even[2] @ even[1] @ even[0], **EXACT)
    np.testing.assert_allclose(rollout(5 * maps, "output"), bare, **EXACT)
    np.testing.assert_allclose(rollout(5 * maps, "attention"), rollout(even), **EXACT)


def test_after_the_first_layer_flow_is_rollout_is_the_layer(maps):
    _, steps = rolled(maps.tolist())
    np.testing.assert_allclose(flow(maps, layer=0), steps[0], **EXACT)


def test_flow_of_a_network_drawn_by_hand():
    # two layers without residual; the middle lets through 0.25 and 0.75
    found = flow(np.array([[[0.25, 0.75], [1.0, 0.0]], [[1.0, 0.0], [0.5, 0.5]]]), residual=False)
    np.testing.assert_allclose(found, [[0.25, 0.75], [0.75 / 1.25, 0.5 / 1.25]], **EXACT)


def test_networkx_gives_the_same_flow_by_another_algorithm(maps):
    from headscope.norms import _flow

    network = _flow._network(np.array(rolled(maps.tolist())[1]))
    for key in range(5):
        assert _flow._most(network, (3, 1), (0, key)) == networkx.maximum_flow_value(
            network, (3, 1), (0, key), flow_func=networkx.algorithms.flow.dinitz
        )


@pytest.mark.parametrize(
    ("source", "options", "match"),
    [
        (np.ones((2, 3, 4)), {}, "same tokens on both sides"),
        (-np.ones((1, 2, 2)), {}, "not negative"),
        (np.ones((1, 2, 2)), {"quantity": "norms"}, "no quantity 'norms'"),
        (random_record(), {}, "looks at other tokens"),
        (
            hs.from_weights(np.ones((1, 1, 1, 1)), ["a"]),
            {"quantity": "attention"},
            "capture with keep='norms'",
        ),
    ],
)
@pytest.mark.usefixtures("in_production")
def test_what_cannot_be_rolled_out_is_refused(source, options, match):
    with pytest.raises(RecordError, match=match):
        rollout(source, **options)


def test_flow_of_layers_and_tokens_there_are_not(maps):
    with pytest.raises(RecordError, match="layers 0 to 2 and tokens 0 to 4"):
        flow(maps, layer=3)


def test_layers_without_attention_break_the_way_back():
    tokens = Tokens(pieces=("a", "b"))
    layers = tuple(Layer(layer=number, weights=np.full((1, 2, 2), 0.5)) for number in (0, 2))
    stack = Stack(
        name="self", query=tokens, key=tokens, layers=layers, others={1: "linear (Mamba)"}
    )
    with pytest.raises(RecordError, match=r"no attention in layers \[1\]"):
        rollout(stack)


def test_a_stack_of_several_is_named():
    record = hs.capture(tiny_model("bart"), tiny_tokenizer(), "a cat", target="the dog")
    with pytest.raises(RecordError, match="'encoder', 'decoder', 'cross'; give one with stack="):
        rollout(record)
    assert_close(rollout(record, stack="encoder"), rollout(record["encoder"]))
    assert_close(flow(record, stack="decoder"), flow(record["decoder"]))
    with pytest.raises(RecordError, match="none"):
        rollout(record, stack="none")
