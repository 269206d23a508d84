"""Importance of heads: against identities, finite differences and planted heads."""

import numpy as np
import pytest
import torch
from torch.nn import functional

import headscope as hs
from headscope import InterventionError, TextError
from headscope.interventions import (
    Objective,
    Uniform,
    Zero,
    classification,
    confidence_importance,
    gradient_importance,
    greedy_pruning,
    leave_one_out,
    masked_word,
    next_word,
    pruning_curve,
)
from headscope.testing import tiny_model

from ..close import assert_close
from ..processors import with_head

TEXTS = ["the cat sat.", "a bee", "on it she ran", "home", "no dog ran home."]


@pytest.fixture
def writer():
    return tiny_model("gpt2", writes=True)


@pytest.fixture
def objective(tokenizer):
    return next_word(tokenizer, TEXTS, batch=2)


def test_the_loss_is_the_mean_over_the_texts_own_tokens(writer, tokenizer, objective):
    with torch.no_grad():
        found = torch.cat(list(objective.losses(writer)))
        for text, loss in zip(TEXTS, found, strict=True):
            ids = tokenizer(text, return_tensors="pt")["input_ids"]
            wanted = functional.cross_entropy(writer(input_ids=ids).logits[0, :-1], ids[0, 1:])
            assert loss.item() == pytest.approx(wanted.item(), rel=1e-5)


def test_hidden_tokens_alone_count(tokenizer):
    objective = masked_word(tokenizer_with_mask(tokenizer), TEXTS, share=0.3, seed=1, batch=2)
    words = 0
    for batch in objective.batches:
        hidden = batch["labels"] != -100
        assert (batch["input_ids"][hidden] == 3).all()
        assert hidden.any(dim=1).all()
        assert not hidden[batch["attention_mask"] == 0].any()
        words += int(hidden.sum())
    assert words == sum(max(1, round(0.3 * len(text.replace(" ", "")))) for text in TEXTS)
    model = with_head("MaskedLM")
    with torch.no_grad():
        batch = objective.batches[0]
        found = objective.loss(model, batch)
        scores = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        for row, loss in enumerate(found):
            kept = batch["labels"][row] != -100
            wanted = functional.cross_entropy(scores[row, kept], batch["labels"][row, kept])
            assert loss.item() == pytest.approx(wanted.item(), rel=1e-5)


def tokenizer_with_mask(tokenizer):
    from headscope.testing import tiny_tokenizer

    other = tiny_tokenizer()
    other.mask_token = "[UNK]"
    return other


def test_the_gradient_is_the_slope_of_the_loss(writer, objective):
    from headscope.interventions.importance import losses_of

    writer = writer.double()
    found = gradient_importance(writer, objective)
    step = 1e-4
    for layer, head in ((0, 1), (2, 4)):
        ends = []
        for factor in (1 - step, 1 + step):
            projection = writer.get_submodule(f"transformer.h.{layer}.attn.c_proj")
            kept = projection.weight.detach().clone()
            with torch.no_grad():
                projection.weight[head * 4 : head * 4 + 4] *= factor
            ends.append(losses_of(writer, objective))
            projection.weight.data.copy_(kept)
        slopes = np.abs(ends[1] - ends[0]) / (2 * step)
        np.testing.assert_allclose(
            found.values[:, found.cells.index(("self", layer, head))], slopes, rtol=1e-4
        )


def test_no_parameter_gets_a_gradient_and_the_model_comes_back(writer, objective):
    writer.train()
    gradient_importance(writer, objective)
    assert writer.training
    assert all(parameter.grad is None for parameter in writer.parameters())


def test_a_silent_head_does_not_matter(writer, objective):
    with torch.no_grad():
        writer.get_submodule("transformer.h.1.attn.c_proj").weight[8:12] = 0
    at = ("self", 1, 2)
    for found in (gradient_importance(writer, objective), leave_one_out(writer, objective)):
        assert found.values.shape == (5, 15)
        assert not found.values[:, found.cells.index(at)].any()
        assert (np.abs(np.delete(found.mean, found.cells.index(at))) > 0).all()


def test_leaving_one_out_is_the_loss_without_it(writer, objective):
    found = leave_one_out(writer, objective, by=Uniform)
    with torch.no_grad(), hs.intervene(writer, Uniform(layer=2, heads=3)):
        without = torch.cat(list(objective.losses(writer)))
    with torch.no_grad():
        intact = torch.cat(list(objective.losses(writer)))
    wanted = (without.double() - intact.double()).numpy()
    np.testing.assert_allclose(
        found.values[:, found.cells.index(("self", 2, 3))], wanted, atol=1e-12
    )
    whole = leave_one_out(writer, objective, layers=True)
    assert whole.cells == tuple(("self", layer, -1) for layer in range(3))


def test_layers_are_divided_by_their_norm(writer, objective):
    found = gradient_importance(writer, objective)
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
    found = gradient_importance(model, Objective([batch], loss))
    assert [
        sum(cell[0] == stack for cell in found.cells) for stack in ("encoder", "decoder", "cross")
    ] == [6, 12, 12]


def test_pruning_in_order_ends_with_no_head_at_all(writer, objective):
    curve = pruning_curve(writer, objective, gradient_importance(writer, objective).order, steps=4)
    assert curve.counts == (0, 4, 8, 11, 15)
    with torch.no_grad(), hs.intervene(writer, Zero()):
        bare = torch.cat(list(objective.losses(writer)))
    np.testing.assert_allclose(curve.losses[-1], bare.numpy(), rtol=1e-6)


def test_greedy_pruning_takes_the_best_next_step(writer, objective):
    curve = greedy_pruning(writer, objective, heads=2)
    first = leave_one_out(writer, objective)
    assert curve.order[0] == first.order[0]
    assert curve.mean[1] == pytest.approx(curve.mean[0] + first.mean.min(), rel=1e-9)
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


def test_classification_is_cross_entropy(tokenizer):
    model = with_head("SequenceClassification", num_labels=4)
    pairs = [("a bee", "it sat"), ("the cat", "no"), ("home", "she ran home")]
    objective = classification(tokenizer, pairs, [2, 0, 3], batch=2)
    with torch.no_grad():
        found = torch.cat(list(objective.losses(model)))
        for pair, label, loss in zip(pairs, [2, 0, 3], found, strict=True):
            scores = model(**tokenizer(*pair, return_tensors="pt")).logits
            assert loss.item() == pytest.approx(
                functional.cross_entropy(scores, torch.tensor([label])).item(), rel=1e-5
            )
    assert gradient_importance(model, objective).values.shape == (3, 6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", ["half \ud800", None, "", "the"])
def test_a_text_that_cannot_be_read_costs_itself(bad, writer, tokenizer):
    if bad == "the" and len(tokenizer(bad)["input_ids"]) > 1:
        pytest.skip("one token is enough of this tokenizer")
    with pytest.warns(UserWarning, match="text 1 .from 0. was left out"):
        found = next_word(tokenizer, [TEXTS[0], bad, TEXTS[2]])
    torch.testing.assert_close(found.batches, next_word(tokenizer, [TEXTS[0], TEXTS[2]]).batches)
    with pytest.warns(UserWarning, match="text 1 .from 0. was left out"):
        labelled = classification(tokenizer, [TEXTS[0], bad, TEXTS[2]], [0, 1, 2])
    assert labelled.batches[0]["labels"].tolist() == [0, 2]
    with pytest.raises(TextError):
        next_word(tokenizer, [bad])


def test_what_is_no_objective_is_said(writer, tokenizer, objective):
    batch = objective.batches[0]
    mean = Objective([batch], lambda model, batch: model(**batch).logits.mean())
    with pytest.raises(InterventionError, match=r"The loss gave \[\]; expected a tensor with one"):
        leave_one_out(writer, mean)
    with pytest.raises(InterventionError, match="The loss does not run GPT2LMHeadModel"):
        leave_one_out(writer, Objective([batch], lambda model, batch: torch.zeros(2)))
    with pytest.raises(TextError, match="give one label for each text"):
        classification(tokenizer, ["a"], [])
    with pytest.raises(TextError, match="No text was given"):
        next_word(tokenizer, [])
    with pytest.raises(InterventionError, match="needs heads, each once"):
        pruning_curve(writer, objective, [])
    with pytest.raises(InterventionError, match="has no mask token"):
        masked_word(tokenizer, TEXTS)
