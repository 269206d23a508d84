"""Norms of models that changed since the last capture, or while one runs."""

import copy
import threading

import numpy as np
import pytest
import torch
from torch import nn

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.testing import tiny_model, tiny_tokenizer

from ...close import assert_close

TEXTS = ["the cat sat.", "a bee sat on the cat."]
KINDS = ("attention", "residual", "output", "alti", "globenc", "own")
MIXED = ("mixing_attention", "mixing_residual", "mixing_output")


def records_of(model, texts=TEXTS, keep="alti", **options):
    tokenizer = tiny_tokenizer()
    encoding = dict(tokenizer(texts, return_tensors="pt", padding=True))
    if model.config.is_encoder_decoder:
        encoding["decoder_input_ids"] = encoding["input_ids"]
        encoding["decoder_attention_mask"] = encoding["attention_mask"]
    return capture_encoded(model, tokenizer, encoding, keep=keep, **options)


def contributions_of(records):
    return [
        (layer, layer.contributions)
        for record in records
        for stack in record.stacks.values()
        for layer in stack
    ]


def assert_same(first, second):
    pairs = zip(contributions_of(first), contributions_of(second), strict=True)
    for (one, ours), (other, theirs) in pairs:
        assert_close(one.value_norms, other.value_norms)
        for fact in ("missing", "decomposes", "expansion"):
            assert getattr(ours, fact) == getattr(theirs, fact), fact
        assert ours.verified == pytest.approx(theirs.verified, abs=1e-5)
        for name in KINDS + MIXED:
            a, b = getattr(ours, name), getattr(theirs, name)
            assert (a is None) == (b is None), name
            if a is not None:
                assert_close(a, b)


class EightBit(nn.Module):
    """A linear layer whose weights are whole numbers of 8 bits, multiplied by a scale in use."""

    def __init__(self, linear):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.scale = nn.Buffer(linear.weight.detach().abs().amax(dim=1, keepdim=True) / 127)
        whole = (linear.weight.detach() / self.scale).round().to(torch.int8)
        self.weight = nn.Parameter(whole, requires_grad=False)
        self.bias = linear.bias

    def forward(self, states):
        return nn.functional.linear(states, self.weight.float() * self.scale, self.bias)


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_model_that_was_quantised_since_is_looked_at_anew(family):
    model = copy.deepcopy(tiny_model(family))
    plain = records_of(model)
    for name, module in list(model.named_modules()):
        if type(module) is nn.Linear:
            model.set_submodule(name, EightBit(module))
    known = records_of(model)
    assert_same(known, records_of(model))
    pairs = zip(contributions_of(known), contributions_of(plain), strict=True)
    for (_, ours), (_, before) in pairs:
        assert ours.missing == before.missing
        assert not np.array_equal(ours.attention, before.attention)
        assert np.allclose(ours.attention, before.attention, rtol=0.2, atol=0.05)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", ["bert", "llama"])
def test_with_inputs_quantised_too_norms_are_missing_with_the_reason(family):
    model = copy.deepcopy(tiny_model(family))
    records_of(model)
    # its matrices round what they are given, so that no pieces sum to what they give
    torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, inplace=True)
    known = records_of(model)
    for _, ours in contributions_of(known):
        assert "no matrix takes the output of its heads" in ours.missing["attention"]
        assert ours.attention is None


class Twice(nn.Module):
    """Adds to the output of a block's attention what nobody has seen before."""

    def __init__(self, dense):
        super().__init__()
        self.dense = dense

    def forward(self, states, input_tensor):
        return self.dense.LayerNorm(self.dense.dense(states) + 2 * input_tensor)


def test_a_block_that_computes_something_else_later_is_looked_at_anew(monkeypatch):
    model = copy.deepcopy(tiny_model("bert"))
    records_of(model)
    output = model.encoder.layer[1].attention.output
    monkeypatch.setattr(output, "forward", Twice(output).forward)
    known = records_of(model)
    # the residual is now a multiple of what was read, which the search everywhere knows
    assert_same(known, records_of(model))


def test_a_model_that_writes_into_its_tensors_is_read_from_copies(monkeypatch):
    model = copy.deepcopy(tiny_model("bert"))
    output = model.encoder.layer[0].output
    original = output.forward

    def writing(*given):
        return original(*given).mul_(2)

    plain = records_of(model)
    monkeypatch.setattr(output, "forward", writing)
    known = records_of(model)
    assert_same(known, records_of(model))
    assert_same(known, records_of(model))
    layers = [records[0]["self"].layers[0].contributions for records in (known, plain)]
    assert_close(*(layer.globenc for layer in layers))


def test_a_second_attention_later_is_seen(monkeypatch):
    model = copy.deepcopy(tiny_model("bert"))
    records_of(model)
    block = model.encoder.layer[1].attention
    original = block.forward

    def twice(states, *args, **options):
        first, *rest = original(states, *args, **options)
        second, *_ = original(first, *args, **options)
        return (second, *rest)

    monkeypatch.setattr(block, "forward", twice)
    assert len(records_of(model)[0]["self"].layers) == model.config.num_hidden_layers + 1


def test_an_error_inside_the_pass_leaves_no_hooks(monkeypatch):
    model = copy.deepcopy(tiny_model("gpt2"))
    records_of(model)

    def failing(*_):
        raise RuntimeError("of the user")

    hook = model.h[1].mlp.register_forward_hook(failing)
    with pytest.raises(RuntimeError, match="of the user"):
        records_of(model)
    hook.remove()
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
    assert records_of(model)[0]["self"].layers[0].contributions.output is not None


def test_a_hook_that_changes_the_stream_is_seen():
    model = copy.deepcopy(tiny_model("gpt2"))
    plain = records_of(model)
    hook = model.h[0].mlp.register_forward_hook(lambda *call: call[2] * 2)
    changed = records_of(model)
    hook.remove()
    assert_same(plain, records_of(model))
    first, second = (record[0]["self"].layers[1].contributions for record in (plain, changed))
    assert not np.array_equal(first.output, second.output)


def test_interventions_and_captures_inside_a_pass_change_nothing():
    model = copy.deepcopy(tiny_model("bert"))
    plain, inside = records_of(model), []
    other = tiny_model("bert")
    hook = model.encoder.layer[0].register_forward_hook(
        lambda *_: inside.append(records_of(other, TEXTS[:1])) and None
    )
    assert_same(plain, records_of(model))
    hook.remove()
    assert len(inside) == 1
    assert_same(inside[0], records_of(other, TEXTS[:1]))
    masked = records_of(model, interventions=[hs.Zero(layer=0, heads=[1])])
    changed, intact = (
        records[0]["self"].layers[0].contributions.attention for records in (masked, plain)
    )
    assert changed is None or not np.array_equal(changed, intact)
    assert_same(plain, records_of(model))


def test_another_thread_does_not_reach_the_hooks():
    model = copy.deepcopy(tiny_model("gpt2"))
    plain = records_of(model)
    ids = torch.tensor([[3, 4, 5, 6, 7]])
    errors = []

    def run():
        try:
            with torch.no_grad():
                model(ids)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is to be seen
            errors.append(error)

    def beside(*_):
        if threading.current_thread() is threading.main_thread():
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()

    hook = model.h[1].register_forward_pre_hook(beside)
    assert_same(plain, records_of(model))
    hook.remove()
    assert not errors


def _linears(model):
    return [name for name, module in model.named_modules() if type(module) is nn.Linear]


def _in_place(model):
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.25)


def _loaded(model):
    model.load_state_dict({name: 0.75 * held for name, held in model.state_dict().items()})


def _past_the_count(model):
    # torch counts writes to a tensor, but none to its .data
    for weight in model.parameters():
        weight.data += 0.1 * torch.randn_like(weight)


def _one_number_past_the_count(model):
    for name in _linears(model):
        model.get_submodule(name).weight.data[1, 1] += 5


def _other_parameters(model):
    for name in _linears(model):
        linear = model.get_submodule(name)
        linear.weight = nn.Parameter(0.3 * torch.randn_like(linear.weight))


def _other_modules(model):
    for name in _linears(model):
        old = model.get_submodule(name)
        given = {"bias": old.bias is not None, "dtype": old.weight.dtype}
        model.set_submodule(name, nn.Linear(old.in_features, old.out_features, **given))


CHANGES = {
    "double": lambda model: model.double(),
    "half": lambda model: model.bfloat16(),
    "there and back": lambda model: model.bfloat16().float(),
    "in place": _in_place,
    "loaded": _loaded,
    "past the count": _past_the_count,
    "one number past the count": _one_number_past_the_count,
    "other parameters": _other_parameters,
    "other modules": _other_modules,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_model_that_changed_between_captures_is_as_one_never_seen(family, change):
    model = copy.deepcopy(tiny_model(family))
    before = [records_of(model) for _ in range(2)][1]
    torch.manual_seed(0)
    CHANGES[change](model)
    known = records_of(model)
    # a copy has never been seen, and nothing of the model itself is remembered by its copy
    assert_same(known, records_of(copy.deepcopy(model)))
    assert_same(known, records_of(model))
    pairs = zip(contributions_of(known), contributions_of(before), strict=True)
    for (_, ours), (_, theirs) in pairs:
        assert ours.attention is not None
        assert not np.array_equal(ours.attention, theirs.attention)
