"""Where attention is in a model is remembered, and proved anew in every pass."""

import copy
import gc
import threading
import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

import headscope as hs
from headscope import Tokens
from headscope.capturing import capture_encoded
from headscope.capturing.entry import capture_ids
from headscope.capturing.watching import watch_plan
from headscope.capturing.watching.modes import innermost_mode
from headscope.capturing.watching.operators import OperatorWatch
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close
from .growing_model import Attention, Model, hand_written

TEXTS = ["the cat sat.", "a bee sat on the cat.", "a"]
FAMILIES = ("bert", "gpt2", "llama", "qwen3", "bloom", "gptj", "t5", "mixtral", "deberta-v2")
ARRAYS = ("weights", "queries", "keys", "values", "bias", "queries_before", "keys_before")


def encoded(model, texts=TEXTS[:2]):
    tokenizer = tiny_tokenizer()
    encoding = dict(tokenizer(texts, return_tensors="pt", padding=True))
    if model.config.is_encoder_decoder:
        encoding["decoder_input_ids"] = encoding["input_ids"]
        encoding["decoder_attention_mask"] = encoding["attention_mask"]
    return encoding


def records_of(model, texts=TEXTS[:2], **options):
    options.setdefault("keep", ["weights", "qk", "values", "before", "statistics"])
    return capture_encoded(model, tiny_tokenizer(), encoded(model, texts), **options)


def forgotten(model):
    """The same model, of which nothing is remembered."""
    watch_plan.PLANS.pop(model, None)
    return model


def assert_same(first, second):
    assert len(first) == len(second)
    for ours, theirs in zip(first, second, strict=True):
        assert list(ours.stacks) == list(theirs.stacks)
        for name in ours.stacks:
            for one, other in zip(ours[name], theirs[name], strict=True):
                for fact in ("layer", "module", "projection", "route", "scale", "norm", "turned"):
                    assert getattr(one, fact) == getattr(other, fact), (name, fact)
                assert one.visible == other.visible
                assert str(one.rotary) == str(other.rotary)
                for array in ARRAYS:
                    assert one.has(array) == other.has(array), (name, array)
                    if one.has(array):
                        assert_close(getattr(one, array), getattr(other, array))
                assert_close(one.statistics.entropy, other.statistics.entropy)


@pytest.fixture
def hooks(monkeypatch):
    """How many hooks were put on modules."""
    counted = []
    for name in ("register_forward_hook", "register_forward_pre_hook"):
        original = getattr(nn.Module, name)

        def counting(self, *args, original=original, **options):
            counted.append(type(self).__name__)
            return original(self, *args, **options)

        monkeypatch.setattr(nn.Module, name, counting)
    return counted


@pytest.mark.parametrize("family", FAMILIES)
def test_records_are_the_same_with_a_plan_and_without(family):
    model = tiny_model(family)
    fresh = records_of(forgotten(model))
    assert watch_plan.PLANS[model].plan is not None
    again = records_of(model)
    assert watch_plan.PLANS[model].failures == 0
    assert_same(fresh, again)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bloom", "mixtral"])
def test_a_plan_holds_for_other_lengths_and_batches(family):
    model = tiny_model(family)
    records_of(model, TEXTS[:1])
    for texts in (TEXTS[1:2], TEXTS):
        ours = records_of(model, texts)
        assert watch_plan.PLANS[model].failures == 0
        assert_same(ours, records_of(copy.deepcopy(model), texts))


def test_with_a_plan_few_modules_have_hooks(hooks):
    model = tiny_model("bert")
    records_of(forgotten(model))
    everywhere = len(hooks)
    hooks.clear()
    records_of(model)
    layers = model.config.num_hidden_layers
    assert len(hooks) == 4 * layers  # the module, queries, keys and output projection
    assert everywhere > 4 * len(hooks)


def test_with_a_plan_routers_are_watched_where_they_were_found(hooks):
    model = tiny_model("mixtral")
    first = records_of(forgotten(model), routers=True)
    hooks.clear()
    again = records_of(model, routers=True)
    with_routers = len(hooks)
    hooks.clear()
    records_of(model)
    assert with_routers == len(hooks) + model.config.num_hidden_layers
    for ours, theirs in zip(again, first, strict=True):
        assert list(ours["self"].routers) == list(theirs["self"].routers) == [0, 1]
        for number, scores in ours["self"].routers.items():
            assert_close(scores, theirs["self"].routers[number])


def test_other_modules_that_are_routers_now_are_found_by_looking_anew():
    model = tiny_model("mixtral")
    first = records_of(forgotten(model), routers=True)
    plan = watch_plan.PLANS[model].plan
    true = plan.routers
    plan.routers = true[::-1]
    again = records_of(model, routers=True)
    assert watch_plan.PLANS[model].plan.routers == true
    assert watch_plan.PLANS[model].plan is not plan
    assert_close(again[0]["self"].routers[0], first[0]["self"].routers[0])


def test_a_plan_of_one_token_is_made_anew_where_there_is_more_to_see():
    model = tiny_model("llama")
    first = capture_ids(forgotten(model), input_ids=torch.tensor([[5]]))[0]
    assert first["self"].layers[0].rotary is None
    second = capture_ids(model, input_ids=torch.tensor([[5, 6, 7, 8]]))[0]
    assert second["self"].layers[0].rotary is not None


def test_no_model_is_kept_alive():
    model = tiny_model("bert")
    records_of(model)
    there = weakref.ref(model)
    del model
    gc.collect()
    assert there() is None


def modules_in(model):
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    return [
        layer.module
        for stack in capture_ids(model, input_ids=ids)[0].stacks.values()
        for layer in stack
    ]


@pytest.mark.parametrize("form", ["module", "fused", "functional", "method", "kernel"])
def test_a_second_attention_that_comes_later_is_seen(form):
    model = hand_written()
    assert modules_in(model) == ["layers.0.attention", "layers.1.attention"]
    assert modules_in(model) == ["layers.0.attention", "layers.1.attention"]
    assert watch_plan.PLANS[model].failures == 0
    model.layers[1].form = form
    later = modules_in(model)
    assert len(later) == 3
    assert later == modules_in(forgotten(model))
    assert later == modules_in(model)  # by the new plan


def test_another_branch_of_the_same_module_is_looked_at_anew():
    model = hand_written()
    modules_in(model)
    model.layers[0].attention.form = "fused"
    assert modules_in(model) == ["layers.0.attention", "layers.1.attention"]
    assert watch_plan.PLANS[model].failures == 0


@pytest.mark.parametrize("form", ["softmax, fused", "softmax, softmax", "fused, softmax"])
def test_a_second_attention_of_the_same_module_is_seen(form):
    model = hand_written()
    modules_in(model)
    for layer in model.layers:
        layer.attention.form = form.split(",")[0]
    assert modules_in(model) == ["layers.0.attention", "layers.1.attention"]
    assert watch_plan.PLANS[model].failures == 0
    model.layers[1].attention.form = form
    later = modules_in(model)
    assert later == ["layers.0.attention", "layers.1.attention", "layers.1.attention"]
    assert later == modules_in(forgotten(model))
    assert later == modules_in(model)  # by the new plan


@pytest.fixture
def seen(monkeypatch):
    """Names of torch's functions that passed a watch by."""
    names = []
    original = OperatorWatch.__torch_function__

    def noting(self, func, types, args=(), kwargs=None):
        names.append(func.__name__)
        return original(self, func, types, args, kwargs)

    monkeypatch.setattr(OperatorWatch, "__torch_function__", noting)
    return names


def test_with_a_plan_torch_is_watched_from_the_first_product_to_the_last(seen):
    model = hand_written()
    modules_in(model)
    seen.clear()
    modules_in(model)
    # Neither what makes queries, keys and values before nor what takes the outputs after.
    assert seen == ["matmul", "div", "softmax", "matmul"] * 2


class Quiet(TorchFunctionMode):
    """A mode of the model's own, which changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class ModedAttention(Attention):
    """Attention that is computed inside a mode of the model's own, all of it or a part.

    Args:
        part: of the attention: "all", or "weights" without the product with values.
    """

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, states):
        query, key, value = (
            part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.qkv(states).chunk(3, -1)
        )
        with Quiet():
            weights = (query @ key.transpose(-1, -2) / 2).softmax(-1)
            if self.part == "all":
                context = weights @ value
        if self.part == "weights":
            context = weights @ value
        return self.out(context.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("part", ["all", "weights"])
def test_a_mode_of_the_models_own_is_left_where_it_was(part):
    model = hand_written()
    for layer in model.layers:
        layer.attention = ModedAttention(part)
    first = modules_in(model)
    assert first == ["layers.0.attention", "layers.1.attention"]
    for _ in range(2):
        assert modules_in(model) == first
        assert innermost_mode() is None
    assert watch_plan.PLANS[model].failures == 0


def test_torchs_own_attention_is_watched_from_its_beginning():
    # It takes another way, which shows no weights, where nobody watches when it begins.
    model = hand_written()
    for layer in model.layers:
        layer.attention = SelfAttention()
    first = modules_in(model)
    assert first == ["layers.0.attention.whole", "layers.1.attention.whole"]
    assert modules_in(model) == first
    assert watch_plan.PLANS[model].failures == 0


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.whole = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, states):
        return self.whole(states, states, states, need_weights=False)[0]


def test_a_module_that_takes_the_place_of_another_is_seen():
    model = hand_written()
    modules_in(model)
    model.layers[0].attention = Attention("fused")
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    ours = capture_ids(model, input_ids=ids)[0]
    theirs = capture_ids(forgotten(model), input_ids=ids)[0]
    for one, other in zip(ours["self"], theirs["self"], strict=True):
        assert_close(one.weights, other.weights)


class Adapter(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.down, self.up = nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)

    def forward(self, states):
        return self.base(states) + self.up(self.down(states))


def test_an_adapter_that_is_put_on_later_is_seen():
    model = hand_written()
    modules_in(model)
    for layer in model.layers:
        layer.attention.out = Adapter(layer.attention.out)
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    found = [layer.projection for layer in capture_ids(model, input_ids=ids)[0]["self"]]
    assert found == ["layers.0.attention.out.base", "layers.1.attention.out.base"]


def test_weights_written_in_place_are_the_ones_that_are_captured():
    model = tiny_model("bert")
    records_of(model)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "query" in name:
                weight.mul_(1.5)
            elif "dense" in name:
                weight.data.add_(0.01)
    assert_same(records_of(model), records_of(copy.deepcopy(model)))
    assert watch_plan.PLANS[model].failures == 0


class Fickle(Model):
    """Computes another number of attentions in every pass."""

    passes = 0

    def forward(self, input_ids):
        self.passes += 1
        states = self.embed(input_ids)
        for layer in self.layers[: 1 + self.passes % 2]:
            states = layer(states)
        return states


@pytest.mark.filterwarnings("ignore:The attention of some layers")
def test_a_model_whose_plans_keep_failing_is_run_once_a_capture():
    torch.manual_seed(0)
    model = Fickle().eval()
    for _ in range(2 * watch_plan.FAILURES + 2):
        modules_in(model)
    before = model.passes
    assert len(modules_in(model)) == 1 + model.passes % 2
    assert model.passes == before + 1


def test_a_wrong_plan_costs_a_pass_and_no_exactness():
    """A plan that is not even of this model's layers is thrown away."""
    model = tiny_model("gpt2")
    fresh = records_of(forgotten(model))
    plan = watch_plan.PLANS[model].plan
    wrong = watch_plan.WatchPlan(plan.modules, plan.sites[::-1], plan.softmaxes)
    watch_plan.PLANS[model].plan = wrong
    assert_same(fresh, records_of(model))
    assert watch_plan.PLANS[model].plan.sites == plan.sites


def test_inside_an_intervention_the_change_is_captured_and_the_plan_stays():
    model = tiny_model("bert")
    plain = records_of(model)
    zeroed = records_of(model, interventions=[hs.Zero(layer=0, heads=[1])])
    assert zeroed[0]["self"].layers[0].changes
    assert not plain[0]["self"].layers[0].changes
    assert_same(plain, records_of(model))
    assert watch_plan.PLANS[model].failures == 0


def test_threads_share_a_plan():
    model = tiny_model("bert")
    wanted, found = records_of(model), []
    threads = [threading.Thread(target=lambda: found.append(records_of(model))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for records in found:
        assert_same(wanted, records)
    assert watch_plan.PLANS[model].failures == 0


def test_torch_comes_back_as_it_was():
    before = torch.softmax, torch.Tensor.softmax, functional.scaled_dot_product_attention
    products = torch.matmul, torch.einsum, torch.Tensor.__matmul__, torch.Tensor.baddbmm
    inside = vars(torch.Tensor).get("softmax")
    for _ in range(2):
        records_of(tiny_model("bert"))
        records_of(tiny_model("bloom"))
    now = torch.softmax, torch.Tensor.softmax, functional.scaled_dot_product_attention
    assert products == (torch.matmul, torch.einsum, torch.Tensor.__matmul__, torch.Tensor.baddbmm)
    assert all(ours is theirs for ours, theirs in zip(before, now, strict=True))
    assert vars(torch.Tensor).get("softmax") is inside


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1]], ids=["several", "one"])
def test_an_array_does_not_keep_others_alive(texts):
    model = tiny_model("bert")
    records_of(model)
    for keep in ("qk", "weights", "statistics", "auto"):
        for record in records_of(model, texts, keep=keep):
            for layer in record["self"]:
                for name in ARRAYS:
                    if layer.has(name):
                        array = getattr(layer, name)
                        assert held_by(array) <= array.nbytes
                if layer.statistics is not None:
                    held = held_by(layer.statistics.entropy)
                    assert held <= 64 * layer.statistics.entropy.nbytes


def held_by(array):
    """Bytes of the memory that lives as long as an array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.nbytes


def test_a_plan_fits_the_modules_it_was_made_of_alone():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    modules = watch_plan.ModelModules.of(model)
    assert modules.names[id(model[1])] == "1"
    site = watch_plan.AttentionSite(
        module=1, route="operators", cross=False, projection=2, makers=(1, 1)
    )
    plan = watch_plan.WatchPlan(tuple(map(weakref.ref, modules.all)), (site,), 1)
    assert plan.fits(watch_plan.ModelModules.of(model))
    chosen = plan.watched(modules)
    assert list(chosen.operators) == list(chosen.running) == list(chosen.makers) == [model[0]]
    assert list(chosen.matrices) == [model[1]]
    plan.check((site,), 1, ())
    with pytest.raises(watch_plan.PlanFailedError, match="1 calls"):
        plan.check((site,), 2, ())
    model[1] = nn.Linear(2, 2)
    assert not plan.fits(watch_plan.ModelModules.of(model))
    model.append(nn.Linear(2, 2))
    assert not plan.fits(watch_plan.ModelModules.of(model))


def test_names_are_those_of_torch():
    shared = nn.Linear(2, 2)
    model = nn.ModuleDict({"a": nn.Sequential(shared, nn.ReLU()), "b": shared})
    modules = watch_plan.ModelModules.of(model)
    assert [modules.names[id(module)] for module in modules.all] == [
        name for name, _ in model.named_modules()
    ]
    assert list(modules.all) == list(model.modules())


def test_tokens_of_a_watched_model_need_no_plan():
    model = Attention().eval()
    with hs.watch(model, Tokens(pieces=("a", "b", "c"))) as seen:
        model(torch.randn(1, 3, 8))
    assert len(seen.record["self"]) == 1
    assert model not in watch_plan.PLANS


def test_the_plan_of_a_model_holds_whatever_its_modules_are_called():
    model = hand_written()
    for layer in model.layers:
        layer.attention = Mixer()
    first = modules_in(model)
    assert first == ["layers.0.attention", "layers.1.attention"]
    assert modules_in(model) == first
    assert watch_plan.PLANS[model].failures == 0


class Mixer(nn.Module):
    """Attention of two heads from matrices of its own, in a class that does not say so."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, states):
        query, key, value = (
            matrix(states).unflatten(-1, (2, 4)).transpose(1, 2)
            for matrix in (self.q, self.k, self.v)
        )
        context = functional.scaled_dot_product_attention(query, key, value)
        return self.out(context.transpose(1, 2).flatten(2))
