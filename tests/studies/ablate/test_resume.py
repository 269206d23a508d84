"""An ablation that was killed goes on where it stopped, and with nothing else."""

import dataclasses
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


def test_killed_halfway_what_was_found_is_not_found_again(tmp_path, tokenizer, one_thread):
    script, cut = tmp_path / "killed.py", tmp_path / "cut.safetensors"
    script.write_text(KILLED.format(texts=TEXTS), encoding="utf-8")
    assert subprocess.run([sys.executable, script, cut], check=False).returncode == -signal.SIGKILL
    task, model = next_word(tokenizer, TEXTS, batch=2), tiny_model("gpt2", writes=True)
    runs = []

    def counted(model, batch):
        runs.append(1)
        return task.score(model, batch)

    wanted = ablate(model, dataclasses.replace(task, score=counted))
    whole, runs[:] = len(runs), []
    again = ablate(model, dataclasses.replace(task, score=counted), resume=cut)
    assert_close(again.scores, wanted.scores)
    assert_close(again.columns(), wanted.columns())
    assert len(runs) < whole - 6
    runs.clear()
    ablate(model, dataclasses.replace(task, score=counted), resume=cut)
    assert len(runs) < 10


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
            resume=tmp_path / "kept.safetensors",
        )

    found = run(**given)
    kept = (tmp_path / "kept.safetensors").read_bytes()
    with pytest.raises(FileError, match=line):
        run(**(given | changed))
    assert (tmp_path / "kept.safetensors").read_bytes() == kept
    assert_close(run(**given).scores, found.scores)
    assert (tmp_path / "kept.safetensors").read_bytes() == kept


def test_a_score_that_is_no_longer_the_same_is_refused(bert, tokenizer, tmp_path):
    task = states_task(tokenizer)
    ablate(bert, task, heads=False, resume=tmp_path / "kept.safetensors")
    other = Task(
        task.batches, lambda model, batch: 2 * task.score(model, batch), task.name, task.metric
    )
    with pytest.raises(FileError, match="other scores of the intact model on batch 0"):
        ablate(bert, other, resume=tmp_path / "kept.safetensors")


@pytest.mark.parametrize("content", [b"a poem\n", b"[]\n", b""])
def test_files_that_are_none_are_refused(content, bert, tokenizer, tmp_path):
    path = tmp_path / "poem.safetensors"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"poem\.safetensors"):
        ablate(bert, states_task(tokenizer), heads=False, resume=path)
    assert path.read_bytes() == content
    gone = tmp_path / "gone" / "kept.safetensors"
    with pytest.raises(FileError, match="gone"):
        ablate(bert, states_task(tokenizer), heads=False, resume=gone)
    with pytest.raises(FileError, match=r"kept\.safetensors"):
        ablate(bert, states_task(tokenizer), heads=False, resume=tmp_path / "kept.jsonl")
    other = ablate(bert, states_task(tokenizer), heads=False).save(tmp_path / "other.safetensors")
    with pytest.raises(FileError, match="holds no values of an ablation"):
        ablate(bert, states_task(tokenizer), heads=False, resume=other)
