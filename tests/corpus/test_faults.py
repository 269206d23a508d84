"""Whatever dies, nothing that is finished is lost, and only the guilty text is left out."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from words_job import WordsJob, done

from headscope.corpus import CorpusText, given, pool
from headscope.corpus._folder import UNDER_WAY, RunFolder
from headscope.corpus._journal import PartJournal
from headscope.errors import FileError, RunError

HERE = Path(__file__).parent
# Where the tests run in the background, shells have them and their children ignore SIGINT.
DRIVER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {here!r})
from headscope.corpus import CorpusText, pool, run
from words_job import WordsJob
if __name__ == "__main__":
    texts = [CorpusText("w " * (number % 7 + 1) + str(number)) for number in range(200)]
    with run(WordsJob(takes=0.02), texts, out={out!r}, engine={engine}, part_size=10):
        print("finished")
"""


def named(folder):
    lines = (folder / "failed.jsonl").read_text().splitlines()
    return [(line["text"], line["error"]) for line in map(json.loads, lines)]


def begun(tmp_path, engine="pool(2)"):
    """A driver in a process of its own, some parts finished."""
    out = tmp_path / "run"
    script = tmp_path / "driver.py"
    script.write_text(DRIVER.format(here=str(HERE), out=str(out), engine=engine))
    driver = subprocess.Popen(
        [sys.executable, str(script)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    until(lambda: len(parts(out)) >= 2 or driver.poll() is not None)
    return driver, out


def parts(out):
    return list((out / "parts").glob("*.safetensors")) if out.exists() else []


def until(reached):
    for _ in range(3000):
        if reached():
            return
        time.sleep(0.02)
    pytest.fail("it did not come to that within a minute")


def children(process):
    import psutil

    return psutil.Process(process.pid).children(recursive=True)


def texts():
    return [CorpusText("w " * (number % 7 + 1) + str(number)) for number in range(200)]


def test_a_worker_that_is_killed_costs_nothing(corpus, tmp_path):
    once = CorpusText(f"die-once:{tmp_path / 'died'}")
    result = done([*corpus, once], out=tmp_path / "run", engine=pool(2), part_size=12)
    assert (tmp_path / "died").exists()
    assert named(tmp_path / "run") == []
    # Where the file is there, the text ends no worker.
    assert result == done([*corpus, once])
    assert not list((tmp_path / "run" / "under_way").iterdir())


def test_a_text_that_ends_its_worker_is_named_and_the_rest_goes_on(corpus, tmp_path):
    guilty = [CorpusText("die now", "d1"), CorpusText("die now"), CorpusText("die later")]
    result = done([*corpus, *guilty], out=tmp_path / "run", engine=pool(2), part_size=40)
    assert [text for text, _ in named(tmp_path / "run")] == ["die later", "die now", "die now"]
    assert {error.partition(",")[0] for _, error in named(tmp_path / "run")} == {
        "it ended its worker"
    }
    assert result[1] == done(corpus)[1]


class EndedByEveryPart(Executor):
    """Workers of which one dies at every part, of its first texts, until these are named."""

    def __init__(self, workers, guilty=1):
        self._max_workers, self._guilty = workers, guilty

    def submit(self, function, /, task, *args):
        future = Future()
        if not hasattr(task, "part"):
            future.set_result(function(task, *args))
            return future
        folder = RunFolder(task.folder)
        journal, first = PartJournal(folder.path, task.part), folder.texts_of(task.part)
        killers = [text.name for text in first[: self._guilty] if text.name not in journal.killers]
        if not killers:
            future.set_result(function(task, *args))
            return future
        # What a worker leaves: with others the text was only begun, afterwards it was alone.
        left = f"!{killers[0]}\n" if journal.deaths else ""
        name = f"{task.part}.{journal.deaths:03d}.1"
        (folder.path / UNDER_WAY / name).write_text(left, encoding="ascii")
        future.set_exception(BrokenProcessPool("it died"))
        return future


@pytest.mark.parametrize(("workers", "guilty"), [(1, 1), (2, 1), (7, 1), (2, 3)])
def test_texts_in_every_part_that_end_their_worker_are_named(corpus, tmp_path, workers, guilty):
    """So many deaths, one after the other, look as if there were too little memory."""
    out = tmp_path / "run"
    done(corpus, out=out, part_size=5, engine=given(EndedByEveryPart(workers, guilty)))
    sizes = [len(RunFolder(out).texts_of(path.stem)) for path in parts(out)]
    assert len(sizes) > 8
    assert len(named(out)) == sum(min(guilty, size) for size in sizes)


def test_workers_that_die_before_any_text_end_the_run(corpus, tmp_path):
    class NeverBegun(EndedByEveryPart):
        def submit(self, function, /, task, *args):
            future = super().submit(function, task, *args)
            if hasattr(task, "part"):
                for left in (Path(task.folder) / UNDER_WAY).iterdir():
                    left.unlink()
            return future

    with pytest.raises(RunError, match="died 8 times, one after the other: there may be too"):
        done(corpus, out=tmp_path / "run", part_size=5, engine=given(NeverBegun(2)))


def test_a_part_that_fails_is_named_and_the_others_are_kept(corpus, tmp_path):
    with pytest.raises(RunError, match=r"1 of \d+ parts could not be .*ZeroDivisionError: it says"):
        done([*corpus, CorpusText("raise")], out=tmp_path / "run", engine=pool(2), part_size=12)
    assert len(parts(tmp_path / "run")) >= 6


def test_a_killed_driver_leaves_no_worker_and_a_run_that_goes_on(tmp_path):
    driver, out = begun(tmp_path)
    workers = children(driver)
    driver.kill()
    driver.communicate()
    kept = {path: path.stat().st_mtime_ns for path in parts(out)}
    assert 2 <= len(kept) < 20
    until(lambda: not any(worker.is_running() for worker in workers))
    result = done(texts(), WordsJob(takes=0.02), out=out, engine=pool(2))
    assert result == done(texts(), WordsJob(takes=0.02))
    assert all(path.stat().st_mtime_ns == before for path, before in kept.items())


@pytest.mark.parametrize("engine", ["pool(2)", "None"])
def test_an_interrupted_run_says_how_to_go_on(tmp_path, engine):
    driver, out = begun(tmp_path, engine)
    os.kill(driver.pid, signal.SIGINT)
    said = driver.communicate(timeout=60)
    assert f"The same call resumes the run: finished parts are kept in {out}" in said[1]
    assert "finished" not in said[0]
    assert not list((out / "under_way").iterdir())


def test_a_worker_killed_from_outside_costs_nothing(tmp_path):
    driver, out = begun(tmp_path)
    next(child for child in children(driver) if "spawn_main" in " ".join(child.cmdline())).kill()
    said = driver.communicate(timeout=120)
    assert "finished" in said[0], said[1]
    assert named(out) == []
    assert done(texts(), WordsJob(takes=0.02), out=out) == done(texts(), WordsJob(takes=0.02))


def test_a_full_disk_keeps_what_is_finished(corpus, tmp_path, monkeypatch):
    from headscope.corpus import _folder

    write, written = _folder.save_kept, []

    def full(path, *more):
        if len(written) == 3:
            raise FileError(f"Cannot write {path}: no space left on device")
        written.append(path)
        return write(path, *more)

    monkeypatch.setattr(_folder, "save_kept", full)
    with pytest.raises(FileError, match="no space left on device"):
        done(corpus, out=tmp_path / "run", part_size=10)
    assert sorted(parts(tmp_path / "run")) == sorted(written)
    monkeypatch.setattr(_folder, "save_kept", write)
    assert done(corpus, out=tmp_path / "run") == done(corpus)
