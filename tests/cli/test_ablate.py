"""headscope ablate: a task and a file of examples in, a table out."""

import csv
import json
import shlex

import numpy as np
import pytest
from transformers import GPT2LMHeadModel

import headscope as hs
from headscope.cli import run
from headscope.studies import Ablation
from headscope.tasks import next_word
from headscope.testing import tiny_model, tiny_tokenizer

from .conftest import complaint, run_line


@pytest.fixture(scope="module")
def folder(saved):
    return saved("tiny", tiny_model("gpt2", writes=True), tiny_tokenizer())


@pytest.fixture
def here(here):
    (here / "a.txt").write_text("the cat sat\nit sat\na bee on it\n", encoding="utf-8")
    pairs = [{"sentence_good": "the cat sat", "sentence_bad": "the cat sits"}] * 2
    (here / "b.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in pairs), encoding="utf-8"
    )
    (here / "own.py").write_text(
        "def task(model, tokenizer):\n    return lambda model: [1.0]\n", encoding="utf-8"
    )
    return here


def test_next_words(folder, here, capsys):
    arguments = ["--task", "next-word", "--data", "a.txt", "--model", folder]
    files = ["--out", "b.csv", "--save", "b.safetensors"]
    assert run(["ablate", *arguments, *files, "--by", "uniform"]) == 0
    out, err = capsys.readouterr()
    assert "next word, 3 examples, median 10 tokens; disabled: attention made uniform" in out
    assert err == ""
    model, texts = tiny_model("gpt2", writes=True), ["the cat sat", "it sat", "a bee on it"]
    found, kept = (
        hs.ablate(model, next_word(tiny_tokenizer(), texts), by="uniform"),
        Ablation.load("b.safetensors"),
    )
    np.testing.assert_allclose(kept.scores, found.scores, atol=1e-6)
    with (here / "b.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["change"]) for row in rows] == kept.change.tolist()


def test_repeated_tokens_need_no_file_in_parts_either(saved, here, capsys):
    config = tiny_model("gpt2", writes=True).config
    config.n_positions = 64
    model = saved("longer", GPT2LMHeadModel(config).eval(), tiny_tokenizer())
    given = ["ablate", "--task", "repeats", "--model", model, "--limit", "3", "--no-whole-layers"]
    assert run([*given, "--out", "a.csv"]) == 0
    assert run([*given, "--out", "run", "--part-size", "2"]) == 0
    assert "repeats, 3 examples, median 60 tokens" in capsys.readouterr().out
    with (here / "a.csv").open(encoding="utf-8", newline="") as file:
        changes = [float(row["change"]) for row in csv.DictReader(file)]
    kept = Ablation.load(here / "run" / "result.safetensors").columns()
    assert len(changes) == 15
    np.testing.assert_allclose(sorted(kept["change"]), sorted(changes), atol=1e-6)


def test_other_tasks(folder, here, capsys):
    pytest.importorskip("matplotlib", reason="needs the extra figures")
    pairs = shlex.split(
        f"--task minimal-pairs --data b.jsonl --model {folder} --no-single-heads --limit 1"
    )
    assert run(["ablate", *pairs, "--plot", "b.svg", "--random-weights"]) == 0
    out = capsys.readouterr().out
    assert "minimal pairs, 1 example," in out
    assert "largest change of a layer there " in out
    assert "intact " in (here / "b.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--task poetry", "There is no task 'poetry'; give next-word, masked-word"),
        ("--task next-word", "The task 'next-word' needs a file of examples"),
        ("--task next-word --data gone.txt", "gone.txt does not exist"),
        ("--task next-word --data a.txt --save b.csv", "Expected a .safetensors file for --save,"),
        ("--task minimal-pairs --data a.txt", "a.txt has texts without a second one;"),
        ("--task classification --data a.txt", "tiny has no trained classifier"),
        ("--task gone.py:task", "The task 'gone.py:task' is to be a function of 'gone.py'"),
        ("--task own.py:other", "own.py has no function 'other'"),
        ("--task own.py:task", "The score does not run GPT2Model"),
    ],
)
def test_bad_input_is_one_line(arguments, line, folder, here, capsys):
    assert run_line(f"ablate {arguments} --model {folder}") == 1
    assert complaint(capsys).startswith(f"headscope: {line}")


def test_a_bad_example_costs_one_example(folder, here, capsys):
    rows = [
        {"text": "a\ud800b"},
        {"text": "the cat sat"},
        {"text": None},
        {"text": "it sat"},
        {"text": 7},
        {"text": " "},
    ]
    rows += [{"text": "a bee on it"}, {"text": "1 2 3 4"}]
    (here / "bad.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="ascii"
    )
    arguments = ["--task", "next-word", "--model", folder, "--no-whole-layers"]
    assert run(["ablate", *arguments, "--data", "a.txt"]) == 0
    wanted = capsys.readouterr().out
    assert run(["ablate", *arguments, "--data", "bad.jsonl"]) == 3
    told = capsys.readouterr()
    lines = told.err.strip().splitlines()
    assert lines[-1] == "headscope: 5 of 8 examples were left out: 1, 3, 5, 6, 8"
    assert (
        "headscope: example 1 (bad.jsonl, line 1) was left out: The text holds half of a character"
        in lines[0]
    )
    assert "3 examples" in told.out
    assert told.out.splitlines()[-2:] == wanted.splitlines()[-2:]
