"""Texts of a corpus: known by what they say, never by their place in it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from headscope.errors import TextError

Kept = tuple[dict[str, Any], dict[str, np.ndarray]]
"""The fields of something that JSON can hold, and its arrays by name."""
ALONE = "text "
"""Begins the name of the document of a text that belongs to no other."""


@dataclass(frozen=True)
class CorpusText:
    """One text of a corpus.

    Args:
        given: the text, a pair of texts as a list or tuple, or a mapping of texts and paths: what
            JSON can hold.
        group: the document that it is of; None for a text that belongs to no other.
        times: how often it is there in that document.

    Example:
        >>> CorpusText("The cat sat.").name == CorpusText("The cat sat.", group="a").name
        True
    """

    given: Any
    group: str | None = None
    times: int = 1

    @cached_property
    def name(self) -> str:
        """Its identifier: 32 hexadecimal digits of what it says.

        Random draws for a text are keyed by it, so that they depend on nothing but the text.
        """
        return f"{key_of('text', self.content, bits=128):032x}"

    @cached_property
    def content(self) -> str:
        """What it says, as JSON: the same for what is the same.

        Raises:
            TextError: where it holds what JSON cannot, such as a picture in memory.
        """
        try:
            return json.dumps(self.given, ensure_ascii=False, sort_keys=True)
        except (TypeError, ValueError) as error:
            raise TextError(
                f"A text of a run is written to a file, and this one holds something else "
                f"({error}); give texts, pairs of them, or rows with paths of pictures and sounds"
            ) from None

    @property
    def document(self) -> str:
        """The document, or the text itself where it is of none: what is drawn, and kept in one
        part.
        """
        return f"{ALONE}{self.name}" if self.group is None else self.group

    def copy_name(self, number: int) -> str:
        """A name that no other text has, not even its copies."""
        is_first = self.group is None and not number
        return self.name if is_first else f"{self.name} of {self.document}, {number}"


class TextNames:
    """Names of texts as they come; those of a run, whatever their order."""

    def __init__(self) -> None:
        self._times: Counter[tuple[str, str]] = Counter()

    def of(self, text: CorpusText) -> str:
        """A name that no other text has."""
        key = text.name, text.document
        self._times[key] += 1
        return text.copy_name(self._times[key] - 1)


def documents_of(examples: Iterable[Hashable]) -> tuple[str, ...]:
    """The document of each example, by its number: copies are of the document of the first of them,
    since what is said twice proves no more than once.
    """
    first: dict[Hashable, str] = {}
    return tuple(first.setdefault(each, f"{ALONE}{at:06}") for at, each in enumerate(examples))


def key_of(use: str, *words: str, bits: int = 64) -> int:
    """A number that belongs to some words: the same on every machine, and another for every use.

    A use has numbers of its own, so that which part a text goes to does not influence what is drawn
    for it.

    Args:
        use: what it is for, up to 16 letters.
        *words: what it belongs to.
        bits: how many the number has, a multiple of 8.

    Example:
        >>> key_of("cut", "a") == key_of("cut", "a"), key_of("cut", "a") == key_of("draw", "a")
        (True, False)
    """
    # Halves of characters come from files that were cut; they are as good a name as any.
    content = "\0".join(words).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(content, digest_size=bits // 8, person=use.encode())
    return int.from_bytes(digest.digest(), "big")
