"""Base of everything that is one page: saving it, and opening it in a browser."""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from pathlib import Path

from headscope.errors import FileError, HeadscopeError
from headscope.storage import written_whole

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
"""No script runs and nothing is requested: the page is text, and a picture that it contains."""
TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{head}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="{schemes}">
<title>{title}</title>
</head>
<body style="margin:0">
{body}
</body>
</html>
"""
PAGES = (".html", ".htm", ".xhtml")


class FilePage:
    """Something with ``html``, the whole of one self-contained page."""

    @property
    def html(self) -> str:
        """The page as one self-contained file."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all.

        Raises:
            FileError: where it cannot be written, or its name does not end like a page (``.html``).
        """
        if Path(path).suffix.lower() not in PAGES:
            name = Path(path) if Path(path).name else Path(path) / "view"
            raise FileError(
                f"A view is a page, and the path is {str(path) or 'empty'}; name it "
                f"{name.with_suffix(PAGES[0])}"
            )
        # Made before the file is opened: an error here leaves an existing file alone.
        text = self.html
        with written_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return Path(path)

    def open(self) -> Path:
        """Write the page into a temporary folder and open it in the browser.

        Raises:
            HeadscopeError: where there is no browser; the file stays.
        """
        path = self.save(Path(tempfile.mkdtemp(prefix="headscope-")) / "view.html")
        open_page(path.as_uri())
        return path


def open_page(address: str) -> None:
    """Open an address in the user's browser.

    Raises:
        HeadscopeError: where there is none.
    """
    if not webbrowser.open(address):
        raise HeadscopeError(f"No browser could be opened; open {address} yourself")


def whole_page(title: str, styles: str, body: str) -> str:
    """A page without a script as one self-contained file; the title is escaped."""
    head = f"{policy_of(POLICY)}\n<style>{styles}</style>"
    return document(title, head=head, body=body, schemes="normal")


def document(title: str, *, head: str, body: str, schemes: str = "light dark") -> str:
    """The HTML of a page.

    Args:
        title: the title as users wrote it.
        head: further content of the head, as HTML.
        body: content, as HTML.
        schemes: light and dark, where the page has both.
    """
    title = html.escape(" ".join(title.split()))
    return TEMPLATE.format(title=title, head=head, body=body, schemes=schemes)


def policy_of(policy: str) -> str:
    """A content security policy in the head of a page."""
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
