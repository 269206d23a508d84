"""headscope view with evidence: of one text, of a file of texts, of a tally that was kept."""

import shlex

import pytest

import headscope as hs
from headscope.cli import run
from headscope.testing import random_record

from .conftest import complaint, header_of, run_line


def test_evidence_of_this_text_alone(here, folder, capsys):
    asked = ["view", "the cat sat", "it sat", "--model", folder, "--evidence", "--view", "matrix"]
    assert run([*asked, "--out", "page.html"]) == 0
    header = header_of(here / "page.html")
    assert header["evidence"]["texts"] == 1
    assert header["evidence"]["caution"].startswith("Seen on one text only")
    assert header["selection"]["view"] == "matrix"
    assert capsys.readouterr().err == ""


def test_evidence_of_a_file_of_texts(here, folder):
    (here / "texts.jsonl").write_text(
        '"the cat sat"\n["it sat", "the cat"]\n{"text": "a cat"}\n', encoding="utf-8"
    )
    asked = shlex.split(f"view 'the cat' --model {folder} --evidence-of texts.jsonl --view matrix")
    assert run(asked) == 0
    header = header_of(here / "headscope.html")
    assert header["evidence"]["texts"] == 3
    assert "the cat" in header["title"]


def test_evidence_of_heads_that_were_kept(here, capsys):
    record = random_record(layers=2)
    hs.save(record, "run.safetensors")
    hs.save(hs.heads([record, random_record(layers=2, seed=4)], margin=0.2), "heads.safetensors")
    assert run(["view", "run.safetensors", "--evidence-of", "heads.safetensors"]) == 0
    assert header_of(here / "headscope.html")["evidence"]["texts"] == 2
    assert run(["view", "run.safetensors", "--evidence-of", "run.safetensors"]) == 1
    assert (
        "got a Record in run.safetensors; save one with heads(...).save(" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--evidence --evidence-of a.txt", "headscope: --evidence is of this text"),
        ("--evidence-of gone.txt", "headscope: gone.txt does not exist"),
        ("--evidence-of a.pdf", "headscope: Expected .txt, .jsonl"),
        ("--evidence-of empty.txt", "headscope: empty.txt holds no example"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_page(arguments, line, here, folder, capsys):
    (here / "empty.txt").write_text("\n", encoding="utf-8")
    assert run_line(f"view 'the cat' --model {folder} {arguments}") == 1
    assert complaint(capsys).startswith(line)
    assert not (here / "headscope.html").exists()
