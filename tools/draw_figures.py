"""Draw the pictures of docs/figures.md with the commands that stand there: python tools/draw_figures.py."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
DPI = "150"


def commands(text: str) -> list[list[str]]:
    """The arguments of each headscope command in the shell blocks of a page."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


def main() -> int:
    """Draw them all; give 1 where a command fails."""
    from headscope.cli import run

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for line in commands((DOCS / "figures.md").read_text(encoding="utf-8")):
            if run([*line, "--dpi", DPI] if line[0] == "figure" else line):
                return 1
        for picture in Path(folder).glob("*.png"):
            shutil.copy(picture, DOCS / "pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
