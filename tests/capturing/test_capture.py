"""What is captured equals the model's own numbers, and the model comes back as it was."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.capturing.building import _build
from headscope.errors import CaptureError, TextError
from headscope.testing import tiny_model, tiny_tokenizer

INTERFACE = ("bert", "gpt2", "llama", "bart")
TEXT, PAIR = "the cat sat.", "a dog, it ran"
OWN = {
    "self": "attentions",
    "encoder": "encoder_attentions",
    "decoder": "decoder_attentions",
    "cross": "cross_attentions",
}
TOLERANCE = {"eager": 1e-6, "sdpa": 2e-5}


def own_weights(model, inputs):
    """The weights that the model itself returns, which it does under eager attention only."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        found = model(**inputs, output_attentions=True)
    model.set_attn_implementation(before)
    return {
        name: [layer.numpy() for layer in found[key]] for name, key in OWN.items() if found.get(key)
    }


def inputs_of(model, tokenizer, texts, pairs=None):
    encoding = tokenizer(texts, pairs, return_tensors="pt", padding=True)
    if model.config.is_encoder_decoder:
        encoding.pop("token_type_ids", None)
        target = tokenizer(["she ran home"] * len(texts), return_tensors="pt")
        encoding["decoder_input_ids"] = target["input_ids"]
    elif model.config.model_type != "bert":
        encoding.pop("token_type_ids", None)
    return encoding


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("family", INTERFACE)
def test_weights_equal_the_models_own(family, implementation, tokenizer):
    model = tiny_model(family, attn_implementation=implementation)
    record = hs.capture(
        model, tokenizer, TEXT, PAIR, target="she ran home" if family == "bart" else None
    )
    inputs = inputs_of(model, tokenizer, [TEXT], [PAIR])
    if family == "bart":
        ids = list(record["decoder"].query.ids)
        assert ids == [2, *tokenizer("she ran home")["input_ids"][:-1]]
        inputs["decoder_input_ids"] = torch.tensor([ids])
    own = own_weights(model, inputs)
    assert set(own) == set(record.stacks)
    for name, layers in own.items():
        assert len(layers) == len(record[name])
        for number, theirs in enumerate(layers):
            ours = record[name].weights(number)
            assert ours.shape == theirs[0].shape
            assert np.abs(ours - theirs[0]).max() <= TOLERANCE[implementation]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_padding_is_cut_off_and_the_rest_is_the_models_own(family, implementation, side):
    tokenizer = tiny_tokenizer()
    tokenizer.padding_side = side
    model = tiny_model(family, attn_implementation=implementation)
    inputs = inputs_of(model, tokenizer, ["a bee", "the cat sat.", "on it"])
    own = own_weights(model, inputs)["self"]
    records = capture_encoded(model, tokenizer, inputs)
    for example, record in enumerate(records):
        kept = inputs["attention_mask"][example].nonzero()[:, 0].numpy()
        assert record["self"].query.ids == tuple(inputs["input_ids"][example, kept].tolist())
        assert "[PAD]" not in record["self"].query.pieces
        for number, theirs in enumerate(own):
            ours = record["self"].weights(number)
            assert (
                np.abs(ours - theirs[example][:, kept][:, :, kept]).max()
                <= TOLERANCE[implementation]
            )
            np.testing.assert_allclose(ours.sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_padding_of_both_sides_of_an_encoder_decoder(implementation, tokenizer):
    model = tiny_model("bart", attn_implementation=implementation)
    inputs = inputs_of(model, tokenizer, ["a bee", "the cat sat."])
    target = tokenizer(["on it", "she ran"], return_tensors="pt", padding=True)
    inputs["decoder_input_ids"], inputs["decoder_attention_mask"] = (
        target["input_ids"],
        target["attention_mask"],
    )
    own = own_weights(model, inputs)
    for example, record in enumerate(capture_encoded(model, tokenizer, inputs)):
        masks = {
            "source": inputs["attention_mask"][example].bool().numpy(),
            "target": target["attention_mask"][example].bool().numpy(),
        }
        sides = {
            "encoder": ("source", "source"),
            "decoder": ("target", "target"),
            "cross": ("target", "source"),
        }
        for name, (query, key) in sides.items():
            for number, theirs in enumerate(own[name]):
                wanted = theirs[example][:, masks[query]][:, :, masks[key]]
                assert (
                    np.abs(record[name].weights(number) - wanted).max() <= TOLERANCE[implementation]
                )


PACKED = [
    (family, form)
    for family in ("bert", "gpt2", "llama")
    for form in ("bool", "lowest", "infinite")
]


@pytest.mark.parametrize(("family", "form"), [*PACKED, ("gptj", "lowest")])
def test_a_mask_with_an_axis_of_queries(family, form, tokenizer):
    """Two texts packed in a row do not see each other, nor the padding behind them."""
    ids = inputs_of(tiny_model("bert"), tokenizer, ["the cat sat.", "on it"])["input_ids"]
    size = ids.shape[1]
    seen = torch.zeros(2, 1, size, size, dtype=torch.bool)
    for example, first, stop in ((0, 0, 5), (0, 5, size), (1, 0, 2), (1, 2, 4)):
        seen[example, :, first:stop, first:stop] = True
    seen = seen if family == "bert" else seen.tril()
    mask = seen
    if form != "bool":
        low = -torch.inf if form == "infinite" else torch.finfo(torch.float32).min
        mask = torch.zeros(seen.shape).masked_fill(~seen, low)
        mask[1, :, 4:, :4] = 0.0  # the softmax of a row that sees nothing would be no number
    model = tiny_model(family)
    records = capture_encoded(model, tokenizer, {"input_ids": ids, "attention_mask": mask})
    assert [len(record["self"].query) for record in records] == [size, 4]
    added = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
    own = own_weights(model, {"input_ids": ids, "attention_mask": added})["self"]
    for example, (record, kept) in enumerate(zip(records, (size, 4), strict=True)):
        for layer, weights in zip(record["self"], own, strict=True):
            assert np.abs(layer.weights_of() - weights[example, :, :kept, :kept]).max() < 1e-5
            assert (np.asarray(layer.visible) == seen[example, 0, :kept, :kept].numpy()).all()


def test_eager_attention_adds_a_mask_of_truths(tokenizer):
    """Which hides nothing: what was computed is shown, not what was meant."""
    ids = tokenizer(["the cat sat"], return_tensors="pt")["input_ids"]
    mask = torch.ones(1, 1, ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    record = capture_encoded(
        tiny_model("bert", attn_implementation="eager"),
        tokenizer,
        {"input_ids": ids, "attention_mask": mask},
    )[0]
    layer = record["self"].layer(0)
    assert layer.kind == "full"
    assert (layer.bias == mask[0].float().numpy()).all()
    assert layer.weights_of()[:, 0, 1:].min() > 0


def test_an_encoder_decoder_needs_its_target(tokenizer):
    inputs = tokenizer(["a bee"], return_tensors="pt")
    with pytest.raises(CaptureError, match="its encoding needs decoder_input_ids too"):
        capture_encoded(tiny_model("bart"), tokenizer, inputs)
    with pytest.raises(CaptureError, match="holds no input_ids, .*; give input_ids, or return_"):
        capture_encoded(tiny_model("bert"), tokenizer, {"attention_mask": inputs["attention_mask"]})


@pytest.mark.parametrize("family", INTERFACE)
def test_weights_recomputed_from_queries_and_keys_are_the_same(family, tokenizer):
    model = tiny_model(family, attn_implementation="eager")
    kept = hs.capture(model, tokenizer, TEXT, keep="auto")
    lean = hs.capture(model, tokenizer, TEXT, keep="qk")
    for name, stack in kept.stacks.items():
        for layer in stack:
            other = lean[name].layer(layer.layer)
            assert layer.weights is not None
            assert other.weights is None
            np.testing.assert_allclose(other.weights_of(), layer.weights, atol=2e-6)


@pytest.mark.parametrize(
    "keep", ["weights", "qk", ("weights", "values"), ("qk", "values", "weights")]
)
def test_nothing_else_is_kept(keep, tokenizer):
    layer = hs.capture(tiny_model("bert"), tokenizer, TEXT, keep=keep)["self"].layer(0)
    kept = {"weights": layer.weights, "qk": layer.queries, "values": layer.values}
    assert {name for name, array in kept.items() if array is not None} == set(np.atleast_1d(keep))
    assert (layer.queries is None) == (layer.keys is None)


def test_float16_halves_the_arrays_and_hardly_moves_the_weights(tokenizer):
    exact, half = (
        hs.capture(tiny_model("llama"), tokenizer, TEXT, precision=p)
        for p in ("float32", "float16")
    )
    for ours, theirs in zip(half["self"], exact["self"], strict=True):
        assert {getattr(ours, name).dtype for name in ("weights", "queries", "keys", "values")} == {
            np.dtype("float16")
        }
        lean = dataclasses.replace(ours, weights=None).weights_of()
        assert 1e-7 < np.abs(lean - theirs.weights).max() < 5e-3
        assert np.abs(ours.weights - theirs.weights).max() < 5e-4


def test_a_value_that_float16_cannot_hold_is_said(tokenizer):
    model = tiny_model("bert")
    with torch.no_grad():
        model.encoder.layer[1].attention.self.value.weight.mul_(1e7)
    with pytest.raises(CaptureError, match="does not fit in float16; capture"):
        hs.capture(model, tokenizer, TEXT, precision="float16")


def test_grouped_heads_are_kept_once(tokenizer):
    layer = hs.capture(tiny_model("llama"), tokenizer, TEXT)["self"].layer(1)
    assert (layer.heads, layer.kv_heads) == (6, 2)
    assert layer.keys.shape == layer.values.shape == (2, layer.size[1], 8)
    assert layer.kind == "causal"


@pytest.mark.parametrize(("family", "kind"), [("bert", "full"), ("gpt2", "causal")])
def test_kind_says_what_a_query_may_look_at(family, kind, tokenizer):
    for implementation in ("eager", "sdpa"):
        model = tiny_model(family, attn_implementation=implementation)
        assert {layer.kind for layer in hs.capture(model, tokenizer, TEXT)["self"]} == {kind}


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("bert", {"self": "encoder.layer.{}.attention.output.dense"}),
        ("gpt2", {"self": "h.{}.attn.c_proj"}),
        ("llama", {"self": "layers.{}.self_attn.o_proj"}),
        (
            "bart",
            {
                "encoder": "model.encoder.layers.{}.self_attn.out_proj",
                "decoder": "model.decoder.layers.{}.self_attn.out_proj",
                "cross": "model.decoder.layers.{}.encoder_attn.out_proj",
            },
        ),
    ],
)
def test_the_output_projection_is_found_by_watching(family, names, tokenizer):
    record = hs.capture(tiny_model(family), tokenizer, TEXT)
    for name, pattern in names.items():
        for layer in record[name]:
            assert layer.projection == pattern.format(layer.layer)


@pytest.mark.parametrize("family", INTERFACE)
def test_verified_is_the_difference_of_the_layer_output(family, tokenizer):
    """Measured again here, from the record alone and the projection's weights."""
    model = tiny_model(family)
    outputs = {}
    watched = [
        module.register_forward_hook(
            lambda module, args, out, name=name: outputs.__setitem__(name, out[0])
        )
        for name, module in model.named_modules()
    ]
    record = hs.capture(model, tokenizer, TEXT)
    for hook in watched:
        hook.remove()
    worst = 0.0
    for stack in record.stacks.values():
        for layer in stack:
            values = layer.values.repeat(layer.heads // layer.kv_heads, axis=0)
            context = torch.tensor(layer.weights_of() @ values).transpose(0, 1).flatten(1)
            ours = model.get_submodule(layer.projection)(context)
            worst = max(worst, (ours - outputs[layer.projection]).abs().max().item())
    assert 0 < record.verified < 1e-5
    assert worst == pytest.approx(record.verified, abs=3e-6)


def test_a_wrong_reconstruction_is_refused(tokenizer):
    """An attention that does something headscope does not know must not pass for a known one."""
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    def sharpened(module, query, key, value, mask, **options):
        return sdpa_attention_forward(module, query * 2, key, value, mask, **options)

    AttentionInterface.register("sharpened", sharpened)
    AttentionMaskInterface.register("sharpened", sdpa_mask)
    model = tiny_model("bert")
    model.set_attn_implementation("sharpened")
    with pytest.raises(CaptureError, match="differs from the model's own by .* and is refused"):
        hs.capture(model, tokenizer, TEXT)


def test_a_mask_of_another_form_is_refused(tokenizer):
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import AttentionMaskInterface, flash_attention_mask

    def fused(module, query, key, value, mask, **options):
        return sdpa_attention_forward(module, query, key, value, None, **options)

    AttentionInterface.register("fused", fused)
    AttentionMaskInterface.register("fused", flash_attention_mask)
    model = tiny_model("bert")
    model.set_attn_implementation("fused")
    inputs = inputs_of(model, tokenizer, ["a bee", "the cat sat."])
    with pytest.raises(CaptureError, match="set_attn_implementation"):
        capture_encoded(model, tokenizer, inputs)


def test_half_precision_is_captured_in_single(tokenizer):
    record = hs.capture(tiny_model("llama").to(torch.bfloat16), tokenizer, TEXT)
    assert record.model.dtype == "bfloat16"
    np.testing.assert_allclose(record["self"].weights(0).sum(-1), 1, atol=1e-6)


def test_a_target_of_its_own_is_generated(tokenizer):
    model = tiny_model("bart")
    record = hs.capture(model, tokenizer, TEXT)
    ids = list(record["decoder"].query.ids)
    with torch.no_grad():
        logits = model(
            input_ids=torch.tensor([list(record["encoder"].query.ids)]),
            decoder_input_ids=torch.tensor([ids]),
        ).logits
    assert ids[0] == model.config.decoder_start_token_id
    assert logits[0, :-1].argmax(-1).tolist() == ids[1:]


def test_roberta_counts_positions_from_its_padding_index(tokenizer):
    from transformers import RobertaConfig, RobertaModel

    sizes = {
        "hidden_size": 24,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 30,
    }
    model = RobertaModel(RobertaConfig(vocab_size=64, max_position_embeddings=34, **sizes)).eval()
    with pytest.warns(UserWarning, match="42 tokens .* the rest is cut off"):
        assert len(hs.capture(model, tokenizer, "a " * 40, truncate=True)["self"].query) == 32
    with pytest.raises(TextError, match="positions for 32"):
        hs.capture(model, tokenizer, "a " * 31)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"text": ""}, TextError, "The text is empty"),
        ({"text": " \n"}, TextError, "The text is empty"),
        ({"text": "a", "text_pair": ""}, TextError, "The second text is empty"),
        ({}, CaptureError, "capture needs a text"),
        ({"text": "a", "tokenizer": None}, CaptureError, "capture needs the tokenizer"),
        ({"text": "a", "keep": "all"}, CaptureError, "keep must be 'auto', or one or several"),
        ({"text": "a", "keep": ("qk", 3)}, CaptureError, r"keep must be 'auto', .*; not"),
        ({"text": "a", "keep": ()}, CaptureError, r"keep must be 'auto', .*; not \(\)"),
        ({"text": "a", "keep": "values"}, CaptureError, "values alone have no attention in them"),
        ({"text": "a", "precision": "int8"}, CaptureError, "precision must be 'float32' or"),
        ({"text": "a", "rows": 5}, CaptureError, "rows and top belong to the statistics"),
        (
            {"text": "a", "keep": "statistics", "rows": 0},
            CaptureError,
            "rows must be a whole number from 2 on, not 0",
        ),
        ({"text": "a", "layers": [1]}, CaptureError, "capture has no option 'layers'; it has"),
    ],
)
def test_bad_input_is_one_clear_error(arguments, error, message, tokenizer):
    with pytest.raises(error, match=message):
        hs.capture(tiny_model("bert"), **{"tokenizer": tokenizer} | arguments)


def test_a_model_without_attention_is_refused(tokenizer):
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.config = tiny_model("bert").embeddings, tiny_model("bert").config
            self.device, self.dtype = torch.device("cpu"), torch.float32

        def forward(self, input_ids, **_):
            return self.inner(input_ids)

    with pytest.raises(CaptureError, match="Plain computed no softmax attention that could be"):
        hs.capture(Plain(), tokenizer, TEXT)


LONG = ["the cat sat. a bee sat on the cat. a dog ran home.", "a dog ran. the bee sat. a cat ran"]


def long_batch(tokenizer):
    """Two texts of the same length, longer than what is checked of a text."""
    encoding = tokenizer(LONG, return_tensors="pt", padding=True)
    length = int(encoding["attention_mask"].sum(1).min())
    assert length > 16
    return {name: encoding[name][:, :length] for name in ("input_ids", "attention_mask")}


def test_kept_weights_of_which_one_is_wrong_are_refused(tokenizer, monkeypatch):
    model, inputs = tiny_model("bert"), long_batch(tokenizer)
    row = inputs["input_ids"].shape[1] - 1  # the last one is always checked

    def wrong(call, visibility, into, *, original=_build.fill):
        original(call, visibility, into)
        into[1][1, row, :2] += 0.1

    monkeypatch.setattr(_build, "fill", wrong)
    with pytest.raises(CaptureError, match="differs from the model's own"):
        capture_encoded(model, tokenizer, inputs, keep="auto")
