"""What an ablation found: evidence, tables, print, files and figure."""

from dataclasses import replace

import numpy as np
import pytest
from transformers import AutoModelForSequenceClassification

from headscope import Cut, Zero, ablate, intervene
from headscope.capturing import random_twin
from headscope.errors import RecordError
from headscope.evidence import holm, p_flipped
from headscope.studies import Ablation
from headscope.tasks import classification, next_word
from headscope.testing import tiny_model

from ...close import assert_close
from .conftest import TEXTS, states_task


def test_evidence_is_paired_and_corrected_by_family(found):
    assert_close(found.changes, found.scores - found.intact[:, None])
    assert found.change == pytest.approx(found.changes.mean(0))
    assert (found.intervals[:, 0] <= found.change).all()
    assert (found.change <= found.intervals[:, 1]).all()
    assert_close(found.p, p_flipped(found.changes, flips=8191))
    heads = np.array([cell[2] >= 0 for cell in found.cells])
    for family in (heads, ~heads):
        # One draw of all heads: surer than a product, and never as sure as a single test.
        assert (found.corrected[family] <= holm(found.p[family]) + 0.01).all()
        assert (found.corrected[family] >= found.p[family]).all()
    assert 0 < found.significant.sum() < len(found.cells)


def test_grids_and_bars_have_every_cell(found):
    assert found.stacks == ("encoder", "decoder", "cross")
    for stack, layers in (("encoder", 1), ("decoder", 2), ("cross", 2)):
        grid, bars = found.grid(stack=stack), found.by_layer(stack=stack)
        assert grid.shape[0] == layers == len(bars)
        for (name, layer, head), value in zip(found.cells, found.change, strict=True):
            if name == stack:
                assert (bars[layer] if head < 0 else grid[layer, head]) == value
    assert found.grid("score")[0, 0] == pytest.approx(found.scores[:, 0].mean())
    assert set(np.unique(found.grid("significant", "cross"))) <= {0.0, 1.0}
    with pytest.raises(RecordError, match="no stack 'self'; there are encoder, decoder, cross"):
        found.grid(stack="self")
    with pytest.raises(RecordError, match="An ablation has no 'p'; it has change, score,"):
        found.grid("p")


def test_it_prints_what_it_found(found):
    text = str(found)
    words = " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100
    counts = found.counts()
    assert (
        text.startswith("Bart")
        or "translation, 20 examples; disabled: output set to zero" in text.splitlines()[0]
    )
    assert f"{counts['heads']} heads: without them the score falls for {counts['lower']} " in words
    assert "change of log likelihood by layer and head, cross" in text
    assert "\ncross layer 1 " in text
    assert "\nencoder 0-0 " in text
    assert "holm over all heads (and over all layers), alpha 0.05; layers below" in words
    assert repr(found) == f"<Ablation: translation, {counts['heads']} heads, 20 examples>"
    assert (
        counts["raise"] + counts["lower"]
        <= counts["heads"]
        == sum(cell[2] >= 0 for cell in found.cells)
    )


def test_random_weights_stand_beside(bert, tokenizer, tmp_path):
    task = states_task(tokenizer)
    found = ablate(bert, task, layers=False, random_weights=True)
    alone, null = ablate(bert, task, layers=False), ablate(random_twin(bert), task, layers=False)
    assert_close(found.scores, alone.scores)
    assert_close(found.control.scores, null.scores)
    assert_close(found.control.intact, null.intact)
    assert (found.control.scores != found.scores).any()
    assert_close(found.columns()["random_change"], null.change.tolist())
    largest = (
        f"largest change of a head there {np.abs(null.change).max():.2g}, here "
        f"{np.abs(alone.change).max():.2g}"
    )
    assert (
        f"\n\nThe same architecture with random weights:\nintact: {null.metric} {null.baseline:.4g}"
        in str(found)
    )
    assert largest in str(found)
    again = Ablation.load(found.save(tmp_path / "a.safetensors"))
    assert (str(again), again.columns()) == (str(found), found.columns())


def test_the_figure_is_drawn(found, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra figures")
    text = found.plot(tmp_path / "a.svg").read_text(encoding="utf-8")
    for words in (
        "cross, without one head",
        "decoder, without the whole layer",
        ">intact −",
        "a dot: the change is",
    ):
        assert words in text
    assert found.plot(tmp_path / "a.png", width=90).stat().st_size > 5000
    recipe = found.figure().recipe
    assert (recipe["view"], recipe["layers"]) == ("ablation", [0, 1])


@pytest.mark.parametrize("in_parts", [False, True], ids=["in memory", "in parts"])
def test_copies_of_an_example_prove_no_more_than_one(in_parts, tokenizer, tmp_path):
    model, given = tiny_model("gpt2", writes=True), {"heads": [(0, 1)], "progress": False}

    def ablated(*texts, **more):
        if not in_parts:
            groups = more.get("groups")
            return ablate(model, next_word(tokenizer, list(texts), batch=4), **given, groups=groups)
        run = {"tokenizer": tokenizer, "out": tmp_path / str(len(texts)), **more}
        return ablate(model, "next-word", texts=texts, **run, **given)

    alone = ablated(*TEXTS[:1] * 12)
    assert "next word, 12 examples, 1 different" in alone.summary
    assert "Too few to tell from chance: 12 examples, 1 different" in alone.summary
    assert np.isnan([*alone.p, *alone.corrected, *alone.intervals.ravel()]).all()
    assert np.isnan(alone.baseline_interval).all()
    assert not alone.significant.any()
    # Three copies of each weigh as one of each.
    once, thrice = ablated(*TEXTS), ablated(*TEXTS * 3)
    assert "15 examples, 5 different" in thrice.summary
    assert_close(thrice.change, once.change)
    assert_close(np.sort(thrice.p), np.sort(once.p))
    # Documents that are given hold.
    given_documents = ablated(*TEXTS[:1] * 6, *TEXTS[1:3], groups=[*"abcdef", None, None])
    assert "8 examples" in given_documents.summary
    assert given_documents.documents == 8


def test_answers_of_which_none_is_right_have_an_interval(tokenizer):
    task = states_task(tokenizer)
    none = replace(task, score=lambda *on: 0 * task.score(*on), metric="accuracy")
    found = ablate(tiny_model("gpt2"), none, heads=False)
    assert found.baseline_interval[0] == 0 < found.baseline_interval[1] < 1


def test_copies_in_batches_of_ones_own_are_found(tokenizer):
    model, texts = tiny_model("gpt2"), ["the cat sat on it."] * 5 + ["a bee"]
    found = ablate(model, states_task(tokenizer, texts), heads=False)
    assert "6 examples, 2 different" in found.summary


def test_texts_with_other_labels_are_other_examples(tokenizer):
    model = AutoModelForSequenceClassification.from_config(tiny_model("bert").config).eval()
    task = classification(tokenizer, TEXTS[:1] * 4, [0, 0, 1, 1])
    assert "4 examples, 2 different" in ablate(model, task, heads=False, allow_unfit=True).summary


def test_a_changed_model_is_said_in_words(tokenizer):
    model = tiny_model("gpt2", writes=True)
    with intervene(model, Zero(layer=1, heads=[2]), Cut(layer=0, keys=[0], kv_heads=1)):
        found = ablate(model, next_word(tokenizer, TEXTS), heads=False)
    assert (
        "(changed: layer 1: output set to zero (heads 2); layer 0: links to keys 0 cut, the rest "
        "renormalised (key/value heads 1)): next word"
    ) in found.summary
