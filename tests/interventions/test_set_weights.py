"""Attention given from outside, averaged over texts, and links cut."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.errors import InterventionError
from headscope.testing import tiny_model

from ..close import assert_close

TEXT = "the cat sat."


@pytest.mark.parametrize("family", ["bert", "gpt2", "deberta-v2", "xlnet", "gpt_oss"])
def test_its_own_weights_change_nothing(family, tokenizer, batch, states):
    # Fewer texts than XLNet has heads, or nothing would show which axis is which.
    model, inputs = tiny_model(family), {name: given[:2] for name, given in batch().items()}
    intact = states(model, **inputs)
    records = capture_encoded(model, tokenizer, inputs)
    with hs.intervene(
        model,
        hs.interventions.SetWeights(
            weights=[record["self"].weights(1) for record in records], layer=1
        ),
    ):
        assert (states(model, **inputs) - intact).abs().max() <= 1e-6 * intact.abs().max()


def test_planted_weights_are_what_the_record_shows(tokenizer):
    model, size = tiny_model("bert"), 12
    planted = np.roll(np.eye(size), 1, axis=1)
    record = hs.capture(
        model,
        tokenizer,
        TEXT,
        interventions=[hs.interventions.SetWeights(weights=planted, layer=0, heads=[0, 2])],
    )
    assert_close(record["self"].weights(0)[[0, 2]], [planted, planted])
    assert record.verified < 1e-5


def test_a_function_gets_the_heads_own_weights(tokenizer):
    model = tiny_model("gpt2")
    own = hs.capture(model, tokenizer, TEXT)["self"].weights(2)
    swapped = hs.interventions.SetWeights(
        weights=lambda weights: weights.flip(0), layer=2, heads=[1, 3]
    )
    found = hs.capture(model, tokenizer, TEXT, interventions=[swapped])["self"].weights(2)
    np.testing.assert_allclose(found, own[[0, 3, 2, 1, 4]], atol=1e-6)


def test_gradients_reach_the_weights(tokenizer):
    model, inputs = tiny_model("bert"), tokenizer(TEXT, return_tensors="pt")
    size = inputs["input_ids"].shape[1]
    logits = torch.randn(
        3, size, size, generator=torch.Generator().manual_seed(0), requires_grad=True
    )
    with hs.intervene(
        model, hs.interventions.SetWeights(weights=lambda _: logits.softmax(-1), layer=1)
    ):
        model(**inputs)[0].square().sum().backward()
    assert logits.grad.abs().min() > 0


@pytest.mark.parametrize(
    ("family", "weights", "message"),
    [
        ("bert", np.eye(11), r"expected \[head query key\] \[3, 12, 12\] or \[query key\] \[12"),
        ("bert", -np.eye(12), "must be from 0 to 1"),
        ("bert", 2 * np.eye(12), "must be from 0 to 1"),
        ("gpt2", np.roll(np.eye(12), 1, axis=1), "query 0, key 1, which the query may not look at"),
        ("bert", [np.eye(12)] * 2, "given for 2 texts, and the batch has 1"),
    ],
)
def test_weights_that_cannot_be_are_refused(family, weights, message, tokenizer):
    with pytest.raises(InterventionError, match=message):
        hs.capture(
            tiny_model(family),
            tokenizer,
            TEXT,
            interventions=[hs.interventions.SetWeights(weights=weights, layer=1)],
        )


def hidden_before_softmax(scores, query, key):
    scores = scores.copy()
    scores[:, query, key] = -np.inf
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("family", ["bert", "gpt2", "gptj"])
def test_a_cut_link_is_one_hidden_before_the_softmax(family, tokenizer):
    model = tiny_model(family)
    own = hs.capture(model, tokenizer, TEXT)["self"].layer(0)
    cut = hs.Cut(layer=0, heads=1, queries=5, keys=2)
    found = hs.capture(model, tokenizer, TEXT, interventions=[cut])
    wanted = hidden_before_softmax(own.scores_of(), 5, 2)[1]
    np.testing.assert_allclose(found["self"].weights(0, 1), wanted, atol=1e-6)
    np.testing.assert_allclose(found["self"].weights(0, 0), own.weights[0], atol=1e-6)
    assert found.verified < 1e-5


def test_sinks_take_their_share_of_what_was_cut(tokenizer):
    model = tiny_model("gpt_oss")
    own = hs.capture(model, tokenizer, TEXT)["self"].layer(0)
    cut = [hs.Cut(layer=0, queries=6, keys=3)]
    found = hs.capture(model, tokenizer, TEXT, interventions=cut)["self"].weights(0)[:, 6]
    wanted = np.delete(own.weights[:, 6], 3, 1) / (1 - own.weights[:, 6, 3:4])
    np.testing.assert_allclose(np.delete(found, 3, 1), wanted, atol=1e-6)


def test_without_renormalising_the_rest_stays(tokenizer):
    model = tiny_model("bert")
    own = hs.capture(model, tokenizer, TEXT)["self"].weights(1)
    cut = [hs.Cut(layer=1, keys=[0, 3], renormalise=False)]
    record = hs.capture(model, tokenizer, TEXT, interventions=cut)
    found = record["self"].weights(1)
    assert not found[:, :, [0, 3]].any()
    np.testing.assert_allclose(np.delete(found, [0, 3], 2), np.delete(own, [0, 3], 2), atol=1e-6)
    assert record.verified < 1e-5
    said = record["self"].layer(1).changes
    assert said == ("links to keys 0, 3 cut, the rest not renormalised (heads 0-2)",)


def test_a_row_of_which_nothing_is_left_is_zero(tokenizer):
    record = hs.capture(
        tiny_model("gpt2"), tokenizer, TEXT, interventions=[hs.Cut(layer=0, heads=0, keys=0)]
    )
    rows = record["self"].weights(0, 0).sum(axis=-1)
    assert rows[0] == 0
    np.testing.assert_allclose(rows[1:], 1, atol=1e-6)
    assert record.verified < 1e-5


def test_a_record_with_cut_links_comes_back_from_a_file(tokenizer, tmp_path):
    record = hs.capture(
        tiny_model("gpt2"), tokenizer, TEXT, interventions=[hs.Cut(layer=0, heads=0, keys=0)]
    )
    again = hs.load(hs.save(record, tmp_path / "cut.safetensors"))
    assert_close(again["self"].weights(0, 0), record["self"].weights(0, 0))
    assert again["self"].layer(0).changes == record["self"].layer(0).changes
    assert again["self"].layer(1).changes == ()


def test_the_mean_over_texts_is_cut_to_the_text_and_renormalised(tokenizer):
    model = tiny_model("bert")
    texts = ["on it she ran home", "the cat sat on it.", "a bee"]
    records = list(hs.capture_many(model, tokenizer, texts))
    found = hs.capture(
        model,
        tokenizer,
        TEXT,
        interventions=[hs.interventions.Mean(records=records, layer=0, heads=[1])],
    )
    size = found["self"].layer(0).size[0]
    longest = max(record["self"].layer(0).size[0] for record in records)
    total, count = np.zeros((longest, longest)), np.zeros((longest, longest))
    for record in records:
        weights = record["self"].weights(0, 1)
        for query in range(len(weights)):
            for key in range(len(weights)):
                total[query, key] += weights[query, key]
                count[query, key] += 1
    wanted = (total / np.maximum(count, 1))[:size, :size]
    np.testing.assert_allclose(
        found["self"].weights(0, 1), wanted / wanted.sum(-1, keepdims=True), atol=1e-6
    )
    assert found.verified < 1e-5
    with pytest.raises(InterventionError, match="take the mean over longer texts"):
        hs.capture(
            model,
            tokenizer,
            TEXT,
            interventions=[hs.interventions.Mean(records=records[2:], layer=0)],
        )


def test_the_mean_over_one_text_is_its_own(tokenizer, states):
    model = tiny_model("gpt2")
    record = hs.capture(model, tokenizer, TEXT)
    found = hs.capture(
        model, tokenizer, TEXT, interventions=[hs.interventions.Mean(records=[record], layer=1)]
    )
    np.testing.assert_allclose(found["self"].weights(1), record["self"].weights(1), atol=1e-6)


def test_the_mean_output_is_that_of_all_queries_of_all_texts(tokenizer):
    model = tiny_model("llama")
    records = list(hs.capture_many(model, tokenizer, ["on it she ran home", "a bee"]))
    outputs = [
        layer.weights_of() @ layer.values[layer.kv_head_of]
        for layer in (record["self"].layer(0) for record in records)
    ]
    mean = np.concatenate(outputs, axis=1).mean(axis=1)
    seen = {}
    projection = model.get_submodule(records[0]["self"].layer(0).projection)
    hook = projection.register_forward_pre_hook(lambda module, args: seen.update(given=args[0]))
    found = hs.capture(
        model,
        tokenizer,
        TEXT,
        interventions=[hs.interventions.MeanOutput(records=records, layer=0, heads=[4])],
    )
    hook.remove()
    given = seen["given"].unflatten(-1, (6, -1))[0, :, 4].numpy()
    np.testing.assert_allclose(given, np.broadcast_to(mean[4], given.shape), atol=1e-6)
    assert not found["self"].weights(0, 4).any()
    assert found.verified < 1e-5


def test_other_heads_hand_on_the_same_to_the_last_bit(tokenizer):
    model, inputs = tiny_model("bert"), tokenizer(TEXT, return_tensors="pt")
    layer = hs.capture(model, tokenizer, TEXT)["self"].layer(1)
    seen = []
    hook = model.get_submodule(layer.projection).register_forward_pre_hook(
        lambda module, args: seen.append(args[0])
    )
    with torch.no_grad():
        model(**inputs)
        with hs.intervene(model, hs.Cut(layer=1, heads=1, queries=[2, 4], keys=3)):
            model(**inputs)
    hook.remove()
    intact, changed = (given.unflatten(-1, (layer.heads, -1))[0] for given in (seen[0], seen[-1]))
    assert (intact != changed).any(-1).nonzero().tolist() == [[2, 1], [4, 1]]
