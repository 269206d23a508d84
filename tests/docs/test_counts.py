"""Numbers of architectures in the docs are those of docs/support.md, which is made by trying."""

import re
from pathlib import Path

import pytest

from headscope.testing import ARCHITECTURES

ROOT = Path(__file__).parents[2]
ROWS = [
    line
    for line in (ROOT / "docs" / "support.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| architecture"))
]
REFUSED = [row for row in ROWS if "| refused: " in row]


def test_the_table_has_every_architecture():
    assert len(ROWS) == len(ARCHITECTURES)
    assert 0 < len(REFUSED) < 20


@pytest.mark.parametrize(
    ("page", "tried", "captured"),
    [
        (
            "README.md",
            r"\[(\d+) architectures\]\(docs/support.md\) were\s+tried",
            r"tried, and (\d+) can be captured",
        ),
        ("docs/norms.md", r"all (\d+) architectures", r"(\d+) show attention"),
        ("docs/install.md", r"of the (\d+) architectures of \[support.md\]", None),
        ("docs/guides/llama.md", None, r"\[(\d+) architectures\]\(../support.md\) that can be"),
    ],
)
def test_pages_name_the_same_numbers(page, tried, captured):
    text = (ROOT / page).read_text(encoding="utf-8")
    if tried is not None:
        assert re.findall(tried, text) == [str(len(ROWS))]
    if captured is not None:
        assert re.findall(captured, text) == [str(len(ROWS) - len(REFUSED))]
