"""Norms of padded, watched, failing and half-precise runs."""

import copy

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.capturing.contributions import _build
from headscope.record import CONTRIBUTIONS
from headscope.testing import tiny_model

from .conftest import TEXT


def test_padding_changes_nothing(tokenizer):
    model = tiny_model("bert")
    batch = capture_encoded(
        model, tokenizer, tokenizer([TEXT, "a bee"], padding=True, return_tensors="pt"), keep="alti"
    )
    alone = capture_encoded(
        model, tokenizer, tokenizer(["a bee"], return_tensors="pt"), keep="alti"
    )[0]
    for padded, layer in zip(batch[1]["self"], alone["self"], strict=True):
        np.testing.assert_allclose(padded.value_norms, layer.value_norms, rtol=1e-4)
        for name in CONTRIBUTIONS:
            ours, theirs = getattr(padded.contributions, name), getattr(layer.contributions, name)
            assert (ours is None) == (theirs is None)
            if ours is not None:
                np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


TEXTS = [TEXT, "a bee", "the cat", "a dog sat. the bee sat"]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("family", ["bert", "llama", "gpt2", "gemma2"])
def test_padded_texts_of_other_lengths_are_worked_on_together(family, side, tokenizer, monkeypatch):
    """All of them in one block have the numbers that each has by itself, row by row."""
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.padding_side = side
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    model = tiny_model(family)
    together = capture_encoded(model, tokenizer, inputs, keep="alti")
    monkeypatch.setattr(_build, "BYTES_AT_ONCE", 1)
    assert_alike(together, capture_encoded(model, tokenizer, inputs, keep="alti"))


def assert_alike(records, others):
    """The norms of records are the same, to the rounding in which they are kept."""
    for record, other in zip(records, others, strict=True):
        for name, stack in record.stacks.items():
            for layer, known in zip(stack, other[name], strict=True):
                ours, theirs = layer.contributions, known.contributions
                np.testing.assert_allclose(layer.value_norms, known.value_norms, rtol=1e-5)
                assert ours.missing == theirs.missing
                # It is of the rounding of both, the pieces and the model's own vectors.
                assert ours.verified == pytest.approx(theirs.verified, rel=1e-3, abs=1e-5)
                for kind in CONTRIBUTIONS:
                    if getattr(theirs, kind) is None:
                        assert getattr(ours, kind) is None
                        continue
                    np.testing.assert_allclose(
                        getattr(ours, kind), getattr(theirs, kind), rtol=1e-5, atol=1e-6
                    )


def test_sources_and_targets_of_other_lengths_are_worked_on_together(tokenizer, monkeypatch):
    """Cross-attention, where queries and keys are filled up to lengths of their own."""
    inputs = dict(tokenizer(TEXTS, padding=True, return_tensors="pt"))
    target = tokenizer(["a dog", TEXT, "the", "a bee sat"], padding=True, return_tensors="pt")
    inputs["decoder_input_ids"] = target["input_ids"]
    inputs["decoder_attention_mask"] = target["attention_mask"]
    model = tiny_model("bart")
    together = capture_encoded(model, tokenizer, inputs, keep="alti")
    monkeypatch.setattr(_build, "BYTES_AT_ONCE", 1)
    assert_alike(together, capture_encoded(model, tokenizer, inputs, keep="alti"))
    assert together[0]["cross"].layer(0).contributions.own is not None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_held_to_less(dtype, tokenizer):
    exact = hs.capture(tiny_model("llama"), tokenizer, TEXT, keep="alti")["self"]
    half = hs.capture(tiny_model("llama").to(dtype), tokenizer, TEXT, keep="alti")["self"]
    np.testing.assert_allclose(
        half.layer(0).contributions.output, exact.layer(0).contributions.output, atol=0.2
    )
    assert half.layer(0).contributions.verified > exact.layer(0).contributions.verified
