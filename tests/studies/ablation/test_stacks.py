"""Heads of a layer that are disabled in one pass give the same numbers as one by one."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from headscope import SetWeights, Zero, ablate, intervene
from headscope.studies.ablation import _stacks
from headscope.studies.ablation._stacks import Stacks, _Operators
from headscope.tasks import Task, translation
from headscope.testing import tiny_model

from ...close import assert_close
from .conftest import TEXTS, states_task

SUMS = {"rtol": 1e-4, "atol": 1e-4}
"""Scores of these tasks are sums of many numbers of both signs."""


@pytest.fixture
def sizes(monkeypatch):
    """How many changes shared each pass, in the order of the passes."""
    sizes, size_of = [], Stacks.size

    def noted(self, place, count):
        sizes.append(size_of(self, place, count))
        return sizes[-1]

    monkeypatch.setattr(Stacks, "size", noted)
    return sizes


def several(name, tokenizer):
    """A model, and a task of batches that are large enough for copies to come out alike."""
    fewer = {"encoder_layers": 1} if name == "bart" else {}
    model = tiny_model(name, **fewer)
    if model.config.is_encoder_decoder:
        return model, translation(tokenizer, list(zip(TEXTS, TEXTS[::-1], strict=True)), batch=5)
    return model, states_task(tokenizer, batch=5)


def one_by_one(monkeypatch, *given, **options):
    with monkeypatch.context() as patch:
        patch.setattr(_stacks, "MOST_TOKENS", 0)
        return ablate(*given, **options)


def test_copies_are_exact_in_every_way_of_disabling(tokenizer, sizes, monkeypatch):
    model, task = several("bert", tokenizer)
    for by in ("zero", "uniform", "mean attention", "mean output"):
        sizes.clear()
        found, whole = (ablate(model, task, by=by, share=share) for share in (True, False))
        # three heads and the whole layer in one pass, for each of two layers
        assert sizes == [4, 4]
        assert_close(found.scores, whole.scores, **SUMS)
        assert_close(found.scores, one_by_one(monkeypatch, model, task, by=by).scores, **SUMS)
        assert np.abs(np.diff(found.change)).min() > 0


def test_large_batches_are_given_no_copies(tokenizer, sizes, monkeypatch):
    model, task = several("bert", tokenizer)
    tokens = task.batches[0]["input_ids"].numel()
    for large, together in ((tokens, 4), (tokens - 1, 1)):
        sizes.clear()
        monkeypatch.setattr(_stacks, "LARGE", large)
        ablate(model, task)
        assert set(sizes) == {together}


@pytest.mark.parametrize("name", ["gpt2", "llama", "bart", "gemma2", "modernbert"])
@pytest.mark.parametrize("by", ["zero", "uniform"])
def test_copies_are_exact_in_many_architectures(name, by, tokenizer, sizes):
    model, task = several(name, tokenizer)
    found, whole = (ablate(model, task, by=by, share=share) for share in (True, False))
    assert min(sizes) > 2
    assert_close(found.scores, whole.scores, **SUMS)
    assert np.abs(found.change).max() > 0


def test_weights_and_states_that_a_model_returns_are_those_of_the_copy(tokenizer, sizes):
    model = tiny_model("bert", num_hidden_layers=3)
    model.set_attn_implementation("eager")
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")

    def score(model, batch):
        out = model(**batch, output_hidden_states=True, output_attentions=True)
        each = [*out.hidden_states, *out.attentions]
        return sum(own.double().square().flatten(1).sum(1) for own in each)

    names = ("input_ids", "attention_mask")
    task = Task([{name: inputs[name] for name in names}], score, "all")
    found, whole = (ablate(model, task, by="uniform", share=share) for share in (True, False))
    assert_close(found.scores, whole.scores, **SUMS)


@pytest.mark.parametrize("name", ["mixtral", "t5", "xlnet"])
def test_experts_and_what_is_seen_otherwise_are_run_one_by_one(name, tokenizer, sizes):
    ablate(*several(name, tokenizer), layers=False)
    # Layers that are seen otherwise are not even tried.
    assert max(sizes, default=1) == 1


def test_a_layer_in_which_texts_mix_is_given_no_copies(tokenizer, sizes):
    """The largest of a batch is the same over copies of it, until one of them is changed."""
    model, task = several("bert", tokenizer)
    handle = model.encoder.layer[1].output.dense.register_forward_hook(
        lambda module, args, made: made + made.amax(0)
    )
    found, whole = (ablate(model, task, share=share) for share in (True, False))
    handle.remove()
    # The first layer is given copies; the other one is run for each of them by itself.
    assert sizes[0] == 4
    assert set(sizes[1:]) == {1}
    assert_close(found.scores, whole.scores, **SUMS)


def test_operators_whose_sizes_depend_on_numbers_are_noticed():
    numbers = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    for depends, act in (
        (False, lambda: torch.nn.functional.linear(numbers, numbers).softmax(-1)),
        (True, lambda: numbers[numbers > 0]),
        (True, lambda: numbers.argsort()),
        (True, lambda: numbers.sum().item()),
    ):
        with _Operators() as operators:
            act()
        assert operators.depend_on_content is depends


def test_changes_of_ones_own_are_made_one_by_one_in_the_order_of_the_heads(tokenizer, sizes):
    model, task = several("bert", tokenizer)

    def drawn(draw, **where):
        def rows(own):
            return own * torch.rand(1, generator=draw)

        return SetWeights(weights=rows, **where)

    results = []
    for share in (True, False):
        draw = torch.Generator().manual_seed(0)
        by = lambda draw=draw, **where: drawn(draw, **where)  # noqa: E731
        results.append(ablate(model, task, by=by, layers=False, share=share).scores)
    assert_close(*results)


class Halved(Zero):
    """Of one's own, by another name than its parent's."""

    def maker(self, place, heads):
        return lambda old, at: old / 2


def test_a_class_of_ones_own_is_not_taken_for_its_parent(tokenizer):
    model, task = several("bert", tokenizer)
    found, whole = (ablate(model, task, by=Halved, share=share) for share in (True, False))
    assert_close(found.scores, whole.scores, **SUMS)
    assert (found.scores != ablate(model, task).scores).all()


def test_a_second_run_that_follows_from_the_first_is_made_for_each_head(tokenizer, sizes):
    """Its layers are given something else for every copy, and the changed one more than that."""
    model = tiny_model("bert", num_hidden_layers=3)
    ids = tokenizer(TEXTS, padding=True, return_tensors="pt")["input_ids"]

    def score(model):
        more = model(input_ids=ids)[0].argmax(-1) % 60
        return model(input_ids=more)[0].double().sum((1, 2))

    found, whole = (ablate(model, score, share=share) for share in (True, False))
    assert_close(found.scores, whole.scores, **SUMS)
    assert sizes[0] > 1
    assert sizes[-1] == 1


def test_states_that_are_written_to_between_layers_are_not_of_the_copies(tokenizer):
    model, task = several("bert", tokenizer)

    def double(_, args):
        args[0].mul_(2)

    handle = model.encoder.layer[1].register_forward_pre_hook(double)
    found, whole = (ablate(model, task, share=share) for share in (True, False))
    handle.remove()
    assert_close(found.scores, whole.scores, **SUMS)


def test_what_a_score_writes_to_one_copy_is_not_of_the_others(tokenizer):
    model, task = several("bert", tokenizer)

    def score(model, batch):
        return model(**batch)[0].mul_(3).double().sum((1, 2))

    task = Task(task.batches, score, "tripled")
    found, whole = (ablate(model, task, share=share) for share in (True, False))
    assert_close(found.scores, whole.scores, **SUMS)


def test_attention_of_the_changed_layer_is_computed_once_for_all_copies(
    tokenizer, sizes, monkeypatch
):
    model, task = several("bert", tokenizer)
    ablate(model, task)  # finds the layers
    given, attend = [], functional.scaled_dot_product_attention

    def noted(query, *args, **options):
        given.append(len(query))
        return attend(query, *args, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", noted)
    sizes.clear()
    ablate(model, task, layers=False, heads=[(0, 0), (0, 1), (0, 2)])
    assert sizes == [3]
    # Asking which layers there are, the run that is kept and the check of each of two layers; two
    # copies are tried; then the changed layer for the batch, the next for three copies.
    batch = len(TEXTS)
    assert given == [batch] * (2 + 2 + 2) + [2 * batch, batch, 3 * batch]


def test_changes_that_are_made_meanwhile_are_of_the_batch(tokenizer, sizes):
    model, task = several("bert", tokenizer)
    with intervene(model, Zero(layer=1, heads=0)):
        found, whole = (ablate(model, task, share=share) for share in (True, False))
    assert not sizes
    assert_close(found.scores, whole.scores, **SUMS)
    assert (found.intact != ablate(model, task).intact).any()


def test_compiled_layers_are_passed_over_too(tokenizer, sizes):
    model, task = several("bert", tokenizer)
    whole = ablate(model, task, share=False)
    for layer in model.encoder.layer:
        layer.compile(backend="eager")
    found = ablate(model, task)
    assert sizes == [4, 4]
    assert_close(found.scores, whole.scores, **SUMS)
