"""Models whose weights are on the processor or on disk between passes (accelerate): captured as in
memory.
"""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

accelerate = pytest.importorskip(
    "accelerate", reason="accelerate, which offloads, is not installed"
)

TEXT = "the cat sat."
WAYS = ("cpu", "disk", "auto")


def offloaded(family, way, folder, **options):
    """A tiny model whose weights are elsewhere between passes."""
    model = tiny_model(family, **options)
    if way == "cpu":
        return accelerate.cpu_offload(model, execution_device="cpu")
    if way == "disk":
        return accelerate.disk_offload(model, str(folder / "off"), execution_device="cpu")
    model.save_pretrained(folder / "model")
    limits = {"cpu": sum(part.numel() for part in model.parameters()) * 2}  # half of it
    whole = type(model).from_pretrained
    return whole(
        folder / "model", device_map="auto", max_memory=limits, offload_folder=str(folder / "off")
    ).eval()


def state_of(model):
    """Where each weight is, and what is hooked on each module."""
    places = [(name, part.device.type) for name, part in model.named_parameters()]
    return places, [
        (len(module._forward_hooks), id(module._hf_hook))
        for module in model.modules()
        if hasattr(module, "_hf_hook")
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", ["llama", "bloom"])
def test_an_offloaded_model_gives_the_records_of_one_in_memory(family, way, tmp_path):
    tokenizer = tiny_tokenizer()
    plain, away = tiny_model(family, writes=True), offloaded(family, way, tmp_path, writes=True)
    inputs = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        own = away(**inputs).logits
    before = state_of(away)  # a plain pass may leave tied weights elsewhere than loading did
    assert "meta" in {place for _, place in before[0]}
    for options in ({}, {"keep": "norms"}, {"interventions": [hs.Zero(layer=0, heads=[1])]}):
        wanted, got = (hs.capture(model, tokenizer, TEXT, **options) for model in (plain, away))
        for layer, other in zip(wanted["self"], got["self"], strict=True):
            assert np.allclose(
                layer.weights, other.weights, atol=1e-6
            )  # memory is laid out otherwise
            assert layer.projection == other.projection
            assert layer.changes == other.changes
            if "keep" in options:
                assert dict(layer.contributions.missing) == dict(other.contributions.missing)
                assert np.allclose(
                    layer.contributions.output, other.contributions.output, atol=1e-6
                )
    wanted, got = (
        hs.generate(model, tokenizer, TEXT, max_new_tokens=3, seed=1, do_sample=True)
        for model in (plain, away)
    )
    assert wanted.generation.text == got.generation.text
    assert np.allclose(wanted.generation.probabilities, got.generation.probabilities, atol=1e-6)
    assert np.allclose(wanted["self"].weights(layer=1), got["self"].weights(layer=1), atol=1e-6)
    assert state_of(away) == before
    with torch.no_grad():
        assert_close(away(**inputs).logits, own)


def test_a_block_of_interventions_changes_an_offloaded_model_alike(tmp_path):
    inputs = tiny_tokenizer()(["a bee", TEXT], return_tensors="pt", padding=True)
    states = []
    for model in (tiny_model("bert"), offloaded("bert", "cpu", tmp_path)):
        with (
            hs.intervene(
                model, hs.Cut(layer=0, heads=[0], keys=[1]), hs.interventions.Uniform(layer=1)
            ),
            torch.no_grad(),
        ):
            states.append(model(**inputs).last_hidden_state)
    assert_close(*states)


# The weights of a class token are elsewhere until they are used, so that nothing names it.
@pytest.mark.filterwarnings("ignore:Some positions have no names")
@pytest.mark.parametrize("family", ["vit", "swin", "dinov3_vit"])
@pytest.mark.parametrize("way", ["cpu", "disk"])
def test_an_offloaded_model_of_pictures_gives_the_same_records(family, way, tmp_path):
    plain, away = tiny_model(family), offloaded(family, way, tmp_path)
    size = plain.config.image_size
    height, width = size if isinstance(size, list | tuple) else (size, size)
    picture = torch.randn(
        1, plain.config.num_channels, height, width, generator=torch.Generator().manual_seed(0)
    )
    wanted, got = (
        capture_encoded(model, None, {"pixel_values": picture})[0] for model in (plain, away)
    )
    assert list(wanted.stacks) == list(got.stacks)
    for name, stack in wanted.stacks.items():
        assert stack.query.places == got[name].query.places
        for layer, other in zip(stack, got[name], strict=True):
            assert np.allclose(layer.weights, other.weights, atol=1e-6)
