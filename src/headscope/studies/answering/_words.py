"""The words of an answer, from the tokens that were written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import east_asian_width

from headscope.record import Tokens

WITHOUT_SPACES = ("W", "F")
"""Widths of characters of scripts that put no space between words."""
UNDECODED = "\ufffd"
"""What a tokenizer gives for bytes that are not yet a whole character."""


@dataclass(frozen=True)
class AnswerWord:
    """A word, a mark of punctuation or a character of an answer.

    Args:
        text: as it is written.
        tokens: the tokens that it was written as, counted from the first one written.
    """

    text: str
    tokens: tuple[int, ...]


def words_of_answer(tokenizer: Any, written: Tokens) -> tuple[AnswerWord, ...]:
    """The words that tokens make; special tokens belong to none.

    A token continues a word where there is no space between them and both are letters or digits of
    a script that has spaces.

    Args:
        tokenizer: of the model.
        written: the tokens, with their ids.
    """
    added = _added(tokenizer, written)
    words: list[tuple[str, list[int]]] = []
    is_open = False
    for token, text in enumerate(added):
        if written.special[token]:
            is_open = False
            continue
        if not text.strip():
            # A token may be a part of a character, whose last byte makes it readable.
            is_open = is_open and not text
            continue
        begins = text[0].isspace() or not is_open
        if words and not begins and _joins(words[-1][0][-1], text[0]):
            words[-1] = (words[-1][0] + text.rstrip(), [*words[-1][1], token])
        else:
            words.append((text.strip(), [token]))
        is_open = not text[-1].isspace()
    return tuple(AnswerWord(text, tuple(tokens)) for text, tokens in words)


def _added(tokenizer: Any, written: Tokens) -> list[str]:
    """What each token adds to the text; empty for a part of a character."""
    ids = list(written.ids or ())
    before, added = "", []
    for count in range(1, len(ids) + 1):
        text = tokenizer.decode(ids[:count], skip_special_tokens=True)
        if text.endswith(UNDECODED) or not text.startswith(before):
            added.append("" if text.endswith(UNDECODED) else text[_shared(before, text) :])
        else:
            added.append(text[len(before) :])
        before = before if text.endswith(UNDECODED) else text
    return added


def _shared(first: str, second: str) -> int:
    """How many characters two texts begin with alike."""
    pairs: Sequence[tuple[str, str]] = list(zip(first, second, strict=False))
    return next((index for index, (a, b) in enumerate(pairs) if a != b), len(pairs))


def _joins(before: str, after: str) -> bool:
    """Whether two characters that stand side by side are of one word."""
    has_spaces = not {east_asian_width(before), east_asian_width(after)} & set(WITHOUT_SPACES)
    return before.isalnum() and after.isalnum() and has_spaces
