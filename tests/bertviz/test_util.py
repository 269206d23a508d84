import numpy as np
import pytest
import torch

from headscope.bertviz import transformers_neuron_view
from headscope.bertviz.util import format_attention, format_special_chars, num_heads, num_layers
from headscope.errors import RecordError
from headscope.testing import random_weights


@pytest.fixture
def attention(rng):
    return random_weights(rng, (3, 1, 4, 5, 7))


def test_layers_become_one_array(attention):
    found = format_attention(tuple(map(torch.tensor, attention)), layers=[2, 0], heads=[3, 1])
    assert isinstance(found, torch.Tensor)
    assert np.array_equal(found.numpy(), attention[[2, 0], 0][:, [3, 1]])
    assert np.array_equal(format_attention(list(attention)), attention[:, 0])


def test_counts(attention):
    assert (
        num_layers(attention),
        num_heads(attention),
        num_heads([None, torch.tensor(attention[0])]),
    ) == (3, 4, 4)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda layers: layers, {"layers": []}, "are none"),
        (lambda layers: layers, {"layers": [3]}, "There are the layers 0 to 2, not 3"),
        (lambda layers: [layers[0], None], {}, "Layer 1 is None"),
        (lambda layers: [layers[0], layers[1][:, :2]], {}, "have the shapes"),
        (lambda layers: [layers[0][0]], {}, r"Layer 0 has shape \(4, 5, 7\); expected \[1 head"),
    ],
    ids=["no layer", "unknown layer", "None", "uneven", "no batch axis"],
)
def test_what_cannot_be_one_array_says_why(change, options, message, attention):
    with pytest.raises(RecordError, match=message):
        format_attention(change(list(attention)), **options)


def test_special_characters_go():
    assert format_special_chars(["\u0120a", "\u2581b", "c</w>", "##d"]) == [" a", " b", "c", "##d"]


def test_the_models_of_the_neuron_view_are_those_of_transformers():
    import transformers

    assert transformers_neuron_view.BertModel is transformers.BertModel
    with pytest.raises(AttributeError, match="transformers has no 'BertModle'"):
        transformers_neuron_view.BertModle  # noqa: B018
