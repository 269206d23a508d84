"""The model comes back as it was, and no more is held than has to be."""

import pytest
import torch

import headscope as hs

from ..test_models_left_alone import state_of as of_modules
from .conftest import NEVER, PROMPT, assert_equal_to_one_pass, model_of, written


def state_of(model):
    return of_modules(model) | {
        "parameters": {},
        "configuration": model.generation_config.to_dict(),
        "same": id(model.generation_config),
        "random": torch.get_rng_state().tolist(),
    }


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("family", "cache"), [("gpt2", None), ("llama", "static"), ("bart", None)])
def test_the_model_comes_back_exactly_as_it_was(family, cache, fails, tokenizer):
    from transformers.modeling_utils import AttentionInterface

    model = model_of(family)
    model.train()
    model.generation_config.temperature = 0.5
    passes = []

    def after_three(*_):
        passes.append(1)
        return 1 / 0 if fails and len(passes) == 3 else None

    next(iter(model.children())).register_forward_hook(after_three)
    before, interface = state_of(model), AttentionInterface.get_interface
    options = {
        "cache_implementation": cache,
        "eos_token_id": NEVER,
        "max_new_tokens": 5,
        "do_sample": True,
        "seed": 1,
    }
    if fails:
        with pytest.raises(ZeroDivisionError):
            hs.generate(model, tokenizer, PROMPT, **options)
    else:
        hs.generate(model, tokenizer, PROMPT, **options)
    after = state_of(model)
    for name, state in before.items():
        assert after[name] == state, name
    assert AttentionInterface.get_interface is interface
    assert torch.is_grad_enabled()


def test_weights_are_dropped_where_they_would_be_too_large(tokenizer, monkeypatch):
    monkeypatch.setattr(
        "headscope.capturing.building._build.WEIGHTS_KEPT_BELOW", 3 * 5 * 12 * 12 * 4
    )
    model, record = written("gpt2", tokenizer, max_new_tokens=6)
    assert {layer.weights is None for layer in record["self"]} == {True}
    assert_equal_to_one_pass(model, record)
    assert {
        layer.weights is None for layer in written("gpt2", tokenizer, max_new_tokens=5)[1]["self"]
    } == {False}
