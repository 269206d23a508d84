"""A record whose file is cut, overwritten, replaced or removed while it is open: right numbers, or
an error.
"""

import gc
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope.errors import FileError
from headscope.storage import _file_array
from headscope.testing import random_record

CHANGED = r"run\.safetensors was changed since it was opened"


@pytest.fixture
def record():
    return random_record(layers=3, heads=4, queries=40, keys=48)


@pytest.fixture
def path(record, tmp_path):
    path = hs.save(record, tmp_path / "run.safetensors")
    os.utime(path, ns=(10**18, 10**18))  # long ago, however coarse the clock of the file system is
    return path


def readings(record):
    """Every way to an array."""
    stack = record["cross"]
    return [
        lambda: stack.weights(1, 2),
        lambda: stack.weights(2),
        lambda: stack.layer(1).weights,
        lambda: stack.layer(1).part("weights", 1, slice(2, 5)),
    ]


def test_a_file_that_is_cut_gives_an_error(path):
    """A map of it would end the process with SIGBUS."""
    record = hs.load(path)
    os.truncate(path, path.stat().st_size // 2)
    for read in readings(record):
        with pytest.raises(FileError, match=CHANGED):
            read()
    os.truncate(path, 0)
    with pytest.raises(FileError, match=CHANGED):
        record["cross"].weights(0, 0)


def test_a_file_that_is_overwritten_gives_an_error_and_no_other_numbers(path, tmp_path):
    other = hs.save(
        random_record(layers=3, heads=4, queries=40, keys=48, seed=2),
        tmp_path / "other.safetensors",
    )
    record = hs.load(path)
    assert other.stat().st_size == path.stat().st_size
    shutil.copyfile(other, path)
    for read in readings(record):
        with pytest.raises(FileError, match=CHANGED):
            read()
    assert hs.load(path)["cross"].weights(0, 0).shape == (40, 48)


def test_a_file_that_changes_while_it_is_read_gives_an_error(path, monkeypatch):
    record = hs.load(path)
    plain = _file_array._read_at

    def slow(handle, start, into):
        got = plain(handle, start, into)
        os.utime(path)
        return got

    monkeypatch.setattr(_file_array, "_read_at", slow)
    with pytest.raises(FileError, match=CHANGED):
        record["cross"].weights(1, 2)


@pytest.mark.parametrize("how", ["saved again", "removed"])
def test_a_file_that_is_replaced_or_removed_is_read_on(record, path, how):
    loaded = hs.load(path)
    if how == "removed":
        path.unlink()
    else:
        hs.save(random_record(seed=1), path)
    np.testing.assert_array_equal(loaded["cross"].weights(1), record["cross"].weights(1))


def test_files_are_closed_with_their_records(path):
    def handles():
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    if not Path("/proc/self/fd").exists():
        pytest.skip("only Linux lists the open files")
    before = handles()
    records = [hs.load(path) for _ in range(5)]
    assert handles() == before + 5
    del records
    assert handles() == before


def test_many_threads_read_one_file(record, path, monkeypatch):
    """Reading moves no place in the file that another thread or process goes by."""
    monkeypatch.setattr(_file_array, "MOST_OPEN", 1)
    loaded, other = hs.load(path), hs.load(path)
    wrong = []

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(100):
            layer, head = rng.integers(3), rng.integers(4)
            found = (loaded, other)[rng.integers(2)]["cross"].weights(int(layer), int(head))
            if not np.array_equal(found, record["cross"].weights(int(layer), int(head))):
                wrong.append((layer, head))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
