"""Norms of padded, watched, failing and half-precise runs."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.record import CONTRIBUTIONS
from headscope.testing import tiny_model
from headscope.testing._made_up import made_up

from .conftest import TEXT, captured


def test_padding_changes_nothing(tokenizer):
    model = tiny_model("bert")
    batch = capture_encoded(
        model,
        tokenizer,
        tokenizer([TEXT, "a bee"], padding=True, return_tensors="pt"),
        keep="alti",
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


@pytest.mark.parametrize("family", ["bert", "falcon", "gemma2", "bart"])
def test_watching_leaves_the_model_as_it_was(family, tokenizer):
    model = tiny_model(family)
    inputs = made_up(model)
    with torch.no_grad():
        before = model(**inputs)[0]
    captured(model, inputs)
    with torch.no_grad():
        assert torch.equal(model(**inputs)[0], before)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_hooks_go_away_after_an_error(tokenizer):
    model = tiny_model("bert")
    model.encoder.layer[1].output.dense.register_forward_hook(fail)
    with pytest.raises(RuntimeError, match="planted"):
        hs.capture(model, tokenizer, TEXT, keep="alti")
    assert (
        sum(
            len(module._forward_hooks) + len(module._forward_pre_hooks)
            for module in model.modules()
        )
        == 1
    )


def fail(*_):
    raise RuntimeError("planted")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_held_to_less(dtype, tokenizer):
    exact = hs.capture(tiny_model("llama"), tokenizer, TEXT, keep="alti")["self"]
    half = hs.capture(tiny_model("llama").to(dtype), tokenizer, TEXT, keep="alti")["self"]
    np.testing.assert_allclose(
        half.layer(0).contributions.output, exact.layer(0).contributions.output, atol=0.2
    )
    assert half.layer(0).contributions.verified > exact.layer(0).contributions.verified
