"""Run README and the first page word for word, without a network, with what is installed.

In a fresh environment with the wheel alone: PYTHON tools/run_first_pages.py
"""

import contextlib
import os
import socket
import sys
import tempfile
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "BROWSER": "true %s"}  # pages are opened, and not seen

import headscope
from page_blocks import ROOT, Reader

TEXTS = {
    "a.txt": "The code of the mill is amber falcon. It rained near the barn on Monday.",
    "b.txt": "Copper opens the tower. Nobody at the mill remembers the code.",
}
"""The two files that the pages call a reader's own."""


def refuse(_: socket.socket, address: object) -> None:
    """Fail wherever something asks for a network."""
    raise AssertionError(f"{address} was asked for")


def main() -> None:
    """Run both pages, each in a folder of its own."""
    place = Path(headscope.__file__)
    if place.is_relative_to(ROOT / "src"):
        sys.exit(f"{place} is the checkout, not what was installed from the wheel")
    socket.socket.connect = refuse
    for page in ("README", "index"):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for name, text in TEXTS.items():
                Path(name).write_text(text, encoding="utf-8")
            Reader(page).read()
            written = ", ".join(sorted(map(str, Path().iterdir())))
            print(f"{page}: every block runs; written: {written}")


if __name__ == "__main__":
    main()
