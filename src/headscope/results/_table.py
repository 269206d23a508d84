"""Text tables."""

from __future__ import annotations


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows of text as lines whose columns stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
