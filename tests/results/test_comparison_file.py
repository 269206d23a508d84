"""Comparisons and effects come back as they were kept, with the records that they show."""

import numpy as np
import pytest

import headscope as hs
from headscope.comparison import Comparison, Effect
from headscope.storage import load_kept, save_kept
from headscope.testing import random_record, tiny_model, tiny_tokenizer

from .conftest import comparison, effect


@pytest.fixture
def kept(tmp_path):
    """A comparison, and what its file says and holds."""
    path = hs.save(comparison(), tmp_path / "c.safetensors")
    return path, *load_kept(path, "comparison")


@pytest.mark.parametrize("make", [comparison, effect])
def test_a_kept_one_is_shown_and_drawn_as_before(make, tmp_path):
    result = make()
    again = hs.load(hs.save(result, tmp_path / "c.safetensors"))
    assert hs.view(again).html == hs.view(result).html
    assert again.figure().recipe == result.figure().recipe


def test_documents_and_null_distances_are_kept(tmp_path):
    result = comparison(groups=["a", 3, np.int64(3), "b"])
    again = Comparison.load(hs.save(result, tmp_path / "c.safetensors"))
    ours, theirs = again["cross"], result["cross"]
    assert ours.groups == ("a", 3, 3, "b")
    np.testing.assert_array_equal(ours.interval, theirs.interval)
    np.testing.assert_array_equal(ours.nulls, theirs.nulls)
    assert (ours.rank, ours.confidence) == (theirs.rank, theirs.confidence)


def test_nearest_heads_of_another_text_are_kept(tmp_path):
    a = random_record(layers=2, heads=3, seed=1)
    result = hs.compare(a, random_record(layers=3, heads=2, seed=2), heads="best")
    again = hs.load(hs.save(result, tmp_path / "c.safetensors"))
    assert again["cross"].partners == result["cross"].partners
    assert again["cross"].candidates == 6
    for layer in range(2):
        np.testing.assert_array_equal(
            again["cross"].difference(layer), result["cross"].difference(layer)
        )


def test_an_effect_of_a_model_is_kept(tmp_path):
    model, tokenizer = tiny_model("gpt2", writes=True), tiny_tokenizer()
    result = hs.effect(
        model,
        tokenizer,
        "the cat sat on it.",
        interventions=[hs.Zero(layer=0, heads=[1])],
        controls=[[hs.Zero(layer=0, heads=[0])]],
    )
    again = Effect.load(hs.save(result, tmp_path / "e.safetensors"))
    assert (str(again), repr(again)) == (str(result), repr(result))
    assert again.stack.changed == result.stack.changed == {(0, 1)}
    assert again.stack.can_move == result.stack.can_move
    np.testing.assert_array_equal(again.stack.counting, result.stack.counting)
    assert again.output.columns() == result.output.columns()


def without_heads(said, arrays):
    arrays["stacks.0.partners"] = arrays["stacks.0.partners"] + 5


def with_other_rows(said, arrays):
    arrays["stacks.0.distances.0"] = arrays["stacks.0.distances.0"][:, 1:].copy()


def without_stacks(said, arrays):
    said["stacks"] = []


def without_texts(said, arrays):
    said["stacks"][0]["texts"] = 0


def without_a_record(said, arrays):
    del said["b"]


@pytest.mark.parametrize(
    ("damage", "wrong"),
    [
        (without_heads, "its heads are not those of its records"),
        (with_other_rows, "its distances are of other rows than its records have"),
        (without_stacks, "it has no stacks"),
        (without_texts, "its distances are of other rows"),
        (without_a_record, "KeyError 'b'"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(kept, damage, wrong):
    path, said, arrays = kept
    damage(said, arrays)
    save_kept(path, "comparison", said, arrays)
    with pytest.raises(
        hs.errors.FileError, match=rf"c\.safetensors is cut or holds no comparison.*{wrong}"
    ):
        hs.load(path)


def test_an_effect_without_outputs_is_refused(tmp_path):
    path = hs.save(effect(), tmp_path / "e.safetensors")
    said, arrays = load_kept(path, "effect")
    said["outputs"][0]["kind"] = "sounds"
    save_kept(path, "effect", said, arrays)
    with pytest.raises(hs.errors.FileError, match="an output is of the kind 'sounds'"):
        hs.load(path)
    save_kept(path, "effect", said | {"outputs": []}, arrays)
    with pytest.raises(hs.errors.FileError, match="it has no outputs"):
        hs.load(path)
