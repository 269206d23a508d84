import os

import pytest

from headscope import FileError
from headscope.storage import written_whole


def test_a_failure_halfway_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), written_whole(path) as temporary:
        temporary.write_text("half" * (1 // 0))
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_an_error_of_the_disk_becomes_one_clear_error(tmp_path):
    with pytest.raises(FileError, match="no space left"), written_whole(tmp_path / "file"):
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_said(tmp_path):
    with (
        pytest.raises(FileError, match="no such file or directory; choose another place"),
        written_whole(tmp_path / "no" / "file"),
    ):
        pass


def test_the_file_gets_the_rights_of_any_new_file(tmp_path):
    with written_whole(tmp_path / "file") as temporary:
        temporary.write_text("x")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="permission denied"), written_whole(tmp_path / "file"):
        pass
