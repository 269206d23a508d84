"""Scores of ablations against weights set to zero by hand, and what cannot be scored."""

import functools

import numpy as np
import pytest
import torch

import headscope as hs
from headscope import ablate
from headscope.errors import InterventionError, RecordError
from headscope.interventions import leave_one_out
from headscope.tasks import Task, next_word
from headscope.testing import tiny_model

from ...close import assert_close
from .conftest import TEXTS, states_task


def test_zero_is_zeros_in_the_projection(bert, tokenizer):
    task = states_task(tokenizer)
    found = ablate(bert, task)
    layers, heads = 3, bert.config.num_attention_heads
    size = bert.config.hidden_size // heads
    assert found.cells[:2] == (("self", 0, 0), ("self", 0, 1))
    assert len(found.cells) == layers * heads + layers
    for cell, column in zip(found.cells, found.scores.T, strict=True):
        _, layer, head = cell
        dense = bert.encoder.layer[layer].attention.output.dense.weight
        kept = dense.detach().clone()
        own = slice(None) if head < 0 else slice(head * size, (head + 1) * size)
        with torch.no_grad():
            dense[:, own] = 0
            wanted = np.concatenate([task.values(bert, number)[:, 0] for number in range(3)])
            dense.copy_(kept)
        np.testing.assert_allclose(column, wanted, atol=1e-4)
    assert np.abs(found.change).min() > 1e-3


@pytest.mark.parametrize("by", ["zero", "uniform", "mean attention", "mean output"])
def test_it_is_leaving_out_one_at_a_time(by, bert, tokenizer):
    task = states_task(tokenizer)
    records = [hs.capture(bert, tokenizer, text, keep=("weights", "values")) for text in TEXTS]
    means = {"mean attention": hs.interventions.Mean, "mean output": hs.interventions.MeanOutput}
    way = (
        functools.partial(means[by], records=records)
        if by in means
        else {"zero": hs.Zero, "uniform": hs.interventions.Uniform}[by]
    )
    for layers in (False, True):
        wanted = leave_one_out(bert, task, by=way, layers=layers)
        found = ablate(bert, task, by=by, heads=not layers, layers=layers)
        assert found.cells == wanted.cells
        np.testing.assert_allclose(found.changes, -wanted.values, atol=1e-4 if by in means else 0)


def test_a_model_that_writes_comes_back_as_it_was(tokenizer):
    model = tiny_model("gpt2", writes=True).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = ablate(model, next_word(tokenizer, TEXTS, batch=3), heads=[(0, 1)], layers=[1])
    assert found.cells == (("self", 0, 1), ("self", 1, -1))
    assert model.training
    assert model.config.use_cache
    assert all("forward" not in module.__dict__ for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"heads": [(0, 9)]}, "There is no head 0-9; there are 0-0 to 2-2"),
        ({"layers": [7]}, "There is no layer 7; there are"),
        ({"heads": False, "layers": False}, "Nothing is to be disabled"),
        ({"stack": "cross"}, "This model has the stacks 'self', not 'cross'"),
        ({"by": "nil"}, "by is 'nil'; give 'zero', 'uniform', 'mean attention', 'mean output'"),
        ({"alpha": 2}, "alpha is a number between 0 and 1, not 2"),
        ({"correction": "none"}, "correction is 'none'; give one of holm, benjamini-hochberg"),
        ({"head": 1}, "ablate has no option 'head'; it has heads, layers"),
    ],
)
def test_bad_options_are_refused(options, line, bert, tokenizer):
    with pytest.raises((InterventionError, RecordError), match=line):
        ablate(bert, states_task(tokenizer), **options)


@pytest.mark.parametrize(
    ("task", "line"),
    [
        ("next-word", "A task was given as str; expected a headscope.tasks.Task"),
        (Task((), lambda model, batch: 0, "none"), "The task 'none' has no examples"),
        (Task(({},), lambda model, batch: torch.zeros(()), "point"), r"The score of 'point' has"),
        (lambda model: [1.0, 2.0], "The score does not run BertModel"),
    ],
)
def test_bad_tasks_are_refused(task, line, bert):
    with pytest.raises(InterventionError, match=line):
        ablate(bert, task)


def test_an_example_without_a_finite_score_is_left_out(bert, tokenizer, tmp_path):
    """One example is NaN from the start, another one where a head is disabled."""
    whole = states_task(tokenizer, batch=1)
    count = len(whole.batches)
    with torch.no_grad():
        intact = [float(whole.score(bert.eval(), batch)[0]) for batch in whole.batches]

    def score(model, batch):
        values = whole.score(model, batch)
        number = next(
            at for at, own in enumerate(whole.batches) if own["input_ids"] is batch["input_ids"]
        )
        if number == 0:
            return values * np.nan
        changed = abs(float(values[0]) - intact[number]) > 1e-6
        return values / 0 if number == 2 and changed else values

    options = {"heads": [(0, 0)], "layers": False}
    holed = Task(whole.batches, score, "holed", groups=tuple("abcdefgh"[:count]))
    told = {}
    kept = [number for number in range(count) if number not in (0, 2)]
    part = ablate(
        bert, holed, **options, on_error=lambda number, error: told.update({number: str(error)})
    )
    assert told == {
        0: "The score of 'holed' is not finite",
        2: "The score of 'holed' is not finite with head 0-0 disabled",
    }
    full = ablate(bert, whole, **options)
    np.testing.assert_allclose(part.intact, full.intact[kept], atol=1e-5)
    np.testing.assert_allclose(part.scores, full.scores[kept], atol=1e-5)
    assert part.sums.rows == tuple("abcdefgh"[number] for number in kept)
    with (
        pytest.warns(
            UserWarning, match="example 0 .from 0. was left out: The score of 'holed' is not finite"
        ),
        pytest.warns(UserWarning, match="example 2 .from 0. was left out"),
    ):
        again = ablate(bert, holed, **options)
    assert_close(again.scores, part.scores)


def test_a_task_without_any_finite_score_is_refused(bert, tokenizer):
    whole = states_task(tokenizer)
    with pytest.raises(InterventionError, match="The score of 'hole' is not finite"):
        ablate(
            bert,
            Task(whole.batches, lambda *given: whole.score(*given) * np.nan, "hole"),
            heads=[(0, 0)],
        )


def test_values_are_put_back_in_the_order_of_the_texts(tokenizer):
    model = tiny_model("gpt2", writes=True)
    orders = [TEXTS, TEXTS[::-1]]
    one, two = (
        ablate(model, next_word(tokenizer, texts, batch=2), heads=[(1, 0)], layers=False)
        for texts in orders
    )
    np.testing.assert_allclose(one.scores, two.scores[::-1], atol=1e-5)
    np.testing.assert_allclose(one.intact, two.intact[::-1], atol=1e-5)
    assert len(set(one.intact)) == len(TEXTS)
