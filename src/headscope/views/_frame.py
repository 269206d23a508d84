"""A page as an output of a notebook: in a frame of its own, with all its data."""

from __future__ import annotations

from headscope.views import _html

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
    return f"<script>{_html.bundle('frame.js').strip()}</script>{bare_frame(page)}{UNTRUSTED}"


def bare_frame(page: str) -> str:
    """The frame of `framed` alone, for hosts that do not want a script."""
    escaped = page.replace("&", "&amp;").replace('"', "&quot;")
    # Fragments are saved and opened as files that name no encoding.
    return FRAME.format(height=HEIGHT, page=escaped).encode("ascii", "xmlcharrefreplace").decode()
