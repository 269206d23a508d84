"""Layers of one short text wait until it has run: they are the same numbers, and as strictly
checked.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional

import headscope as hs
from headscope import CaptureError
from headscope.capturing import capture_encoded
from headscope.capturing.building import _short_text
from headscope.capturing.building._build import Builder
from headscope.capturing.watching import deferred_work, watch_plan
from headscope.storage import load
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

FAMILIES = ("bert", "gpt2", "llama", "qwen3", "bloom", "gptj", "t5", "mixtral", "gpt_oss")
SHORT, LONGER = "a bee sat.", "the cat sat on a bee and the bee"  # 10 and 26 tokens
ARRAYS = ("weights", "queries", "keys", "values", "bias", "queries_before", "keys_before", "sinks")
FACTS = ("layer", "module", "projection", "route", "scale", "norm", "turned", "verified_against")
STATISTICS = ("entropy", "largest", "first", "special", "same_token", "offsets", "segments")
EVERYTHING = ["weights", "qk", "values", "before", "statistics"]


def encoded(model, text, **options):
    encoding = dict(tiny_tokenizer()([text], return_tensors="pt", **options))
    if model.config.is_encoder_decoder:
        encoding["decoder_input_ids"] = encoding["input_ids"][:, :-2]
    return encoding


def record_of(model, text=SHORT, *, padded=None, **options):
    padding = {"padding": "max_length", "max_length": padded} if padded else {}
    encoding = encoded(model, text, **padding)
    return capture_encoded(model, tiny_tokenizer(), encoding, **options)[0]


def assert_same(ours, theirs):
    assert list(ours.stacks) == list(theirs.stacks)
    for name in ours.stacks:
        for one, other in zip(ours[name], theirs[name], strict=True):
            for fact in FACTS:
                assert getattr(one, fact) == getattr(other, fact), (name, fact)
            assert one.visible == other.visible
            assert str(one.rotary) == str(other.rotary)
            assert one.verified == pytest.approx(other.verified, abs=1e-5)
            assert one.verified_limit == pytest.approx(other.verified_limit)
            for array in ARRAYS:
                assert one.has(array) == other.has(array), (name, array)
                if one.has(array):
                    assert_close(getattr(one, array), getattr(other, array))
            assert (one.statistics is None) == (other.statistics is None)
            if one.statistics is not None:
                assert_same_statistics(one.statistics, other.statistics)


def assert_same_statistics(one, other):
    for name in (*STATISTICS, "received", "top_weights", "top_keys", "rows"):
        mine, yours = getattr(one, name), getattr(other, name)
        assert (mine is None) == (yours is None), name
        if mine is not None:
            assert_close(mine, yours)


@pytest.fixture
def together(monkeypatch):
    """How many layers were made together, each time that any were."""
    counted = []
    original = _short_text._together

    def counting(alike):
        counted.append(len(alike))
        return original(alike)

    monkeypatch.setattr(_short_text, "_together", counting)
    return counted


@pytest.mark.parametrize("text", [SHORT, LONGER])
@pytest.mark.parametrize("family", FAMILIES)
def test_records_are_the_same(family, text, together):
    model = tiny_model(family)
    first = record_of(model, text, keep=EVERYTHING, top=3)
    assert not together
    again = record_of(model, text, keep=EVERYTHING, top=3)
    assert watch_plan.PLANS[model].failures == 0
    assert_same(again, first)
    layers = sum(len(stack) for stack in first.stacks.values())
    # Sinks are each layer's own.
    assert sum(together) == (0 if family == "gpt_oss" else layers)


@pytest.mark.parametrize(
    "options",
    [
        {"keep": "auto"},
        {"keep": "qk"},
        {"keep": "weights"},
        {"keep": "weights", "precision": "float16"},
        {"keep": ["qk", "values"], "precision": "float16"},
        {"keep": "statistics"},
        {"keep": "statistics", "rows": 4, "top": 2},
        {"keep": "norms"},
        {"keep": "auto", "heads": [(0, 1), (1, 0), (1, 2)]},
    ],
    ids=str,
)
@pytest.mark.parametrize("text", [SHORT, LONGER])
def test_whatever_is_kept(options, text):
    model = tiny_model("llama")
    first = record_of(model, text, **options)
    assert_same(record_of(model, text, **options), first)
    assert watch_plan.PLANS[model].failures == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_in_other_precisions(dtype, together):
    model = tiny_model("llama").to(dtype)
    first = record_of(model, keep=EVERYTHING)
    assert_same(record_of(model, keep=EVERYTHING), first)
    assert together == [len(first["self"])]
    assert watch_plan.PLANS[model].failures == 0


def test_with_padding_layers_are_made_one_by_one(together):
    model = tiny_model("bert")
    first = record_of(model, padded=20)
    assert_same(record_of(model, padded=20), first)
    assert len(first["self"].query) < 20
    assert not together


def test_written_to_a_file_layers_do_not_wait(together, tmp_path):
    model = tiny_model("bert")
    first = record_of(model)
    hs.capture(model, tiny_tokenizer(), SHORT, out=tmp_path / "a.safetensors")
    assert not together
    assert_same(load(tmp_path / "a.safetensors"), first)


@pytest.fixture
def numbers(monkeypatch):
    """How many numbers the calls of layers had that waited."""
    counted, original = [], _short_text.numbers_in

    def counting(call):
        counted.append(original(call))
        return counted[-1]

    monkeypatch.setattr(_short_text, "numbers_in", counting)
    return counted


def test_so_many_numbers_are_worked_on_together_and_no_more(together, numbers, monkeypatch):
    model = Written(layers=5)
    first = record_of(model)
    record_of(model)
    assert together == [5]
    monkeypatch.setattr(_short_text, "NUMBERS_TOGETHER", 2 * numbers[0])
    together.clear()
    assert_same(record_of(model), first)
    assert together == [3, 2]


@pytest.mark.parametrize("held", ["NUMBERS_OF_CALL", "NUMBERS_HELD"])
def test_so_many_numbers_wait_and_no_more(held, together, monkeypatch):
    model = Written(layers=5)
    first = record_of(model)
    monkeypatch.setattr(deferred_work, held, 10)
    assert_same(record_of(model), first)
    assert not together
    assert watch_plan.PLANS[model].failures == 0


def test_what_is_too_much_ends_the_waiting_of_all(together, numbers, monkeypatch):
    model = Written(layers=5)
    first = record_of(model)
    record_of(model)
    # queries, keys, values and outputs of heads, and what the projections make of these
    monkeypatch.setattr(deferred_work, "NUMBERS_HELD", 3 * 2 * numbers[0])
    together.clear()
    assert_same(record_of(model), first)
    assert len(together) == 1
    assert 1 < together[0] < 5


def test_in_inference_mode_nothing_waits(together):
    model = tiny_model("bert")
    first = record_of(model)
    with torch.inference_mode():
        assert_same(record_of(model), first)
    assert not together
    assert watch_plan.PLANS[model].failures == 0


class Block(nn.Module):
    """Attention of two heads; ``act`` may do something to its tensors once they were used."""

    def __init__(self, act):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(8, 8) for _ in range(4))
        self.act = act

    def forward(self, states, mask):
        tensors = [
            matrix(states).unflatten(-1, (2, 4)).transpose(1, 2)
            for matrix in (self.q, self.k, self.v)
        ]
        context = functional.scaled_dot_product_attention(*tensors, attn_mask=mask)
        context = context.transpose(1, 2).flatten(2)
        output = self.out(context)
        new = states + output
        self.act(tensors, context, output, mask)
        return new


class Written(nn.Module):
    """A model of three such layers."""

    def __init__(self, act=lambda *_: None, layers=3):
        super().__init__()
        torch.manual_seed(0)
        self.config = type("Config", (), {"is_encoder_decoder": False})()
        self.embed = nn.Embedding(300, 8)
        self.layers = nn.ModuleList([Block(act) for _ in range(layers)])

    def forward(self, input_ids, attention_mask=None):
        size = input_ids.shape[1]
        mask = torch.ones(1, 1, size, size, dtype=torch.bool).tril()
        states = self.embed(input_ids)
        for layer in self.layers:
            states = layer(states, mask)
        return states


def overwritten(tensors, context, output, _):
    for tensor in (*tensors, context, output):
        tensor.fill_(7.0)


def test_layers_of_a_model_that_writes_over_its_tensors_do_not_wait(together):
    left, written = Written(), Written(overwritten)
    theirs = capture_encoded(left, tiny_tokenizer(), encoded(left, SHORT))[0]
    for _ in range(3):
        ours = capture_encoded(written, tiny_tokenizer(), encoded(written, SHORT))[0]
        assert_same(ours, theirs)
    assert not together
    assert watch_plan.PLANS[written].failures == 0
    assert watch_plan.PLANS[written].plan.overwrites


@pytest.mark.parametrize("which", [0, 1, 2, 4])  # the output is compared, not the context
def test_no_tensor_can_be_written_over_unseen(which, together):
    def act(tensors, context, output, _):
        (*tensors, context, output)[which][..., :1].add_(1.0)

    left, written = Written(), Written(act)
    theirs = capture_encoded(left, tiny_tokenizer(), encoded(left, SHORT))[0]
    for _ in range(2):
        ours = capture_encoded(written, tiny_tokenizer(), encoded(written, SHORT))[0]
        assert_same(ours, theirs)
    # not by its numbers: a shift of all keys, for one, changes no weight
    assert not together


def test_where_a_mask_is_written_over_layers_do_not_wait(together):
    calls = []

    def act(*tensors):
        calls.append(1)
        if len(calls) > 3:  # not yet when the plan is made
            tensors[3].logical_not_().logical_not_()

    model = Written(act)
    first, again = (
        capture_encoded(model, tiny_tokenizer(), encoded(model, SHORT))[0] for _ in range(2)
    )
    assert_same(again, first)
    assert not together
    assert watch_plan.PLANS[model].failures == 0


def test_the_error_names_the_layer_that_differs(monkeypatch):
    model = tiny_model("bert")
    record_of(model)
    original, made = functional.scaled_dot_product_attention, []

    def other(*args, **options):
        made.append(1)
        context = original(*args, **options)
        # the second of two layers, in every pass
        return context + 0.1 if len(made) % 2 == 0 else context

    monkeypatch.setattr(functional, "scaled_dot_product_attention", other)
    with pytest.raises(CaptureError, match=r"encoder\.layer\.1\.attention\.self: the layer output"):
        record_of(model)
    assert watch_plan.PLANS[model].failures == 1


def test_the_first_pass_takes_every_layer_at_once(monkeypatch):
    taken = []
    original = Builder.take
    monkeypatch.setattr(
        Builder, "take", lambda self, call: taken.append(call) or original(self, call)
    )
    model = tiny_model("bert")
    record = record_of(model)
    assert len(taken) == len(record["self"])
    record_of(model)
    assert len(taken) == len(record["self"])
