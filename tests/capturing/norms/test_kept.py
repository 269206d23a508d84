"""Records with norms: kept, read from before there were any, beside other things."""

import json

import numpy as np
import pytest

import headscope as hs
from headscope.errors import RecordError
from headscope.record import CONTRIBUTIONS
from headscope.testing import tiny_model

from ...close import assert_close
from .conftest import TEXT


def test_records_with_norms_are_kept(tokenizer, tmp_path):
    record = hs.capture(tiny_model("bart"), tokenizer, TEXT, target="a dog", keep="norms")
    again = hs.load(hs.save(record, tmp_path / "run.safetensors"))
    for stack in record.stacks.values():
        for layer in stack:
            other = again[stack.name].layer(layer.layer)
            assert_close(other.value_norms, layer.value_norms)
            for name in CONTRIBUTIONS:
                ours, theirs = (
                    getattr(layer.contributions, name),
                    getattr(other.contributions, name),
                )
                assert (ours is None) == (theirs is None)
                assert_close(ours, theirs)
            for name in ("decomposes", "verified", "expansion", "missing"):
                assert getattr(other.contributions, name) == getattr(layer.contributions, name)


def test_files_from_before_norms_are_read(tokenizer, tmp_path):
    from safetensors.numpy import load_file, save_file

    path = hs.save(hs.capture(tiny_model("bert"), tokenizer, TEXT), tmp_path / "run.safetensors")
    size = int.from_bytes(path.read_bytes()[:8], "little")
    document = json.loads(json.loads(path.read_bytes()[8 : 8 + size])["__metadata__"]["headscope"])
    assert all(
        "contributions" not in layer for stack in document["stacks"] for layer in stack["layers"]
    )
    save_file(load_file(path), tmp_path / "old.safetensors", {"headscope": json.dumps(document)})
    layer = hs.load(tmp_path / "old.safetensors")["self"].layer(0)
    assert layer.value_norms is layer.contributions is None
    with pytest.raises(RecordError, match="capture with keep='norms'"):
        layer.contributions_of("attention")
    with pytest.raises(RecordError, match="capture with keep='norms'"):
        layer.head_contributions_of()


def test_norms_beside_other_things_and_alone(tokenizer):
    model = tiny_model("bert")
    alone = hs.capture(model, tokenizer, TEXT, keep="alti")["self"].layer(0)
    assert alone.weights is not None
    assert alone.queries is not None
    assert alone.values is None
    beside = hs.capture(model, tokenizer, TEXT, keep=("weights", "alti"))["self"].layer(0)
    assert beside.queries is None
    assert_close(beside.contributions.alti, alone.contributions.alti)
    plain = hs.capture(model, tokenizer, TEXT)["self"].layer(0)
    assert plain.value_norms is plain.contributions is None
    budget = hs.budget(model, tokenizer, TEXT, keep="alti")
    assert "norms" in budget.what
    kept = [
        array
        for array in (getattr(alone.contributions, name) for name in CONTRIBUTIONS)
        if array is not None
    ]
    assert budget.norms >= 2 * (alone.value_norms.nbytes + sum(array.nbytes for array in kept)) > 0


def test_alti_is_kept_only_where_it_is_asked_for(tokenizer):
    model = tiny_model("bert")
    all_of_it = hs.capture(model, tokenizer, TEXT, keep="alti")["self"].layer(0)
    without = hs.capture(model, tokenizer, TEXT, keep="norms")["self"].layer(0)
    with pytest.raises(RecordError, match="'alti': it was not kept; capture with keep=\"alti\""):
        without.contributions_of("alti")
    for name in CONTRIBUTIONS:
        ours, theirs = (getattr(each.contributions, name) for each in (without, all_of_it))
        if name == "alti":
            assert ours is None
            assert theirs is not None
        else:
            assert_close(ours, theirs)
    sizes = [hs.budget(model, tokenizer, TEXT, keep=keep).norms for keep in ("norms", "alti")]
    assert sizes[1] - sizes[0] >= 2 * (4 * all_of_it.size[0] * all_of_it.size[1])


def test_rollout_of_what_was_captured(tokenizer):
    record = hs.capture(tiny_model("bert"), tokenizer, TEXT, keep="alti")
    for quantity in ("weights", "attention", "residual", "output", "alti", "globenc"):
        np.testing.assert_allclose(hs.rollout(record, quantity).sum(-1), 1, atol=1e-9)
    np.testing.assert_allclose(
        hs.flow(record, "alti", layer=0), hs.rollout(record, "alti")[0], atol=1e-9
    )
