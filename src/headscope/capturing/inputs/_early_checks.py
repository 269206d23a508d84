"""What can be told of a text or of a model's name before torch is imported, which takes seconds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headscope.errors import ModelError, TextError

HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def check_text(text: Any, name: str = "text") -> str:
    """The text, which must be a string that is not blank.

    Raises:
        TextError: where it is not, or holds half of a character.
    """
    if not isinstance(text, str):
        raise TextError(f"{name} must be a string, not {type(text).__name__}")
    if not text.strip():
        raise TextError(f"The {name} is empty; give at least one word")
    # Surrogates, which files read with errors="surrogateescape" hold, cannot be written as UTF-8.
    half = next(
        (place for place, letter in enumerate(text) if "\ud800" <= letter <= "\udfff"), None
    )
    if half is not None:
        raise TextError(
            f"The {name} holds half of a character (U+{ord(text[half]):04X} at position {half}), "
            "which no tokenizer reads; take it out, or write the whole character"
        )
    return text


def rows_of(texts: Any) -> Any:
    """The rows of a table (pandas, polars, Arrow), which itself would give its columns; anything
    else as it is.
    """
    if hasattr(texts, "iterrows"):
        return texts.to_dict("records")
    if hasattr(texts, "iter_rows"):
        return list(texts.iter_rows(named=True))
    return texts.to_pylist() if hasattr(texts, "to_pylist") else texts


def check_name(name: str | Path) -> None:
    """Raise where a model is neither in a folder nor called as models of the hub are.

    Raises:
        ModelError: saying how a name looks.
    """
    if not Path(name).exists() and not HUB_NAME.fullmatch(str(name)):
        raise ModelError(
            f"There is no folder {str(name)!r}, and a hub name looks like "
            "'google-bert/bert-base-uncased'"
        )


def check_revision(name: str | Path | None, revision: Any) -> str:
    """A revision, which only a repository on the hub has.

    Raises:
        ModelError: where the model is in a folder, or the demo model.
    """
    if name is None or Path(name).exists():
        what = "the demo model" if name is None else f"the folder {str(name)!r}"
        raise ModelError(
            f"revision={revision!r} is of a repository on the hub, and {what} has none; leave it "
            "out"
        )
    return str(revision)
