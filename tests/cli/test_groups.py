"""A field "group" in a file of texts: intervals are over documents."""

import json
import shlex

import pytest

from headscope.cli import run
from headscope.testing import tiny_model, tiny_tokenizer

ROWS = [("the cat sat", "a"), ("it sat", "a"), ("the dog ran", "b"), ("a bee ran", None)]


def written(place, name):
    rows = [{"text": text, "group": group} for text, group in ROWS]
    if name.endswith(".jsonl"):
        (place / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif name.endswith(".parquet"):
        parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
        import pyarrow as pa

        parquet.write_table(pa.Table.from_pylist(rows), place / name)
    else:
        between = "\t" if name.endswith(".tsv") else ","
        lines = [
            between.join(["text", "group"]),
            *(between.join([text, group or ""]) for text, group in ROWS),
        ]
        (place / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv", "a.parquet"])
def test_documents_of_a_file_are_read(name, here, folder, capsys):
    assert run(["heads", "--texts", written(here, name), "--model", folder]) == 0
    assert "4 texts of 3 documents" in capsys.readouterr().out


def test_examples_of_a_task_have_documents(here, saved, capsys):
    model = saved("writer", tiny_model("gpt2", writes=True), tiny_tokenizer())
    assert (
        run(["ablate", "--task", "next-word", "--data", written(here, "a.csv"), "--model", model])
        == 0
    )
    assert "4 examples of 3 documents" in capsys.readouterr().out
    asked = shlex.split(f"ablate --task next-word --data a.csv --model {model} --no-whole-layers")
    assert run([*asked, "--by", "mean-output"]) == 0
    assert "output made the mean over texts" in " ".join(capsys.readouterr().out.split())
