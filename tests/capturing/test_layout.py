"""Models that hold their heads before the texts of a batch: captured right, or refused."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from transformers import PretrainedConfig, PreTrainedModel

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.errors import CaptureError, InterventionError
from headscope.record import Layer
from headscope.testing import tiny_tokenizer

BATCH, TOKENS, WIDTH = 3, 5, 11


class Attention(nn.Module):
    """Attention of several heads of 4 features, in one of several ways."""

    def __init__(self, way, heads, *, has_output=True):
        super().__init__()
        self.way, self.heads = way, heads
        self.query, self.key, self.value = (nn.Linear(WIDTH, 4 * heads) for _ in "qkv")
        self.output = nn.Linear(4 * heads, WIDTH) if has_output else nn.Identity()

    def forward(self, states):
        made = [
            part(states).unflatten(-1, (self.heads, 4))
            for part in (self.query, self.key, self.value)
        ]
        return self.output(getattr(self, self.way)(*made).flatten(2))

    def folded(self, *made):
        """Heads before texts, in one axis."""
        query, key, value = (tensor.permute(2, 0, 1, 3).flatten(0, 1) for tensor in made)
        weights = (torch.bmm(query, key.transpose(1, 2)) / 2).softmax(-1)
        return torch.bmm(weights, value).unflatten(0, (self.heads, -1)).permute(1, 2, 0, 3)

    def fused(self, *made):
        query, key, value = (tensor.permute(2, 0, 1, 3) for tensor in made)
        return functional.scaled_dot_product_attention(query, key, value).permute(1, 2, 0, 3)

    def fused_folded(self, *made):
        query, key, value = (tensor.permute(2, 0, 1, 3).flatten(0, 1) for tensor in made)
        hidden = torch.ones(len(query), TOKENS, TOKENS, dtype=torch.bool).tril()
        found = functional.scaled_dot_product_attention(query, key, value, attn_mask=hidden)
        return found.unflatten(0, (self.heads, -1)).permute(1, 2, 0, 3)

    def einsum(self, query, key, value):
        weights = (torch.einsum("bqhd,bkhd->hbqk", query, key) / 2).softmax(-1)
        return torch.einsum("hbqk,bkhd->bqhd", weights, value)

    def texts_first(self, *made):
        query, key, value = (tensor.transpose(1, 2).flatten(0, 1) for tensor in made)
        weights = (torch.bmm(query, key.transpose(1, 2)) / 2).softmax(-1)
        return torch.bmm(weights, value).unflatten(0, (-1, self.heads)).transpose(1, 2)

    def wanted(self, states):
        """Weights ``[batch head query key]``."""
        query, key = (
            part(states).unflatten(-1, (self.heads, 4)).transpose(1, 2)
            for part in (self.query, self.key)
        )
        scores = query @ key.transpose(-1, -2) / 2
        if self.way == "fused_folded":
            scores = scores.masked_fill(
                torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1), -torch.inf
            )
        return scores.softmax(-1)


WAYS = ["folded", "fused", "fused_folded", "einsum", "texts_first"]


def attention(way, heads, **options):
    torch.manual_seed(heads)
    model = Attention(way, heads, **options).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model, torch.randn(BATCH, TOKENS, WIDTH)


@pytest.mark.parametrize("heads", [2, BATCH, 4])
@pytest.mark.parametrize("way", WAYS)
@torch.no_grad()
def test_each_text_of_a_batch_has_its_own_weights(way, heads):
    """Also where there are as many heads as texts, so that sizes do not show which axis is
    which.
    """
    model, states = attention(way, heads)
    with hs.watch(model, batch=BATCH) as seen:
        model(states)
    for record, wanted in zip(seen.records, model.wanted(states), strict=True):
        (layer,) = record["self"]
        np.testing.assert_allclose(layer.weights_of(), wanted.numpy(), atol=1e-5)
        assert layer.projection == "output"
        again = Layer(
            layer=0,
            queries=layer.queries,
            keys=layer.keys,
            scale=layer.scale,
            visible=layer.visible,
        )
        np.testing.assert_allclose(again.weights_of(), wanted.numpy(), atol=1e-5)
        assert layer.kind == ("causal" if way == "fused_folded" else "full")


@pytest.mark.parametrize("way", ["folded", "fused", "einsum", "texts_first"])
@torch.no_grad()
def test_a_batch_whose_order_nothing_proves_is_refused(way):
    model, states = attention(way, BATCH, has_output=False)
    with (
        pytest.raises(CaptureError, match="nothing shows which rows are heads"),
        hs.watch(model, batch=BATCH),
    ):
        model(states)
    if way in ("fused", "einsum"):  # three windows of one head would look the same
        with pytest.raises(CaptureError, match="on 3 rows where hs.watch was"), hs.watch(model):
            model(states[:1])
    else:
        with hs.watch(model) as seen:
            model(states[:1])
        np.testing.assert_allclose(
            seen.record["self"].weights(0), model.wanted(states)[0].numpy(), atol=1e-5
        )


@torch.no_grad()
def test_values_of_nothing_prove_no_order():
    model, states = attention("folded", 2)
    nn.init.zeros_(model.value.weight)
    nn.init.zeros_(model.value.bias)
    with (
        pytest.raises(CaptureError, match="nothing shows which rows are heads"),
        hs.watch(model, batch=BATCH),
    ):
        model(states)


@pytest.mark.parametrize("way", WAYS)
@torch.no_grad()
def test_a_head_is_silenced_in_every_text_or_the_change_is_refused(way):
    model, states = attention(way, BATCH)
    wanted = silenced(model, states)
    session = hs.intervene(model, hs.Zero(layer=0, heads=[1]))
    if way == "texts_first":
        with session:
            torch.testing.assert_close(model(states), wanted, rtol=1e-5, atol=1e-4)
    else:
        with pytest.raises(InterventionError, match="puts its heads before the texts"), session:
            model(states)
    if "folded" in way or way == "texts_first":
        with hs.intervene(model, hs.Zero(layer=0, heads=[1])):
            torch.testing.assert_close(model(states[:1]), wanted[:1], rtol=1e-5, atol=1e-4)


def silenced(model, states):
    """What the model gives without what head 1 hands on."""

    def silence(_, args):
        given = args[0].clone()
        given[..., 4:8] = 0
        return (given,)

    hook = model.output.register_forward_pre_hook(silence)
    found = model(states)
    hook.remove()
    return found


class Small(PreTrainedModel):
    """A model of transformers with an attention of its own, whose contexts are normalised before
    they are projected.
    """

    config_class = PretrainedConfig
    main_input_name = "input_ids"

    def __init__(self, way):
        super().__init__(PretrainedConfig(vocab_size=64))
        self.embedding = nn.Embedding(64, WIDTH)
        self.attention = Attention(way, BATCH, has_output=False)
        self.norm = nn.LayerNorm(4 * BATCH)

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None):
        return (self.norm(self.attention(self.embedding(input_ids))),)


def small(way):
    torch.manual_seed(8)
    model = Small(way).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model, tiny_tokenizer()


TEXTS = ["the cat", "dog ran", "who ate"]


@pytest.mark.parametrize("way", ["folded", "texts_first", "fused"])
def test_many_texts_have_the_weights_that_each_has_alone(way):
    """Where no projection proves the order, each text is run alone."""
    model, tokenizer = small(way)
    if way == "fused":  # one text alone looks like windows of one head
        with pytest.warns(UserWarning, match="input 0 .from 0. was left out"):
            assert not list(hs.capture_many(model, tokenizer, TEXTS[:1]))
        return
    for text, record in zip(TEXTS, hs.capture_many(model, tokenizer, TEXTS), strict=True):
        ids = torch.tensor([record["self"].query.ids])
        wanted = model.attention.wanted(model.embedding(ids))[0].detach().numpy()
        np.testing.assert_allclose(record["self"].weights(0), wanted, atol=1e-5)
        assert record.texts == (text,)


@pytest.mark.parametrize("way", ["folded", "texts_first"])
def test_a_batch_whose_order_no_projection_proves_is_refused_as_a_whole(way):
    model, tokenizer = small(way)
    encoding = tokenizer(TEXTS, return_tensors="pt", padding=True)
    with pytest.raises(CaptureError, match="nothing shows .* capture one text at a time"):
        capture_encoded(model, tokenizer, encoding)
