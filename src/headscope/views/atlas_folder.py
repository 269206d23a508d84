"""A page as a folder of files: index.html, its script, and data in scripts next to it.

A page opened from a disk may not fetch, so what it reads comes in scripts: each calls one function
with its name and its JSON. ``data/index.js`` is read first, the others when they are looked at.
"""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from headscope.errors import FileError
from headscope.storage import local_path, written_whole
from headscope.views import _html

SCRIPT = "atlas.js"
POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{title}</title>
</head>
<body style="margin:0">
<div id="headscope"></div>
<noscript>This page draws attention with JavaScript, which is switched off.</noscript>
<script src="{script}" defer></script>
</body>
</html>
"""
Data = Mapping[str, Any] | list[Any]


def write_page(
    folder: str | os.PathLike[str], title: str, data: Iterable[tuple[str, Data]]
) -> Path:
    """Write the folder; files that are there are replaced.

    Args:
        folder: to write.
        title: of the page.
        data: name and content of each script, ``"index"`` last, so that what it names is there.

    Returns:
        The path of index.html.

    Raises:
        FileError: where it cannot be written.
        PageError: where the viewer was not built.
    """
    folder = local_path(folder)
    try:
        (folder / "data").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"Cannot make the folder {folder}: {error.strerror}; choose another place"
        ) from None
    _write(folder / SCRIPT, _html.bundle(SCRIPT))
    for name, content in data:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        script = f'headscopeAtlas("{name}",{text.translate(_html.ESCAPES)})\n'
        _write(folder / "data" / f"{name}.js", script)
    page = TEMPLATE.format(policy=POLICY, title=html.escape(title), script=SCRIPT)
    _write(folder / "index.html", page)
    return folder / "index.html"


def short_number(value: float) -> float | None:
    """As JSON has it: four digits, and nothing for what is not known."""
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _write(path: Path, content: str) -> None:
    with written_whole(path) as temporary:
        # Tokens may hold halves of characters, which no file can.
        temporary.write_text(content, encoding="utf-8", errors="replace")
