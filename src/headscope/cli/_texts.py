"""Texts from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headscope.errors import FileError

Text = Any
"""A text, a pair, or what stands in a file in place of one."""


def read_texts(path: Path) -> list[Text]:
    """The texts of a file: .txt a text a line; other tables the field "text", and "text_b" for a
    pair.

    Fields may also be named as in GLUE, see `headscope.tasks.read_pairs`. A line of .jsonl may be a
    string, or a list of two. Empty lines are passed over; a row without a text is given as it is,
    to be left out and named.

    Raises:
        FileError: where the file cannot be read or holds no text.
    """
    from headscope.tasks import SUFFIXES, given_pairs, read_rows

    if path.suffix not in SUFFIXES:
        raise FileError(f"Expected {', '.join(SUFFIXES)} for --texts, got {path}")
    return given_pairs(read_rows(path), str(path))


def groups_of(path: Path | None) -> dict[str, Any]:
    """The option ``groups`` of a study over the texts of a file: its field "group"; none where it
    has none.
    """
    from headscope.tasks import read_groups, read_rows

    groups = None if path is None else read_groups(read_rows(path))
    return {} if groups is None else {"groups": groups}
