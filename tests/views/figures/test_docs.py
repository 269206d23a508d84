"""The commands of docs/figures.md, as they stand there."""

import re
from pathlib import Path

import pytest

from page_blocks import blocks_of, commands_of

DOCS = Path(__file__).parents[3] / "docs"

pytestmark = pytest.mark.skipif(
    not DOCS.is_dir(), reason="the documentation is not part of this checkout"
)


def test_every_picture_of_the_page_is_made_by_one_of_its_commands():
    """That the commands run is seen in tests/docs."""
    shell = [block for block in blocks_of("figures") if block.language == "sh"]
    commands = [words for block in shell for _, words in commands_of(block)]
    written = [Path(words[words.index("--out") + 1]) for words in commands if "--out" in words]
    made = {path.name for path in written if path.suffix == ".png"}
    shown = set(
        re.findall(r"\(pictures/(.*?)\)", (DOCS / "figures.md").read_text(encoding="utf-8"))
    )
    assert made == shown != set()
    assert all((DOCS / "pictures" / name).is_file() for name in shown)
