"""Texts from files."""

from __future__ import annotations

from pathlib import Path

from headscope.errors import FileError
from headscope.tasks import SUFFIXES, read_pairs, read_rows

Text = str | tuple[str, str]


def read_texts(path: Path) -> list[Text]:
    """The texts of a file: .txt a text a line; other tables the field "text", and "text_b" for a pair.

    Fields may also be named as in GLUE, see `headscope.tasks.read_pairs`. A line of .jsonl may be a string, or a list
    of two. Empty lines are left out.

    Raises:
        FileError: where the file cannot be read or holds no text.
    """
    if path.suffix not in SUFFIXES:
        raise FileError(f"--texts is {path}; texts are read from {', '.join(SUFFIXES)}")
    return read_pairs(read_rows(path), str(path))
