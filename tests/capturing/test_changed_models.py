"""Nothing of a model is remembered: whatever changes in it is seen in the next pass."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode

from headscope.capturing import capture_encoded
from headscope.testing import tiny_model, tiny_tokenizer

from .growing_model import Attention, hand_written

TEXTS = ["the cat sat.", "a bee sat on the cat.", "a"]
ARRAYS = ("weights", "queries", "keys", "values", "bias", "queries_before", "keys_before")


def encoded(model, texts=TEXTS[:2]):
    encoding = dict(tiny_tokenizer()(texts, return_tensors="pt", padding=True))
    if model.config.is_encoder_decoder:
        encoding["decoder_input_ids"] = encoding["input_ids"]
        encoding["decoder_attention_mask"] = encoding["attention_mask"]
    return encoding


def records_of(model, texts=TEXTS[:2], **options):
    options.setdefault("keep", ["weights", "qk", "values", "before", "statistics"])
    return capture_encoded(model, tiny_tokenizer(), encoded(model, texts), **options)


def modules_in(model):
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    return [
        layer.module
        for stack in capture_encoded(model, None, {"input_ids": ids})[0].stacks.values()
        for layer in stack
    ]


@pytest.mark.parametrize("form", ["module", "fused", "functional", "method", "kernel"])
def test_a_second_attention_that_comes_later_is_seen(form):
    model = hand_written()
    assert modules_in(model) == ["layers.0.attention", "layers.1.attention"]
    assert modules_in(model) == ["layers.0.attention", "layers.1.attention"]
    model.layers[1].form = form
    later = modules_in(model)
    assert len(later) == 3
    assert later == modules_in(model)


@pytest.mark.parametrize("form", ["softmax, fused", "softmax, softmax", "fused, softmax"])
def test_a_second_attention_of_the_same_module_is_seen(form):
    model = hand_written()
    modules_in(model)
    for layer in model.layers:
        layer.attention.form = form.split(",")[0]
    assert modules_in(model) == ["layers.0.attention", "layers.1.attention"]
    model.layers[1].attention.form = form
    later = modules_in(model)
    assert later == ["layers.0.attention", "layers.1.attention", "layers.1.attention"]
    assert later == modules_in(model)


class Quiet(TorchFunctionMode):
    """A mode of the model's own, which changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class ModedAttention(Attention):
    """Attention that is computed inside a mode of the model's own, all of it or a part.

    Args:
        part: of the attention: "all", or "weights" without the product with values.
    """

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, states):
        query, key, value = (
            part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.qkv(states).chunk(3, -1)
        )
        with Quiet():
            weights = (query @ key.transpose(-1, -2) / 2).softmax(-1)
            if self.part == "all":
                context = weights @ value
        if self.part == "weights":
            context = weights @ value
        return self.out(context.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("part", ["all", "weights"])
def test_a_mode_of_the_models_own_is_left_where_it_was(part):
    model = hand_written()
    for layer in model.layers:
        layer.attention = ModedAttention(part)
    first = modules_in(model)
    assert first == ["layers.0.attention", "layers.1.attention"]
    for _ in range(2):
        assert modules_in(model) == first
        assert _get_current_function_mode() is None


def test_torchs_own_attention_is_watched_from_its_beginning():
    # It takes another way, which shows no weights, where nobody watches when it begins.
    model = hand_written()
    for layer in model.layers:
        layer.attention = SelfAttention()
    first = modules_in(model)
    assert first == ["layers.0.attention.whole", "layers.1.attention.whole"]
    assert modules_in(model) == first


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.whole = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, states):
        return self.whole(states, states, states, need_weights=False)[0]


class Adapter(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.down, self.up = nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)

    def forward(self, states):
        return self.base(states) + self.up(self.down(states))


def test_an_adapter_that_is_put_on_later_is_seen():
    model = hand_written()
    modules_in(model)
    for layer in model.layers:
        layer.attention.out = Adapter(layer.attention.out)
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    found = [
        layer.projection for layer in capture_encoded(model, None, {"input_ids": ids})[0]["self"]
    ]
    assert found == ["layers.0.attention.out.base", "layers.1.attention.out.base"]


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1]], ids=["several", "one"])
def test_an_array_keeps_no_more_alive_than_those_of_its_batch(texts):
    model = tiny_model("bert")
    records_of(model)
    for keep in ("qk", "weights", "statistics", "auto"):
        records = records_of(model, texts, keep=keep)
        for layers in zip(*(record["self"] for record in records), strict=True):
            for name in ARRAYS:
                arrays = [getattr(layer, name) for layer in layers if layer.has(name)]
                most = len(arrays) * max((array.nbytes for array in arrays), default=0)
                assert all(held_by(array) <= most for array in arrays)
            for layer in layers if keep == "statistics" else ():
                assert held_by(layer.statistics.entropy) <= 64 * layer.statistics.entropy.nbytes


def held_by(array):
    """Bytes of the memory that lives as long as an array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.nbytes
