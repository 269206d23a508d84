"""A page as an output of a notebook: in a frame of its own, which holds everything."""

from __future__ import annotations

from headscope.views import _html

HEIGHT = 720
"""Pixels, until the frame has reported its own; for good where the host runs no scripts."""

UNTRUSTED = (
    "<style>.headscope-untrusted { display: none }</style>"
    '<p class="headscope-untrusted">'
    "This view is shown in a trusted notebook only: File, Trust Notebook.</p>"
)
"""What is left where a notebook takes scripts, frames and styles out of what others wrote."""

FRAME = """<iframe data-headscope-frame sandbox="allow-scripts allow-downloads" title="headscope" \
style="width:100%;height:{height}px;border:0" srcdoc="{page}"></iframe>"""


def framed(page: str) -> str:
    """An HTML fragment that shows the page wherever it stands.

    The frame may run scripts and give files to save, and nothing else: it reaches neither the
    notebook around it nor the network. The script before it gives it the height and the colours
    that it asks for. A host that strips scripts shows it all the same, one that strips frames a
    line that says so.

    Args:
        page: a whole HTML file.
    """
    return f"<script>{_html.bundle('frame.js').strip()}</script>{bare_frame(page)}{UNTRUSTED}"


def bare_frame(page: str) -> str:
    """The frame of `framed` alone, for hosts that do not want a script."""
    escaped = page.replace("&", "&amp;").replace('"', "&quot;")
    # fragments are saved and opened as files that name no encoding
    return FRAME.format(height=HEIGHT, page=escaped).encode("ascii", "xmlcharrefreplace").decode()
