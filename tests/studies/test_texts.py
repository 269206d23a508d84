"""What all studies of texts say and do: how long texts are, random weights beside, and records in
place of a model.
"""

import pytest

import headscope as hs
from headscope import tasks
from headscope.capturing import random_twin
from headscope.errors import RecordError
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

TEXTS = ["the cat sat on it", "a dog ran", "she saw us all"]
SAID = "median 13 tokens"
STUDIES = {"norm_study": ("weights", "norms"), "mechanism": "qk"}


@pytest.fixture(scope="module")
def given():
    return tiny_model("bert"), tiny_tokenizer(), TEXTS


def numbers_in(columns):
    """The columns of numbers."""
    named = {name: column for name, column in columns.items() if isinstance(column[0], float)}
    return {name: named[name] for name in named if not name.startswith("random_")}


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_of_texts(name, given, tmp_path):
    study = getattr(hs, name)
    found = study(*given, random_weights=True)
    twin = study(random_twin(given[0]), *given[1:])
    records = hs.capture_many(*given, keep=STUDIES[name])
    same = study(records)
    assert SAID in str(found)
    assert "with random weights:" in str(found)
    assert_close(numbers_in(found.columns()), numbers_in(same.columns()))
    assert_close(numbers_in(found.control.columns()), numbers_in(twin.columns()))
    beside = [key for key in found.columns() if key.startswith("random_")]
    assert beside
    assert not any(key.startswith("random_") for key in same.columns())
    for key in beside:
        assert_close(found.columns()[key], twin.columns()[key.removeprefix("random_")])
    assert str(hs.load(found.save(tmp_path / "a.safetensors"))) == str(found)
    with pytest.raises(RecordError, match="random_weights=True needs a model to run"):
        study(records, random_weights=True)
    with pytest.raises(RecordError, match=f"{name} has no option 'patterns'"):
        study(*given, patterns=())


def test_heads_and_ablation_say_how_long_texts_are(given, tmp_path):
    from transformers import AutoModelForCausalLM

    assert str(hs.heads(*given, battery=False)).splitlines()[0].endswith(f"{SAID}, 3 texts")
    model = AutoModelForCausalLM.from_config(tiny_model("gpt2").config).eval()
    found = hs.ablate(model, tasks.next_word(given[1], TEXTS), layers=False, allow_unfit=True)
    assert f"3 examples, {SAID}; disabled" in str(found)
    assert SAID in str(hs.load(found.save(tmp_path / "a.safetensors")))
