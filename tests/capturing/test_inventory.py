"""Every attention that ran is in the record once, under a name of its own, or named as missing."""

import warnings
from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn
from transformers import PreTrainedModel, ViTConfig
from transformers.modeling_outputs import BaseModelOutput

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.testing import tiny_model, tiny_tokenizer

WIDTH = 12


class Block(nn.Module):
    """One attention over its input."""

    def __init__(self):
        super().__init__()
        self.att = nn.MultiheadAttention(WIDTH, 3, batch_first=True)

    def forward(self, states):
        return states + self.att(states, states, states)[0]


class TwoWay(nn.Module):
    """Prompts look at each other and at the patches, and the patches at the prompts (SAM)."""

    def __init__(self):
        super().__init__()
        self.own, self.to_image, self.to_prompt = (
            nn.MultiheadAttention(WIDTH, 3, batch_first=True) for _ in range(3)
        )

    def forward(self, prompt, image):
        prompt = prompt + self.own(prompt, prompt, prompt)[0]
        prompt = prompt + self.to_image(prompt, image, image)[0]
        return prompt, image + self.to_prompt(image, prompt, prompt)[0]


class Prompted(PreTrainedModel):
    """A tower of patches, and layers in which learned prompts and patches look at each other."""

    config_class, main_input_name = ViTConfig, "pixel_values"

    def __init__(self):
        super().__init__(ViTConfig())
        self.patches = nn.Conv2d(3, WIDTH, 8, 8)
        self.prompts = nn.Parameter(torch.randn(1, 4, WIDTH))
        self.tower = nn.ModuleList([Block(), Block()])
        self.layers = nn.ModuleList([TwoWay(), TwoWay()])
        self.post_init()

    def forward(self, pixel_values=None):
        image = self.patches(pixel_values).flatten(2).mT
        prompt = self.prompts.expand(len(pixel_values), -1, -1)
        for block in self.tower:
            image = block(image)
        for layer in self.layers:
            prompt, image = layer(prompt, image)
        return BaseModelOutput(last_hidden_state=prompt)


def test_both_directions_of_attention_between_prompts_and_picture_are_kept():
    torch.manual_seed(1)
    model = Prompted().eval()
    (record,) = capture_encoded(model, None, {"pixel_values": torch.randn(1, 3, 32, 16)})
    modules = {name: [layer.module for layer in stack] for name, stack in record.stacks.items()}
    assert modules == {
        "tower": ["tower.0.att", "tower.1.att"],
        "layers": ["layers.0.own", "layers.1.own"],
        "layers.cross.probe": ["layers.0.to_image", "layers.1.to_image"],
        "layers.cross.vision": ["layers.0.to_prompt", "layers.1.to_prompt"],
    }
    to_image = record["layers.cross.probe"]
    assert (len(to_image.query), to_image.key.grid) == (4, (4, 2))


class VisionTransformer(nn.Module):
    """Named as torchvision names its own: ``encoder.layers.encoder_layer_0.self_attention``."""

    def __init__(self):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, WIDTH, 8, 8)
        self.encoder = nn.Module()
        self.encoder.dropout = nn.Dropout()
        layers = OrderedDict((f"encoder_layer_{number}", EncoderBlock()) for number in range(3))
        self.encoder.layers = nn.Sequential(layers)
        self.heads = nn.Sequential(OrderedDict(head=nn.Linear(WIDTH, 2)))

    def forward(self, pixels):
        states = self.conv_proj(pixels).flatten(2).mT
        return self.heads(self.encoder.layers(self.encoder.dropout(states))[:, 0])


class EncoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.self_attention = (
            nn.LayerNorm(WIDTH),
            nn.MultiheadAttention(WIDTH, 3, batch_first=True),
        )

    def forward(self, states):
        normed = self.ln_1(states)
        return states + self.self_attention(normed, normed, normed, need_weights=False)[0]


class Parts(nn.Module):
    """Parts under names of their own, run one after the other."""

    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, states):
        for part in self.children():
            states = part(states)
        return states


class Keyed(nn.Module):
    def __init__(self, **parts):
        super().__init__()
        self.parts = nn.ModuleDict(parts)

    def forward(self, states):
        for part in self.parts.values():
            states = part(states)
        return states


class Mixer(nn.Linear):
    """What stands in the place of attention."""


def watched(model, states=None):
    states = torch.randn(1, 5, WIDTH) if states is None else states
    with hs.watch(model.eval()) as seen:
        model(states)
    return seen.record


def modules_of(record):
    return {
        name: {layer.layer: layer.module for layer in stack}
        for name, stack in record.stacks.items()
    }


def test_rollout_of_a_model_named_as_torchvision_names_its_vision_transformer():
    torch.manual_seed(2)
    record = watched(VisionTransformer(), torch.randn(1, 3, 16, 24))
    assert modules_of(record) == {
        "self": {i: f"encoder.layers.encoder_layer_{i}.self_attention" for i in range(3)}
    }
    expected = np.eye(6)
    for layer in record["self"]:
        step = layer.weights_of().mean(0) + np.eye(6)
        expected = step / step.sum(-1, keepdims=True) @ expected
    np.testing.assert_allclose(hs.rollout(record)[-1], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "modules"),
    [
        (Parts(block1=Block(), block2=Block()), ["block1.att", "block2.att"]),
        (Keyed(low=Block(), high=Block()), ["parts.low.att", "parts.high.att"]),
        (nn.Sequential(Block(), nn.Identity(), Block()), ["0.att", "2.att"]),
        (nn.Sequential(Block(), nn.Dropout(), Block()), ["0.att", "2.att"]),
        (
            Parts(stem=Mixer(WIDTH, WIDTH), layer_one=Block(), norm=nn.LayerNorm(WIDTH)),
            ["layer_one.att"],
        ),
    ],
)
def test_layers_of_one_kind_are_one_stack_whatever_they_are_called(model, modules):
    record = watched(model)
    assert modules_of(record) == {"self": dict(enumerate(modules))}
    assert hs.rollout(record).shape == (len(modules), 5, 5)


def test_chosen_heads_of_layers_under_names_of_their_own():
    model, states = Keyed(low=Block(), high=Block()).eval(), torch.randn(1, 5, WIDTH)
    with hs.watch(model, heads=[(1, 2)]) as seen:
        model(states)
    whole = watched(model, states)
    found = seen.record["self"].weights(layer=1, head=2)
    np.testing.assert_allclose(found, whole["self"].weights(layer=1, head=2), atol=1e-6)


def test_towers_of_one_kind_stay_apart():
    towers = {f"tower{number}": Parts(block1=Block(), block2=Block()) for number in (1, 2)}
    assert modules_of(watched(Parts(**towers))) == {
        f"tower{tower}.blockN": {i: f"tower{tower}.block{i + 1}.att" for i in range(2)}
        for tower in (1, 2)
    }


def test_a_named_layer_without_attention_is_no_layer_that_rollout_passes_over():
    record = watched(Keyed(low=Block(), middle=Mixer(WIDTH, WIDTH), high=Block()))
    assert modules_of(record) == {"self": {0: "parts.low.att", 2: "parts.high.att"}}
    with pytest.raises(hs.errors.RecordError, match=r"no attention in layers \[1\]"):
        hs.rollout(record)


class OwnSoftmax(nn.Module):
    """Attention of one head, whose softmax is none of torch's where it is `hidden`."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.hidden = (
            nn.Linear(WIDTH, 3 * WIDTH),
            nn.Linear(WIDTH, WIDTH),
            False,
        )

    def forward(self, states):
        query, key, value = self.qkv(states).chunk(3, dim=-1)
        scores = query @ key.mT / WIDTH**0.5
        if self.hidden:
            weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
        else:
            weights = scores.softmax(-1)
        return states + self.out(weights @ value)


def test_attention_outside_of_every_list_is_named_where_it_was_not_seen(tmp_path):
    """It is of the class of others, and runs as they do."""
    model, states = Parts(first=OwnSoftmax(), pool=OwnSoftmax()), torch.randn(1, 5, WIDTH)
    model.pool.hidden = True
    with pytest.warns(UserWarning, match=r"not seen, and the record leaves them out: pool \(in a"):
        record = watched(model, states)
    assert modules_of(record) == {"self": {0: "first"}}
    assert hs.load(hs.save(record, tmp_path / "run.safetensors")).unseen == "pool"
    assert "attention of pool not seen" in record.summary
    model.pool.hidden = False
    assert watched(model, states).unseen == ""


def test_inputs_that_a_model_does_not_read_are_named():
    model, ids = tiny_model("bert"), torch.tensor([[5, 6, 7]])
    with pytest.warns(UserWarning, match="BertModel does not read attention_masks, speaker$"):
        capture_encoded(
            model, tiny_tokenizer(), {"input_ids": ids, "attention_masks": ids, "speaker": ids}
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = {"input_ids": ids, "attention_mask": ids > 0, "output_attentions": True}
        capture_encoded(model, tiny_tokenizer(), read)


def test_two_layers_in_one_place_are_refused(monkeypatch):
    """Whatever the fault that numbers or names them alike."""
    model, states = Parts(first=OwnSoftmax(), second=Block()), torch.randn(1, 5, WIDTH)
    stacks = "headscope.capturing.building.layers.name_groups"
    monkeypatch.setattr(stacks, lambda groups: dict.fromkeys(groups, "self"))
    with pytest.raises(hs.errors.CaptureError, match="2 attentions were seen, .* would be lost"):
        watched(model, states)


class Captioned(PreTrainedModel):
    """Reads a picture by convolution alone, and adds it to each word of a text."""

    config_class, main_input_name = ViTConfig, "pixel_values"

    def __init__(self):
        super().__init__(ViTConfig())
        self.patches, self.words = nn.Conv2d(3, WIDTH, 8, 8), nn.Embedding(60, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.post_init()

    def forward(self, input_ids=None, pixel_values=None):
        states = self.words(input_ids) + self.patches(pixel_values).mean((2, 3))[:, None]
        for block in self.blocks:
            states = block(states)
        return BaseModelOutput(last_hidden_state=states)


def test_a_picture_that_no_attention_works_on_is_named():
    model, ids = Captioned().eval(), torch.tensor([[5, 6, 7]])
    with pytest.warns(UserWarning, match="^No attention was seen that works on its vision$"):
        (record,) = capture_encoded(
            model, tiny_tokenizer(), {"input_ids": ids, "pixel_values": torch.randn(1, 3, 16, 16)}
        )
    assert [len(stack.query) for stack in record.stacks.values()] == [3]


class Forgetful(Captioned):
    """Reads a picture, and the first two words of a text."""

    def forward(self, input_ids=None, pixel_values=None):
        patches = self.patches(pixel_values).flatten(2).mT
        states = torch.cat([patches, self.words(input_ids[:, :2])], dim=1)
        for block in self.blocks:
            states = block(states)
        return BaseModelOutput(last_hidden_state=states)


def test_words_that_a_model_drops_are_named():
    model, ids = Forgetful().eval(), torch.tensor([[5, 6, 7, 8], [9, 6, 7, 8]])
    lost = (
        r"^Tokens of the input are in no stack: 2 of 4 of input 0 .from 0., 2 of 4 of input 1 .*$"
    )
    with pytest.warns(UserWarning, match=lost):
        capture_encoded(
            model, tiny_tokenizer(), {"input_ids": ids, "pixel_values": torch.randn(2, 3, 16, 16)}
        )
