import os
import subprocess
import sys

import numpy as np
import pytest

from headscope.errors import FileError
from headscope.storage import load_kept, read_npz, reading, save_kept


def test_other_files_are_refused(tmp_path, monkeypatch):
    path = save_kept(tmp_path / "a.safetensors", "counts", {}, {})
    with pytest.raises(FileError, match=r"a\.safetensors holds no relations"):
        load_kept(path, "relations")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FileError, match=r"a\.safetensors is cut or no \.safetensors file"):
        load_kept(path, "counts")
    monkeypatch.setattr("headscope.storage._safetensors.FORMAT", 3)
    newer = save_kept(tmp_path / "c.safetensors", "counts", {}, {})
    monkeypatch.undo()
    with pytest.raises(FileError, match="has format 3, .* reads format 2; update headscope"):
        load_kept(newer, "counts")
    with pytest.raises(FileError, match=r"A result is a \.safetensors file, .* name it .*n\.saf"):
        save_kept(tmp_path / "n.npz", "counts", {}, {})
    with pytest.raises(FileError, match=r"d\.safetensors does not exist"):
        load_kept(tmp_path / "d.safetensors", "counts")


def test_what_holds_python_objects_is_refused_and_nothing_is_run(tmp_path):
    """A pickle may run any code."""
    run = tmp_path / "run"
    np.savez(tmp_path / "a.npz", counts=np.array([Touch(run)], object))
    with pytest.raises(FileError, match="Object arrays"), reading(tmp_path / "a.npz", "arrays"):
        read_npz(tmp_path / "a.npz")
    assert not run.exists()
    np.load(tmp_path / "a.npz", allow_pickle=True)["counts"]
    assert run.exists()  # the file is what it is meant to be


class Touch:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


BOMB = """
import resource, sys
import headscope as hs
from headscope.storage import read_npz
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_npz(sys.argv[1])
except hs.errors.FileError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_small_file_does_not_unpack_to_much(tmp_path):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, said=np.full(250 * 2**20, 32, np.uint8))
    assert path.stat().st_size < 300_000
    said, grown = subprocess.run(
        [sys.executable, "-c", BOMB, str(path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "and would unpack to 262,144,128" in said
    assert int(grown) < 40_000  # kB
