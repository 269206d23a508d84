"""Texts from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headscope.errors import FileError

Text = Any
"""A text, a pair, or another value that a file holds in its place."""


def read_texts(path: Path) -> list[Text]:
    """The texts of a file: each line of .txt; in tables the field "text", and "text_b" for a pair.

    Fields may also be named as in GLUE, see `headscope.tasks.read_pairs`. A line of .jsonl may be a
    string, or a list of two. Empty lines are skipped. A row without a text is returned as it is, so
    that it is left out later and reported with its number.

    Raises:
        FileError: where the file cannot be read or holds no text.
    """
    from headscope.tasks import SUFFIXES, given_pairs, read_rows

    if path.suffix not in SUFFIXES:
        raise FileError(f"Expected {', '.join(SUFFIXES)} for --texts, got {path}")
    return given_pairs(read_rows(path), str(path))


def groups_of(path: Path | None) -> dict[str, Any]:
    """The option ``groups`` of a study over the texts of a file, from its field "group"; empty
    without such a field.
    """
    from headscope.tasks import read_groups, read_rows

    groups = None if path is None else read_groups(read_rows(path))
    return {} if groups is None else {"groups": groups}
