"""Sentences as they travel to workers: mappings that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headscope.linguistics import Sentence

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
