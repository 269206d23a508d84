"""Positions that have no names are numbered, and said to be; what is captured of them is the
model's own.
"""

import re

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.cli import run
from headscope.errors import CaptureError
from headscope.testing import tiny_model
from headscope.testing._made_up import made_up

TEXT = "the cat sat on a big mat"
NUMBERED = "Some positions have no names and are numbered: .*"


def own_weights(model, inputs):
    """What the model returns itself under eager attention."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        found = model(**inputs, output_attentions=True)
    model.set_attn_implementation("sdpa")
    return [weights.numpy() for weights in found.attentions]


def check_weights(record, own, example=0):
    """Each layer, whatever its stack, against one that the model returned, in order."""
    layers = sorted(
        (layer for stack in record.stacks.values() for layer in stack),
        key=lambda layer: layer.module,
    )
    assert len(layers) == len(own)
    for layer, weights in zip(layers, own, strict=True):
        assert layer.size == weights[example].shape[1:]
        assert np.abs(layer.weights_of() - weights[example]).max() < 1e-5


def test_pooled_tokens_are_numbered_and_the_others_keep_their_names(tokenizer):
    model = tiny_model("funnel")
    with pytest.warns(
        UserWarning, match=NUMBERED + r"encoder.blocks.1.0.attention works on 1 x 10 positions"
    ):
        record = hs.capture(model, tokenizer, TEXT)
    pooled = record["encoder.stage3"]
    assert pooled.query.pieces == tuple(map(str, range(10)))
    assert "(1, 20) tokens" in pooled.query.numbered
    assert record["encoder.stage2"].key == record["decoder"].query
    assert record["decoder"].query.ids == tuple(tokenizer(TEXT)["input_ids"])
    assert not record["decoder"].query.numbered
    assert record.numbered == pooled.query.numbered
    assert not pooled.others  # what stands in another stack is no layer without attention
    assert "10 numbered positions x 20 tokens" in record.summary
    encoder = [
        layer for name in record.stacks if name.startswith("encoder") for layer in record[name]
    ]
    own = own_weights(tiny_model("funnel"), tokenizer([TEXT], return_tensors="pt"))
    for layer, weights in zip([*encoder, *record["decoder"]], own, strict=True):
        assert np.abs(layer.weights_of() - weights[0]).max() < 1e-5


def test_a_prompt_before_the_text_is_numbered_with_it(tokenizer):
    model = tiny_model("cpmant")
    with pytest.warns(UserWarning, match=NUMBERED):
        record = hs.capture(model, tokenizer, TEXT)
    assert record["self"].query.pieces == tuple(map(str, range(24)))
    assert repr(record) == "<Record of CpmAntModel: 2 layers x 3 heads, 24 numbered positions>"


@pytest.mark.filterwarnings("ignore:Some positions")
@pytest.mark.parametrize("family", ["patchtst", "timesfm"])
def test_time_series(family):
    model = tiny_model(family)
    inputs = made_up(model)
    records = capture_encoded(model, None, inputs)
    own = own_weights(model, inputs)
    assert len(records) == len(own[0])  # a record for each channel of a time series
    for example, record in enumerate(records):
        assert record["self"].query.pieces[:2] == ("0", "1")
        assert record.numbered
        check_weights(record, own, example)


def test_input_that_is_no_text_is_numbered_beside_its_mask():
    model, states = (
        tiny_model("bert"),
        torch.randn(2, 7, 24, generator=torch.Generator().manual_seed(4)),
    )
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, 5:] = 0
    inputs = {"inputs_embeds": states, "attention_mask": mask}
    with pytest.warns(
        UserWarning, match=NUMBERED + "BertModel was given inputs_embeds, attention_mask"
    ):
        records = capture_encoded(model, None, inputs)
    assert [len(record["self"].query) for record in records] == [7, 5]
    own = own_weights(model, inputs)
    for number, weights in enumerate(own):
        assert np.abs(records[1]["self"].weights(number) - weights[1][:, :5, :5]).max() < 1e-5


def test_padding_among_numbered_positions_is_cut_off():
    model = tiny_model("canine")
    ids = torch.randint(5, 60, (2, 12), generator=torch.Generator().manual_seed(4))
    mask = torch.ones_like(ids)
    mask[1, 8:] = 0
    with pytest.warns(UserWarning, match=NUMBERED):
        records = capture_encoded(model, None, {"input_ids": ids, "attention_mask": mask})
    assert [len(record["encoder.layer"].query) for record in records] == [3, 2]
    own = own_weights(model, {"input_ids": ids, "attention_mask": mask})
    for number, weights in enumerate(own[1:3]):
        assert np.abs(records[0]["encoder.layer"].weights(number) - weights[0]).max() < 1e-5
        cut = weights[1][:, :2, :2]
        assert np.abs(records[1]["encoder.layer"].weights(number) - cut).max() < 1e-5


@pytest.mark.filterwarnings("ignore:Some positions")
def test_many_texts_are_numbered_each_alone(tokenizer):
    model, texts = tiny_model("funnel"), ["a bee", TEXT, "on it"]
    many = list(hs.capture_many(model, tokenizer, texts))
    for text, record in zip(texts, many, strict=True):
        alone = hs.capture(model, tokenizer, text)
        assert record.summary == alone.summary
        assert (
            np.abs(record["encoder.stage3"].weights(1) - alone["encoder.stage3"].weights(1)).max()
            < 1e-6
        )


@pytest.mark.filterwarnings("ignore:Some positions")
def test_heads_over_numbered_positions_can_be_changed(tokenizer):
    model = tiny_model("cpmant")
    intact = hs.capture(model, tokenizer, TEXT)
    changed = hs.capture(model, tokenizer, TEXT, interventions=[hs.Zero(layer=0, heads=[1])])
    assert changed["self"].layer(0).changes
    assert np.abs(changed["self"].weights(1) - intact["self"].weights(1)).max() > 1e-4
    assert not changed["self"].weights(0, 1).any()


def test_rows_that_are_no_examples_are_refused():
    """Windows folded into the batch are no examples, whatever their positions are called."""
    from transformers import PreTrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import BaseModelOutput

    class Windows(PreTrainedModel):
        config_class = PreTrainedConfig

        def __init__(self, config):
            super().__init__(config)
            self.embed = torch.nn.Embedding(64, 12)
            self.attention = torch.nn.MultiheadAttention(12, 3, batch_first=True)

        def forward(self, input_ids, attention_mask=None):
            states = self.embed(input_ids).unflatten(1, (-1, 4)).flatten(0, 1)
            return BaseModelOutput(self.attention(states, states, states)[0])

    with pytest.raises(CaptureError, match="computes attention on 6 rows where the model was"):
        capture_encoded(
            Windows(PreTrainedConfig()), None, {"input_ids": torch.randint(5, 60, (2, 12))}
        )


@pytest.mark.filterwarnings("ignore:Some positions")
def test_files_and_pages_tell_why(tokenizer, tmp_path):
    from headscope.views._page import page_parts

    record = hs.capture(tiny_model("funnel"), tokenizer, TEXT)
    loaded = hs.load(hs.save(record, tmp_path / "record.safetensors"))
    assert loaded.summary == record.summary
    assert loaded.numbered == record.numbered
    assert [stack.query for stack in loaded.stacks.values()] == [
        stack.query for stack in record.stacks.values()
    ]
    assert page_parts(loaded, {})[0]["numbered"] == record.numbered
    assert "numbered" not in page_parts(hs.capture(tiny_model("bert"), tokenizer, TEXT), {})[0]


def test_files_of_named_tokens_hold_nothing_that_earlier_versions_do_not_know(tokenizer, tmp_path):
    path = hs.save(hs.capture(tiny_model("bert"), tokenizer, TEXT), tmp_path / "record.safetensors")
    assert b"numbered" not in path.read_bytes()


def test_the_command_line_tells_why(tokenizer, tmp_path, capsys):
    for part in (tiny_model("funnel"), tokenizer):
        part.save_pretrained(tmp_path / "model")
    out = tmp_path / "record.safetensors"
    assert run(["capture", TEXT, "--model", str(tmp_path / "model"), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "10 numbered positions" in said
    assert re.search(
        r"^Some positions have no token and are numbered: encoder.blocks.1.0", said, re.MULTILINE
    )


def packed_model():
    """Its processor packs patches, and its forward tells of them by another name than most."""
    from transformers import GlmImageVisionConfig, GlmImageVisionModel

    sizes = {
        "depth": 2,
        "hidden_size": 24,
        "num_heads": 3,
        "intermediate_size": 40,
        "patch_size": 4,
        "image_size": 16,
    }
    return GlmImageVisionModel(GlmImageVisionConfig(**sizes)).eval()


def test_packed_patches_of_an_unknown_order_are_numbered():
    with pytest.warns(UserWarning, match=NUMBERED + r"pixel_values of shape \[24, 48\]"):
        record = capture_encoded(
            packed_model(),
            None,
            {"pixel_values": torch.randn(24, 48), "grid_thw": torch.tensor([[1, 4, 6]])},
        )[0]
    assert len(record["self"]) == 2
    assert len(record["self"].query) == 24
    assert record.verified < 1e-5


def test_several_packed_pictures_of_an_unknown_order_are_refused():
    """They are attended to one by one, so that each would be taken for a layer."""
    with pytest.raises(CaptureError, match="give one picture of one frame"):
        capture_encoded(
            packed_model(),
            None,
            {"pixel_values": torch.randn(32, 48), "grid_thw": torch.tensor([[1, 4, 4], [1, 4, 4]])},
        )


def test_other_attention_that_cannot_be_read_is_told():
    """ProphetNet's streams that predict attend on five axes, beside a stream that is read."""
    model = tiny_model("prophetnet")
    with pytest.warns(UserWarning, match="attention of some layers was not"):
        record = capture_encoded(model, None, made_up(model))[0]
    assert "layers.0.self_attn" in record.unseen
    assert record["decoder"].query.numbered == ""
