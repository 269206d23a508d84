"""Layers below the changed one are computed once, with the same numbers as by whole runs."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch

from headscope import Zero, ablate, intervene
from headscope.interventions import SetWeights
from headscope.tasks import Task, translation
from headscope.testing import tiny_model

from ...close import assert_close
from .conftest import TEXTS, states_task

SHARED = "layers below the changed one were computed once"
WHOLE = "the whole model was run every time"
SUMS = {"rtol": 1e-4, "atol": 1e-4}
"""Scores of these tasks are sums of many numbers of both signs."""
NAMES = ["bert", "gpt2", "llama", "bart", "gemma2", "modernbert", "mixtral", "t5", "mpt", "xlnet"]


def several(name, tokenizer):
    """A model, and a task of a batch."""
    fewer = {"bart": {"encoder_layers": 1}, "t5": {"num_layers": 1}}
    model = tiny_model(name, **fewer.get(name, {}))
    if model.config.is_encoder_decoder:
        return model, translation(tokenizer, list(zip(TEXTS, TEXTS[::-1], strict=True)), batch=5)
    return model, states_task(tokenizer, batch=5)


def both(model, task, **options):
    """The ablation with and without sharing, whose numbers are the same."""
    found, whole = (ablate(model, task, share=share, **options) for share in (True, False))
    assert whole.shared == WHOLE
    assert_close(found.scores, whole.scores, **SUMS)
    assert_close(found.intact, whole.intact, **SUMS)
    for name, own in whole.totals.items():
        assert_close(found.totals[name], own, **SUMS)
    return found


@pytest.mark.parametrize(
    ("name", "by"), [*((name, "zero") for name in NAMES), ("bert", "uniform"), ("bart", "uniform")]
)
def test_what_is_shared_is_exact(name, by, tokenizer):
    found = both(*several(name, tokenizer), by=by)
    assert found.shared == SHARED
    assert np.abs(found.change).max() > 0


@pytest.mark.parametrize("by", ["mean attention", "mean output"])
def test_what_is_shared_is_exact_by_means_too(by, tokenizer):
    assert np.abs(np.diff(both(*several("bert", tokenizer), by=by).change)).min() > 0


@contextmanager
def one_module_for_all_layers(tokenizer):
    model = tiny_model("albert", num_hidden_layers=3)
    yield model, states_task(tokenizer), f"{WHOLE}: layers share one module"


@contextmanager
def something_passed_by_the_side(tokenizer):
    """Layer 0 leaves something in a box that layer 2 takes: passing over layer 0 would leave it
    empty.
    """
    model, box = tiny_model("bert", num_hidden_layers=3), {}
    first, last = (model.encoder.layer[at].output.dense for at in (0, 2))
    first.register_forward_hook(lambda *_: box.update(bias=1.0))
    last.register_forward_hook(lambda module, args, made: made + box.pop("bias", 0.0))
    below = "passing over the layers below Layer 2 changes what the model returns"
    yield model, states_task(tokenizer), f"{WHOLE}: {below}"


@contextmanager
def weights_and_states_that_a_model_returns(tokenizer):
    model = tiny_model("bert", num_hidden_layers=3)
    model.set_attn_implementation("eager")
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")

    def score(model, batch):
        out = model(**batch, output_hidden_states=True, output_attentions=True)
        each = [*out.hidden_states, *out.attentions]
        return sum(own.double().square().flatten(1).sum(1) for own in each)

    batch = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    yield model, Task([batch], score, "all"), None


@contextmanager
def texts_that_mix(tokenizer):
    model, task = several("bert", tokenizer)
    dense = model.encoder.layer[1].output.dense
    handle = dense.register_forward_hook(lambda module, args, made: made + made.amax(0))
    yield model, task, SHARED
    handle.remove()


@contextmanager
def a_second_run_that_follows_from_the_first(tokenizer):
    """Its layers are given something else without every head: nothing of it may be taken from the
    intact model.
    """
    ids = tokenizer(TEXTS, padding=True, return_tensors="pt")["input_ids"]

    def score(model):
        return model(input_ids=model(input_ids=ids)[0].argmax(-1) % 60)[0].double().sum((1, 2))

    yield tiny_model("bert", num_hidden_layers=3), score, SHARED


@contextmanager
def states_that_are_written_to_between_layers(tokenizer):
    model, task = several("bert", tokenizer)
    layer = model.encoder.layer[1]
    handle = layer.register_forward_pre_hook(lambda _, args: (args[0].mul_(2), *args[1:]))
    yield model, task, None
    handle.remove()


@contextmanager
def a_score_that_writes_to_what_the_model_returns(tokenizer):
    model, task = several("bert", tokenizer)

    def score(model, batch):
        return model(**batch)[0].mul_(3).double().sum((1, 2))

    yield model, Task(task.batches, score, "tripled"), None


@contextmanager
def changes_that_are_made_meanwhile(tokenizer):
    model, task = several("bert", tokenizer)
    with intervene(model, Zero(layer=1, heads=0)):
        yield model, task, SHARED


CASES = [
    one_module_for_all_layers,
    something_passed_by_the_side,
    weights_and_states_that_a_model_returns,
    texts_that_mix,
    a_second_run_that_follows_from_the_first,
    states_that_are_written_to_between_layers,
    a_score_that_writes_to_what_the_model_returns,
    changes_that_are_made_meanwhile,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_whatever_a_model_does_numbers_are_those_of_whole_runs(case, tokenizer):
    with case(tokenizer) as (model, task, shared):
        found = both(model, task)
    assert found.shared == (shared or found.shared)
    changed = [found.change, *(np.ptp(own) for own in found.totals.values())]
    assert max(np.abs(own).max() for own in changed) > 0


def test_changes_of_ones_own_are_made_one_by_one_in_the_order_of_the_heads(tokenizer):
    model, task = several("bert", tokenizer)
    results = []
    for share in (True, False):
        draw = torch.Generator().manual_seed(0)

        def by(draw=draw, **where):
            return SetWeights(weights=lambda own: own * torch.rand(1, generator=draw), **where)

        results.append(ablate(model, task, by=by, layers=False, share=share).scores)
    assert_close(*results)


class Halved(Zero):
    """Of one's own, by another name than its parent's."""

    def maker(self, place, heads):
        return lambda old, at: old / 2


def test_a_class_of_ones_own_is_not_taken_for_its_parent(tokenizer):
    model, task = several("bert", tokenizer)
    assert (both(model, task, by=Halved).scores != ablate(model, task).scores).all()
