"""The budget of lines of code: what is above a limit, and a limit that was raised, are told."""

import json
import subprocess
import sys

import pytest

from check_budget import main

CODE = '"""Words."""\n\ndef two(a):\n    """More\n\n    words."""\n    # a comment\n    return a\n'


@pytest.fixture
def project(tmp_path, monkeypatch):
    """One package of two lines of code, in a repository."""
    monkeypatch.setattr(sys, "argv", ["check_budget.py"])
    (tmp_path / "src").mkdir()
    (tmp_path / "tools").mkdir()
    (tmp_path / "src" / "two.py").write_text(CODE)
    committed(tmp_path, 3)
    return tmp_path


def committed(folder, limit):
    (folder / "tools" / "lines_of_code.json").write_text(json.dumps({"src": limit}))
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for given in (["init", "-q"], ["add", "-A"], ["commit", "-q", "--allow-empty", "-m", "a"]):
        subprocess.run([*git, *given], check=True)


def test_a_planted_file_is_told(project, capsys):
    assert main(project) == 0
    (project / "src" / "planted.ts").write_text(
        "// no\n/* no\n no */\nconst a = 1;\nconst b = 2;\n"
    )
    assert main(project) == 1
    assert capsys.readouterr().out == "src has 4 lines of code, and may have 3\n"


def test_a_limit_is_lowered_and_never_raised(project, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["check_budget.py", "--lower"])
    assert main(project) == 0
    assert json.loads((project / "tools" / "lines_of_code.json").read_text()) == {"src": 2}
    committed(project, 2)
    committed(project, 9)
    monkeypatch.setattr(sys, "argv", ["check_budget.py"])
    assert main(project) == 1
    assert capsys.readouterr().out == "the limit of src was 2, and is 9; lower it\n"
