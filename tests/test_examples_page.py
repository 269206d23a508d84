"""docs/examples.md shows the examples of the front end, each with its picture and its snapshot."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAMED = ROOT / "frontend" / "tests" / "examples" / "named.ts"
PAGE = ROOT / "docs" / "examples.md"

pytestmark = pytest.mark.skipif(
    not (NAMED.is_file() and PAGE.is_file()),
    reason="the documentation or the front end is not part of this checkout",
)


def test_every_example_has_its_picture_and_its_snapshot():
    source = NAMED.read_text(encoding="utf-8")
    names = re.findall(
        r"^  (\w+): \{$", source[source.index("export const EXAMPLES") :], re.MULTILINE
    )
    assert len(names) >= 9
    page = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == names
    for name in names:
        assert f"(pictures/example-{name}.png)" in page
        assert (PAGE.parent / "pictures" / f"example-{name}.png").is_file()
        assert (ROOT / "frontend" / "tests" / "examples" / "snapshots" / f"{name}.txt").is_file()
