"""Models of no library in particular, run by whoever knows how."""

import numpy as np
import pytest
import torch
from torch import nn

import headscope as hs
from headscope import CaptureError


def test_an_encoder_decoder_of_torch_becomes_three_stacks():
    torch.manual_seed(4)
    model = nn.Transformer(12, 2, 2, 3, 16, batch_first=True).eval()
    source, target = torch.randn(1, 5, 12), torch.randn(1, 3, 12)
    with torch.no_grad():
        expected = model(source, target)
    model.train()
    with hs.watch(model, list("abcde"), list("xyz")) as seen:
        found = model(source, target)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert model.training
    record = seen.record
    assert {name: len(stack) for name, stack in record.stacks.items()} == {"encoder": 2, "decoder": 3, "cross": 3}
    assert record["cross"].query.pieces == ("x", "y", "z")
    assert record["cross"].key.pieces == ("a", "b", "c", "d", "e")
    assert record.verified < 1e-5
    assert record.model.class_name == "Transformer"


def test_a_batch_gives_a_record_each_and_sides_without_tokens_are_numbered():
    torch.manual_seed(5)
    model, states = nn.MultiheadAttention(12, 3, batch_first=True).eval(), torch.randn(2, 4, 12)
    with hs.watch(model, batch=2, keep=("weights", "values")) as seen:
        _, own = model(states, states, states, average_attn_weights=False)
    assert len(seen.records) == 2
    for example, record in enumerate(seen.records):
        assert record["self"].query.pieces == ("0", "1", "2", "3")
        np.testing.assert_allclose(record["self"].weights(0), own[example].numpy(), atol=1e-6)
        assert record["self"].layer(0).queries is None


def test_what_was_not_seen_is_said():
    model = nn.Sequential(nn.Linear(3, 3))
    with pytest.raises(CaptureError, match="Sequential computed no softmax attention that could be seen"):  # noqa: PT012, SIM117
        with hs.watch(model) as seen:
            with pytest.raises(CaptureError, match="once the block of hs.watch is left"):
                _ = seen.record
            model(torch.ones(2, 3))


def test_the_users_own_error_comes_through():
    with pytest.raises(ZeroDivisionError), hs.watch(nn.Linear(3, 3)):
        1 / 0  # noqa: B018
