"""What varies between architectures is data in the record, read off the numbers."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.errors import CaptureError, RecordError
from headscope.testing import tiny_model, tiny_tokenizer
from headscope.testing._made_up import made_up

from ..close import assert_close

TEXT = "the cat sat. a dog, it ran"


@pytest.mark.parametrize(
    ("family", "style", "turned", "width"),
    [
        ("llama", "halves", 8, 8),
        ("gptj", "neighbours", 4, 8),
        ("gpt_neox", "halves", 2, 8),
        ("esm", "halves", 8, 8),
        ("roformer", "neighbours", 12, 12),
        ("modernbert", "halves", 8, 8),
        ("cohere", "neighbours", 8, 8),
        ("phi", "halves", 6, 12),
        ("falcon", "halves", 8, 8),
    ],
)
def test_rotations_are_found(family, style, turned, width, tokenizer):
    record = hs.capture(tiny_model(family), tokenizer, TEXT)
    assert record.model.positions == "rotary"
    for layer in record["self"]:
        assert (layer.rotary.style, 2 * len(layer.rotary.frequencies)) == (style, turned)
        assert layer.queries.shape[2] == width
        assert layer.rotary.frequencies[0] == pytest.approx(1.0, abs=1e-5)


def test_queries_before_positions_are_what_the_projection_gave(tokenizer):
    model, given = tiny_model("llama"), {}
    for name in ("q", "k"):
        getattr(model.layers[1].self_attn, f"{name}_proj").register_forward_hook(
            lambda _, __, output, name=name: given.update({name: output})
        )
    layer = hs.capture(model, tokenizer, TEXT)["self"].layer(1)
    for name, found in zip(given, layer.before_positions(), strict=True):
        wanted = given[name][0].unflatten(-1, (-1, 8)).transpose(0, 1)
        np.testing.assert_allclose(found, wanted.numpy(), atol=2e-5)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("told", [False, True])
def test_rotations_are_those_of_each_padded_text(side, told):
    model, tokenizer, given = tiny_model("llama"), tiny_tokenizer(), {}
    tokenizer.padding_side = side
    for name in ("q", "k"):
        getattr(model.layers[1].self_attn, f"{name}_proj").register_forward_hook(
            lambda _, __, output, name=name: given.update({name: output})
        )
    inputs = tokenizer(["a bee", TEXT], padding=True, return_tensors="pt")
    inputs.pop("token_type_ids", None)
    if told:
        inputs["position_ids"] = (inputs["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    places = []
    for example, record in enumerate(capture_encoded(model, tokenizer, inputs)):
        layer, real = record["self"].layer(1), inputs["attention_mask"][example].bool()
        places.append(layer.rotary.first)
        for name, found in zip(given, layer.before_positions(), strict=True):
            wanted = given[name][example, real].unflatten(-1, (-1, 8)).transpose(0, 1)
            np.testing.assert_allclose(found, wanted.numpy(), atol=5e-5)
    moved = int((inputs["attention_mask"][0] == 0).sum()) if side == "left" and not told else 0
    assert places == [moved, 0]


@pytest.mark.parametrize("family", ["qwen3", "persimmon"])
@pytest.mark.parametrize("tokens", range(2, 8))
def test_tokens_are_not_taken_for_heads_where_there_are_as_many(family, tokens):
    """Norms of queries work on ``[batch token head feature]``."""
    model = tiny_model(family)
    ids = torch.arange(5, 5 + tokens)[None]
    (record,) = capture_encoded(model, None, ids, keep=("qk", "before"))
    for layer in record["self"]:
        for after, before in (
            (layer.queries, layer.queries_before),
            (layer.keys, layer.keys_before),
        ):
            np.testing.assert_allclose(layer.rotary.turned(after, back=True), before, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", ["llama", "gptj", "qwen3"])
def test_rotations_are_found_in_half_precision(family, dtype, tokenizer):
    layer = hs.capture(tiny_model(family).to(dtype), tokenizer, TEXT, keep=("qk", "before"))[
        "self"
    ].layer(1)
    assert layer.rotary.first == 0
    difference = np.abs(layer.rotary.turned(layer.queries, back=True) - layer.queries_before).max()
    assert difference < 2e-2 * np.abs(layer.queries).max()


@pytest.mark.parametrize(
    ("family", "stack"),
    [
        ("dinov3_vit", "self"),
        ("qwen2_vl", "text"),
        ("qwen2_vl", "vision"),
        ("qwen2_5_vl", "vision"),
    ],
)
def test_queries_are_kept_on_request_where_positions_are_no_line(family, stack, tmp_path):
    model = tiny_model(family)
    arguments = made_up(model)
    for record in run_on(model, arguments, "qk"):
        with pytest.raises(RecordError, match="did not turn its queries and keys by one angle for"):
            record[stack].layer(0).before_positions()
    records = run_on(model, arguments, "qk", "before")
    for record in (records[0], hs.load(hs.save(records[0], tmp_path / "run.safetensors"))):
        layer = record[stack].layer(0)
        assert layer.rotary is None
        for before, after in zip(
            layer.before_positions(), (layer.queries, layer.keys), strict=True
        ):
            lengths, turned = (np.linalg.norm(array, axis=-1) for array in (before, after))
            np.testing.assert_allclose(
                lengths, turned, rtol=1e-4
            )  # positions turn, and do nothing else
            assert np.abs(before - after).max() > 0.01


def test_queries_before_positions_are_those_of_the_projection_where_they_are_no_line():
    model, given = tiny_model("dinov3_vit"), {}
    attention = model.model.layer[1].attention
    for name in ("q", "k"):
        getattr(attention, f"{name}_proj").register_forward_hook(
            lambda *seen, name=name: given.update({name: seen[2]})
        )
    layer = run_on(model, made_up(model), "qk", "before")[1]["self"].layer(1)
    for name, found in zip(given, layer.before_positions(), strict=True):
        assert_close(found, given[name][1].unflatten(-1, (layer.heads, -1)).transpose(0, 1).numpy())


def test_a_norm_of_what_was_turned_is_not_taken_for_what_it_was_before(tokenizer):
    layer = hs.capture(tiny_model("hunyuan_v1_dense"), tokenizer, TEXT)["self"].layer(0)
    with pytest.raises(RecordError, match="what made its queries and keys was not seen"):
        layer.before_positions()


def test_cross_attention_is_as_it_was_made(tokenizer):
    record = hs.capture(
        tiny_model("bart"), tokenizer, TEXT, target="she ran", keep=("qk", "before")
    )
    for layer in record["cross"]:
        assert (layer.rotary, layer.turned) == (None, "")
        for before, after in zip(
            layer.before_positions(), (layer.queries, layer.keys), strict=True
        ):
            np.testing.assert_allclose(before, after, atol=1e-6)


def run_on(model, arguments, *keep):
    return capture_encoded(model, tiny_tokenizer(), arguments, keep=keep)


def test_a_layer_without_positions_has_no_rotation(tokenizer):
    rotations = [
        layer.rotary for layer in hs.capture(tiny_model("smollm3"), tokenizer, TEXT)["self"]
    ]
    assert [rotary is None for rotary in rotations] == [False, False, False, True]


@pytest.mark.parametrize(
    ("family", "norm"), [("qwen3", "Qwen3RMSNorm"), ("persimmon", "LayerNorm"), ("llama", "")]
)
def test_norms_of_queries_and_keys_are_named(family, norm, tokenizer):
    assert {layer.norm for layer in hs.capture(tiny_model(family), tokenizer, TEXT)["self"]} == {
        norm
    }


@pytest.mark.parametrize(
    ("family", "positions"),
    [
        ("bert", "absolute"),
        ("gpt2", "absolute"),
        ("bloom", "alibi"),
        ("mpt", "alibi"),
        ("mpnet", "relative"),
    ],
)
def test_the_kind_of_positions_is_told(family, positions, tokenizer):
    assert hs.capture(tiny_model(family), tokenizer, TEXT).model.positions == positions


def test_layers_without_softmax_attention_are_named_in_their_place(tokenizer):
    stack = hs.capture(tiny_model("qwen3_next"), tokenizer, TEXT)["self"]
    assert stack.kinds == {0: "linear", 1: "linear", 2: "linear", 3: "causal"}
    assert stack.others[0] == "linear (Qwen3NextGatedDeltaNet)"
    assert hs.capture(tiny_model("jamba"), tokenizer, TEXT)["self"].kinds == {
        0: "none",
        1: "causal",
        2: "none",
        3: "causal",
    }


def test_latent_attention_says_so(tokenizer):
    assert hs.capture(tiny_model("deepseek_v3"), tokenizer, TEXT)["self"].layer(0).latent == 16
    assert hs.capture(tiny_model("llama"), tokenizer, TEXT)["self"].layer(0).latent is None


def test_router_scores_are_kept_for_the_real_tokens(tokenizer):
    model = tiny_model("mixtral")
    inputs = tokenizer([TEXT, "a bee"], padding=True, return_tensors="pt")
    long, short = capture_encoded(model, tokenizer, inputs, routers=True)
    with torch.no_grad():
        own = model(**inputs, output_router_logits=True).router_logits
    for example, record in enumerate((long, short)):
        stack, kept = record["self"], inputs["attention_mask"][example].bool()
        assert list(stack.routers) == [0, 1]
        for number, scores in stack.routers.items():
            assert_close(scores, own[number].reshape(2, -1, 4)[example][kept].numpy())


def test_router_scores_of_a_hybrid_keep_their_numbers(tokenizer, tmp_path):
    record = hs.capture(tiny_model("jamba"), tokenizer, TEXT, routers=True)
    again = hs.load(hs.save(record, tmp_path / "run.safetensors"))
    for stack in (record["self"], again["self"]):
        assert [layer.layer for layer in stack] == [1, 3]
        assert {number: scores.shape[1] for number, scores in stack.routers.items()} == {1: 2, 3: 2}


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_models_without_experts_say_so(family, tokenizer):
    with pytest.raises(CaptureError, match="offers no router scores; capture without"):
        hs.capture(tiny_model(family), tokenizer, TEXT, routers=True)


def test_a_rotation_in_half_precision_is_found_in_a_long_text():
    sizes = {"hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 1}
    model = tiny_model("llama", max_position_embeddings=2048, **sizes).to(torch.bfloat16)
    ids = torch.randint(5, 20, (1, 2048), generator=torch.Generator().manual_seed(0))
    (record,) = capture_encoded(model, None, ids, keep="qk")
    own = model.rotary_emb.inv_freq.float().numpy()
    for layer in record["self"]:
        np.testing.assert_allclose(layer.rotary.frequencies, own, atol=1e-5)
