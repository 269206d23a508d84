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
from headscope.views.answer_contract import AnswerPicture
from headscope.views.contract import Page
from headscope.views.why_contract import WhyPicture

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


def page_html(
    page: Page | AnswerPicture | WhyPicture, chunks: Mapping[str, bytes], script: str = "page.js"
) -> str:
    """The whole file.

    Args:
        page: the header.
        chunks: bytes of every array that the header names, not yet compressed.
        script: the bundle that draws it.

    Raises:
        PageError: where the viewer bundle was not built.
    """
    script = bundle(script)
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
        raise PageError("The viewer bundle is missing: run `make bundle` (needs Node.js)")
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


HEIGHT = 720
"""Height in pixels until the frame has reported its own; it stays where a host runs no scripts."""

UNTRUSTED = (
    "<style>.headscope-untrusted { display: none }</style>"
    '<p class="headscope-untrusted">'
    "This view is shown in a trusted notebook only: File, Trust Notebook.</p>"
)
"""What a reader sees in an untrusted notebook, which removes scripts, frames and styles."""

FRAME = """<iframe data-headscope-frame sandbox="allow-scripts allow-downloads" title="headscope" \
style="width:100%;height:{height}px;border:0" srcdoc="{page}"></iframe>"""


def framed(page: str) -> str:
    """An HTML fragment that shows the page in any other document.

    The frame may run scripts and offer files to save, and nothing else: it reaches neither the
    notebook around it nor the network. The script before it gives it the height and the colours
    that it asks for. A host that removes scripts still shows the frame; one that removes frames
    shows a line that explains it.

    Args:
        page: a whole HTML file.
    """
    return f"<script>{bundle('frame.js').strip()}</script>{bare_frame(page)}{UNTRUSTED}"


def bare_frame(page: str) -> str:
    """The frame of `framed` alone, for hosts that do not want a script."""
    escaped = page.replace("&", "&amp;").replace('"', "&quot;")
    # Fragments are saved and opened as files that name no encoding.
    return FRAME.format(height=HEIGHT, page=escaped).encode("ascii", "xmlcharrefreplace").decode()


class FramedPage(file_page.FilePage):
    """A page that notebooks show in a frame."""

    def _repr_html_(self) -> str:
        return framed(self.html)

    def _mime_(self) -> tuple[str, str]:
        """The page in the form that marimo reads: without the script, which marimo would put into
        another frame of fixed height.
        """
        return "text/html", bare_frame(self.html)
