"""headscope align: files of sentences in, error rates of layers and heads out."""

import csv
import json
import re

import pytest

from headscope.cli import run
from headscope.testing import cipher_pairs, cipher_translator, tiny_model, tiny_tokenizer

from .conftest import complaint, run_line

PAIRS = cipher_pairs(6, seed=4)


@pytest.fixture(scope="module")
def folder(saved):
    model, tokenizer, _ = cipher_translator(steps=2)
    return saved("cipher", model, tokenizer)


@pytest.fixture
def here(here):
    for name, part in (("a", PAIRS[:2]), ("b", PAIRS[2:])):
        rows = [
            {
                "source": pair.source,
                "target": pair.target,
                "links": " ".join(f"{first + 1}-{second + 1}" for first, second in pair.sure),
            }
            for pair in part
        ]
        (here / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return here


def test_the_table_the_file_and_the_plot(folder, here, capsys):
    pytest.importorskip("matplotlib", reason="needs the extra figures")
    given = ["align", "--pairs", "a.jsonl", "b.jsonl", "--from-one", "--model", folder]
    assert run([*given, "--confidence", "0.9", "--random-weights"]) == 0
    out, err = capsys.readouterr()
    assert re.search(
        r"cipher: 6 sentences \(median \d+ tokens of the source\)\. The least alignment error rate",
        out,
    )
    assert "\nAlignment error rate in % [90% interval over sentences]" in out
    assert "best by norm, output: layer" in out
    assert "the diagonal, without any attention: " in out
    assert "\nthe same with random weights:\nlayer" in out
    assert err == ""
    assert run([*given, "--out", "a.csv", "--plot", "a.svg"]) == 0
    with (here / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 2 * 5
    assert {row["sentences"] for row in rows} == {"6"}
    assert "all heads together" in (here / "a.svg").read_text(encoding="utf-8")


def test_parts_are_added_up_and_gone_on_with(folder, here, capsys):
    given = ["--from-one", "--model", folder]
    assert run(["align", "--pairs", "a.jsonl", "b.jsonl", *given]) == 0
    whole = capsys.readouterr().out
    assert run(["align", "--pairs", "a.jsonl", *given, "--save", "a.safetensors"]) == 0
    assert run(["align", "--pairs", "b.jsonl", *given, "--save", "b.safetensors"]) == 0
    capsys.readouterr()
    assert run(["align", "--add", "b.safetensors", "a.safetensors"]) == 0  # nothing runs
    assert whole == capsys.readouterr().out + "cipher ran on cpu, float32, sdpa attention\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "Expected a file of sentences with --pairs"),
        ("--pairs none.jsonl", "none.jsonl does not exist"),
        ("--pairs a.jsonl", "a.jsonl, line 1: The link"),
        ("--pairs a.jsonl --from-one", "Expected a translator with --model; the demo model"),
        ("--pairs a.jsonl --from-one --model m --truncate", "--truncate would cut words off"),
        ("--pairs a.jsonl --from-one --model BERT", "tiny is not an encoder-decoder"),
        ("--pairs a.jsonl --save a.csv", "Expected a .safetensors file for --save, got a.csv;"),
        ("--pairs a.jsonl --confidence 2", "confidence is a number between 0 and 1, not 2"),
        ("--add a.jsonl", "a.jsonl is cut or no .safetensors file"),
        ("--pairs a.jsonl --out a.txt", "for --out, got a.txt"),
    ],
)
def test_bad_input_is_one_line(given, said, here, saved, capsys):
    if "BERT" in given:
        given = given.replace("BERT", saved("tiny", tiny_model("bert"), tiny_tokenizer()))
        capsys.readouterr()
    assert run_line(f"align {given}") == 1
    assert said in complaint(capsys)
