"""The one HTML file around a page's JSON, bytes and script.

Only our own script can run, and nothing can send a request: the content security policy allows
exactly the bundle, by its hash, and no request at all. Text of users is in three parts of the file:
the title, escaped; the JSON, in which every ``<``, ``>`` and ``&`` is written as an escape, so that
no token can end the element around it; and the names of chunks, which contain the names of stacks
and are percent-encoded as the browser does it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from urllib.parse import quote

from headscope.errors import PageError
from headscope.views import file_page
from headscope.views.contract import Page

ESCAPES = {code: f"\\u{code:04x}" for code in (*map(ord, "<>&\u2028\u2029"), *range(0x7F, 0xA0))}
"""Also control characters that HTML replaces with others where they are given by number, as in a
frame.
"""

AS_THEY_ARE = "/!'()*"
"""What the browser's encodeURIComponent leaves as it is, besides letters, digits and ``-_.~``; and
the slash.
"""

POLICY = (
    "default-src 'none'; script-src '{script_hash}'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
VIEWER = """<div id="headscope"></div>
<noscript>This page draws attention with JavaScript, which is switched off.</noscript>
"""


def document(title: str, *, head: str, body: str) -> str:
    """The HTML around the viewer.

    Args:
        title: the title as users wrote it.
        head: further content of the head, as HTML.
        body: content after the element that the viewer draws in, as HTML.
    """
    paper = "<style>@page { size: A4 landscape; margin: 10mm }</style>"
    return file_page.document(title, head=f"{head}\n{paper}", body=VIEWER + body)


def page_html(page: Page, chunks: Mapping[str, bytes]) -> str:
    """The whole file.

    Args:
        page: the header.
        chunks: bytes of every array that the header names, not yet compressed.

    Raises:
        PageError: where the viewer bundle was not built.
    """
    script = bundle()
    with ThreadPoolExecutor() as pool:  # compressing releases the interpreter's lock
        texts = zip(chunks, pool.map(_base64, chunks.values()), strict=True)
    # Read after the pool is closed: closing it waits until all chunks are compressed.
    named = ((html.escape(quote(name, safe=AS_THEY_ARE)), data) for name, data in texts)
    header = json.dumps(page, ensure_ascii=False).translate(ESCAPES)
    parts = [
        f'<script type="application/json" id="headscope-page">{header}</script>',
        "\n".join(
            f'<script type="application/octet-stream" data-chunk="{name}">{data}</script>'
            for name, data in named
        ),
        f'<script type="module">{script}</script>',
    ]
    policy = file_page.policy_of(POLICY.format(script_hash=script_hash(script)))
    return document(page["title"], head=policy, body="\n".join(parts))


@cache
def bundle(name: str = "page.js") -> str:
    """A script of the viewer: for a self-contained page, for live pages, or for the notebook around
    a frame.

    Raises:
        PageError: where the script was not built.
    """
    script = files("headscope.views") / "static" / name
    if not script.is_file():
        raise PageError(
            "The viewer bundle is missing from this checkout: run `make bundle` (needs Node.js)"
        )
    return script.read_text(encoding="utf-8")


def packed(data: bytes) -> bytes:
    """The bytes of a chunk as they travel: gzip."""
    # Level 4 takes 0.4 of the time of level 6 for 2 % more bytes (measured on 512 tokens of prose).
    # No time stamp, so that the same record gives the same page, byte for byte.
    return gzip.compress(data, compresslevel=4, mtime=0)


def script_hash(script: str) -> str:
    """The name of a script in a content security policy that allows it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _base64(data: bytes) -> str:
    return base64.b64encode(packed(data)).decode()
