"""Router scores of a generated text are those of one full pass over it."""

import numpy as np
import pytest
import torch

from headscope.errors import CaptureError

from ...close import assert_close
from .conftest import written

EXPERTS = ["mixtral", "qwen3_moe", "jamba", "gpt_oss", "switch_transformers"]


@pytest.mark.parametrize("family", EXPERTS)
def test_router_scores_are_those_of_one_pass(family, tokenizer):
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


def test_a_model_without_experts_says_so(tokenizer):
    with pytest.raises(CaptureError, match=r"LlamaForCausalLM offers no router .* without"):
        written("llama", tokenizer, routers=True)
