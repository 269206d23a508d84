"""Passes over many texts end with the last attention, where it is known that none comes after."""

import numpy as np
import pytest
import torch
from torch import nn

from headscope.capturing import capture_batches, equal_lengths
from headscope.record import TextBatch
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close
from .growing_model import hand_written

pytestmark = pytest.mark.usefixtures("one_thread")

SAME = ["the cat sat.", "the dog sat.", "the cow ran.", "the owl saw."] * 5
"""Of one length."""


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


def counted(module):
    """Count the passes of a module without a hook, of which there would be one more."""
    passes, forward = [], module.forward

    def counting(*args, **options):
        passes.append(1)
        return forward(*args, **options)

    module.forward = counting
    return passes


def weights_of(batches):
    return [
        np.concatenate([layer.weights.ravel() for layer in each.batch["self"].layers])
        for each in batches
    ]


def one_by_one(model, tokenizer, texts=SAME):
    """Each text in a batch of its own; all of them in one array each, not as records."""
    batches = list(capture_batches(model, tokenizer, texts, batch_size=1))
    assert all(isinstance(each.batch, TextBatch) for each in batches)
    return batches


def last_feed_forward(model):
    return model.encoder.layer[-1].intermediate


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_what_follows_the_last_attention_is_run_now_and_then(family, tokenizer, monkeypatch):
    model = tiny_model(family)
    passes, first = counted(last_feed_forward(model)), counted(model.encoder.layer[0].intermediate)
    ended = one_by_one(model, tokenizer)
    # The first of 20 passes, which found the attention, and the 17th.
    assert (len(passes), len(first)) == (2, 20)
    monkeypatch.setattr(equal_lengths, "WHOLE_PASS_EVERY", 1)
    whole = one_by_one(model, tokenizer)
    assert len(passes) == 22
    for ours, theirs in zip(weights_of(ended), weights_of(whole), strict=True):
        assert_close(ours, theirs)


def test_a_pass_over_texts_of_a_new_length_runs_to_its_end(tokenizer):
    model = tiny_model("bert")
    one_by_one(model, tokenizer, SAME[:2])
    passes = counted(last_feed_forward(model))
    one_by_one(model, tokenizer, [*SAME[:2], "a cat", "a dog"])
    # Shorter texts come first, and the first pass of a call is whole in any case.
    assert len(passes) == 1
    one_by_one(model, tokenizer, [*SAME[:2], "the cat sat by the dog", "the dog sat by the cat"])
    assert len(passes) == 3


@pytest.mark.parametrize("where", ["module", "every module"])
def test_somebody_who_listens_hears_of_every_pass(where, tokenizer):
    model, heard = tiny_model("bert"), []
    one_by_one(model, tokenizer, SAME[:2])

    def listening(module, *_):
        if module is last_feed_forward(model):
            heard.append(1)

    if where == "module":
        handle = last_feed_forward(model).register_forward_hook(listening)
    else:
        handle = nn.modules.module.register_module_forward_hook(listening)
    try:
        one_by_one(model, tokenizer)
    finally:
        handle.remove()
    assert len(heard) == len(SAME)


def test_routers_after_the_last_attention_are_run(tokenizer):
    model = tiny_model("mixtral")
    passes = counted(model.layers[-1].mlp)
    one_by_one(model, tokenizer, SAME[:4])
    assert len(passes) == 4


class ReadsMasks(nn.Module):
    """A model written by hand, which is given texts as others are."""

    def __init__(self):
        super().__init__()
        self.inner = hand_written()
        self.inner.embed = nn.Embedding(400, 8)
        self.config = self.inner.config

    def forward(self, input_ids, attention_mask=None):
        return self.inner(input_ids)


@pytest.mark.parametrize("form", ["module", "fused", "functional", "method"])
def test_attention_that_comes_after_the_last_from_now_on_is_seen(form, tokenizer):
    model = ReadsMasks().eval()
    before = one_by_one(model, tokenizer)
    assert {len(each.batch["self"].layers) for each in before} == {2}
    passes = counted(model.inner.layers[1].feed)
    one_by_one(model, tokenizer, SAME[:4])
    assert len(passes) == 1
    model.inner.layers[1].form = form
    assert {len(each.batch["self"].layers) for each in one_by_one(model, tokenizer)} == {3}


def test_a_model_is_left_as_it_was(tokenizer):
    model = tiny_model("llama")
    one_by_one(model, tokenizer)
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())
    assert torch.overrides._get_current_function_mode() is None
    ids = torch.tensor([tokenizer(SAME[0])["input_ids"]])
    assert_close(
        model(ids).last_hidden_state.detach(), tiny_model("llama")(ids).last_hidden_state.detach()
    )
