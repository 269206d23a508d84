"""headscope heads: a text, a pair or a file of texts in, a table out."""

import csv
import json
import sys

import pytest

from headscope.cli import run

from .conftest import LONG, complaint, run_line


def test_one_text_is_a_table_that_says_so(folder, capsys):
    assert run(["heads", "the cat sat", "it sat", "--model", folder]) == 0
    out, err = capsys.readouterr()
    assert "Seen on one text only: nothing is known of others" in out
    assert "\n0-0 " in out
    assert err == ""


FILES = {
    "a.txt": "the cat sat\n\nit sat\n",
    "a.jsonl": '"the cat sat"\n["it sat", "the cat"]\n{"text": "a cat"}\n',
    "a.csv": "id,text,text_b\n1,the cat sat,\n2,it sat,the cat\n",
    "a.tsv": "sentence1\tsentence2\nthe cat sat\t\nit sat\tthe cat\n",
}


@pytest.mark.parametrize(
    ("name", "count"), [("a.txt", 2), ("a.jsonl", 3), ("a.csv", 2), ("a.tsv", 2)]
)
def test_files_of_texts(name, count, here, folder, capsys):
    (here / name).write_text(FILES[name], encoding="utf-8")
    assert run(["heads", "--texts", name, "--model", folder]) == 0
    assert f"{count} texts" in capsys.readouterr().out.splitlines()[0]


def test_all_kinds_of_tables_say_the_same(here, folder):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    (here / "a.csv").write_text(FILES["a.csv"], encoding="utf-8")
    for name in ("b.csv", "b.json", "b.parquet"):
        assert run(["heads", "--texts", "a.csv", "--model", folder, "--out", name]) == 0
    found = parquet.read_table("b.parquet").to_pydict()
    rows = json.loads((here / "b.json").read_text(encoding="utf-8"))
    with (here / "b.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(found["pattern"]) == len(rows) == len(lines) > 40
    for number, (row, line) in enumerate(zip(rows, lines, strict=True)):
        kept = {name: values[number] for name, values in found.items()}
        assert [str(value) for value in kept.values()] == list(line.values())
        assert [kept["pattern"], kept["score"], kept["holds"]] == [
            row["pattern"],
            row["score"],
            row["holds"],
        ]


def test_a_figure_is_drawn(here, folder, capsys):
    pytest.importorskip("matplotlib", reason="needs the extra figures")
    (here / "a.txt").write_text(FILES["a.txt"], encoding="utf-8")
    assert run(["heads", "--texts", "a.txt", "--model", folder, "--plot", "b.svg"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("b.svg")
    text = (here / "b.svg").read_text(encoding="utf-8")
    assert "map of all heads" in text
    assert ">delimiter<" in text


def test_what_is_not_installed_is_said_before_any_work(here, monkeypatch, capsys):
    (here / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run(["heads", "--texts", "a.parquet"]) == 1
    assert capsys.readouterr().err.startswith("headscope: a.parquet needs pyarrow: pip")
    monkeypatch.setattr("headscope.patterns._heads.find_spec", lambda name: None)
    assert run(["heads", "a cat"]) == 1
    assert "pip install 'headscope[statistics]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("", "headscope: Expected a text (or a pair), or a file of texts with --texts"),
        ("a --texts a.txt", "headscope: Expected a text (or a pair), or a file"),
        ("--texts a.pdf", "headscope: a.pdf is not a file of texts; expected .txt, .jsonl, .csv,"),
        ("--texts bad.jsonl", "headscope: bad.jsonl cannot be read: line 2: "),
        ("--texts bad.csv", "headscope: bad.csv has the fields "),
        ("a --out b.xlsx", "headscope: Expected .csv, .json, .parquet, .html for --out, got"),
        (f"'{LONG}'", "headscope: The text has 101 tokens"),
        ("a --plot b.jpg", "headscope: Expected .svg, .pdf, .png for --plot, got b.jpg"),
        ("a --stack decoder", "headscope: The texts have the stacks 'self', not 'decoder'"),
    ],
)
def test_bad_input_is_one_line(arguments, line, here, folder, capsys):
    (here / "bad.jsonl").write_text('"a"\n{\n', encoding="utf-8")
    (here / "bad.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert run_line(f"heads {arguments} --model {folder}") == 1
    assert complaint(capsys).startswith(line)
