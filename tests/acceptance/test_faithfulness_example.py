"""The example that trains a classifier of the user's own texts, and the command on what it made."""

import csv
import importlib.util
import json
from pathlib import Path

import pytest
import torch

from headscope.cli import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "faithfulness.py"
TEXTS = {
    "food": [
        "I ate a warm soup",
        "the bread was fresh",
        "we cooked rice for dinner",
        "she baked a cake",
    ],
    "sport": [
        "he ran a long race",
        "the team won the match",
        "we played tennis outside",
        "she swam in the pool",
    ],
}


@pytest.fixture
def example(monkeypatch):
    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def main(*arguments):
        monkeypatch.setattr("sys.argv", ["faithfulness.py", *map(str, arguments)])
        module.main()

    return main


def test_a_classifier_of_own_texts_is_trained_and_explained(example, tmp_path, capsys):
    rows = [{"text": text, "label": label} for label, texts in TEXTS.items() for text in texts]
    with (tmp_path / "train.tsv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["text", "label"], delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)
    lines = "".join(json.dumps(row) + "\n" for row in rows[::3])
    (tmp_path / "test.jsonl").write_text(lines, encoding="utf-8")
    out = tmp_path / "own"
    example(
        "--train",
        tmp_path / "train.tsv",
        "--test",
        tmp_path / "test.jsonl",
        "--out",
        out,
        "--texts",
        2,
        "--threads",
        torch.get_num_threads(),
    )
    said = capsys.readouterr().out
    assert "2 labels, 8 texts to learn from; right on 100.0% of 3 others" in said
    assert "2 texts, median" in said
    options = ["--texts", str(out / "texts.jsonl"), "--model", str(out), "--permutations", "3"]
    assert run(["faithfulness", *options]) == 0
    table = capsys.readouterr().out
    before = [line for line in said.splitlines() if line.startswith("contribution")]
    assert [line for line in table.splitlines() if line.startswith("contribution")] == before


def test_missing_data_is_said(example, tmp_path):
    with pytest.raises(SystemExit, match="none.csv is not there. Give --train and --test, files"):
        example("--train", tmp_path / "none.csv")
