"""Capture vouches for arrays that it has looked at itself, and for no others: what a record refuses
is refused in the same words.
"""

import numpy as np
import pytest
import torch

from headscope.capturing import capture_encoded
from headscope.capturing.building import layers as building_layers
from headscope.capturing.calls import _tile
from headscope.capturing.statistics import _accumulator
from headscope.errors import CaptureError, HeadscopeError, RecordError
from headscope.record import Layer, Statistics, _layer_checks, _statistics
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

LONG = "the cat sat on a bee and the bee"
TEXTS = {
    "one": [LONG],
    "batch": [LONG, "the bee sat on a cat and the cat"],
    "padded": ["a dog ran. the bee sat", LONG],
    "short": ["a bee sat."],
}
EVERYTHING = ["weights", "qk", "values", "before", "statistics"]
UNCHECKED = 4
"""A query that is none of the rows at which a layer is checked."""


def encoded(texts):
    encoding = tiny_tokenizer()(texts, return_tensors="pt", padding=True)
    return {name: encoding[name] for name in ("input_ids", "attention_mask")}


def captured(model, texts, **options):
    return capture_encoded(model, tiny_tokenizer(), encoded(texts), **options)


def said(model, texts, **options):
    """Which error a capture ends with."""
    with pytest.raises(HeadscopeError) as error:
        captured(model, texts, **options)
    return type(error.value), str(error.value)


def without_vouching(monkeypatch):
    """Layers and statistics look at everything that they are given."""
    monkeypatch.setattr(building_layers, "vouched_layer", lambda _, **arguments: Layer(**arguments))
    monkeypatch.setattr(_accumulator, "vouched_statistics", Statistics)


@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bloom"])
def test_nothing_is_looked_at_twice(family, texts, monkeypatch):
    model, looked = tiny_model(family), []
    for module, name in (
        (_layer_checks, "check_finite"),
        (_layer_checks, "check_weights"),
        (_statistics.Statistics, "_check_values"),
    ):
        monkeypatch.setattr(module, name, lambda *given, name=name, **_: looked.append(given[1:]))
    records = captured(model, TEXTS[texts], keep=EVERYTHING)
    assert records[0]["self"].layers[0].has("weights")
    assert not looked


@pytest.mark.parametrize("texts", TEXTS)
def test_the_records_are_the_same(texts, monkeypatch):
    model = tiny_model("llama")
    ours = captured(model, TEXTS[texts], keep=EVERYTHING)
    without_vouching(monkeypatch)
    theirs = captured(model, TEXTS[texts], keep=EVERYTHING)
    for one, other in zip(ours, theirs, strict=True):
        for layer, wanted in zip(one["self"], other["self"], strict=True):
            for name in ("weights", "queries", "keys", "values"):
                array, same = getattr(layer, name), getattr(wanted, name)
                assert_close(array, same)
                assert not array.flags.writeable
            assert_close(layer.statistics.entropy, wanted.statistics.entropy)


@pytest.mark.parametrize("keep", ["qk", "auto", "weights", "statistics", "everything"])
@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf"), 1e30])
@pytest.mark.parametrize("texts", TEXTS)
def test_numbers_that_are_none_are_refused_in_the_same_words(texts, wrong, keep, monkeypatch):
    model = tiny_model("bert")
    what = EVERYTHING if keep == "everything" else keep

    def spoil(_, __, output):
        output[-1, UNCHECKED, 0] = wrong
        return output

    # of the last layer: no other layer is given what comes of it
    model.encoder.layer[-1].attention.self.query.register_forward_hook(spoil)
    given = TEXTS[texts]
    if wrong == 1e30:  # large, and still a number
        with_vouching = captured(model, given, keep=what)
        without_vouching(monkeypatch)
        for one, other in zip(with_vouching, captured(model, given, keep=what), strict=True):
            assert one.verified == pytest.approx(other.verified, rel=1e-3, abs=1e-5)
        return
    said(model, given, keep=what)  # later passes go by the plan of the first
    ours = said(model, given, keep=what)
    without_vouching(monkeypatch)
    assert ours == said(model, given, keep=what)
    if texts != "short" and keep == "qk":
        assert ours[0] is RecordError
        assert "queries of layer 1 holds" in ours[1]
        assert ours[1].endswith("every value must be finite")


@pytest.mark.parametrize("texts", ["one", "batch"])
def test_rows_that_do_not_sum_to_one_are_refused_in_the_same_words(texts, monkeypatch):
    model = tiny_model("bert")

    def spoiled(scores, *, out=None, original=_tile.softmax_of):
        weights = original(scores, out=out)
        weights[..., UNCHECKED, :] *= 0.9
        return weights

    monkeypatch.setattr(_tile, "softmax_of", spoiled)
    ours = said(model, TEXTS[texts], keep="auto")
    assert ours[0] is RecordError
    assert f"query {UNCHECKED} sums to 0.9" in ours[1]
    without_vouching(monkeypatch)
    assert ours == said(model, TEXTS[texts], keep="auto")


def spoil_tiles(spoil, monkeypatch):
    """Change the weights of every tile, those that are kept and those that are measured."""
    for name in ("tile", "measured"):
        as_it_was = getattr(_tile.FromScores, name)

        def spoiled(source, *given, original=as_it_was):
            made = original(source, *given)
            spoil(made[0].weights if isinstance(made, tuple) else made.weights)
            return made

        monkeypatch.setattr(_tile.FromScores, name, spoiled)


@pytest.mark.parametrize("texts", ["one", "batch"])
def test_statistics_that_cannot_be_are_refused_in_the_same_words(texts, monkeypatch):
    model = tiny_model("bert")

    def spoil(weights):
        weights[..., UNCHECKED, 0] += 2 * weights[..., UNCHECKED, :].sum(-1)

    spoil_tiles(spoil, monkeypatch)
    ours = said(model, TEXTS[texts], keep="statistics")
    assert ours[0] is RecordError
    assert "it must lie in 0 to" in ours[1]
    without_vouching(monkeypatch)
    assert ours == said(model, TEXTS[texts], keep="statistics")


def test_a_checked_row_is_refused_by_capture_itself(monkeypatch):
    def spoil(weights):
        some = weights[..., 0, :2].amin(-1) / 2
        weights[..., 0, 0] += some
        weights[..., 0, 1] -= some

    spoil_tiles(spoil, monkeypatch)
    for keep in ("auto", "statistics"):
        kind, words = said(tiny_model("bert"), TEXTS["batch"], keep=keep)
        assert kind is CaptureError
        assert "differs from the model's own" in words


def test_half_precision_is_looked_at_by_the_record():
    model = tiny_model("bert").to(torch.bfloat16)
    record = captured(model, TEXTS["batch"], keep=EVERYTHING, precision="float16")[0]
    assert record["self"].layers[0].weights.dtype == np.float16
