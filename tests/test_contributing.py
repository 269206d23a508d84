"""The map in CONTRIBUTING is that of the house: what it names is there, no package is missing."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "headscope"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAP = TEXT[TEXT.index("## Where is what") : TEXT.index("## A release")]
PATH = re.compile(r"`([\w./]+/[\w.]+)`")


def test_every_path_is_there():
    paths = [path for path in PATH.findall(MAP) if "NAME" not in path]
    assert len(paths) > 50
    assert not [path for path in paths if not any((at / path).exists() for at in (PACKAGE, ROOT))]


def test_every_folder_has_a_line():
    named = set(re.findall(r"\b(\w+)/", MAP[: MAP.index("### The way")]))
    folders = {
        path.name
        for path in PACKAGE.rglob("*")
        if path.is_dir() and path.name != "__pycache__" and any(path.iterdir())
    }
    assert not folders - named
