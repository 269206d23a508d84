"""Text that any page can hold."""

from __future__ import annotations


def valid(text: str) -> str:
    """The text without lone surrogates, which no UTF-8 file can hold."""
    return text.encode("utf-8", "replace").decode()
