import json

import numpy as np
import pytest

from headscope import FileError
from headscope.storage import load_kept, save_kept


def test_what_was_kept_comes_back(tmp_path):
    counts = np.arange(6).reshape(2, 3)
    path = save_kept(tmp_path / "a.npz", "counts", {"names": ["a\0", "ü"], "of": None}, {"counts": counts})
    said, arrays = load_kept(path, "counts")
    assert (said["names"], said["of"]) == (["a\0", "ü"], None)
    assert list(arrays) == ["counts"]
    np.testing.assert_array_equal(arrays["counts"], counts)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.npz"]


def test_other_files_are_refused(tmp_path):
    path = save_kept(tmp_path / "a.npz", "counts", {}, {})
    with pytest.raises(FileError, match=r"a\.npz holds no relations"):
        load_kept(path, "relations")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FileError, match=r"a\.npz is cut or holds no counts: "):
        load_kept(path, "counts")
    np.savez(tmp_path / "b.npz", said=np.frombuffer(b"[]", np.uint8))
    with pytest.raises(FileError, match=r"b\.npz holds no counts"):
        load_kept(tmp_path / "b.npz", "counts")
    newer = json.dumps({"kind": "headscope counts", "version": 2}).encode()
    np.savez(tmp_path / "c.npz", said=np.frombuffer(newer, np.uint8))
    with pytest.raises(FileError, match=r"c\.npz was written by a newer headscope \(format 2, this one reads 1\)"):
        load_kept(tmp_path / "c.npz", "counts")
    with pytest.raises(FileError, match=r"d\.npz is not there"):
        load_kept(tmp_path / "d.npz", "counts")
