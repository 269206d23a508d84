"""Numbers of architectures in the docs are those that were tried, and those that tests know."""

import re
from pathlib import Path

import pytest

from headscope.testing import ARCHITECTURES

ROOT = Path(__file__).parents[2]
COUNTED = re.search(
    r"(\d+) model types and variants are captured exactly, (\d+)\s+are",
    (ROOT / "docs" / "support.md").read_text(encoding="utf-8"),
)
"""What docs/support.md counts itself; tests/testing/test_every_type.py holds that to its tables."""
CAPTURED = int(COUNTED[1])


@pytest.mark.parametrize("page", ["README.md", "docs/generation.md"])
def test_pages_name_as_many_model_types_as_are_captured(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert re.findall(r"\[(\d+) model types\]\([a-z./]*support.md\)", text) == [str(CAPTURED)]


@pytest.mark.parametrize(
    ("page", "tried"),
    [
        ("docs/measures.md", r"all (\d+) architectures that tests know"),
        ("docs/install.md", r"of the (\d+) architectures in the tests"),
    ],
)
def test_pages_name_as_many_architectures_as_tests_know(page, tried):
    assert re.findall(tried, (ROOT / page).read_text(encoding="utf-8")) == [str(len(ARCHITECTURES))]
