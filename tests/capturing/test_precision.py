"""What the caller's settings of precision leave alone, and what they widen."""

import copy

import numpy as np
import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import headscope as hs
from headscope.capturing.device import full_precision
from headscope.errors import CaptureError
from headscope.record import Layer
from headscope.testing import tiny_model, tiny_tokenizer

TEXT = "the cat sat on the mat and slept"


@pytest.fixture(params=["highest", "high", "medium"])
def float32(request):
    torch.set_float32_matmul_precision(request.param)
    yield request.param
    torch.set_float32_matmul_precision("highest")


def autocast():
    return torch.autocast("cpu", torch.bfloat16)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("family", ["bert", "llama", "gpt2", "t5"])
def test_under_autocast_our_own_products_are_not_rounded(family, implementation):
    model = tiny_model(family)
    if family != "t5":
        model.set_attn_implementation(implementation)
    with autocast():
        record = hs.capture(
            model, tiny_tokenizer(), TEXT, keep=("weights", "qk", "values", "statistics")
        )
    # bfloat16 has 8 bits; eager BERT and GPT-2 round their scores and weights to them.
    is_rounded = implementation == "eager" and family in ("bert", "gpt2")
    within, apart = (2**-8, 2**-5) if is_rounded else (1e-5, 1e-5)
    for stack in record.stacks.values():
        for layer in stack:
            weights = layer.weights
            np.testing.assert_allclose(weights.sum(-1), 1, atol=within)
            received = weights.sum(1) / len(stack.query)
            np.testing.assert_allclose(layer.statistics.received, received, atol=1e-6)
            if layer.queries is not None:
                bare = Layer(
                    layer=0,
                    queries=layer.queries,
                    keys=layer.keys,
                    scale=layer.scale,
                    bias=layer.bias,
                    visible=layer.visible,
                )
                np.testing.assert_allclose(bare.weights_of(), weights, atol=apart)


@pytest.mark.parametrize("keep", [("weights", "statistics"), "auto"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("family", ["bert", "llama"])
def test_eager_weights_in_half_precision_are_the_models_own(family, dtype, keep):
    model, tokenizer = copy.deepcopy(tiny_model(family)).to(dtype), tiny_tokenizer()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = model(**tokenizer(TEXT, return_tensors="pt"), output_attentions=True).attentions
    record = hs.capture(model, tokenizer, TEXT, keep=keep)
    of_scores = hs.capture(model, tokenizer, TEXT, keep="qk")["self"]
    for layer, bare, returned in zip(record["self"], of_scores, theirs, strict=True):
        own = returned[0].float().numpy()
        # docs/capturing.md says so
        within = 0.03 if dtype is torch.bfloat16 else 0.004
        np.testing.assert_allclose(bare.weights_of(), own, atol=within)
        np.testing.assert_allclose(layer.weights_of(), own, atol=1e-6)
        if layer.statistics is not None:
            np.testing.assert_allclose(layer.statistics.largest, own.max(-1), atol=1e-6)


def test_a_record_names_the_autocast_it_was_made_under():
    model, tokenizer = tiny_model("gpt2"), tiny_tokenizer()
    with autocast():
        under = hs.capture(model, tokenizer, "the cat sat on it.")
    plain = hs.capture(model, tokenizer, "the cat sat on it.")
    assert "float32, autocast bfloat16" in under.model.ran
    assert "autocast" not in plain.model.ran


def test_settings_are_off_inside_and_come_back(float32):
    a, b = torch.randn(8, 8), torch.randn(8, 8)
    products = torch.backends.mkldnn.matmul, torch.backends.cuda.matmul
    before = [each.fp32_precision for each in products]
    with autocast():
        with full_precision():
            assert (a @ b).dtype == torch.float32
            with full_precision():
                pass
            assert {each.fp32_precision for each in products} <= {"ieee", "none"}
        assert (a @ b).dtype == torch.bfloat16
    assert torch.get_float32_matmul_precision() == float32
    assert [each.fp32_precision for each in products] == before


def rounded_to(bits):
    """sdpa of float32 whose factors have so many bits, as those of TF32 on a GPU."""
    sdpa = torch.nn.functional.scaled_dot_product_attention

    def rounded(tensor):
        whole = tensor.view(torch.int32)
        return ((whole + (1 << (22 - bits))) & -(1 << (23 - bits))).view(torch.float32)

    return lambda *tensors, **options: sdpa(*map(rounded, tensors), **options)


def test_what_was_computed_in_tf32_is_captured_where_that_is_set(monkeypatch):
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", rounded_to(10))
    with pytest.raises(CaptureError, match="is refused"):
        hs.capture(model, tokenizer, TEXT)
    torch.set_float32_matmul_precision("high")
    try:
        record = hs.capture(model, tokenizer, TEXT)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert record.verified / record["self"].layers[0].verified_limit > 1e-4


def ignoring_caps(module, *tensors, **options):
    """sdpa of transformers 5.1 to 5.17, which is given a soft cap and does not apply it."""
    options.pop("softcap", None)
    return sdpa_attention_forward(module, *tensors, **options)


def sharp_gemma(dtype):
    torch.manual_seed(0)
    model = copy.deepcopy(tiny_model("gemma2"))
    for layer in model.layers:
        # Scores of about 10 are capped a little: by less than a check in bfloat16 sees.
        torch.nn.init.normal_(layer.self_attn.q_proj.weight, std=0.6)
    model.config.attn_logit_softcapping = 20.0
    for layer in model.layers:
        layer.self_attn.attn_logit_softcapping = 20.0
    return model.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_soft_cap_that_sdpa_ignores_is_not_in_the_weights(dtype, monkeypatch):
    model, tokenizer = sharp_gemma(dtype), tiny_tokenizer()
    capped = hs.capture(model, tokenizer, TEXT)
    monkeypatch.setattr(type(model), "_supports_sdpa", True)
    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "sdpa", ignoring_caps)
    model.set_attn_implementation("sdpa")
    found = hs.capture(model, tokenizer, TEXT)
    assert [layer.soft_cap for layer in capped["self"]] == [20.0, 20.0]
    for layer in found["self"]:
        assert layer.soft_cap is None
        bare = layer.queries @ layer.keys[layer.kv_head_of].swapaxes(1, 2)
        scores = np.where(layer.visible.dense(), bare * layer.scale, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        np.testing.assert_allclose(layer.weights_of(), weights, atol=1e-5)


def test_an_implementation_that_may_ignore_a_soft_cap_is_refused(monkeypatch):
    model = sharp_gemma(torch.bfloat16)
    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "mine", ignoring_caps)
    model.set_attn_implementation("mine")
    with pytest.raises(CaptureError, match=r"'mine' is given a soft cap of 20 .*'eager'"):
        hs.capture(model, tiny_tokenizer(), TEXT)


def sharpened(module, query, key, value, mask, scaling, **options):
    """Eager attention whose scores are three times what it was asked for."""
    shared = query.shape[1] // key.shape[1]
    key, value = (each.repeat_interleave(shared, 1) for each in (key, value))
    weights = (3 * scaling * query @ key.transpose(-1, -2)).softmax(-1)
    return (weights @ value).transpose(1, 2), weights


def test_queries_and_keys_from_which_rounded_weights_do_not_follow_are_not_kept(monkeypatch):
    model = copy.deepcopy(tiny_model("bert"))
    for layer in model.encoder.layer:
        torch.nn.init.normal_(layer.attention.self.query.weight, std=0.6)
    model = model.to(torch.bfloat16)
    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "mine", sharpened)
    model.set_attn_implementation("mine")
    for layer in hs.capture(model, tiny_tokenizer(), TEXT)["self"]:
        assert layer.weights is not None
        assert layer.queries is None
