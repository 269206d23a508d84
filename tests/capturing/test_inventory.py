"""Every attention that ran is in the record once, under a name of its own, or named as missing."""

import torch
from torch import nn
from transformers import PreTrainedModel, ViTConfig
from transformers.modeling_outputs import BaseModelOutput

from headscope.capturing import capture_encoded

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
