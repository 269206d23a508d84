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
    assert {name: len(stack) for name, stack in record.stacks.items()} == {
        "encoder": 2,
        "decoder": 3,
        "cross": 3,
    }
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
    with (  # noqa: PT012
        pytest.raises(
            CaptureError, match="Sequential computed no softmax attention that could be seen"
        ),
        hs.watch(model) as seen,
    ):
        with pytest.raises(CaptureError, match="once the block of hs.watch is left"):
            _ = seen.record
        model(torch.ones(2, 3))


def test_the_users_own_error_comes_through():
    with pytest.raises(ZeroDivisionError), hs.watch(nn.Linear(3, 3)):
        1 / 0  # noqa: B018


class Attention(nn.Module):
    """Two heads of six features, in windows or with its heads mixed where asked."""

    def __init__(self, *, windows: int = 1, axes: int = 4, mixed: bool = False):
        super().__init__()
        self.windows, self.axes, self.mixed = windows, axes, mixed
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)
        self.mix = nn.Linear(2, 2)

    def forward(self, states):
        batch, size, _ = states.shape
        leading = (batch, self.windows) if self.axes == 5 else (batch * self.windows,)
        parts = self.qkv(states).reshape(*leading, size // self.windows, 3, 2, 6)
        query, key, value = (part.transpose(-2, -3) for part in parts.unbind(-3))
        if self.axes == 5:
            context = nn.functional.scaled_dot_product_attention(query, key, value)
        else:
            weights = (query @ key.transpose(-1, -2) / 6**0.5).softmax(-1)
            weights = (
                self.mix(weights.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) if self.mixed else weights
            )
            context = weights @ value
        return self.out(context.transpose(-2, -3).reshape(batch, size, 12))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"windows": 4}, "computes attention on 4 rows where the model was given 1"),
        (
            {"windows": 4, "axes": 5},
            r"attention on \[1, 4, 2, 2, 6\], expected \[batch head query feature\]",
        ),
        ({"mixed": True}, "what is not a softmax: one of these weights is -"),
    ],
)
def test_windows_and_mixed_heads_are_refused_with_the_reason(options, reason):
    torch.manual_seed(6)
    model, states = Attention(**options), torch.randn(1, 8, 12)
    with pytest.raises(CaptureError, match=reason), hs.watch(model):
        model(states)


def test_the_same_attention_without_windows_or_mixing_is_captured():
    torch.manual_seed(6)
    with hs.watch(model := Attention(), keep="weights") as seen:
        model(torch.randn(1, 8, 12))
    assert seen.record["self"].weights(0).shape == (2, 8, 8)
    assert seen.record.verified < 1e-6
