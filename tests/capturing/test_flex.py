"""Attention by torch's flex_attention: as transformers calls it, and called directly."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.errors import CaptureError
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["the cat sat on a mat.", "a bee"]
pytestmark = [
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
    pytest.mark.filterwarnings("ignore:_compile flag on create_block_mask"),
]


@pytest.mark.parametrize("family", ["bert", "llama", "gemma2", "bart"])
def test_transformers_flex_attention(family):
    tokenizer = tiny_tokenizer()
    inputs = dict(tokenizer(TEXTS, return_tensors="pt", padding=True))
    if family == "bart":
        inputs["decoder_input_ids"] = tokenizer(["she ran"] * 2, return_tensors="pt")["input_ids"]
    # fewer heads than a power of two, and with bart different ones, so that keys are repeated
    model = tiny_model(family, attn_implementation="flex_attention")
    records = capture_encoded(model, tokenizer, inputs)
    assert model.config._attn_implementation == "flex_attention"
    wanted = capture_encoded(tiny_model(family, attn_implementation="eager"), tokenizer, inputs)
    for record, other in zip(records, wanted, strict=True):
        assert list(record.stacks) == list(other.stacks)
        for name, stack in other.stacks.items():
            for layer, own in zip(record[name], stack, strict=True):
                assert layer.kind == own.kind
                assert np.abs(layer.weights_of() - own.weights_of()).max() < 1e-5
                assert layer.verified < 1e-5


def test_a_mask_of_truths_is_added():
    tokenizer = tiny_tokenizer()
    ids = tokenizer(TEXTS[:1], return_tensors="pt")["input_ids"]
    mask = torch.ones(1, 1, ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    model = tiny_model("llama", attn_implementation="flex_attention")
    layer = capture_encoded(model, tokenizer, {"input_ids": ids, "attention_mask": mask})[0][
        "self"
    ].layer(0)
    assert layer.kind == "full"
    assert (layer.bias == mask[0].float().numpy()).all()


SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
DOCUMENTS = torch.tensor([0, 0, 0, 1, 1, 1, 1])


def alibi(score, batch, head, query, key):
    return score + SLOPES[head] * (key - query)


def capped(score, batch, head, query, key):
    return 2 * torch.tanh(score / 2)


def documents(batch, head, query, key):
    return (DOCUMENTS[query] == DOCUMENTS[key]) & (query >= key)


class Direct(nn.Module):
    """Four heads that share two key heads, by flex_attention."""

    def __init__(self, score_mod=None, block_mask=None):
        super().__init__()
        torch.manual_seed(3)
        self.query, self.key, self.value = nn.Linear(12, 16), nn.Linear(12, 8), nn.Linear(12, 8)
        self.out = nn.Linear(16, 12)
        self.score_mod, self.block_mask = score_mod, block_mask

    def forward(self, states):
        parts = (
            layer(states).unflatten(-1, (-1, 4)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        found = flex_attention(
            *parts, score_mod=self.score_mod, block_mask=self.block_mask, enable_gqa=True
        )
        return self.out(found.transpose(1, 2).flatten(2))


def states():
    return 3 * torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("score_mod", [None, alibi, capped])
@pytest.mark.parametrize("masked", [False, True])
def test_flex_attention_called_directly(score_mod, masked):
    block_mask = create_block_mask(documents, None, None, 7, 7, device="cpu") if masked else None
    model = Direct(score_mod, block_mask)
    with hs.watch(model, batch=2) as seen:
        model(states())
    with torch.no_grad():
        query, key = (
            layer(states()).unflatten(-1, (-1, 4)).transpose(1, 2)
            for layer in (model.query, model.key)
        )
        scores = query @ key.repeat_interleave(2, dim=1).mT / 2
    place = torch.arange(7)
    if score_mod is alibi:
        scores = scores + SLOPES[:, None, None] * (place - place[:, None])
    if score_mod is capped:
        scores = 2 * torch.tanh(scores / 2)
    if masked:
        scores = scores.masked_fill(
            ~((DOCUMENTS[:, None] == DOCUMENTS) & (place[:, None] >= place)), -torch.inf
        )
    for record, own in zip(seen.records, scores.softmax(-1).numpy(), strict=True):
        layer = record["self"].layer(0)
        assert np.abs(layer.weights_of() - own).max() < 1e-6
        assert layer.heads == 4
        assert layer.kv_heads == 2
        assert (layer.bias is None) == (score_mod is None)
        assert layer.kind == ("masked" if masked else "full")
        assert layer.projection == "out"
        assert layer.verified < 1e-5


def test_a_list_of_blocks_that_hides_more_than_the_function_is_refused():
    """A compiled kernel passes over the other blocks; uncompiled, torch does not."""
    one = torch.ones(1, 1, 2, dtype=torch.int32)
    blocks = BlockMask.from_kv_blocks(
        one, torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32), BLOCK_SIZE=(4, 4)
    )
    model = Direct(block_mask=blocks)
    with pytest.raises(CaptureError, match="whose list of blocks hides"), hs.watch(model, batch=2):
        model(torch.randn(2, 8, 12))


def test_scores_that_are_no_numbers_are_refused():
    model = Direct(lambda score, batch, head, query, key: score / (query - key))
    with pytest.raises(CaptureError, match="makes infinite scores or no numbers"):  # noqa: SIM117
        with hs.watch(model, batch=2):
            model(states())


def test_heads_can_be_changed():
    model = Direct(alibi, create_block_mask(documents, None, None, 7, 7, device="cpu"))

    def silenced(module, given):
        return (torch.cat([given[0][..., :4], torch.zeros(2, 7, 4), given[0][..., 8:]], dim=-1),)

    with torch.no_grad():
        hook = model.out.register_forward_pre_hook(silenced)
        wanted = model(states())
        hook.remove()
        with hs.intervene(model, hs.Zero(layer=0, heads=[1])):
            found = model(states())
        assert (found - wanted).abs().max() < 1e-6
        assert (model(states()) - wanted).abs().max() > 1e-3
