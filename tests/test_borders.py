"""The check of borders between packages finds what crosses them."""

import pytest

from check_borders import crossings


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from headscope.record._mask import runs", True),
        ("from headscope.record.recompute import _scores", True),
        ("def f():\n    from headscope.views.figures._fonts import missing_words", True),
        ("from headscope.measures._mass import entropy", False),
        ("from headscope.record import Record", False),
        ("from headscope._progress import counted", False),
        ("from numpy._core import multiarray", False),
    ],
)
def test_private_imports_of_another_package_are_found(line, found, tmp_path):
    (tmp_path / "measures").mkdir()
    path = tmp_path / "measures" / "own.py"
    path.write_text(line, encoding="utf-8")
    assert bool(list(crossings(path, tmp_path))) == found
