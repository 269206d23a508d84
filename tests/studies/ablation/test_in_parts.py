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
from headscope.studies.ablation._averaged_in_parts import chosen_of
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


def test_classes_of_rows_with_documents_and_random_weights(tokenizer, tmp_path):
    model = with_head(AutoModelForSequenceClassification)
    given = {"tokenizer": tokenizer, "texts": ROWS, "out": tmp_path / "run", **FEW}
    result = hs.ablate(model, "classification", random_weights=True, allow_unfit=True, **given)
    pairs = [(row["sentence1"], row["sentence2"]) for row in ROWS]
    task = tasks.classification(tokenizer, pairs, [1, 0, 1]).grouped(["a", "a", "b"])
    held = hs.ablate(model, task, allow_unfit=True, **FEW)
    assert result.totals.keys() == held.totals.keys() == {"log likelihood", "F1"}
    for name, values in held.totals.items():
        assert result.totals[name] == pytest.approx(values, abs=1e-6)
    assert sorted(result.groups) == ["a", "a", "b"]
    assert (result.metric, result.by, result.tokens) == (held.metric, held.by, held.tokens)
    assert result.control is not None
    assert hs.load(tmp_path / "run").control.intact.shape == (3,)


def apart(one, other):
    """The larger difference of both ends, as a share of the other's width."""
    wide = np.ptp(other, axis=1)
    return (np.abs(one - other).max(axis=1)[wide > 0] / wide[wide > 0]).max()


def test_intervals_and_tests_from_sums_are_near_those_of_held_examples(tokenizer, monkeypatch):
    model = tiny_model("gpt2", writes=True)
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(["the", "cat", "sat", "on", "us"], 2 + n % 5)) for n in range(120)]
    given = {"tokenizer": tokenizer, "texts": texts, "part_size": 50, "progress": False}
    given["groups"] = [f"d{number % 50}" for number in range(120)]
    held = hs.ablate(model, "next-word", **given)
    monkeypatch.setattr("headscope.studies.shared._counted_texts.MANY", 119)
    summed = hs.ablate(model, "next-word", **given)
    assert (held.sums, summed.scores.shape) == (None, (0, len(held.cells)))
    assert apart(summed.intervals, held.intervals) < 0.1
    np.testing.assert_allclose(summed.p, held.p, atol=0.02)
    # Some heads matter and some do not, so that both ends of the test are compared.
    assert held.p.min() < 0.01
    assert held.p.max() > 0.2
    assert_close(summed.significant, held.significant)


def test_a_run_over_many_examples_keeps_sums_alone(tokenizer, tmp_path, monkeypatch):
    model = with_head(AutoModelForSequenceClassification)
    rng = np.random.default_rng(0)
    rows = [
        {
            "sentence": " ".join(rng.choice(["the", "cat", "sat", "on", "us"], 2 + number % 5)),
            "label": number % 2,
            "group": f"d{number % 60}" if number % 3 else None,
        }
        for number in range(150)
    ]
    given = {"tokenizer": tokenizer, "texts": rows, "part_size": 40, "allow_unfit": True}
    given |= {"heads": [(0, 1), (1, 2)], "layers": [1], "progress": False}
    held = hs.ablate(model, "classification", random_weights=True, **given)
    assert held.sums is None
    monkeypatch.setattr("headscope.studies.shared._counted_texts.MANY", 149)
    out = tmp_path / "run"
    summed = hs.ablate(model, "classification", random_weights=True, out=out, **given)
    assert (summed.scores.shape, summed.intact.shape, summed.groups) == ((0, 3), (0,), None)
    assert (summed.examples, summed.documents) == (150, held.documents)
    assert summed.tokens == held.tokens
    assert summed.totals.keys() == held.totals.keys() == {"log likelihood", "F1"}
    for name, values in held.totals.items():
        assert summed.totals[name] == pytest.approx(values, rel=1e-12)
    np.testing.assert_allclose(summed.change, held.change, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(summed.control.change, held.control.change, rtol=1e-12, atol=1e-15)
    assert summed.baseline == pytest.approx(held.baseline, rel=1e-12)
    # Right and wrong answers: Wilson's interval either way, its variance linearised.
    assert apart(summed.baseline_interval[None], held.baseline_interval[None]) < 0.01
    again = hs.load(out)
    assert str(again) == str(summed)
    assert again.columns() == summed.columns()
    words = " ".join(str(summed).split())
    assert f"150 examples of {held.documents} documents" in words
    assert "95% t interval" in words
    assert "*: paired t-test over documents, holm" in words
    assert "paired sign-flip test over documents" in str(held)
    with pytest.raises(RecordError, match="Of 150 examples sums alone are known; give fewer"):
        _ = again.changes
    same = held.in_sums()
    assert same.columns() == summed.columns()
    assert same.in_sums().columns() == summed.columns()


def likeness_rows(graded):
    rng = np.random.default_rng(3)
    rows = []
    for number in range(150):
        one, other = (
            " ".join(rng.choice(["the", "cat", "sat", "on"], 1 + number % 4)) for _ in "ab"
        )
        label = rng.integers(0, 6) / 5 if graded else number % 2
        group = f"d{number % 60}" if number % 3 else None
        rows.append({"sentence1": one, "sentence2": other, "label": float(label), "group": group})
    return rows


@pytest.mark.parametrize("graded", [False, True])
def test_pairs_of_a_likeness_are_judged_together_without_being_held(
    graded, masked, tokenizer, tmp_path, monkeypatch
):
    given = {"tokenizer": tokenizer, "texts": likeness_rows(graded), "part_size": 40}
    given |= {"heads": [(0, 1), (1, 2)], "layers": [1], "progress": False}
    held = hs.ablate(masked, "likeness", random_weights=True, **given)
    assert held.sums is None
    monkeypatch.setattr("headscope.studies.shared._counted_texts.MANY", 149)
    out = tmp_path / "run"
    summed = hs.ablate(masked, "likeness", random_weights=True, out=out, **given)
    assert (summed.scores.shape, summed.examples, summed.tokens) == ((0, 3), 150, held.tokens)
    assert summed.metric == held.metric == ("Spearman's rho" if graded else "accuracy")
    assert summed.documents == held.documents
    # All pairs are in the sample, so that nothing but rounding is another.
    for own, wanted in ((summed, held.in_sums()), (summed.control, held.control.in_sums())):
        np.testing.assert_allclose(own.change, wanted.change, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(own.intervals, wanted.intervals, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(own.p, wanted.p, rtol=1e-6)
        assert own.baseline == pytest.approx(wanted.baseline)
    assert summed.totals["mean cosine"] == pytest.approx(held.totals["mean cosine"], rel=1e-12)
    again = hs.load(out)
    assert str(again) == str(summed)
    assert again.columns() == summed.columns()
    monkeypatch.setattr("headscope.studies.ablation._summed_parts.SAMPLED", 40)
    few = hs.ablate(masked, "likeness", **given)
    assert few.baseline == pytest.approx(held.baseline, abs=0.02)
    np.testing.assert_allclose(few.change, held.change, atol=0.03)
    # Which pairs are in the sample is said by their names, not by the parts.
    other = hs.ablate(masked, "likeness", **given | {"part_size": 70})
    np.testing.assert_allclose(other.change, few.change, rtol=1e-12)
    same = [row | {"label": 1.0} for row in given["texts"]]
    with pytest.raises(TextError, match="must differ between them"):
        hs.ablate(masked, "likeness", **given | {"texts": same})


def test_hidden_words_are_drawn_by_what_a_text_says(masked, tokenizer):
    texts = ["the cat sat on us", "it ran by me and all", "on us"]
    given = {"tokenizer": tokenizer, **FEW}
    one = hs.ablate(masked, "masked-word", texts=texts, part_size=1, **given)
    other = hs.ablate(masked, "masked-word", texts=[*texts[::-1], "us"], part_size=3, **given)
    assert set(one.intact) < set(other.intact)
    assert one.columns().keys() == other.columns().keys()


def test_pairs_are_judged_together_by_what_lies_below_the_head(masked, tokenizer, tmp_path):
    given = {"tokenizer": tokenizer, "texts": ROWS, **FEW}
    result = hs.ablate(masked, "likeness", out=tmp_path / "run", random_weights=True, **given)
    pairs = [(row["sentence1"], row["sentence2"]) for row in ROWS]
    held = hs.ablate(masked.base_model, tasks.likeness(tokenizer, pairs, [1, 0, 1]), **FEW)
    assert (result.metric, held.metric) == ("accuracy", "accuracy")
    assert result.totals["mean cosine"] == pytest.approx(held.totals["mean cosine"], abs=1e-6)
    assert sorted(result.intact) == sorted(held.intact)
    assert hs.load(tmp_path / "run").control.intact.shape == (3,)


def test_progress_names_the_two_runs_of_a_screen(masked, tokenizer, capsys):
    options = {"screen": "gradient", "top": 2, "layers": False, "part_size": 2}
    texts = ["the cat sat on us", "it ran by me and all"]
    hs.ablate(masked, "masked-word", tokenizer=tokenizer, texts=texts, **options)
    assert [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        "1 of 2",
        "2 of 2",
    ]
    hs.ablate(masked, "masked-word", tokenizer=tokenizer, texts=texts, heads=[(1, 2)], part_size=2)
    assert capsys.readouterr().err.startswith("Measuring: 2 of 2 texts")


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


def test_means_of_random_weights_are_their_own(tokenizer):
    model = tiny_model("gpt2", writes=True)
    texts = ["the cat sat on us", "it ran by me and all", "on us"]
    given = {"tokenizer": tokenizer, "texts": texts, "by": "mean output", **FEW}
    both = hs.ablate(model, "next-word", random_weights=True, part_size=2, **given)
    task = tasks.next_word(tokenizer, texts, batch=1)
    held = hs.ablate(model, task, by="mean output", random_weights=True, **FEW)
    assert both.control.change == pytest.approx(held.control.change, abs=1e-6)
    assert both.change == pytest.approx(held.change, abs=1e-6)


def test_progress_names_the_choice_of_examples(masked, tokenizer, capsys):
    texts = ["the cat sat on us", "it ran by me and all"]
    given = {"tokenizer": tokenizer, "texts": texts, "part_size": 2}
    hs.ablate(masked, "masked-word", by="mean attention", **given)
    lines = [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["1 of 2", "2 of 2"]


def test_examples_for_means_are_the_longest_and_those_with_the_lowest_numbers():
    rows = [(float(length), (length * 37) % 211, str(length)) for length in range(200)]
    chosen = chosen_of(rows)
    assert len(chosen) == 64
    assert chosen[0] == rows[-1]
    assert chosen[1:] == sorted(rows[:-1], key=lambda row: row[1])[:63]
    for size in (1, 7, 90):
        parts = [rows[at : at + size] for at in range(0, len(rows), size)]
        kept = []
        for part in reversed(parts):
            kept = chosen_of([*kept, *chosen_of(part)])
        assert kept == chosen
    assert chosen_of([]) == []


def two_columns(model, tokenizer, rows):
    return tasks.next_word(tokenizer, rows)


@pytest.mark.parametrize(
    ("task", "options", "error", "match"),
    [
        (lambda model, tokenizer, rows: model, {"workers": 2}, RunError, "cannot go to other"),
        ("masked-word", {"by": lambda **at: hs.Zero(**at), "workers": 2}, RunError, "given as by"),
        ("masked-word", {"top": 3, "part_size": 9}, InterventionError, "needs screen='gradient'"),
        ("masked-word", {"resume": "a", "part_size": 9}, RunError, "resume is not for runs"),
        ("masked-word", {"depth": 1, "part_size": 9}, RunError, "has no option 'depth'"),
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
