import json
import os
import threading
import zlib

import numpy as np
import pytest

from headscope import FileError
from headscope.studies.ablation._journal import Journal

from ...close import assert_close

HEADER = {"model": "m", "task": "t"}
HEAD = ("self", 0, 1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kept.jsonl"


def filled(path, batches=2):
    journal = Journal(path, HEADER)
    for batch in range(batches):
        for cell in (None, HEAD):
            journal.add(batch, cell, np.arange(6.0).reshape(3, 2) + batch)
    journal.close()
    return path


def opened(path):
    journal = Journal(path, HEADER)
    journal.close()
    return journal


def changed_line(path, number, change):
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number] = change(lines[number])
    path.write_bytes(b"".join(lines))


def with_sum(row):
    told = json.dumps({name: value for name, value in row.items() if name != "sum"})[:-1]
    return f'{told}, "sum": {zlib.crc32(told.encode())}}}\n'.encode()


def test_what_was_noted_comes_back(path):
    found = opened(filled(path))
    assert_close(found[1, HEAD], np.arange(6.0).reshape(3, 2) + 1)
    assert (found.changed, (0, None) in found, (2, None) in found) == (2, True, False)


def test_values_that_were_changed_by_hand_are_noticed(path):
    changed_line(filled(path), 2, lambda line: line.replace(b"3.0", b"3.5"))
    with pytest.raises(
        FileError, match=r"Line 3 of .*kept\.jsonl was changed: its sum is not .*; remove the line"
    ):
        opened(path)
    changed_line(path, 2, lambda line: b"")
    assert (0, HEAD) not in opened(path)
    assert (0, None) in opened(path)


def test_a_line_without_its_sum_is_noticed(path):
    changed_line(filled(path), 2, lambda line: line[: line.rindex(b', "sum"')] + b"}\n")
    with pytest.raises(FileError, match="Line 3 of .* was changed"):
        opened(path)


def test_every_flipped_bit_is_noticed(path):
    raw = filled(path).read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(raw) - 1, 200):
        damaged = bytearray(raw)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(FileError):
            opened(path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1.0, 2.0]], r"Line 3 of .* has \[1, 2\] values where \[3, 2\] belong"),
        ([[1.0, float("inf")]] * 3, "Line 3 of .* holds no finite numbers"),
        ([[1.0, float("-inf")]] * 3, "Line 3 of .* holds no finite numbers"),
        ([1.0, 2.0, 3.0], "is not a journal of an ablation"),
        ([[None, 2.0]] * 3, "is not a journal of an ablation"),
        ([[1.0, 2.0], [1.0]], "is not a journal of an ablation"),
    ],
)
def test_rows_of_another_shape_are_refused_when_the_run_begins(path, values, message):
    """And not at its end, by an error of NumPy."""
    changed_line(filled(path), 2, lambda line: with_sum(json.loads(line) | {"values": values}))
    with pytest.raises(FileError, match=message):
        opened(path)


def test_values_of_another_shape_are_refused_when_they_are_noted(path):
    journal = Journal(path, HEADER)
    journal.add(0, None, np.zeros((3, 2)))
    with pytest.raises(FileError, match=r"has \[2, 2\] values where \[3, 2\] belong"):
        journal.add(0, HEAD, np.zeros((2, 2)))
    journal.close()


def test_every_line_is_on_the_disk_when_it_is_noted(path, monkeypatch):
    synced = []

    def sync(handle):
        there = os.fstat(handle)
        synced.append((there.st_ino, there.st_size))

    monkeypatch.setattr(os, "fsync", sync)
    journal = Journal(path, HEADER)
    assert synced == [(path.stat().st_ino, path.stat().st_size)]
    journal.add(0, None, np.zeros((3, 2)))
    assert synced[1:] == [(path.stat().st_ino, path.stat().st_size)]
    journal.close()


def test_two_runs_write_to_one_file(path):
    """Lines do not run into each other, and a run that begins meanwhile cuts nothing off that
    another is writing.
    """
    values, problems = np.arange(4000.0).reshape(1000, 4), []

    def write(batches):
        try:
            for batch in batches:
                journal = Journal(path, HEADER)
                journal.add(batch, None, values + batch)
                journal.add(batch, HEAD, values - batch)
                journal.close()
        except Exception as error:  # noqa: BLE001 -- of a thread, to be seen outside
            problems.append(error)

    threads = [threading.Thread(target=write, args=(range(first, 24, 3),)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    found = opened(path)
    assert found.changed == 24
    for batch in range(24):
        assert_close(found[batch, HEAD], values - batch)


def test_what_a_killed_run_left_in_a_line_is_cut_off_by_the_other(path):
    journal = Journal(path, HEADER)
    journal.add(0, None, np.zeros((3, 2)))
    with path.open("ab") as file:
        file.write(b'{"batch": 0, "cell": ["se')
    journal.add(0, HEAD, np.ones((3, 2)))
    journal.close()
    assert opened(path).changed == 1


def test_a_full_disk_leaves_whole_lines(path):
    journal = Journal(path, HEADER)
    journal.add(0, None, np.zeros((3, 2)))
    before = path.read_bytes()

    class Full:
        """Takes half of what is written."""

        def __init__(self, file):
            self._file, self._left = file, 1

        def write(self, data):
            if not self._left:
                raise OSError(28, "No space left on device")
            self._left -= 1
            return self._file.write(data[:20])

        def __getattr__(self, name):
            return getattr(self._file, name)

    journal._file = Full(journal._file)
    with pytest.raises(FileError, match="no space left"):
        journal.add(0, HEAD, np.ones((3, 2)))
    journal.close()
    assert path.read_bytes() == before


def test_a_pipe_or_a_poem_stays_as_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match=r"is a pipe \(FIFO\)"):
        opened(tmp_path / "pipe")
    (tmp_path / "poem").write_bytes(b"roses are red")
    with pytest.raises(FileError, match="is not a journal"):
        opened(tmp_path / "poem")
    assert (tmp_path / "poem").read_bytes() == b"roses are red"
