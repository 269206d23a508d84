"""Models that compute attention themselves: transformers' families without the interface, and hand-written ones."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.capturing._watch import Watch
from headscope.testing import tiny_model, tiny_tokenizer

TEXT = "the cat sat."
OWN = ("gptj", "bloom", "deberta-v2", "xlnet")


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("family", OWN)
def test_weights_equal_the_models_own(family, side):
    tokenizer = tiny_tokenizer()
    tokenizer.padding_side = side
    model = tiny_model(family)
    inputs = tokenizer(["a bee", TEXT], return_tensors="pt", padding=True)
    with torch.no_grad():
        own = model(**inputs, output_attentions=True).attentions
    for example, record in enumerate(capture_encoded(model, tokenizer, inputs)):
        kept = inputs["attention_mask"][example].bool().numpy()
        for layer, theirs in zip(record["self"], own, strict=True):
            assert np.abs(layer.weights - theirs[example].numpy()[:, kept][:, :, kept]).max() <= 1e-7


def test_falcon_is_what_its_own_attention_computes():
    """Its own returned weights come from another path, which changes its output too; the layer output decides."""
    record = hs.capture(tiny_model("falcon"), tiny_tokenizer(), TEXT)
    assert [layer.projection for layer in record["self"]] == [f"h.{n}.self_attention.dense" for n in range(2)]
    assert {layer.kind for layer in record["self"]} == {"causal"}
    assert record.verified < 1e-5


@pytest.mark.parametrize(("family", "kind"), [("gptj", "causal"), ("bloom", "causal"), ("deberta-v2", "full")])
def test_kind_and_projection_are_found(family, kind):
    record = hs.capture(tiny_model(family), tiny_tokenizer(), TEXT)
    assert {layer.kind for layer in record["self"]} == {kind}
    assert all(layer.projection for layer in record["self"])
    assert record.verified < 1e-5


class HandWritten(nn.Module):
    """Attention as somebody would write it, in one of several ways."""

    def __init__(self, way):
        super().__init__()
        self.way, self.heads = way, 3
        self.projections = nn.ModuleDict({name: nn.Linear(12, 12) for name in "qkvo"})

    def forward(self, states):
        q, k, v = (self.projections[name](states).unflatten(-1, (self.heads, 4)).transpose(1, 2) for name in "qkv")
        return self.projections["o"](getattr(self, self.way)(q, k, v).flatten(2))

    def matmul(self, q, k, v):
        return ((q @ k.transpose(-1, -2) / 2).softmax(-1) @ v).transpose(1, 2)

    def bmm(self, q, k, v):
        q, k, v = (tensor.flatten(0, 1) for tensor in (q, k, v))
        weights = functional.softmax(torch.bmm(q, k.transpose(1, 2)) / 2, dim=-1)
        return (
            torch.bmm(functional.dropout(weights, 0.5, training=self.training), v)
            .unflatten(0, (-1, self.heads))
            .transpose(1, 2)
        )

    def einsum(self, q, k, v):
        weights = torch.einsum("bhqd,bhkd->bhqk", q, k).div(2).softmax(dim=-1)
        return torch.einsum("bhqk,bhkd->bqhd", weights, v)

    def fused(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)


@pytest.mark.parametrize("way", ["matmul", "bmm", "einsum", "fused"])
def test_hand_written_attention_is_seen_whatever_its_way(way):
    torch.manual_seed(1)
    model, states = HandWritten(way).eval(), torch.randn(2, 5, 12)
    with torch.no_grad():
        expected = model(states)
        calls = []
        with Watch(model, batch=2, take=calls.append):
            seen = model(states)
        q, k = (model.projections[name](states).unflatten(-1, (3, 4)).transpose(1, 2) for name in "qk")
    assert torch.equal(seen, expected)
    (call,) = calls
    wanted = (q @ k.transpose(-1, -2) / 2).softmax(-1)
    found = call.weights if call.query is None else (call.query @ call.key.transpose(-1, -2) * call.scale).softmax(-1)
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)
    assert call.size == (2, 3, 5, 5)
    assert call.projection is model.projections["o"]


def test_other_products_are_not_taken_for_attention():
    class Mixing(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(4, 3)

        def forward(self, states):
            shares = self.gate(states).softmax(-1)  # a router: softmax of no product of activations
            return shares.transpose(1, 2) @ states + (states @ states.transpose(1, 2) @ states).mean()

    calls = []
    with Watch(Mixing(), batch=2, take=calls.append):
        watch_states = torch.randn(2, 5, 4)
        Mixing()(watch_states)
    assert calls == []


def test_a_model_that_uses_the_interface_is_seen_once():
    model = tiny_model("bert")
    calls = []
    with torch.no_grad(), Watch(model, batch=1, take=calls.append):
        model(torch.tensor([[1, 7, 8, 2]]))
    assert [call.route for call in calls] == ["interface", "interface"]
