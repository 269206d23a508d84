"""How much of what earlier heads write later heads can read, by their weights."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import CaptureError

from ..small_models import GROUPED, SHAPES, planted_model, random_model


def test_composition_is_of_the_models_own_matrices():
    model = random_model("LlamaForCausalLM", **GROUPED)
    found = hs.composition(model)
    first, second = (model.model.layers[at] for at in (0, 1))
    gains = [torch.diag(layer.input_layernorm.weight) for layer in (first, second)]
    head = slice(8, 16)  # 1 of each, which read from key/value head 0
    with torch.no_grad():
        value = gains[0] @ first.self_attn.v_proj.weight[:8].T
        written = value @ first.self_attn.o_proj.weight[:, head].T
        query = gains[1] @ second.self_attn.q_proj.weight[head].T
        key = gains[1] @ second.self_attn.k_proj.weight[:8].T
        read = query @ key.T
        draws = []
        for turn in [torch.eye(32), *(torch.linalg.qr(torch.randn(32, 32)).Q for _ in range(300))]:
            product = (written @ turn @ read).norm() / written.norm() / read.norm()
            draws.append(float(product))
    at = 0, found.heads.index("0-1"), found.heads.index("1-1")
    assert found.ratio[at] == pytest.approx(draws[0], abs=1e-6)
    assert np.sqrt(np.mean(np.square(draws[1:]))) == pytest.approx(found.chance, rel=0.03)
    assert np.std(draws[1:]) == pytest.approx(found.deviation[at], rel=0.2)
    assert np.isnan(found.ratio[0, at[2], at[1]])
    assert "rotary" in str(found)


def test_heads_of_the_induction_circuit_compose_by_key():
    found = hs.composition(planted_model()).to_pandas()
    assert found.iloc[0][["head", "reads", "by"]].tolist() == ["1-2", "0-1", "key"]


def test_of_few_heads_all_ratios_are_printed_as_matrices():
    found = hs.composition(random_model("LlamaForCausalLM", **GROUPED))
    for by, ratio in zip(("query", "key", "value"), found.ratio, strict=True):
        matrix = found.table().partition(f"by {by} ")[2].split("\n\n")[0].splitlines()
        assert tuple(matrix[0].split()) == found.heads[4:]
        row = next(line.split() for line in matrix if line.startswith("0-2"))
        assert row[1:] == [f"{number:.2f}" for number in ratio[2, 4:]]


@pytest.mark.parametrize("name", ["BertForMaskedLM", "T5ForConditionalGeneration"])
def test_what_is_not_composed_by_matrices_is_refused(name):
    with pytest.raises(CaptureError, match=r"norm stands behind the sum|one stack"):
        hs.composition(random_model(name, **SHAPES[name]))


def test_it_is_kept_as_a_file(tmp_path):
    found = hs.composition(planted_model())
    again = hs.load(found.save(tmp_path / "composition.safetensors"))
    assert (type(again), str(again)) == (type(found), str(found))
