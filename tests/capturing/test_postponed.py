"""With weights alone kept, they are written once the model has run, and are those that are written
at once.
"""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope import CaptureError
from headscope.capturing import capture_encoded
from headscope.capturing.building import _weights
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["the cat sat.", "a dog, it ran to the store"]
FAMILIES = ("bert", "gpt2", "llama", "bart", "t5", "bloom", "deberta-v2")


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


def records_of(model, tokenizer, keep, **options):
    encoding = tokenizer(TEXTS, return_tensors="pt", padding=True)
    encoding.pop("token_type_ids", None)
    if model.config.is_encoder_decoder:
        encoding["decoder_input_ids"] = tokenizer(
            ["she ran home"] * len(TEXTS), return_tensors="pt"
        )["input_ids"]
    return capture_encoded(model, tokenizer, encoding, keep=keep, **options)


@pytest.fixture
def order(monkeypatch):
    """When the model had run, and when the weights of a layer were written."""
    seen, real = [], _weights.fill_weights

    def fill_weights(*given, **options):
        seen.append("weights")
        return real(*given, **options)

    monkeypatch.setattr(_weights, "fill_weights", fill_weights)
    return seen


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_they_are_those_that_are_written_at_once(family, precision, tokenizer):
    model = tiny_model(family)
    later = records_of(model, tokenizer, "weights", precision=precision)
    at_once = records_of(model, tokenizer, ["weights", "qk"], precision=precision)
    assert len(later) == len(at_once) == len(TEXTS)
    for one, other in zip(later, at_once, strict=True):
        assert list(one.stacks) == list(other.stacks)
        for name, stack in one.stacks.items():
            for layer, same in zip(stack, other[name], strict=True):
                assert layer.queries is None
                np.testing.assert_array_equal(layer.weights, same.weights)
                assert layer.weights.dtype == precision


def test_they_are_written_when_the_model_has_run(order, tokenizer):
    model = tiny_model("bert")
    with_hook = model.register_forward_hook(lambda *_: order.append("run"))
    records_of(model, tokenizer, "weights")
    layers = model.config.num_hidden_layers
    assert order == ["run"] + ["weights"] * layers
    order.clear()
    records_of(model, tokenizer, ["weights", "qk"])
    assert order == ["weights"] * layers + ["run"]
    with_hook.remove()


def test_nothing_is_held_longer_where_more_than_queries_and_keys_would_be(order, tokenizer):
    model = tiny_model("t5")  # a bias of every head
    with_hook = model.register_forward_hook(lambda *_: order.append("run"))
    records_of(model, tokenizer, "weights")
    assert order[-1] == "run"
    assert "weights" in order
    with_hook.remove()


@pytest.mark.parametrize("which", ["query", "key"])
def test_a_model_that_writes_over_them_is_refused(which, tokenizer):
    model = tiny_model("bert")
    made = []
    part = model.encoder.layer[0].attention.self
    hooks = [
        getattr(part, which).register_forward_hook(lambda *given: made.append(given[2])),
        model.pooler.register_forward_pre_hook(lambda *_: made[0].mul_(2)),
    ]
    with pytest.raises(
        CaptureError,
        match=r"encoder.layer.0.attention.self: the model wrote over its queries or keys",
    ):
        records_of(model, tokenizer, "weights")
    made.clear()
    records = records_of(model, tokenizer, ["weights", "qk"])
    for hook in hooks:
        hook.remove()
    intact = records_of(model, tokenizer, "weights")
    np.testing.assert_array_equal(
        records[1]["self"].weights(layer=0), intact[1]["self"].weights(layer=0)
    )


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
