import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope.errors import FileError
from headscope.storage import written_whole
from headscope.studies import AlignmentStudy
from headscope.testing import random_record


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_failure_halfway_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), written_whole(path) as temporary:
        temporary.write_text("half" * (1 // 0))
    assert path.read_text() == "before"
    assert names(tmp_path) == ["file"]


def test_an_error_of_the_disk_becomes_one_clear_error(tmp_path):
    with pytest.raises(FileError, match="no space left"), written_whole(tmp_path / "file"):
        raise OSError(28, "No space left on device")
    assert not names(tmp_path)


def test_a_missing_folder_is_said(tmp_path):
    with (
        pytest.raises(FileError, match="no such file or directory; choose another place"),
        written_whole(tmp_path / "no" / "file"),
    ):
        pass


def test_a_path_with_a_zero_in_it_is_refused():
    with pytest.raises(FileError, match="embedded null"), written_whole("a\0b"):
        pass


def test_the_file_gets_the_rights_of_any_new_file(tmp_path):
    with written_whole(tmp_path / "file") as temporary:
        temporary.write_text("x")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_written_again_keeps_its_rights(tmp_path, mode):
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(mode)
    with written_whole(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        temporary.write_text("after")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("after", mode)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="permission denied"), written_whole(tmp_path / "file"):
        pass


@pytest.mark.parametrize("steps", [1, 2])
def test_the_target_of_a_link_is_written(tmp_path, steps):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "file", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(Path("there") / "file")
    if steps == 2:
        (tmp_path / "second").symlink_to(link)
        link = tmp_path / "second"
    with written_whole(link) as temporary:
        temporary.write_text("after")
    assert link.is_symlink()
    assert target.read_text() == "after"
    assert not target.is_symlink()
    assert names(target.parent) == ["file"]


def test_a_link_to_nothing_makes_its_target(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with written_whole(tmp_path / "link") as temporary:
        temporary.write_text("after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "after"


def test_links_in_a_ring_are_refused(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with (
        pytest.raises(FileError, match="too many levels of symbolic links"),
        written_whole(tmp_path / "a"),
    ):
        pass
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_refused_and_stays_one(tmp_path, linked):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    if linked:
        (tmp_path / "link").symlink_to(path)
    given = tmp_path / "link" if linked else path
    for save in (lambda: hs.save(random_record(), given), lambda: AlignmentStudy().save(given)):
        with pytest.raises(FileError, match=r"is a pipe \(FIFO\), expected a regular file"):
            save()
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert given.is_symlink() == linked


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(FileError, match="is a folder, expected a regular file"):
        hs.save(random_record(), tmp_path)


KILLED = """
import os, signal, sys
from headscope.storage import written_whole
with written_whole(sys.argv[1]) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "file"
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode == -9
    assert len(names(tmp_path)) == 1
    kept = [".file.part", ".file.abcdefgh.party", ".other.abcdefgh.part", "file.abcdefgh.part"]
    for name in kept:
        (tmp_path / name).write_text("of somebody else")
    with written_whole(path) as temporary:
        temporary.write_text("whole")
    assert names(tmp_path) == sorted(["file", *kept])


def test_a_living_writer_keeps_its_file(tmp_path):
    path = tmp_path / "file"
    with written_whole(path) as first:
        first.write_text("first")
        with written_whole(path) as second:
            second.write_text("second")
            assert first.exists()
        assert path.read_text() == "second"
        assert first.read_text() == "first"
    assert path.read_text() == "first"
    assert names(tmp_path) == ["file"]


def test_many_writers_leave_one_whole_file(tmp_path):
    path, problems = tmp_path / "file", []

    def write(number):
        try:
            for _ in range(20):
                with written_whole(path) as temporary:
                    temporary.write_text(str(number) * 5000)
        except Exception as error:  # noqa: BLE001 -- of a thread, to be seen outside
            problems.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert len(path.read_text()) == 5000
    assert names(tmp_path) == ["file"]


SAVES = {
    "record": lambda path: hs.save(random_record(), path),
    "result": lambda path: AlignmentStudy().save(path),
}


@pytest.mark.parametrize("save", SAVES.values(), ids=SAVES)
def test_file_and_folder_are_on_the_disk_when_a_save_returns(tmp_path, monkeypatch, save):
    synced, path = [], tmp_path / "file.safetensors"

    def sync(handle):
        synced.append((os.fstat(handle).st_ino, path.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    save(path)
    # the file before it has its name, the folder after that
    assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


LIMITED = """
import resource, sys
import headscope as hs
from headscope.testing import random_record
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
record = random_record(queries=64, keys=80)
for save in (lambda: hs.save(record, sys.argv[1]), lambda: hs.heads(record).save(sys.argv[1])):
    try:
        save()
    except hs.errors.FileError as error:
        print(error)
"""


def test_a_file_that_may_not_grow_is_a_file_error(tmp_path):
    """As on a full disk: what was there before stays, and nothing is left behind."""
    path = tmp_path / "run.safetensors"
    path.write_text("before")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=False
    )
    # NumPy 1 leaves its archive open where it could not write, and Python complains of that later
    assert done.stderr == "" or (
        np.__version__.startswith("1.") and "ZipFile.__del__" in done.stderr
    )
    assert done.stdout.lower().count("file too large") == 2
    assert done.stdout.startswith(f"Cannot write {path}: ")
    assert path.read_text() == "before"
    assert names(tmp_path) == ["run.safetensors"]


def test_a_name_that_is_too_long_is_one_clear_error(tmp_path):
    record = random_record()
    for ending in (".safetensors", ".npz"):
        path = tmp_path / ("n" * 252 + ending)
        with pytest.raises(FileError):
            hs.save(record, path)
        with pytest.raises(FileError):
            hs.load(path)
