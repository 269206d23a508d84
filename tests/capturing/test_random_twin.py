import pytest
import torch
from torch import nn

from headscope.capturing import random_twin
from headscope.errors import CaptureError
from headscope.testing import tiny_model


def test_a_twin_has_the_same_form_and_other_weights():
    model = tiny_model("bert")
    before = torch.random.get_rng_state()
    twin, same, other = random_twin(model), random_twin(model), random_twin(model, seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert type(twin) is type(model)
    assert not twin.training
    name = "encoder.layer.0.attention.self.query.weight"
    weights = [each.state_dict()[name] for each in (model, twin, same, other)]
    assert {each.shape for each in weights} == {weights[0].shape}
    assert torch.equal(weights[1], weights[2])
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[3])
    assert twin.config is not model.config


def test_a_model_without_configuration_is_refused():
    with pytest.raises(CaptureError, match="Linear is not made of a configuration"):
        random_twin(nn.Linear(2, 3))
