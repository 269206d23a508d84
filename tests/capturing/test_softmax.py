"""The softmax of short rows, which are filled up."""

from __future__ import annotations

import pytest
import torch

from headscope.capturing.calls.softmax import LANES, softmax_of

from ..close import assert_close


@pytest.mark.parametrize("keys", [1, 2, 7, 15, 16, 17, 40])
def test_it_is_that_of_torch(keys: int) -> None:
    scores = 4 * torch.randn(2, 3, 5, keys, generator=torch.Generator().manual_seed(keys))
    weights = softmax_of(scores)
    wanted = torch.softmax(scores.double(), -1)
    assert weights.shape == scores.shape
    assert weights.is_contiguous()
    torch.testing.assert_close(weights.double(), wanted, rtol=3e-6, atol=0)
    if keys >= LANES:
        assert_close(weights, torch.softmax(scores, -1))


@pytest.mark.parametrize("keys", [3, 20])
def test_it_writes_where_it_is_told(keys: int) -> None:
    scores = torch.randn(2, 5, keys)
    out = torch.full_like(scores, -1.0)
    assert softmax_of(scores, out=out) is out
    assert_close(out, softmax_of(scores))
    assert softmax_of(scores, out=scores) is scores
    assert_close(out, scores)


def test_a_row_does_not_depend_on_those_beside_it() -> None:
    scores = torch.randn(6, 4, 11)
    assert_close(softmax_of(scores)[4:5, 1:], softmax_of(scores[4:5, 1:].clone()))


@pytest.mark.parametrize("hidden", [torch.finfo(torch.float32).min, -1e4])
def test_rows_in_which_all_is_hidden_stay_even(hidden: float) -> None:
    scores = torch.full((2, 5), hidden)
    scores[1, 2] = 0.5
    weights = softmax_of(scores)
    assert weights[0].tolist() == pytest.approx([0.2] * 5)
    assert weights[1].tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]


def test_double_precision_and_gradients_stay() -> None:
    assert softmax_of(torch.zeros(2, 3, dtype=torch.float64)).dtype == torch.float64
    scores = torch.randn(2, 3, requires_grad=True)
    softmax_of(scores)[:, 0].sum().backward()
    wanted = torch.softmax(scores.detach(), -1)
    torch.testing.assert_close(scores.grad[:, 0], wanted[:, 0] * (1 - wanted[:, 0]))
