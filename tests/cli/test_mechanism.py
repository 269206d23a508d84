"""headscope mechanism: neurons of heads, and what goes with an embedding."""

import json

import pytest

from headscope.cli import run

from .conftest import complaint, run_line

TEXTS = "the cat sat on it\nit ran off\nshe saw me by it\n"


@pytest.fixture
def here(here):
    (here / "a.txt").write_text(TEXTS, encoding="utf-8")
    return here


def test_chosen_heads_have_their_neurons_named(here, folder, capsys):
    assert run_line(f"mechanism --texts a.txt --model {folder} --at 1-0 0-2 --pattern sep") == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert "2 heads, 3 texts (median 14 tokens), sep; " in " ".join(out.split())
    header = next(place for place, line in enumerate(lines) if line.startswith("head  mass"))
    assert [line.split()[0] for line in lines[header + 1 : header + 3]] == ["0-2", "1-0"]
    assert "Head 1-0:" in lines
    assert err == ""


def test_tables_and_figures_are_written(here, folder, capsys):
    pytest.importorskip("matplotlib", reason="needs the extra figures")
    arguments = ["--model", folder, "--at", "1-0", "--out", "b.json", "--plot", "b.svg"]
    assert run(["mechanism", "--texts", "a.txt", *arguments]) == 0
    rows = json.loads((here / "b.json").read_text(encoding="utf-8"))
    assert [row["of"] for row in rows] == ["margin", "score"]
    assert "head 1-0" in (here / "b.svg").read_text(encoding="utf-8")


def test_labels_are_told_by_the_neurons_of_the_demo_model(here, capsys):
    words = ("money", "card", "bank", "cash", "payment", "app", "rate", "fee")
    lines = [
        f"why was my {a} {b} not there when i paid the {a}" for a in words for b in words if a != b
    ]
    (here / "b.txt").write_text("\n".join(lines[:24]), encoding="utf-8")
    assert run(["mechanism", "--texts", "b.txt"]) == 0
    out = capsys.readouterr().out
    assert "label" in out
    assert any(line.startswith("previous ") for line in out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--at 2_0", "headscope: Expected layer and heads for --at, such as 2-0"),
        ("--at 9-9", "headscope: There is no head 9-9"),
        ("--plot b.svg", "headscope: Expected 1 to 12 heads with --at for --plot"),
        ("--pattern nowhere", "headscope: The rule 'nowhere' cannot be read"),
        ("--out b.xlsx", "headscope: Expected .csv, .json, .parquet, .html for --out, got b.xlsx"),
    ],
)
def test_bad_input_is_one_line(arguments, line, here, folder, capsys):
    assert run_line(f"mechanism --texts a.txt --model {folder} {arguments}") == 1
    assert complaint(capsys).startswith(line)
