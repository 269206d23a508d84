"""Every study over texts says how long they are."""

import numpy as np
import pytest

import headscope as hs
from headscope import tasks
from headscope.evidence import length_text
from headscope.studies import Ablation, Mechanism, NormStudy
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["the cat sat on it", "a dog ran", "she saw us all"]
SAID = "median 13 tokens"


@pytest.fixture(scope="module")
def model():
    return tiny_model("bert")


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


def test_lengths_are_told():
    assert length_text([np.nan, 12, 20]) == "median 16 tokens"
    assert length_text([np.nan]) == "length not known"


def test_norms(model, tokenizer, tmp_path):
    study = hs.norm_study(model, tokenizer, TEXTS)
    assert f"3 texts, {SAID}" in str(study)
    assert SAID in str(NormStudy.load(study.save(tmp_path / "a.safetensors")))


def test_mechanism(model, tokenizer, tmp_path):
    found = hs.mechanism(model, tokenizer, TEXTS)
    assert f"3 texts ({SAID})" in str(found)
    assert f"3 texts ({SAID})" in str(Mechanism.load(found.save(tmp_path / "a.safetensors")))


def test_ablation(tokenizer, tmp_path):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_config(tiny_model("gpt2").config).eval()
    found = hs.ablate(model, tasks.next_word(tokenizer, TEXTS), layers=False, allow_unfit=True)
    assert f"3 examples, {SAID}; disabled" in str(found)
    assert SAID in str(Ablation.load(found.save(tmp_path / "a.safetensors")))


def test_heads(model, tokenizer):
    assert (
        str(hs.heads(model, tokenizer, TEXTS, battery=False))
        .splitlines()[0]
        .endswith(f"{SAID}, 3 texts")
    )
