"""`ablate` in parts: what it can score, and what it refuses. That it says the same is held in
tests/corpus/test_study_runs.py.
"""

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification

import headscope as hs
from headscope import tasks
from headscope.errors import InterventionError, RecordError, RunError, TextError
from headscope.testing import tiny_model, tiny_tokenizer

from ...close import assert_close

ROWS = [
    {"sentence1": "the cat", "sentence2": "it sat", "label": 1, "group": "a"},
    {"sentence1": "on us", "sentence2": "the dog ran", "label": 0, "group": "a"},
    {"sentence1": "me", "sentence2": "all by it", "label": 1, "group": "b"},
]
FEW = {"heads": [(1, 2)], "layers": False, "progress": False}


def with_head(auto):
    torch.manual_seed(0)
    return auto.from_config(tiny_model("bert").config).eval()


@pytest.fixture(scope="module")
def tokenizer():
    # It has no token of its own to hide words behind.
    tokenizer = tiny_tokenizer()
    tokenizer.mask_token = tokenizer.pad_token
    return tokenizer


@pytest.fixture(scope="module")
def masked():
    return with_head(AutoModelForMaskedLM)


def test_an_ablation_of_more_documents_than_rows_adds_up(tokenizer, tmp_path):
    """In memory and in parts, with a text that is left out: texts in = counted + left out."""
    model = with_head(AutoModelForSequenceClassification)
    rng = np.random.default_rng(0)
    rows = [
        {"sentence": " ".join(rng.choice(["the", "cat", "sat", "on"], 6 + n % 5)), "label": n % 2}
        for n in range(2100)
    ]
    rows.append({"sentence": "cat " * 200, "label": 1})
    given = {"heads": [(0, 1)], "layers": False, "progress": False, "allow_unfit": True}
    given["on_error"] = lambda *_: None
    own = {"tokenizer": tokenizer, "texts": rows, "part_size": 1000, "out": tmp_path / "run"}
    parts = hs.ablate(model, "classification", **own, **given)
    texts, labels = zip(*((row["sentence"], row["label"]) for row in rows[:-1]), strict=True)
    held = hs.ablate(model, tasks.classification(tokenizer, texts, labels, batch=64), **given)
    assert (parts.examples, held.examples) == (2100, 2100)
    # Nearly every one of the 512 rows has some.
    assert 480 < len(held.scores) <= 512
    np.testing.assert_allclose(parts.change, held.change, atol=1e-9)
    assert parts.totals["F1"] == pytest.approx(held.totals["F1"])
    assert parts.totals["log likelihood"] == pytest.approx(held.totals["log likelihood"])
    assert parts.baseline == pytest.approx(held.baseline)
    assert "Left out: 1 of 2101 examples" in str(parts)
    assert hs.load(tmp_path / "run").columns() == parts.columns()


def test_hidden_words_are_drawn_by_what_a_text_says(masked, tokenizer):
    texts = ["the cat sat on us", "it ran by me and all", "on us"]
    given = {"tokenizer": tokenizer, **FEW}
    one = hs.ablate(masked, "masked-word", texts=texts, part_size=1, **given)
    other = hs.ablate(masked, "masked-word", texts=[*texts[::-1], "us"], part_size=3, **given)
    assert set(one.intact) < set(other.intact)
    assert one.columns().keys() == other.columns().keys()


@pytest.mark.parametrize("by", ["mean attention", "mean output"])
@pytest.mark.parametrize("name", ["gpt2", "llama"])  # llama shares key/value heads
def test_means_are_those_of_the_whole_task(name, by, tokenizer, tmp_path):
    model = tiny_model(name, writes=True)
    texts = ["the cat sat on us", "a bee", "on it she ran", "he, too", "a bee"]
    given = {"tokenizer": tokenizer, "by": by, "progress": False}
    result = hs.ablate(model, "next-word", texts=texts, part_size=2, **given)
    other = hs.ablate(model, "next-word", texts=texts[::-1], out=tmp_path / "run", **given)
    held = hs.ablate(model, tasks.next_word(tokenizer, texts, batch=1), by=by)
    assert_close(result.scores, other.scores)
    np.testing.assert_allclose(np.sort(result.change), np.sort(held.change), atol=1e-6)
    assert (result.by, result.cells) == (held.by, held.cells)
    assert np.abs(result.change).max() > 1e-3
    # The mean of one text is another one.
    alone = hs.ablate(model, "next-word", texts=texts[:1], part_size=2, **given)
    longest = np.argmax(np.isclose(result.intact, alone.intact[0]))
    assert (alone.scores[0] != result.scores[longest]).any()


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_means_leave_out_what_pads_the_targets(name, tokenizer):
    model = tiny_model(name)
    texts = ["the cat sat on it.", "a bee", "on it she ran", "he, too"]
    pairs = [(one, two) for one in texts for two in texts[:2]]
    found = [
        hs.ablate(model, tasks.translation(tokenizer, pairs, batch=batch), by="mean attention")
        for batch in (1, 8)
    ]
    assert_close(found[0].change, found[1].change)
    assert np.abs(found[0].change).max() > 1e-3


def test_a_causal_model_whose_tokenizer_has_a_mask_token_is_loaded_as_it_is_said(
    tokenizer, tmp_path
):
    tiny_model("gpt2", writes=True).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    rows = [{"sentence_good": "the cat sat", "sentence_bad": "the cat sits"}] * 2
    given = {"texts": rows, "part_size": 1, **FEW}
    assert hs.ablate(tmp_path / "model", "minimal-pairs", masked=False, **given).examples == 2
    with pytest.raises(
        hs.errors.ModelError, match="for this kind of AutoModel: AutoModelForMaskedLM"
    ):
        hs.ablate(tmp_path / "model", "minimal-pairs", masked=True, **given)


def two_columns(model, tokenizer, rows):
    return tasks.next_word(tokenizer, rows)


@pytest.mark.parametrize(
    ("task", "options", "error", "match"),
    [
        (lambda model, tokenizer, rows: model, {"workers": 2}, RunError, "cannot go to other"),
        ("masked-word", {"by": lambda **at: hs.Zero(**at), "workers": 2}, RunError, "given as by"),
        ("masked-word", {"top": 3, "part_size": 9}, InterventionError, "needs screen='gradient'"),
        ("masked-word", {"depth": 1, "part_size": 9}, RecordError, "has no option 'depth'"),
        ("masked-word", {"texts": None, "part_size": 9}, RecordError, "needs its examples"),
        ("masked-word", {"texts": ["a"], "groups": [], "part_size": 9}, RecordError, "0 groups"),
        (
            "likeness",
            {"texts": [{"text": "a", "text_b": "us", "label": 1}] * 2, "part_size": 9},
            TextError,
            "must differ between them",
        ),
        (
            "likeness",
            {"texts": ROWS, "screen": "gradient", "part_size": 9},
            InterventionError,
            "has no gradient",
        ),
        ("repeats", {"part_size": 9}, TextError, "give headscope.tasks.repeated_runs"),
        ("hidden-word", {"part_size": 9}, TextError, "There is no task 'hidden-word'"),
        (two_columns, {"part_size": 9}, InterventionError, "numbers of all examples together"),
        (tasks.repeats(range(9), period=3), {"part_size": 9}, RunError, "was given Task; give"),
        ("masked-word", {}, RecordError, "texts is for a run in parts"),
    ],
)
def test_what_cannot_run_in_parts_is_said(masked, tokenizer, task, options, error, match):
    # Where other processes are asked for, the model is named; the folder is never looked at.
    model = "no/model" if "workers" in options else masked
    given = {"texts": ["the cat"]} | ({} if "workers" in options else {"tokenizer": tokenizer})
    with pytest.raises(error, match=match):
        hs.ablate(model, task, **(given | options))
