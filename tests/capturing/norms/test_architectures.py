"""What tokens add, over all architectures: sums to their own vectors, or says why not."""

from pathlib import Path

import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.testing import ARCHITECTURES, tiny_model
from headscope.testing._made_up import made_up

from .conftest import captured

NOT_THERE = {
    "xlnet": "no matrix takes the output of its heads unchanged",
    "squeezebert": "no matrix takes the output of its heads unchanged",
    "ibert": "no matrix takes the output of its heads unchanged",
    "convbert": "no matrix takes the output of its heads unchanged",
    "qwen3_next": "no matrix takes the output of its heads unchanged",
    "longformer": "gives its weights only when it has run",
    "led": "gives its weights only when it has run",
}
"""Architectures of which not even the norms of attention are there, and why."""
WITHOUT_RESIDUAL = {
    ("mobilebert", "self"): "nothing had been read by a part of the model before",
    ("prophetnet", "decoder"): "nothing is added to its output",
    ("siglip_vision_model", "probe"): "nothing is added to its output",
    ("siglip", "probe"): "nothing is added to its output",
    ("paligemma", "probe"): "nothing is added to its output",
}
WITHOUT_NORM = {"olmo2", "exaone4", "swinv2", "patchtst"}
"""Architectures whose norms stand on what is added and not on the sum, or are norms over a batch
(PatchTST).
"""
NO_ATTENTION = {"big_bird (sparse)", "yoso", "fnet", "mamba", "rwkv", "mobilevitv2", "convnext"}
PARALLEL = {"gptj", "gpt_neox", "codegen", "falcon", "falcon (alibi)", "phi", "cohere"}
POST_NORM = set(
    "bert roberta distilbert albert electra deberta deberta-v2 xlm openai-gpt bart".split()
)


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name not in NO_ATTENTION])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_architecture_sums_to_its_own_vectors_or_says_why_not(name):
    model = tiny_model(name)
    for record in captured(model, made_up(model)):
        for stack in record.stacks.values():
            for layer in stack:
                check_layer(name, stack.name, layer)


def check_layer(name, stack, layer):
    found = layer.contributions
    if name in NOT_THERE:
        assert layer.value_norms is None
        for kind in ("attention", "residual", "output", "alti", "globenc"):
            with pytest.raises(
                RecordError, match=f"Layer {layer.layer}: .*{kind}.*: .*{NOT_THERE[name]}"
            ):
                layer.contributions_of(kind)
        return
    assert layer.value_norms.shape == (layer.heads, layer.size[1])
    bound = found.attention if found.residual is None else found.residual
    assert found.verified <= 1e-5 * max(1.0, float(bound.sum(-1).max()))
    assert found.attention.shape == layer.size
    if (name, stack) in WITHOUT_RESIDUAL:
        assert found.residual is None
        assert WITHOUT_RESIDUAL[name, stack] in found.missing["output"]
        return
    assert found.residual is not None
    assert found.alti is not None
    sums = found.alti.sum(-1)
    assert sums.max() < 1 + 1e-6
    if found.own is None:
        np.testing.assert_allclose(sums[sums > 0], 1, atol=1e-6)
    assert (found.output is None) == (name in WITHOUT_NORM)
    assert ("not a token's" in found.decomposes) == (name in PARALLEL)
    if name in POST_NORM:
        assert "(post-norm)" in found.decomposes
    if name in ("llama", "gpt2", "t5", "vit", "gemma2", "granite"):
        assert "(pre-norm)" in found.decomposes


def test_the_docs_count_what_is_tested_here():
    page = Path(__file__).parents[3] / "docs" / "measures.md"
    in_part = {name for name, _ in WITHOUT_RESIDUAL}
    whole = set(ARCHITECTURES) - NO_ATTENTION - set(NOT_THERE) - in_part - WITHOUT_NORM
    assert f"{len(whole)} have all kinds in every layer" in page.read_text(encoding="utf-8")
