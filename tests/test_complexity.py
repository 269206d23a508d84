"""The check of the ways through functions finds a function with too many."""

import check_complexity

PLAIN = "def plain(a):\n    return a\n"
BRANCHED = "def branched(a):\n" + "    if a:\n        a += 1\n" * 11


def test_a_house_of_plain_functions_passes_and_says_nothing(tmp_path, capsys):
    (tmp_path / "plain.py").write_text(PLAIN, encoding="utf-8")
    assert check_complexity.main(tmp_path) == 0
    assert capsys.readouterr().out == ""


def test_one_function_in_forty_may_have_more(tmp_path, capsys):
    forty = "".join(PLAIN.replace("plain", f"plain{number}") for number in range(39))
    (tmp_path / "many.py").write_text(forty + BRANCHED, encoding="utf-8")
    assert check_complexity.main(tmp_path) == 0
    (tmp_path / "more.py").write_text(BRANCHED, encoding="utf-8")
    assert check_complexity.main(tmp_path) == 1
    said = capsys.readouterr().out
    assert "more.py:1: branched has 12 ways through it" in said
    assert "2 of 41 functions (4.9%) have more than 10; 3% may" in said


def test_conditions_and_functions_within_functions_are_counted(tmp_path, capsys):
    inner = "def outer(a):\n    def inner(a):\n        return " + " and ".join("a" * 12) + "\n"
    (tmp_path / "inner.py").write_text(inner + "    return inner\n", encoding="utf-8")
    assert check_complexity.main(tmp_path) == 1
    assert "inner has 12 ways through it" in capsys.readouterr().out
