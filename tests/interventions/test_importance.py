"""Importance of heads: against identities, finite differences and planted heads."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import InterventionError
from headscope.interventions import (
    Uniform,
    Zero,
    confidence_importance,
    gradient_importance,
    greedy_pruning,
    leave_one_out,
    pruning_curve,
)
from headscope.tasks import Task, classification, next_word
from headscope.testing import tiny_model

from ..close import assert_close
from ..processors import with_head

TEXTS = ["the cat sat.", "a bee", "on it she ran", "home no", "no dog ran home."]


@pytest.fixture
def writer():
    return tiny_model("gpt2", writes=True)


@pytest.fixture
def task(tokenizer):
    return next_word(tokenizer, TEXTS, batch=2)


def test_the_gradient_is_the_slope_of_the_score(writer, task):
    from headscope.interventions.importance import scores_of

    writer = writer.double()
    # In double precision, which likelihoods are not.
    task = Task(task.batches, lambda model, batch: run(model, batch).logits.logsumexp(-1).mean(1))
    found = gradient_importance(writer, task)
    step = 1e-4
    for layer, head in ((0, 1), (2, 4)):
        ends = []
        for factor in (1 - step, 1 + step):
            projection = writer.get_submodule(f"transformer.h.{layer}.attn.c_proj")
            kept = projection.weight.detach().clone()
            with torch.no_grad():
                projection.weight[head * 4 : head * 4 + 4] *= factor
            ends.append(scores_of(writer, task))
            projection.weight.data.copy_(kept)
        slopes = np.abs(ends[1] - ends[0]) / (2 * step)
        np.testing.assert_allclose(
            found.values[:, found.cells.index(("self", layer, head))], slopes, rtol=1e-4
        )


def test_no_parameter_gets_a_gradient_and_the_model_comes_back(writer, task):
    writer.train()
    gradient_importance(writer, task)
    assert writer.training
    assert all(parameter.grad is None for parameter in writer.parameters())


def test_a_silent_head_does_not_matter(writer, task):
    with torch.no_grad():
        writer.get_submodule("transformer.h.1.attn.c_proj").weight[8:12] = 0
    at = ("self", 1, 2)
    for found in (gradient_importance(writer, task), leave_one_out(writer, task)):
        assert found.values.shape == (5, 15)
        assert not found.values[:, found.cells.index(at)].any()
        assert (np.abs(np.delete(found.mean, found.cells.index(at))) > 0).all()


def test_leaving_one_out_is_the_fall_without_it(writer, task):
    found = leave_one_out(writer, task, by=Uniform)
    with hs.intervene(writer, Uniform(layer=2, heads=3)):
        without = scores(writer, task)
    wanted = scores(writer, task) - without
    np.testing.assert_allclose(
        found.values[:, found.cells.index(("self", 2, 3))], wanted, atol=1e-12
    )
    whole = leave_one_out(writer, task, layers=True)
    assert whole.cells == tuple(("self", layer, -1) for layer in range(3))


def test_layers_are_divided_by_their_norm(writer, task):
    found = gradient_importance(writer, task)
    np.testing.assert_allclose(np.linalg.norm(found.normalised.reshape(3, 5), axis=1), 1)
    assert_close(found.grid().ravel(), found.mean)
    assert found.intervals().shape == (15, 2)
    assert (found.intervals()[:, 0] <= found.mean).all()
    assert found.mean[found.cells.index(found.order[0])] == found.mean.min()
    with pytest.raises(InterventionError, match="There is no stack 'cross'; there are self"):
        found.grid("cross")


def test_every_stack_of_an_encoder_decoder_has_its_heads(tokenizer):
    model = tiny_model("bart")
    batch = {**tokenizer("a bee", return_tensors="pt")}
    batch.pop("token_type_ids", None)
    batch["decoder_input_ids"] = torch.tensor([[2, 7, 9]])
    loss = lambda model, batch: model(**batch).logits.logsumexp(-1).mean(1)  # noqa: E731
    found = gradient_importance(model, Task([batch], loss))
    assert [
        sum(cell[0] == stack for cell in found.cells) for stack in ("encoder", "decoder", "cross")
    ] == [6, 12, 12]


def test_pruning_in_order_ends_with_no_head_at_all(writer, task):
    curve = pruning_curve(writer, task, gradient_importance(writer, task).order, steps=4)
    assert curve.counts == (0, 4, 8, 11, 15)
    with hs.intervene(writer, Zero()):
        bare = scores(writer, task)
    np.testing.assert_allclose(curve.scores[-1], bare, rtol=1e-6)


def test_greedy_pruning_takes_the_best_next_step(writer, task):
    curve = greedy_pruning(writer, task, heads=2)
    first = leave_one_out(writer, task)
    assert curve.order[0] == first.order[0]
    assert curve.mean[1] == pytest.approx(curve.mean[0] - first.mean.min(), rel=1e-9)
    assert curve.counts == (0, 1, 2)
    assert len(set(curve.order)) == 2


def test_confidence_leaves_special_tokens_out(tokenizer):
    records = [hs.capture(tiny_model("bert"), tokenizer, text) for text in TEXTS[:2]]
    found = confidence_importance(records)
    weights = records[0]["self"].weights(1, 2)
    assert found.values[0, found.cells.index(("self", 1, 2))] == pytest.approx(
        weights[1:-1].max(-1).mean(), rel=1e-6
    )
    assert found.values.shape == (2, 6)


def test_a_class_has_a_slope(tokenizer):
    model = with_head("SequenceClassification", num_labels=4)
    pairs = [("a bee", "it sat"), ("the cat", "no"), ("home", "she ran home")]
    task = classification(tokenizer, pairs, [2, 0, 3], metric="log likelihood", batch=2)
    assert gradient_importance(model, task).values.shape == (3, 6)


def test_what_is_no_task_is_said(writer, task):
    batch = task.batches[0]
    mean = Task([batch], lambda model, batch: run(model, batch).logits.mean())
    with pytest.raises(InterventionError, match=r"has the shape \[\]; expected one number"):
        leave_one_out(writer, mean)
    with pytest.raises(InterventionError, match="The score does not run GPT2LMHeadModel"):
        leave_one_out(writer, Task([batch], lambda model, batch: torch.zeros(2)))
    with pytest.raises(InterventionError, match="needs heads, each once"):
        pruning_curve(writer, task, [])
    with pytest.raises(InterventionError, match="expected a headscope.tasks.Task"):
        gradient_importance(writer, [batch])


def run(model, batch):
    return model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])


def scores(model, task):
    with torch.no_grad():
        values = [task.values(model, number) for number in range(len(task.batches))]
    return task.joined(values)[:, 0]
