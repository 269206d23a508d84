"""What tokens add in attention whose parts have names that say nothing, and in norms that lie."""

import numpy as np
import pytest
import torch
from torch import nn

import headscope as hs
from headscope.capturing.contributions._modules import norm_of
from headscope.errors import RecordError
from headscope.testing import tiny_model

from .conftest import TEXT


class Odd(nn.Module):
    """Attention whose parts have names that say nothing, with a scale on the residual and one on
    the output.
    """

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(3)
        self.apple, self.pear = nn.Linear(12, 36), nn.Linear(12, 12)
        self.plum, self.fig, self.kind = nn.LayerNorm(12), nn.Linear(12, 12), kind
        nn.init.normal_(self.plum.weight)
        nn.init.normal_(self.plum.bias)

    def forward(self, x):
        q, k, v = self.apple(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        mixed = (q @ k.transpose(-1, -2) / 2).softmax(-1) @ v
        if self.kind == "gated":
            mixed = mixed * x.mean(-1)[:, None, :, None].sigmoid()
        out = self.pear(mixed.transpose(1, 2).flatten(2))
        if self.kind == "scaled":
            return self.fig(self.plum(2.5 * x + 0.125 * out))
        if self.kind == "squared":
            return self.fig(self.plum(x + out * out))
        if self.kind == "foreign":
            return self.fig(self.plum(torch.sin(x) + out))
        if self.kind == "function":
            whole = x + out
            return whole + self.fig(nn.functional.layer_norm(whole, (12,)))
        if self.kind == "matrix":
            whole = x + out
            return whole + self.fig(whole)
        if self.kind == "beside":
            return self.fig(self.plum(self.fig(x) + out + x))
        if self.kind == "in place":
            out += x
            out += self.fig(self.plum(out))
            return out
        return self.fig(self.plum(x + out))


def odd(kind):
    model = Odd(kind)
    with hs.watch(model, batch=2, keep="alti") as seen:
        model(torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(1)))
    return [record["self"].layer(0).contributions for record in seen.records]


@pytest.mark.parametrize("kind", ["plain", "scaled", "in place"])
def test_parts_are_found_by_their_numbers(kind):
    for found in odd(kind):
        assert "plum (LayerNorm)" in found.decomposes
        assert found.verified < 1e-5
    assert ("(pre-norm)" in odd(kind)[0].decomposes) == (kind == "in place")


@pytest.mark.parametrize("kind", ["function", "matrix"])
def test_without_a_norm_that_is_a_module_there_is_the_stream(kind):
    found = odd(kind)[0]
    np.testing.assert_allclose(found.residual, odd("plain")[0].residual, rtol=1e-5)
    assert (
        found.decomposes
        == "the residual stream after the attention, which no module that is a norm takes"
    )
    with pytest.raises(RecordError, match="no module that is a norm takes the sum"):
        found.of("output")


def test_what_runs_beside_is_no_tokens():
    found = odd("beside")[0]
    np.testing.assert_allclose(found.residual, odd("plain")[0].residual, rtol=1e-5)
    assert "what else is added in the same place is not a token's" in found.decomposes
    assert (found.output < odd("plain")[0].output).any()


def test_scales_of_both_parts_are_heeded():
    (scaled, _), (plain, _) = odd("scaled"), odd("plain")
    apart = ~np.eye(7, dtype=bool)
    np.testing.assert_allclose(scaled.attention, plain.attention, rtol=1e-5)
    np.testing.assert_allclose(scaled.residual[apart], 0.125 * plain.residual[apart], rtol=1e-5)
    assert (scaled.mixing_residual < plain.mixing_residual).all()


@pytest.mark.parametrize(
    ("kind", "missing", "match"),
    [
        ("gated", "attention", "no matrix takes the output of its heads unchanged"),
        ("squared", "residual", "nothing is added to its output"),
        ("foreign", "residual", "nothing had been read by a part of the model before"),
    ],
)
def test_what_is_not_a_sum_of_pieces_is_refused(kind, missing, match):
    with pytest.raises(RecordError, match=match):
        odd(kind)[0].of(missing)


def test_a_norm_that_lies_is_found_out(monkeypatch):
    from headscope.capturing.contributions import _watch as _norms
    from headscope.norms import Norm

    real = _norms.norm_of

    def lying(module, width):
        found = real(module, width)
        return found and Norm(
            gain=found.gain * 1.001, shift=found.shift, eps=found.eps, centred=found.centred
        )

    monkeypatch.setattr(_norms, "norm_of", lying)
    found = odd("plain")[0]
    assert found.residual is not None
    with pytest.raises(RecordError, match=r"from the norm's output of the model \(allowed"):
        found.of("output")
    with pytest.raises(RecordError, match="norm's output"):
        found.of("alti")


def test_a_second_norm_that_lies_costs_only_what_needs_it(monkeypatch, tokenizer):
    from headscope.capturing.contributions import _watch as _norms
    from headscope.norms import Norm

    model, real = tiny_model("bert"), _norms.norm_of
    seconds = [layer.output.LayerNorm for layer in model.encoder.layer]

    def lying(module, width):
        found = real(module, width)
        if module not in seconds:
            return found
        return Norm(
            gain=found.gain * 1.001, shift=found.shift, eps=found.eps, centred=found.centred
        )

    monkeypatch.setattr(_norms, "norm_of", lying)
    found = hs.capture(model, tokenizer, TEXT, keep="alti")["self"].layer(0).contributions
    assert set(found.missing) == {"globenc"}
    assert "second norm's output" in found.missing["globenc"]


@pytest.mark.parametrize(
    "module", [nn.Linear(24, 24), nn.GELU(), nn.Dropout().eval(), nn.Identity(), nn.Softmax(-1)]
)
def test_other_modules_are_no_norms(module):
    assert norm_of(module, 24) is None
