"""The check of dense lines finds them, and lets plain ones pass."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from check_plain_lines import dense_lines


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("x = a if b else c if d else e", "a conditional inside a conditional"),
        ("x = (a if b else c, d if e else f)", "2 conditionals"),
        ("x = [a for b in c for d in b for a in d]", "3 loops"),
        ("x = {a: [b for b in a] for a in [c for c in d]}", "3 loops"),
        ("x = a if (b := c) else d", "an assignment inside a conditional"),
        ("def f():\n    return f(a if b else c, d if e else g)", "2 conditionals"),
        ("for a in b if c else d if e else f:\n    pass", "a conditional inside a conditional"),
    ],
)
def test_dense_lines_are_found(line, why):
    (dense,) = dense_lines(line)
    assert dense.why == why
    assert dense.line == line.count("\n", 0, line.find("return")) + 1 if "return" in line else 1


@pytest.mark.parametrize(
    "lines",
    [
        "x = a if b else c",
        "x = [a for b in c for a in b]",
        "x = f(\n    a=b if c else d,\n    e=g if h else i,\n)",
        "x = [\n    a if b else c,\n    d if e else f,\n]",
        "def f():\n    a = b if c else d\n    return [e for e in a]",
    ],
)
def test_plain_lines_pass(lines):
    assert dense_lines(lines) == []
