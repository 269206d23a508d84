"""The check of names finds what it is for, and finds none in src."""

import subprocess
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


def test_prose_and_other_names_are_none():
    assert not list(check_names.empty_names('"""What was found."""\nfound_at = 1\nx.found()'))


def test_two_classes_of_one_name_are_found():
    source = "class Plan: ...\ndef f():\n    class _Plan: ..."
    assert [name for _, name in check_names.classes_of(source)] == ["Plan", "_Plan"]
    assert check_names.repeated({"Plan": ["a:1", "b:2"], "Run": ["a:3"]}) == {
        "Plan": ["a:1", "b:2"]
    }


@pytest.mark.parametrize(
    "around",
    [
        "if x:\n {}",
        "if x: ...\nelse:\n {}",
        "try:\n {}\nfinally: ...",
        "try: ...\nexcept E:\n {}",
        "try: ...\nfinally:\n {}",
        "for x in y:\n {}",
        "with x:\n {}",
        "match x:\n case 1:\n  {}",
        "async def f():\n {}",
    ],
)
def test_classes_and_functions_within_any_statement_are_found(around):
    inside = around.format("class Plan: x = (\n1)")
    assert [name for _, name in check_names.classes_of(inside)] == ["Plan"]
    inside = around.format("def read(): x = (\n1)")
    assert "read" in [name for _, name, _ in check_sizes.long_functions(inside, most=1)]


def test_a_class_name_of_two_files_is_printed(tmp_path, capsys):
    (tmp_path / "capturing").mkdir()
    (tmp_path / "capturing" / "_plan.py").write_text("class Plan: ...\nclass Run: ...\n")
    (tmp_path / "_report.py").write_text("def report():\n    class _Plan: ...\n")
    assert check_names.main(tmp_path, tmp_path) == 1
    printed = capsys.readouterr().out
    assert printed == "class Plan is several things: _report.py:2, capturing/_plan.py:1\n"


def test_scripts_next_to_the_package_are_read(tmp_path, capsys):
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "speed.py").write_text("def main():\n    found = 1\n")
    assert check_names.main(tmp_path / "src", tmp_path) == 1
    assert capsys.readouterr().out.startswith("benchmarks/speed.py:2: 'found' says nothing")


def test_src_has_none():
    done = subprocess.run([sys.executable, ROOT / "tools" / "check_names.py"], check=False)
    assert done.returncode == 0


def test_a_long_function_is_found_without_its_docstring():
    lines = "\n".join(["    x = 1"] * 4)
    source = f'def read():\n    """One.\n\n    Two.\n    """\n{lines}\n'
    assert [name for _, name, _ in check_sizes.long_functions(source, most=3)] == ["read"]
    assert not list(check_sizes.long_functions(source, most=4))


def test_src_has_no_long_file_or_function():
    done = subprocess.run([sys.executable, ROOT / "tools" / "check_sizes.py"], check=False)
    assert done.returncode == 0


def test_a_private_word_that_comes_back_is_printed(tmp_path, capsys):
    (tmp_path / "_a.py").write_text("class Sides: ...\n")
    assert check_names.main(tmp_path) == 1
    assert capsys.readouterr().out == "_a.py:1: class Sides is called QueryKeyTokens\n"
