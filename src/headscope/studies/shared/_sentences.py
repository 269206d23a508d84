"""Sentences as users give them, and as they travel to workers: mappings that JSON can hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from headscope.errors import RecordError
from headscope.linguistics import Sentence, Treebank, read_treebank

FIELDS = ("words", "heads", "relations", "upos", "xpos", "name", "written", "document")
FIELDS += ("contractions",)
"""Of a sentence; not the line in its file, which is no part of it."""


def given_of(sentence: Sentence) -> dict[str, Any]:
    """A sentence as a mapping."""
    return {name: getattr(sentence, name) for name in FIELDS}


def sentence_of(given: Mapping[str, Any]) -> Sentence:
    """The sentence that a mapping says."""
    own: dict[str, Any] = dict(given)
    for name in ("words", "heads", "relations", "upos", "xpos"):
        own[name] = tuple(own[name])
    own["contractions"] = tuple(map(tuple, given["contractions"]))
    return Sentence(**own)


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
