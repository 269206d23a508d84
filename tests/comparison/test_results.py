"""Two results of one kind are compared row by row."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope import patterns
from headscope.record import ModelFacts
from headscope.testing import random_record

KEPT = Path(__file__).parents[1] / "results" / "kept"


TOKENS = list("abcdefg")


def heads_of(first, model=""):
    records = []
    for seed in range(first, first + 6):
        weights = np.random.default_rng(seed).dirichlet(np.ones(7), (2, 1, 3, 7))
        records.append(replace(hs.from_weights(weights, TOKENS), model=ModelFacts(name=model)))
    return patterns.heads(records)


def test_heads_are_compared_by_layer_head_and_pattern(tmp_path):
    a, b = heads_of(0), heads_of(20)
    found = hs.compare(a, b)
    rows = found.to_pandas().set_index(["layer", "head", "pattern", "measure"])
    ours = a.to_pandas().set_index(["layer", "head", "pattern"])
    theirs = b.to_pandas().set_index(["layer", "head", "pattern"])
    for name in ("score", "entropy"):
        pair = rows.xs(name, level="measure")
        np.testing.assert_allclose(
            pair["difference"], (theirs[name] - ours[name]).loc[pair.index], atol=1e-12
        )
    one = rows.loc[(1, 0, "next", "score")]
    assert one["low"] < one["difference"] < one["high"]
    x, y = ours.loc[(1, 0, "next")], theirs.loc[(1, 0, "next")]
    down = np.hypot(y["score"] - y["low"], x["high"] - x["score"])
    assert one["low"] == pytest.approx(y["score"] - x["score"] - down)
    assert "entropy" in str(found)
    assert str(hs.load(hs.save(found, tmp_path / "c.safetensors"))) == str(found)


def test_the_rows_that_differ_most_are_drawn(tmp_path):
    found = hs.compare(heads_of(0), heads_of(20))
    drawn = found.figure(measure="score").save(tmp_path / "compared.svg").read_text()
    most = found.to_pandas().query("measure == 'score'")
    most = most.loc[most["difference"].abs().idxmax()]
    assert f"{most['layer']}-{most['head']}-{most['pattern']}" in drawn
    assert "score, B less A" in drawn
    with pytest.raises(hs.errors.FigureError, match="no measure 'size' in both; there are score,"):
        found.figure(measure="size")


@pytest.mark.parametrize("name", ["ablation", "alignment", "coref", "mechanism", "relations"])
def test_results_of_every_study_are_compared(name):
    result = hs.load(KEPT / f"{name}.safetensors")
    found = hs.compare(result, result)
    assert set(found.columns()["difference"]) == {0.0}
    assert len(str(found)) < 20_000


def test_rows_that_only_one_has_are_counted():
    small, large = (
        patterns.heads([random_record(seed=seed, layers=layers) for seed in range(3)])
        for layers in (1, 2)
    )
    assert "rows that only one has are left out" in hs.compare(small, large).summary


def test_numbers_of_heads_of_two_models_are_warned_of():
    advice = "numbers of heads mean nothing across these models"
    ours, theirs = heads_of(0, "bert"), heads_of(0, "gpt2")
    assert advice not in str(hs.compare(ours, ours))
    assert advice in " ".join(str(hs.compare(ours, theirs)).split())
    by_relation = hs.load(KEPT / "relations.safetensors")
    assert advice not in hs.compare(by_relation, by_relation).summary


@pytest.mark.parametrize(
    "option",
    [
        {"stack": "self"},
        {"heads": "best"},
        {"least": 0.2},
        {"spread": [(random_record(), random_record())]},
        {"confidence": 0.9},
    ],
)
def test_options_of_records_are_refused_for_results(option):
    a = heads_of(0)
    with pytest.raises(hs.errors.RecordError, match=f"{next(iter(option))}=.* is for records"):
        hs.compare(a, a, **option)
    for pair in ((a, a), (random_record(), random_record())):
        with pytest.raises(
            hs.errors.RecordError, match="compare has no option 'foo'; there are stack"
        ):
            hs.compare(*pair, foo=3)


def test_what_makes_no_sense_is_refused():
    relations = hs.load(KEPT / "relations.safetensors")
    with pytest.raises(
        hs.errors.RecordError, match="two results of one kind, got Heads and Relations"
    ):
        hs.compare(heads_of(0), relations)
    with pytest.raises(
        hs.errors.RecordError, match="Expected two results, or as many records on both"
    ):
        hs.compare(heads_of(0), random_record())
