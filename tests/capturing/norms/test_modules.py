"""Norms and matrices found by trying them."""

import numpy as np
import pytest
import torch
from torch import nn
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.mobilebert.modeling_mobilebert import NoNorm
from transformers.pytorch_utils import Conv1D

from headscope.capturing.contributions._modules import (
    matrix_of,
    norm_of,
    remembered,
    value_columns_of,
)
from headscope.capturing.watching.running import ModuleUse

NORMS = {
    "LayerNorm": nn.LayerNorm(25),
    "LayerNorm of BERT": nn.LayerNorm(24, eps=1e-12),
    "LayerNorm without bias": nn.LayerNorm(24, bias=False),
    "LayerNorm without weights": nn.LayerNorm(24, elementwise_affine=False),
    "RMSNorm": LlamaRMSNorm(25, eps=1e-6),
    "RMSNorm of Gemma": GemmaRMSNorm(24, eps=1e-5),
    "RMSNorm of torch": nn.RMSNorm(24, eps=1e-3),
    "scale": NoNorm(25),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_are_recognised(name):
    module = NORMS[name]
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    width = 25 if "25" in str(module) or name in ("scale", "RMSNorm") else 24
    found = norm_of(module, width)
    assert found.kind == name.partition(" ")[0]
    for factor in (1e-3, 1.0, 1e3):
        vectors = factor * torch.randn(7, width)
        theirs = module(vectors).detach().numpy()
        np.testing.assert_allclose(
            found(vectors.double().numpy()), theirs, rtol=1e-4, atol=2e-6 * np.abs(theirs).max()
        )


@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(24, 24),
        nn.GELU(),
        nn.Dropout().eval(),
        nn.Identity(),
        nn.Softmax(-1),
        nn.Embedding(3, 24),
    ],
)
def test_other_modules_are_none(module):
    assert norm_of(module, 24) is None


def test_trying_touches_neither_hooks_nor_weights():
    module, called = nn.LayerNorm(24), []
    module.register_forward_hook(lambda *_: called.append(1))
    assert norm_of(module, 24) is not None
    assert not called
    assert module.weight.dtype == torch.float32


def test_matrices_are_read_whichever_way_round_they_are_kept():
    torch.manual_seed(0)
    for module, wide in (
        (nn.Linear(5, 5), 5),
        (Conv1D(5, 5), 5),
        (nn.Linear(4, 6, bias=False), 4),
        (Conv1D(6, 4), 4),
    ):
        for parameter in module.parameters():
            nn.init.normal_(parameter)
        matrix, bias = matrix_of(module)
        given = torch.randn(3, wide)
        offset = 0 if bias is None else bias
        np.testing.assert_allclose(
            (given @ matrix + offset).detach(), module(given).detach().numpy(), atol=1e-5
        )


class Curved(nn.Linear):
    def forward(self, given):
        return super().forward(given).relu()


def test_what_is_not_affine_is_refused():
    with pytest.raises(ValueError, match="something else than a matrix product"):
        matrix_of(Curved(5, 5))


def test_values_are_found_among_the_columns_of_a_matrix():
    torch.manual_seed(0)
    whole, other, given = nn.Linear(6, 36), nn.Linear(6, 12), torch.randn(2, 5, 6)
    output = whole(given)
    # interleaved by head as in GPT-NeoX: query, key and value of each of three heads
    value = output.unflatten(-1, (3, 3, 4))[:, :, :, 2].transpose(1, 2)
    uses = [
        ModuleUse(other, given, other(given).detach()),
        ModuleUse(whole, given, output.detach()),
    ]
    module, columns = value_columns_of(value.detach(), uses)
    assert module is whole
    matrix, bias = (part[..., columns].numpy() for part in matrix_of(module))
    rebuilt = (given.detach().numpy() @ matrix + bias).reshape(2, 5, 3, 4).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(rebuilt, value.detach().numpy(), atol=1e-6)
    assert value_columns_of(torch.sin(value).detach(), uses) is None


@pytest.mark.parametrize("layout", ["one after the other", "by head"])
def test_columns_of_values_are_found_by_their_memory_or_by_numbers(layout):
    torch.manual_seed(0)
    matrix, given = nn.Linear(6, 36), torch.randn(2, 5, 6)
    output = matrix(given).detach()
    uses = [ModuleUse(matrix, given, output)]
    if layout == "by head":
        parts = output.unflatten(-1, (3, 3, 4))[:, :, :, 1]
        columns = (*range(4, 8), *range(16, 20), *range(28, 32))
    else:
        parts, columns = output[..., 12:24].unflatten(-1, (3, 4)), tuple(range(12, 24))
    value = parts.transpose(1, 2)
    assert value_columns_of(value, uses)[1] == value_columns_of(value.clone(), uses)[1] == columns
    changed = value.clone()
    changed[1, 2, 3, 1] += 1
    assert value_columns_of(changed, uses) is None


def test_what_follows_from_weights_is_made_anew_where_these_change():
    module, made = nn.LayerNorm(6), []

    def ask():
        return remembered([module], "norm", lambda: made.append(0) or len(made))

    assert [ask(), ask()] == [1, 1]
    with torch.no_grad():
        module.weight[2] = 3.0
    assert ask() == 2
    module.weight.data[3] = 4.0  # past torch's count of changes
    assert ask() == 3
    module.eps = 1e-3
    assert ask() == 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_one_number_among_many_that_changes_is_noticed(dtype):
    """Also in half precision, in which the sum of so many numbers would be infinite."""
    module, made = nn.Linear(300, 310).to(dtype), []
    module.weight.data.abs_().add_(2)

    def ask():
        return remembered([module], "matrix", lambda: made.append(0) or len(made))

    assert [ask(), ask()] == [1, 1]
    module.weight.data[7, 11] += 128  # past torch's count of changes
    assert [ask(), ask()] == [2, 2]


def test_what_follows_from_a_module_is_made_anew_where_its_forward_is_another():
    module, made = nn.LayerNorm(6), []

    def ask():
        return remembered([module], "norm", lambda: made.append(0) or len(made))

    assert ask() == 1
    module.forward = lambda given: given
    assert [ask(), ask()] == [2, 2]
