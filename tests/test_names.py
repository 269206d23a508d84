"""The check of names finds what it is for, and finds none in src."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import check_names  # noqa: E402
import check_sizes  # noqa: E402


@pytest.mark.parametrize(
    "source",
    ["found = 1", "def read(found): ...", "for found in (): pass", "x = [found for found in ()]"],
)
def test_a_name_that_says_nothing_is_found(source):
    assert [name for _, name in check_names.empty_names(source)] == ["found"]


def test_a_class_name_of_two_files_is_printed(tmp_path, capsys):
    (tmp_path / "capturing").mkdir()
    (tmp_path / "capturing" / "_plan.py").write_text("class Plan: ...\nclass Run: ...\n")
    (tmp_path / "_report.py").write_text("def report():\n    class _Plan: ...\n")
    assert check_names.main(tmp_path, tmp_path) == 1
    printed = capsys.readouterr().out
    assert printed == "class Plan is several things: _report.py:2, capturing/_plan.py:1\n"


def test_a_long_function_is_found_without_its_docstring():
    lines = "\n".join(["    x = 1"] * 4)
    source = f'def read():\n    """One.\n\n    Two.\n    """\n{lines}\n'
    assert [name for _, name, _ in check_sizes.long_functions(source, most=3)] == ["read"]
    assert not list(check_sizes.long_functions(source, most=4))


def test_a_private_word_that_comes_back_is_printed(tmp_path, capsys):
    (tmp_path / "_a.py").write_text("class Sides: ...\n")
    assert check_names.main(tmp_path) == 1
    assert capsys.readouterr().out == "_a.py:1: class Sides is called QueryKeyTokens\n"
