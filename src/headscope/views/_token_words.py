"""Positions of tokens that are chosen by their word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headscope.errors import PageError
from headscope.record import Words
from headscope.views.contract import PageTokens


def token_positions(
    side: str, wanted: Any, pieces: Sequence[str], labels: Sequence[str], *, words: Words
) -> list[int]:
    """Positions of tokens that were given by position or by word.

    A word is one token, as it is shown or as the vocabulary spells it; or several tokens that are
    shown as one word, which then are all chosen. Capitals count only where the text has both
    spellings.

    Args:
        side: ``"query"`` or ``"key"``, for messages.
        wanted: one or several positions or words.
        pieces: the tokens as the vocabulary spells them.
        labels: the tokens as they are shown.
        words: the words that they make.

    Raises:
        PageError: a word that does not exist, or occurs several times.
    """
    is_one = isinstance(wanted, str) or not hasattr(wanted, "__len__")
    given = [wanted] if is_one else list(wanted)
    positions: list[int] = []
    for each in given:
        positions += (
            _positions_of(side, each, (pieces, labels), words) if isinstance(each, str) else [each]
        )
    return positions


def _positions_of(
    side: str, word: str, tokens: tuple[Sequence[str], Sequence[str]], words: Words
) -> list[int]:
    pieces, labels = tokens
    spelled: list[tuple[tuple[int, ...], tuple[str, ...]]] = []
    for position, names in enumerate(zip(labels, pieces, strict=True)):
        spelled.append(((position,), (names[0].strip(), names[1])))
    for name, run in zip(words.names, words.tokens, strict=True):
        if len(run) > 1:
            spelled.append((run, (name.strip(),)))
    # The exact spelling first: a text may hold both "It" and "it".
    for same in (str, str.casefold):
        matches = [run for run, names in spelled if same(word) in map(same, names)]
        if len(matches) == 1:
            return list(matches[0])
        if matches:
            listed = ", ".join(str(run[0]) for run in matches)
            raise PageError(f"{side}={word!r} stands at {listed}; give one of these positions")
    shown = ", ".join(map(repr, dict.fromkeys(words.names[:40])))
    more = " ..." if len(words.names) > 40 else ""
    raise PageError(
        f"{side}={word!r}: there is no such token; there are {shown}{more}, or positions from 0"
    )


def words_of_page(tokens: PageTokens) -> Words:
    """The words of one side of a page."""
    starts = [at for at, continues in enumerate(tokens["continues"]) if not (continues and at)]
    ends = [*starts[1:], len(tokens["continues"])]
    runs = tuple(tuple(range(*run)) for run in zip(starts, ends, strict=True))
    return Words(tuple(tokens.get("words", tokens["labels"])), runs, ())
