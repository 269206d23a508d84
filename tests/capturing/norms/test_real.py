"""What tokens add in trained models."""

import re
from functools import cache

import numpy as np
import pytest
import torch

import headscope as hs


@cache
def real(folder):
    from headscope.capturing import load_model

    return load_model(str(folder))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("stories260K", "Once upon a time, there was a little girl."),
        ("gpt-nano-sort", "C A B B C A"),
        ("g2p-bart-us", "strawberries"),
        ("induction-2l-attn-only", None),
    ],
)
def test_real_models_sum_to_their_own_vectors(name, text, shared):
    model, tokenizer = real(shared / "models" / name)
    text = tokenizer.decode(torch.arange(5, 17).repeat(2)) if text is None else text
    record = hs.capture(model, tokenizer, text, keep="norms")
    for stack in record.stacks.values():
        for layer in stack:
            assert layer.contributions.verified < 1e-5
            assert layer.contributions.output is not None
            assert layer.contributions.expansion is not None
            assert re.search(
                r"\((LayerNorm|RMSNorm)\) of the residual stream", layer.contributions.decomposes
            )


def test_a_real_picture_model_sums_to_its_own_vectors(shared):
    from transformers import AutoImageProcessor, AutoModel

    folder = shared / "models" / "vit-mnist"
    digit = np.stack([np.load(folder / "digits.npz")["images"][0]] * 3, -1)
    model, processor = (
        AutoModel.from_pretrained(folder).eval(),
        AutoImageProcessor.from_pretrained(folder),
    )
    for layer in hs.capture(model, processor, image=digit, keep="norms")["self"]:
        # its vectors hold values of up to 48, and its own rounding in single precision is 2e-5
        assert layer.contributions.verified < 5e-5
        assert layer.contributions.output is not None


def test_minilm_sums_to_its_own_vectors(minilm):
    record = hs.capture(
        *minilm, "I went to the store.", "At the store, I bought fresh strawberries.", keep="alti"
    )
    for layer in record["self"]:
        assert layer.contributions.verified < 1e-5
        assert "(post-norm)" in layer.contributions.decomposes
        assert layer.contributions.missing == {}
