"""Models that compute attention themselves: transformers' families without the interface, and
hand-written ones.
"""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.capturing.building._build import Builder
from headscope.capturing.calls.attention import difference, recomputed, weights_of
from headscope.capturing.calls.call import visibility_of
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import KeepChoice
from headscope.capturing.watching._watch import Watch
from headscope.record import ModelFacts, Tokens
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

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
            assert (
                np.abs(layer.weights - theirs[example].numpy()[:, kept][:, :, kept]).max() <= 1e-6
            )


def test_falcon_is_what_its_own_attention_computes():
    """Its own returned weights come from another path, which changes its output too; the layer
    output decides.
    """
    record = hs.capture(tiny_model("falcon"), tiny_tokenizer(), TEXT)
    assert [layer.projection for layer in record["self"]] == [
        f"h.{n}.self_attention.dense" for n in range(2)
    ]
    assert {layer.kind for layer in record["self"]} == {"causal"}
    assert record.verified < 1e-5


@pytest.mark.parametrize(
    ("family", "kind"), [("gptj", "causal"), ("bloom", "causal"), ("deberta-v2", "full")]
)
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
        q, k, v = (
            self.projections[name](states).unflatten(-1, (self.heads, 4)).transpose(1, 2)
            for name in "qkv"
        )
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
        q, k = (
            model.projections[name](states).unflatten(-1, (3, 4)).transpose(1, 2) for name in "qk"
        )
    assert_close(seen, expected)
    (call,) = calls
    wanted = (q @ k.transpose(-1, -2) / 2).softmax(-1)
    for found in (call.weights, (call.query @ call.key.transpose(-1, -2) * call.scale).softmax(-1)):
        if found is not None:
            torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)
    assert (call.weights is None) == (way == "fused")
    assert call.size == (2, 3, 5, 5)
    assert call.projection is model.projections["o"]


def test_other_products_are_not_taken_for_attention():
    class Mixing(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(4, 3)

        def forward(self, states):
            shares = self.gate(states).softmax(-1)  # a router: softmax of no product of activations
            return (
                shares.transpose(1, 2) @ states + (states @ states.transpose(1, 2) @ states).mean()
            )

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


class Scored(nn.Module):
    """One attention whose scores are made by a chain of operations of the test's choice."""

    def __init__(self, chain):
        super().__init__()
        self.chain = chain
        self.query, self.key, self.value = (nn.Linear(12, 12) for _ in "qkv")
        self.o = nn.Linear(12, 12)

    def forward(self, states):
        q, k, v = (
            part(states).unflatten(-1, (3, 4)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        weights = self.chain(q @ k.transpose(-1, -2)).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).flatten(2))


SLOPES = (
    torch.tensor([0.5, 0.25, 0.125])[:, None, None]
    * -torch.arange(5).sub(torch.arange(5)[:, None]).abs()
)
FUTURE = torch.ones(5, 5, dtype=torch.bool).triu(1)
CHAINS = {
    "over": (lambda s: s / 2, 0.5, False, "full"),
    "times a tensor": (lambda s: torch.tensor(0.25) * s, 0.25, False, "full"),
    "in place": (lambda s: s.mul_(0.5).div_(2.0), 0.25, False, "full"),
    "alibi": (lambda s: s * 0.5 + SLOPES, 0.5, True, "full"),
    "capped": (lambda s: 3 * torch.tanh(s / 3), 1.0, True, "full"),
    "causal": (lambda s: (s / 2).masked_fill(FUTURE, -torch.inf), 0.5, False, "causal"),
    "lowest": (lambda s: s / 2 + FUTURE * torch.finfo(s.dtype).min, 0.5, False, "causal"),
    "minus ten thousand": (lambda s: s / 2 - 1e4 * FUTURE, 0.5, False, "causal"),
    "put in place": (
        lambda s: torch.where(FUTURE, torch.tensor(-1e4), s / 2),
        0.5,
        False,
        "causal",
    ),
    "everything": (
        lambda s: (s * 0.5 + SLOPES).masked_fill(FUTURE, -1e9).to(torch.float64).float(),
        0.5,
        True,
        "causal",
    ),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_scores_follow_from_queries_and_keys_whatever_was_done_to_them(chain):
    """Through a whole record: the weights recomputed from what was kept are the model's own."""
    torch.manual_seed(2)
    change, scale, biased, kind = CHAINS[chain]
    model, states, layers = Scored(change).eval(), torch.randn(2, 5, 12), []
    with torch.no_grad(), Watch(model, batch=2, take=lambda call: layers.append(layer_of(call))):
        model(states)
    (layer,) = layers
    assert (layer.bias is not None, layer.kind) == (biased, kind)
    if chain != "capped":
        assert layer.scale == pytest.approx(scale)
    lean = dataclasses.replace(layer, weights=None)
    np.testing.assert_allclose(lean.weights_of(), layer.weights, atol=2e-6)


def layer_of(call):
    """The layer of the first example of a call."""
    tokens = Tokens(pieces=("t",) * call.size[2])
    builder = Builder(Inputs({}, (tokens, tokens)), KeepChoice(), call.module)
    builder.take(call)
    builder.complete()
    return builder.records(ModelFacts())[0]["self"].layers[0]


@pytest.mark.parametrize("mask", ["none", "boolean", "float", "padding", "per head", "both"])
@pytest.mark.parametrize("other", ["itself", "another", "other sizes"])
def test_multi_head_attention_of_torch_is_seen(mask, other):
    torch.manual_seed(3)
    sizes = {"kdim": 7, "vdim": 9} if other == "other sizes" else {}
    model = nn.MultiheadAttention(12, 3, batch_first=True, **sizes).eval()
    query = torch.randn(2, 5, 12)
    key = query if other == "itself" else torch.randn(2, 6, sizes.get("kdim", 12))
    value = torch.randn(2, 6, 9) if sizes else key
    hidden = torch.rand(5, key.shape[1]) < 0.3
    hidden[:, 0] = False
    padding = torch.zeros(2, key.shape[1], dtype=torch.bool)
    padding[1, -2:] = True
    masks = {
        "boolean": {"attn_mask": hidden},
        "float": {"attn_mask": torch.randn(5, key.shape[1])},
        "padding": {"key_padding_mask": padding},
        "per head": {"attn_mask": torch.randn(6, 5, key.shape[1])},
        "both": {"attn_mask": hidden, "key_padding_mask": padding},
    }.get(mask, {})
    calls = []
    with torch.no_grad():
        expected, own = model(query, key, value, average_attn_weights=False, **masks)
        with Watch(model, batch=2, take=calls.append):
            seen = model(query, key, value, need_weights=False, **masks)[0]
    torch.testing.assert_close(seen, expected, atol=1e-6, rtol=0)
    (call,) = calls
    assert call.projection is model.out_proj
    assert call.cross == (other != "itself")
    visibility = visibility_of(call)
    torch.testing.assert_close(weights_of(call, visibility), own, atol=1e-6, rtol=0)
    torch.testing.assert_close(recomputed(call, visibility), own, atol=1e-6, rtol=0)
    worst, largest = difference(call, own)
    assert worst.shape == largest.shape == (2,)
    assert worst.max() < 1e-5 < largest.min()


@pytest.mark.parametrize("padded", [False, True])
def test_an_encoder_of_torch_is_seen_layer_by_layer(padded):
    """Its fused path, which hides everything, is not taken while it is watched."""
    layer = nn.TransformerEncoderLayer(12, 2, 16, batch_first=True)
    model, calls = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), []
    states, padding = torch.randn(2, 5, 12), torch.zeros(2, 5, dtype=torch.bool)
    padding[1, 3:] = True
    options = {"src_key_padding_mask": padding} if padded else {}
    with torch.no_grad():
        expected = model(states, **options)
        with Watch(model, batch=2, take=calls.append):
            seen = model(states, **options)
    real = ~padding if padded else torch.ones_like(padding)
    torch.testing.assert_close(seen[real], expected[real], atol=1e-5, rtol=0)
    assert [call.name for call in calls] == ["layers.0.self_attn", "layers.1.self_attn"]


def test_inference_mode_changes_no_weight():
    model, tokenizer = tiny_model("bloom"), tiny_tokenizer()  # a bias is added to its scores
    wanted = hs.capture(model, tokenizer, "the cat sat")["self"].weights(1)
    with torch.inference_mode():
        found = hs.capture(model, tokenizer, "the cat sat")["self"].weights(1)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
