import numpy as np
import pytest

import headscope as hs
from headscope import RecordError
from headscope.capturing import random_twin
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["the cat sat on it", ("a dog ran", "it ran"), "she saw us all"]


def test_a_model_with_texts_is_what_its_records_are():
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    found = hs.mechanism(model, tokenizer, TEXTS, at=[(1, 0)], pattern="sep")
    wanted = hs.mechanism(hs.capture_many(model, tokenizer, TEXTS), at=[(1, 0)], pattern="sep")
    np.testing.assert_allclose(
        found.tally.statistic.values, wanted.tally.statistic.values, atol=1e-6
    )
    assert found.texts == 3
    assert [each.unit for each in found.neurons(1, 0)] == [
        each.unit for each in wanted.neurons(1, 0)
    ]


def test_random_weights_stand_beside():
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    found = hs.mechanism(model, tokenizer, TEXTS, at=[(1, 0)], random_weights=True)
    wanted = hs.mechanism(random_twin(model), tokenizer, TEXTS, at=[(1, 0)])
    assert (
        found.columns()["random_neurons"]
        == wanted.columns()["neurons"]
        != found.columns()["neurons"]
    )
    _, beside = str(found).split("The same with random weights:\n")
    (row,) = [
        line for line in str(wanted).splitlines() if line.startswith("1-0 ") and " of 8" in line
    ]
    assert row in beside.splitlines()
    with pytest.raises(RecordError, match="random_weights=True needs a model to run"):
        hs.mechanism(hs.capture(model, tokenizer, TEXTS[0]), random_weights=True)


def test_a_run_over_many_texts_keeps_sums_alone(tmp_path, monkeypatch):
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["the", "cat", "sat", "on"], 2 + n % 5)) for n in range(90)]
    given = {"texts": texts, "at": [(1, 0), (0, 2)], "pattern": "sep", "progress": False}
    given |= {"groups": [f"d{number % 40}" for number in range(90)], "part_size": 40}
    held = hs.mechanism(model, tokenizer, **given)
    monkeypatch.setattr("headscope.studies.shared._counted_texts.MANY", 89)
    summed = hs.mechanism(model, tokenizer, out=tmp_path / "run", random_weights=True, **given)
    assert (held.tally.is_summed, summed.tally.is_summed) == (False, True)
    assert summed.texts == 90
    assert 30 < summed.tally.statistic.documents == held.tally.statistic.documents
    own, wanted = summed.columns(), held.columns()
    for name in ("mass", "neurons", "overlap", "chance"):
        np.testing.assert_allclose(own[name], wanted[name], rtol=1e-12)
    low, high = (np.array(wanted[f"neurons_{end}"]) for end in ("low", "high"))
    np.testing.assert_allclose(own["neurons_low"], low, atol=0.15 * (high - low).max())
    assert own["carrying_unit"] == wanted["carrying_unit"]
    for mine, theirs in zip(summed.neurons(1, 0), held.neurons(1, 0), strict=True):
        assert mine.unit == theirs.unit
        assert mine.carries == pytest.approx(theirs.carries)
        assert mine.stable == pytest.approx(theirs.stable)
        assert mine.low == pytest.approx(theirs.low, abs=0.15 * (theirs.high - theirs.low))
    again = hs.load(tmp_path / "run")
    assert str(again) == str(summed)
    assert again.columns() == own
    with pytest.raises(RecordError, match="of these 90 texts sums alone are known; group fewer"):
        summed.grouped({"all": [(1, 0)]})
    with pytest.raises(RecordError, match="Of 90 texts sums alone are known; count others"):
        again.tally.update("more", hs.capture(model, tokenizer, "a cat", keep="qk"))
    both = again.tally + held.tally
    assert (both.is_summed, len(both.statistic)) == (True, 180)
    with pytest.raises(RecordError, match="Of 180 texts sums alone are known"):
        both.row("neurons", "margin")
