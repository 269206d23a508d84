"""What a part took is given back before the next one."""

import gc
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


def test_every_part_gives_its_memory_back(corpus, monkeypatch):
    calls = []
    monkeypatch.setattr(_task, "give_back_memory", lambda: calls.append("given"))
    with run(WordsJob(), corpus, progress=False, part_size=30) as finished:
        assert len(calls) == len(list(finished.parts())) > 1


@pytest.fixture
def nothing_frozen():
    """The tests freeze what they loaded; as if they had not."""
    was_frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    yield
    if was_frozen:
        gc.freeze()


def test_the_collector_passes_over_the_model_while_a_part_is_measured(
    corpus, monkeypatch, nothing_frozen
):
    frozen = []
    slices = _task.slices

    def counting(texts, most_open):
        frozen.append(gc.get_freeze_count())
        return slices(texts, most_open)

    monkeypatch.setattr(_task, "slices", counting)
    with run(WordsJob(), corpus, progress=False, part_size=30) as finished:
        assert len(frozen) == len(list(finished.parts())) > 1
    assert min(frozen) > 10_000
    assert gc.get_freeze_count() == 0


def test_what_others_froze_stays_frozen(nothing_frozen):
    with pytest.raises(RuntimeError, match="of a part"), _task.model_left_alone():
        raise RuntimeError("of a part")
    assert gc.get_freeze_count() == 0
    gc.freeze()
    before = gc.get_freeze_count()
    with _task.model_left_alone():
        assert gc.get_freeze_count() == before
    assert gc.get_freeze_count() == before > 0
    gc.unfreeze()
