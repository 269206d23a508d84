"""Interventions on architectures of every kind and route; the whole list passed once, see
docs/interventions.md.
"""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.errors import InterventionError
from headscope.testing import tiny_model
from headscope.testing._made_up import made_up

from ..close import assert_close

SAMPLE = {
    "bert": "interface, padded text",
    "gemma2": "soft cap, windows, grouped heads",
    "deberta-v2": "operators, several products",
    "falcon": "operators, fused, one key/value head",
    "whisper": "sound, encoder and decoder",
    "siglip": "pictures and text, a probe with torch's own multi-head attention",
    "swinv2": "windows folded into the batch",
    "qwen2_vl": "one picture after the other",
    "jamba": "layers without attention",
    "led": "an encoder that cannot be changed",
}
WINDOWS = {"swinv2", "qwen2_vl"}


@pytest.fixture(scope="module", params=sorted(SAMPLE))
def given(request):
    model = tiny_model(request.param)
    inputs = made_up(model)
    return request.param, model, inputs, capture_encoded(model, None, inputs)


def outputs(model, inputs):
    with torch.no_grad():
        found = model(**inputs).to_tuple()
    return [
        tensor
        for tensor in found
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point()
    ]


def away(found, wanted):
    """Largest difference, relative to the largest value."""
    largest = max(tensor.abs().max() for tensor in wanted)
    return float(
        max((ours - theirs).abs().max() for ours, theirs in zip(found, wanted, strict=True))
        / largest
    )


def stacks_of(records):
    """Stacks that can be changed, with their layers."""
    for name, stack in records[0].stacks.items():
        layers = [layer for layer in stack if layer.route != "outputs"]
        if layers:
            yield name, layers


def test_a_zeroed_head_is_zeros_in_the_projection(given):
    _, model, inputs, records = given
    intact = outputs(model, inputs)
    for stack, layers in stacks_of(records):
        layer = layers[-1]
        head, size = layer.heads - 1, layer.values.shape[-1]
        with hs.intervene(model, hs.Zero(stack=stack, layer=layer.layer, heads=head)):
            ours = outputs(model, inputs)
        weight = model.get_submodule(layer.projection).weight
        kept = weight.detach().clone()
        with torch.no_grad():
            weight[:, head * size : (head + 1) * size] = 0
            wanted = outputs(model, inputs)
            weight.copy_(kept)
        assert away(ours, wanted) <= 1e-6
        assert away(ours, intact) > 1e-5
    assert away(outputs(model, inputs), intact) == 0


def test_uniform_and_zero_are_what_the_record_shows(given):
    _, model, inputs, records = given
    for stack, layers in stacks_of(records):
        last = layers[-1].layer
        changes = (
            hs.interventions.Uniform(stack=stack, layer=last),
            hs.Zero(stack=stack, layer=last, heads=0),
        )
        with hs.intervene(model, *changes):
            found = capture_encoded(model, None, inputs)
        for record, own in zip(found, records, strict=True):
            layer, before = record[stack].layer(last), own[stack].layer(last)
            visible = (
                np.ones(before.size, bool) if before.visible is None else np.asarray(before.visible)
            )
            even = visible / np.maximum(visible.sum(axis=-1, keepdims=True), 1)
            np.testing.assert_allclose(
                layer.weights_of()[1:], np.broadcast_to(even, layer.weights[1:].shape), atol=1e-6
            )
            assert not layer.weights_of(0).any()
            assert record.verified < 2e-5
            for below, same in zip(record[stack], own[stack], strict=True):
                if below.layer < last:
                    assert_close(below.weights_of(), same.weights_of())


def test_own_weights_and_own_outputs_change_nothing(given):
    name, model, inputs, records = given
    intact = outputs(model, inputs)
    for stack, layers in stacks_of(records):
        numbers = [layer.layer for layer in layers]
        changes = [
            *(
                hs.interventions.SetWeights(
                    weights=[record[stack].weights(number) for record in records],
                    stack=stack,
                    layer=number,
                )
                for number in numbers
            ),
            hs.Patch(record=records, what="output", stack=stack, layer=numbers),
        ]
        if name in WINDOWS and stack != "text":
            for change in changes:
                with (
                    pytest.raises(InterventionError, match="attends within windows"),
                    hs.intervene(model, change),
                ):
                    outputs(model, inputs)
            continue
        for change in (changes[:-1], changes[-1:]):
            with hs.intervene(model, *change):
                assert away(outputs(model, inputs), intact) <= 2e-6


def test_pieces_are_refused(given):
    name, model, inputs, _ = given
    if name == "led":
        with (
            pytest.raises(InterventionError, match="computes attention in pieces"),
            hs.intervene(model, hs.Zero(stack="encoder")),
        ):
            outputs(model, inputs)
