"""Texts that ship with headscope, to try a study without a file of your own."""

from __future__ import annotations

from headscope.storage.rows import EXAMPLE, read_rows

__all__ = ["example"]


def example() -> list[str]:
    """Sixty English sentences, written for headscope and in the public domain (CC0 1.0).

    On the command line they are ``--texts example``.
    """
    return [row["text"] for row in read_rows(EXAMPLE)]
