"""An ablation that was killed goes on where it stopped, and with nothing else."""

import dataclasses
import json
import signal
import subprocess
import sys

import pytest

from headscope import FileError, ablate
from headscope.tasks import Task, next_word
from headscope.testing import tiny_model

from ...close import assert_close
from .conftest import TEXTS, states_task

KILLED = """
import os, signal, sys
import torch
import headscope as hs
from headscope.tasks import Task, next_word
from headscope.testing import tiny_model, tiny_tokenizer

torch.set_num_threads(1)
task = next_word(tiny_tokenizer(), {texts!r}, batch=2)
runs = 0
def score(model, batch):
    global runs
    runs += 1
    if runs > 20:
        os.kill(os.getpid(), signal.SIGKILL)
    return task.score(model, batch)
said = (task.name, task.metric, task.columns, task.order)
own = Task(task.batches, score, *said, totals=task.totals)
hs.ablate(tiny_model("gpt2", writes=True), own, resume=sys.argv[1])
"""


def test_killed_halfway_nothing_is_lost(tmp_path, tokenizer, one_thread):
    script, cut, whole = (tmp_path / name for name in ("killed.py", "cut", "whole"))
    script.write_text(KILLED.format(texts=TEXTS), encoding="utf-8")
    assert subprocess.run([sys.executable, script, cut], check=False).returncode == -signal.SIGKILL
    task, model, runs = next_word(tokenizer, TEXTS, batch=2), tiny_model("gpt2", writes=True), []
    wanted = ablate(model, task, resume=whole)
    kept = cut.read_bytes()
    assert 8 < kept.count(b"\n") < whole.read_bytes().count(b"\n") - 8
    cut.write_bytes(
        kept + b'{"batch": 1, "cell": ["self", 0'
    )  # as if it had been killed in the middle of a line

    def counted(model, batch):
        runs.append(1)
        return task.score(model, batch)

    again = ablate(model, dataclasses.replace(task, score=counted), resume=cut)
    assert_close(again.scores, wanted.scores)
    assert_close(again.columns(), wanted.columns())
    assert_close(*(list(map(json.loads, path.read_text().splitlines())) for path in (cut, whole)))
    assert len(runs) < len(whole.read_bytes().splitlines())


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"texts": TEXTS[1:]}, "another task; give the same again, or name another file"),
        ({"seed": 1}, "another model; give"),
        ({"by": "uniform"}, "another way of disabling heads; give"),
        ({"texts": TEXTS[1:], "seed": 1}, "another model and task; give"),
    ],
)
def test_a_file_of_something_else_is_refused(changed, line, tokenizer, tmp_path):
    given = {"texts": TEXTS, "seed": 0, "by": "zero"}

    def run(texts, seed, by):
        task = next_word(tokenizer, texts)
        return ablate(
            tiny_model("gpt2", writes=True, seed=seed),
            task,
            by=by,
            heads=False,
            resume=tmp_path / "kept.jsonl",
        )

    found = run(**given)
    kept = (tmp_path / "kept.jsonl").read_bytes()
    with pytest.raises(FileError, match=line):
        run(**(given | changed))
    assert (tmp_path / "kept.jsonl").read_bytes() == kept
    assert_close(run(**given).scores, found.scores)
    assert (tmp_path / "kept.jsonl").read_bytes() == kept


def test_a_score_that_is_no_longer_the_same_is_refused(bert, tokenizer, tmp_path):
    task = states_task(tokenizer)
    ablate(bert, task, heads=False, resume=tmp_path / "kept.jsonl")
    other = Task(
        task.batches, lambda model, batch: 2 * task.score(model, batch), task.name, task.metric
    )
    with pytest.raises(FileError, match="other scores of the intact model on batch 0"):
        ablate(bert, other, resume=tmp_path / "kept.jsonl")


@pytest.mark.parametrize(
    "content", [b"a poem\n", b'{"format": "x"}\n', b"[]\n", b"poem", b'{"format": 1}']
)
def test_files_that_are_none_are_refused(content, bert, tokenizer, tmp_path):
    (tmp_path / "poem").write_bytes(content)
    with pytest.raises(FileError, match="is not a journal of an ablation"):
        ablate(bert, states_task(tokenizer), heads=False, resume=tmp_path / "poem")
    assert (tmp_path / "poem").read_bytes() == content
    with pytest.raises(FileError, match="Cannot resume"):
        ablate(bert, states_task(tokenizer), heads=False, resume=tmp_path / "gone" / "kept.jsonl")


def test_lines_of_the_file_are_json(bert, tokenizer, tmp_path):
    ablate(
        bert, states_task(tokenizer), heads=[(0, 0)], layers=False, resume=tmp_path / "kept.jsonl"
    )
    header, *rows = map(
        json.loads, (tmp_path / "kept.jsonl").read_text(encoding="utf-8").splitlines()
    )
    assert header["format"] == "headscope ablation"
    assert [(row["batch"], row["cell"]) for row in rows[:2]] == [(0, None), (0, ["self", 0, 0])]
    assert len(rows) == 6
