"""Weights that are kept without queries and keys are those that are kept with them."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.testing import tiny_model

from ..close import assert_close

TEXTS = ["the cat sat.", "a dog, it ran to the store"]
FAMILIES = ("bert", "gpt2", "llama", "bart", "t5", "bloom", "deberta-v2")


def records_of(model, tokenizer, keep, **options):
    encoding = tokenizer(TEXTS, return_tensors="pt", padding=True)
    encoding.pop("token_type_ids", None)
    if model.config.is_encoder_decoder:
        encoding["decoder_input_ids"] = tokenizer(
            ["she ran home"] * len(TEXTS), return_tensors="pt"
        )["input_ids"]
    return capture_encoded(model, tokenizer, encoding, keep=keep, **options)


@pytest.mark.parametrize(
    ("family", "precision"), [*((family, "float32") for family in FAMILIES), ("bert", "float16")]
)
def test_they_are_those_that_are_kept_with_queries_and_keys(family, precision, tokenizer):
    model = tiny_model(family)
    alone = records_of(model, tokenizer, "weights", precision=precision)
    together = records_of(model, tokenizer, ["weights", "qk"], precision=precision)
    assert len(alone) == len(together) == len(TEXTS)
    for one, other in zip(alone, together, strict=True):
        assert list(one.stacks) == list(other.stacks)
        for name, stack in one.stacks.items():
            for layer, same in zip(stack, other[name], strict=True):
                assert layer.queries is None
                assert_close(layer.weights, same.weights)
                assert layer.weights.dtype == precision


@pytest.mark.parametrize("which", ["query", "key"])
def test_what_a_model_writes_over_them_afterwards_changes_nothing(which, tokenizer):
    model = tiny_model("bert")
    made = []
    part = model.encoder.layer[0].attention.self
    hooks = [
        getattr(part, which).register_forward_hook(lambda *given: made.append(given[2])),
        model.pooler.register_forward_pre_hook(lambda *_: made[0].mul_(2)),
    ]
    records = records_of(model, tokenizer, "weights")
    for hook in hooks:
        hook.remove()
    assert len(made) == 1
    intact = records_of(model, tokenizer, "weights")
    assert_close(records[1]["self"].weights(layer=0), intact[1]["self"].weights(layer=0))


def test_no_gradient_is_kept_of_a_model_in_a_block(tokenizer):
    model, text = tiny_model("gpt_oss"), TEXTS[0]  # its sinks are parameters
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    with hs.watch(model, tokenizer.convert_ids_to_tokens(ids[0]), keep="weights") as seen:
        model(ids)
    expected = hs.capture(model, tokenizer, text, keep=["weights", "qk"])
    for layer, same in zip(
        next(iter(seen.record.stacks.values())), next(iter(expected.stacks.values())), strict=True
    ):
        np.testing.assert_allclose(layer.weights, same.weights, atol=1e-6)
    assert torch.is_grad_enabled()
