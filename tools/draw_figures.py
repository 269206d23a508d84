"""Draw the pictures of docs/figures.md and docs/literature.md with the code that stands
there.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

from page_blocks import DOCS, Block, blocks_of, commands_of
from picture_texts import TEXTS

DPI = {"figures": "150", "literature": "110"}
"""Of each page; pictures in a table are small."""
DRAWN = {"figures": DOCS / "pictures", "literature": DOCS / "pictures" / "literature"}
"""The pages, and where their pictures are."""
DRAWING = ("capture", "figure")
"""Commands that draw, or make what is drawn; studies need data of their own."""


def draw(page: str) -> None:
    """Run the code of a page in a folder of its own and keep the pictures.

    Raises:
        RuntimeError: where a command fails.
    """
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in blocks_of(page):
            if block.language == "sh":
                _run(block, DPI[page])
            elif block.language == "python":
                exec(block.text, names)
        if page == "literature":
            _bars()
        for picture in Path(folder).glob("*.png"):
            shutil.copy(picture, DRAWN[page])


def _bars() -> None:
    """Kovaleva's bars over the texts of all pictures with evidence: a reader has texts of their
    own.
    """
    import headscope as hs
    from headscope.capturing import load_model

    records = hs.capture_many(*load_model(None), list(TEXTS))
    hs.heads(records).figure(classes=True).save("classes-of-layers.png", dpi=int(DPI["literature"]))


def _run(block: Block, dpi: str) -> None:
    from headscope.cli import run

    for line, (_, *words) in commands_of(block):
        size = ["--dpi", dpi] if words[0] == "figure" else []
        if words[0] in DRAWING and run([*words, *size]):
            raise RuntimeError(f"{block.page}, line {line}: the command failed")


if __name__ == "__main__":
    for name in sys.argv[1:] or DRAWN:
        draw(name)
