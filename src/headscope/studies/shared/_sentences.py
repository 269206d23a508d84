"""Sentences as users give them, and as they travel to workers: mappings that JSON can hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from headscope.errors import RecordError
from headscope.linguistics import Sentence, Treebank, read_treebank

FIELDS = ("words", "heads", "relations", "upos", "xpos", "name", "written", "document")
"""Of a sentence; not the line in its file, which is no part of it."""
LISTS = ("words", "heads", "relations", "upos", "xpos")


def given_of(sentence: Sentence) -> dict[str, Any]:
    """A sentence as a mapping."""
    given = {name: getattr(sentence, name) for name in FIELDS}
    return given | {"contractions": sentence.contractions}


def sentence_of(given: Mapping[str, Any]) -> Sentence:
    """The sentence that a mapping says."""
    fields: dict[str, Any] = {name: given[name] for name in FIELDS}
    fields |= {name: tuple(given[name]) for name in LISTS}
    contractions = tuple((first, stop, form) for first, stop, form in given["contractions"])
    return Sentence(**fields, contractions=contractions)


def parse_treebank(treebank: Any) -> Treebank:
    """A treebank from what users have.

    Raises:
        FileError: where a file cannot be read.
        RecordError: where it is none.
    """
    if isinstance(treebank, Treebank):
        return treebank
    if isinstance(treebank, str | os.PathLike):
        return read_treebank(treebank)
    listed = tuple(treebank) if isinstance(treebank, Iterable) else ()
    if not listed or not all(isinstance(each, Sentence) for each in listed):
        raise RecordError(
            f"A treebank was given as {type(treebank).__name__}; expected a file in CoNLL-U, a "
            "Treebank or its sentences"
        )
    return Treebank("sentences", listed)
