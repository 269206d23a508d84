"""Router scores of the steps of a generated text, joined, are those of one full pass over it."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope import CaptureError

from ...close import assert_close
from .conftest import COUNT, NEVER, PROMPT, model_of, written

EXPERTS = ["mixtral", "qwen3_moe", "jamba", "gpt_oss", "switch_transformers"]


@pytest.mark.parametrize("family", EXPERTS)
def test_router_scores_of_all_steps_are_those_of_one_pass(family, tokenizer):
    model, record = written(family, tokenizer, keep="qk", routers=True)
    sides = {"input_ids": record.stacks.get("encoder", record[record.generation.stack]).query}
    if "decoder" in record.stacks:
        sides["decoder_input_ids"] = record["decoder"].query
    arguments = {name: torch.tensor([side.ids]) for name, side in sides.items()}
    with torch.no_grad():
        whole = model(**arguments, output_router_logits=True, use_cache=False)
    for name, stack in record.stacks.items():
        returned = (
            getattr(whole, f"{name}_router_logits" if name != "self" else "router_logits", None)
            or ()
        )
        own = [scores for scores in returned if isinstance(scores, torch.Tensor)]
        assert len(stack.routers) == len(own)
        for ours, theirs in zip(stack.routers.values(), own, strict=True):
            assert ours.shape == (len(stack.query), theirs.shape[-1])
            np.testing.assert_allclose(ours, theirs.reshape(ours.shape), atol=1e-5)
    assert any(stack.routers for stack in record.stacks.values())


def test_router_scores_leave_the_text_as_it_is_and_are_left_out_unless_asked_for(tokenizer):
    sampled = {"do_sample": True, "seed": 5}
    (_, with_them), (_, without) = (
        written("mixtral", tokenizer, routers=routers, **sampled) for routers in (1, 0)
    )
    assert with_them.generation.tokens.ids == without.generation.tokens.ids
    assert without["self"].routers == {}
    assert_equal_arrays(with_them["self"], without["self"])


def assert_equal_arrays(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        assert_close(mine.queries, other.queries)


@pytest.mark.parametrize("options", [{"prefill_chunk_size": 3}, {"cache_implementation": "static"}])
def test_router_scores_of_a_prompt_in_parts_and_of_a_static_cache(options, tokenizer):
    _, wanted = written("mixtral", tokenizer, routers=True)
    _, record = written("mixtral", tokenizer, routers=True, **options)
    for number, scores in wanted["self"].routers.items():
        np.testing.assert_allclose(record["self"].routers[number], scores, atol=1e-5)


def test_router_scores_of_a_model_that_was_compiled_in_part(tokenizer):
    _, wanted = written("mixtral", tokenizer, routers=True)
    model = model_of("mixtral")
    model.model.layers[1] = torch.compile(model.model.layers[1])
    options = {"max_new_tokens": COUNT, "eos_token_id": NEVER, "do_sample": False, "routers": True}
    record = hs.generate(model, tokenizer, PROMPT, **options)
    for number, scores in wanted["self"].routers.items():
        assert_close(record["self"].routers[number], scores)


def test_a_model_without_experts_says_so(tokenizer):
    with pytest.raises(
        CaptureError,
        match=r"LlamaForCausalLM offers no router .* without routers=True \(--routers\)",
    ):
        written("llama", tokenizer, routers=True)
