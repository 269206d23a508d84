"""A screen by gradients: which heads are disabled, and what is said of the others."""

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

import headscope as hs
from headscope.cli import run
from headscope.errors import InterventionError
from headscope.studies import Ablation
from headscope.studies.ablate._result import counts_of
from headscope.tasks import Task, classification, next_word
from headscope.testing import ARCHITECTURES, tiny_model, tiny_tokenizer

from ...close import assert_close

TEXTS = ["the cat sat on a mat", "we went to the store", "a dog ran", "who ate the pie then"]


@pytest.fixture(scope="module")
def model():
    return tiny_model("gpt2", writes=True)


@pytest.fixture(scope="module")
def task():
    return next_word(tiny_tokenizer(), TEXTS)


def test_the_heads_with_the_largest_estimates_are_disabled(model, task):
    whole = hs.ablate(model, task, layers=False)
    screened = hs.ablate(model, task, layers=False, screen="gradient", top=4)
    assert set(screened.estimates) == set(whole.cells)
    ranked = sorted(screened.estimates, key=lambda cell: -abs(screened.estimates[cell]))
    assert set(screened.cells) == set(ranked[:4])
    # What was disabled is measured as it is without a screen.
    at = [whole.cells.index(cell) for cell in screened.cells]
    assert_close(screened.scores, whole.scores[:, at])


def test_an_estimate_is_exact_where_the_score_is_linear(model):
    """With the output of heads shrunk a little, the first order is all there is."""

    def score(model, batch):
        return model(**batch).logits.float()[:, -1, 3]

    inputs = tiny_tokenizer()(TEXTS[:1], return_tensors="pt")
    ids = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    linear = Task((ids,), score, "logit")
    estimates = hs.ablate(model, linear, layers=False, screen="gradient").estimates
    small = 1e-3

    class Shrunk(hs.Zero):
        """Takes a thousandth away, in place of all."""

        def maker(self, place, heads):
            zeroed = super().maker(place, heads)
            return lambda old, at: old + small * (zeroed(old, at) - old)

    shrunk = hs.ablate(model.double(), linear, layers=False, by=Shrunk)
    model.float()
    for cell, change in zip(shrunk.cells, shrunk.change, strict=True):
        assert change / small == pytest.approx(estimates[cell], rel=0.02, abs=2e-3)


def test_what_a_screen_left_out_is_said_and_kept(model, task, tmp_path):
    screened = hs.ablate(model, task, screen="gradient", top=3, random_weights=True)
    assert "disabled are the 3 of 15 heads with the largest change" in screened.summary
    assert screened.control.cells == screened.cells
    assert screened.control.estimates is None
    loaded = hs.load(screened.save(tmp_path / "screened.safetensors"))
    assert loaded.estimates == screened.estimates
    assert loaded.summary == screened.summary
    columns = screened.columns()["estimate"]
    heads = [cell[2] >= 0 for cell in screened.cells]
    assert [not np.isnan(value) for value in columns] == heads


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"top": 3}, "needs screen='gradient'"),
        ({"screen": "attention"}, "Expected 'gradient' for screen"),
        ({"screen": "gradient", "top": 0}, "from 1 on, not 0"),
        ({"screen": "gradient", "by": "uniform"}, "estimates what zeros do"),
        ({"screen": "gradient", "heads": [(0, 1)]}, "chooses the heads itself"),
    ],
)
def test_options_that_do_not_go_together_are_refused(model, task, options, why):
    with pytest.raises(InterventionError, match=why):
        hs.ablate(model, task, **options)


def test_a_score_without_a_gradient_is_refused():
    config = AutoConfig.for_model("bert", vocab_size=64, **ARCHITECTURES["bert"])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_config(config).eval()
    right = classification(tiny_tokenizer(), TEXTS, [0, 1, 0, 1])
    with pytest.raises(InterventionError, match="does not move with any head by a little"):
        hs.ablate(model, right, screen="gradient", allow_unfit=True)
    likely = classification(tiny_tokenizer(), TEXTS, [0, 1, 0, 1], metric="log likelihood")
    assert (
        hs.ablate(model, likely, screen="gradient", top=2, allow_unfit=True).counts()["heads"] == 2
    )

    def listed(model, batch):
        return likely.score(model, batch)[:, 0].tolist()

    with pytest.raises(InterventionError, match="has no gradient"):
        hs.ablate(model, Task(likely.batches, listed, "list"), screen="gradient", allow_unfit=True)


def test_the_command_screens(model, tmp_path, capsys):
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    data = tmp_path / "texts.txt"
    data.write_text("\n".join(TEXTS))
    words = ["ablate", "--task", "next-word", "--data", str(data), "--model", str(folder)]
    words += ["--no-whole-layers", "--allow-unfit"]
    assert run([*words, "--screen", "gradient", "--screen-top", "2"]) == 0
    assert "disabled are the 2 of 15 heads" in capsys.readouterr().out
    assert run([*words, "--screen-top", "2"]) == 1
    assert "top=2 needs screen='gradient'" in capsys.readouterr().err


def chosen_of_noise(rng, *, planted=0.0):
    """Five of forty heads, those that moved the score most on the same examples that test them."""
    changes = rng.standard_normal((20, 40)) + planted * (np.arange(40) == 3)
    means = changes.mean(axis=0)
    left = np.sort(np.argsort(-np.abs(means))[:5])
    found = Ablation(estimates=[["self", 0, head, float(own)] for head, own in enumerate(means)])
    found.sums.facts["cells"] = [["self", 0, int(head)] for head in left]
    for number, own in enumerate(changes):
        scores = np.concatenate([[0.5], 0.5 + own[left]])
        found.sums.add(f"{number:06}", f"text {number}", counts_of(scores), length=1)
    return found


def test_heads_chosen_on_the_same_examples_do_not_stand_where_nothing_is_to_be_found(rng):
    """The worst screen ranks by the changes themselves: the correction over all heads allows for
    it.
    """
    found = [chosen_of_noise(rng).significant.any() for _ in range(60)]
    # 5 % of 60 draws are 3, and 8 or more of them have a chance of 1 %.
    assert np.sum(found) < 8
    planted = chosen_of_noise(rng, planted=2.0)
    assert [
        cell[2] for cell, is_sure in zip(planted.cells, planted.significant, strict=True) if is_sure
    ] == [3]
