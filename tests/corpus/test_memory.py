"""What a part took is given back before the next one."""

import mmap
import sys
from pathlib import Path

import numpy as np
import pytest
from words_job import WordsJob

from headscope.corpus import _task, run

STATUS = Path("/proc/self/status")
MIB = 2**20


def held():
    """Bytes of memory of this process that no file is behind."""
    lines = STATUS.read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is trimmed on Linux alone")
def test_gaps_between_arrays_are_given_back():
    # Too small for mappings of their own, so that freeing every second pair leaves gaps.
    arrays = [np.ones(8_000) for _ in range(1_000)]
    arrays = arrays[::4]
    before = held()
    _task.give_back_memory()
    assert before - held() > 20 * MIB
    assert len(arrays) == 250


def test_memory_that_grows_within_a_part_is_given_back(corpus, monkeypatch):
    # Each look finds a third of what may gather more than the one before, unless it was given back.
    given, grown, step = [], [0], _task.GROWTH_ALLOWED // 3 + 1

    def anonymous():
        grown[0] += step
        return grown[0]

    def give_back():
        given.append(grown[0])
        grown[0] = 0

    monkeypatch.setattr(_task, "LOOK_EVERY", 1)
    monkeypatch.setattr(_task, "anonymous_bytes", anonymous)
    monkeypatch.setattr(_task, "give_back_memory", give_back)
    with run(WordsJob(), corpus, progress=False, part_size=1000) as finished:
        (part,) = finished.corpus.parts.values()
    # Again and again, and once at the end of the part.
    assert len(given) > 3
    assert max(given) < 2 * _task.GROWTH_ALLOWED
    monkeypatch.setattr(_task, "GROWTH_ALLOWED", 2**60)
    given.clear()
    with run(WordsJob(), corpus, progress=False, part_size=1000):
        assert len(given) == 1
    assert part > 12


@pytest.mark.skipif(not STATUS.exists(), reason="Linux alone tells what a process takes")
def test_the_memory_of_this_process_is_told(monkeypatch, tmp_path):
    # The system drops pages of libraries when it likes, as these of a file are dropped here.
    path = tmp_path / "weights"
    path.write_bytes(bytes(32 * MIB))
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    assert sum(mapped[:: mmap.PAGESIZE]) == 0
    before = _task.anonymous_bytes()
    mapped.close()
    # From the system itself: an array may get memory that was freed before and is counted already.
    with mmap.mmap(-1, 64 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for page in range(0, 64 * MIB, mmap.PAGESIZE):
            memory[page] = 1
        assert 60 * MIB < _task.anonymous_bytes() - before < 200 * MIB
    monkeypatch.setattr(_task, "STATM", tmp_path / "none")
    assert _task.anonymous_bytes() == 0


def test_every_part_gives_its_memory_back(corpus, monkeypatch):
    calls = []
    monkeypatch.setattr(_task, "give_back_memory", lambda: calls.append("given"))
    with run(WordsJob(), corpus, progress=False, part_size=30) as finished:
        assert len(calls) == len(list(finished.parts())) > 1
