"""Capturing leaves models, their hooks and their compiled code as they were."""

import pytest
import torch

import headscope as hs
from headscope.testing import tiny_model

from ..close import assert_close

INTERFACE = ("bert", "gpt2", "llama", "bart")
TEXT = "the cat sat."


def state_of(model):
    """Everything about a model that a capture might leave changed."""
    hooks = tuple(
        (
            "_forward_hooks _forward_pre_hooks _backward_hooks _forward_hooks_with_kwargs "
            "_forward_hooks_always_called"
        ).split()
    )
    return {
        "implementation": model.config._attn_implementation,
        "training": [module.training for module in model.modules()],
        "hooks": [
            {name: dict(getattr(module, name)) for name in hooks} for module in model.modules()
        ],
        "attributes": [sorted(vars(module)) for module in model.modules()],
        "parameters": {name: value.clone() for name, value in model.state_dict().items()},
        "gradients": [parameter.requires_grad for parameter in model.parameters()],
    }


def assert_same_state(now, before):
    for name in before:
        if name == "parameters":
            assert all(torch.equal(now[name][key], value) for key, value in before[name].items())
        else:
            assert now[name] == before[name], name


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("family", INTERFACE)
def test_the_model_comes_back_exactly_as_it_was(family, fails, tokenizer):
    from transformers.modeling_utils import AttentionInterface

    model = tiny_model(family)
    model.train()
    next(model.children()).eval()
    seen = []
    model.register_forward_hook(lambda *_: seen.append(1))
    if fails:
        list(model.modules())[-1].register_forward_hook(lambda *_: 1 / 0)
    before, interface, random = (
        state_of(model),
        AttentionInterface.get_interface,
        torch.get_rng_state(),
    )
    target = "it ran" if model.config.is_encoder_decoder else None
    if fails:
        with pytest.raises(ZeroDivisionError):
            hs.capture(model, tokenizer, TEXT, target=target)
    else:
        hs.capture(model, tokenizer, TEXT, target=target)
        assert seen == [1]
    assert_same_state(state_of(model), before)
    assert AttentionInterface.get_interface is interface
    assert_close(torch.get_rng_state(), random)
    assert torch.is_grad_enabled()


def test_generating_a_target_leaves_the_model_as_it_was(tokenizer):
    model = tiny_model("bart")
    model.train()
    before = state_of(model)
    hs.capture(model, tokenizer, TEXT)
    assert_same_state(state_of(model), before)


def test_users_hooks_on_the_projection_run_once(tokenizer):
    model, seen = tiny_model("gpt2"), []
    model.h[0].attn.c_proj.register_forward_hook(lambda *_: seen.append(1))
    hs.capture(model, tokenizer, TEXT)
    assert seen == [1]


def test_another_model_inside_the_block_is_not_taken_for_ours(tokenizer):
    model, other = tiny_model("bert"), tiny_model("gpt2")
    ids = torch.tensor([[7, 8, 9]])
    model.embeddings.register_forward_hook(lambda *_: other(ids) and None)
    record = hs.capture(model, tokenizer, TEXT)
    assert [layer.module for layer in record["self"]] == [
        f"encoder.layer.{n}.attention.self" for n in range(2)
    ]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("how", ["whole", "in place", "a layer", "a layer in place", "its forward"])
def test_compiled_models_run_as_they_are_written(how, tokenizer):
    plain = hs.capture(tiny_model("llama"), tokenizer, TEXT)
    model = given = tiny_model("llama")
    if how == "whole":
        given = torch.compile(model, backend="eager")
    elif how == "in place":
        model.compile(backend="eager")
    elif how == "a layer":
        model.layers[0] = torch.compile(model.layers[0], backend="eager")
    elif how == "a layer in place":
        model.layers[0].compile(backend="eager")
    else:
        model.forward = torch.compile(model.forward, backend="eager")
    calls = [getattr(module, "_compiled_call_impl", None) for module in model.modules()]
    with torch.no_grad():
        given(torch.tensor([[1, 5, 6, 7]]))
    record = hs.capture(given, tokenizer, TEXT)
    assert [layer.module for layer in record["self"]] == [layer.module for layer in plain["self"]]
    assert_close(record["self"].weights(1), plain["self"].weights(1))
    assert calls == [getattr(module, "_compiled_call_impl", None) for module in model.modules()]
